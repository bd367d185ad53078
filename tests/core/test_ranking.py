import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from fcer.core.rank_counts import cells_of, nested_counts
from fcer.core.ranking import (
    augrc_loss,
    auprc_score,
    aurc_loss,
    auroc_score,
    excess_aurc_loss,
    fpr_at_tpr_loss,
    ranking_scores,
)
from fcer.errors import UndefinedMetricWarning

METRICS = [auroc_score, auprc_score, fpr_at_tpr_loss, aurc_loss, excess_aurc_loss, augrc_loss]


@st.composite
def ranked_pixels(draw, n_rings: int = 1):
    """Both classes, with anything from no tie to nothing but ties."""
    n = draw(st.integers(2, 60))
    levels = draw(st.integers(1, 30))
    dtype = draw(st.sampled_from([np.float16, np.float32, np.float64]))
    score = (draw(arrays(int, n, elements=st.integers(0, levels))) / levels).astype(dtype)
    positive = draw(arrays(bool, n))
    positive[:2] = True, False
    return positive, score, draw(arrays(np.uint8, n, elements=st.integers(0, n_rings - 1)))


def expected_aurc(error: np.ndarray, unc: np.ndarray) -> float:
    """AURC by its definition; tied pixels enter as fractions of an error, which is what random order expects."""
    _, tie = np.unique(unc, return_inverse=True)
    rate = np.bincount(tie, weights=error) / np.bincount(tie)
    entering = rate[np.sort(tie)]
    return float(np.mean(np.cumsum(entering) / np.arange(1, len(error) + 1)))


def expected_augrc(error: np.ndarray, unc: np.ndarray) -> float:
    """Area under (coverage, share of all pixels kept and wrong), by trapezoids over the pixels."""
    _, tie = np.unique(unc, return_inverse=True)
    rate = np.bincount(tie, weights=error) / np.bincount(tie)
    kept_wrong = np.concatenate([[0], np.cumsum(rate[np.sort(tie)])]) / len(error)
    return float(np.trapezoid(kept_wrong, dx=1 / len(error)))


@given(ranked_pixels())
def test_scores_are_scikit_learns(pixels):
    positive, score, _ = pixels
    assert auroc_score(positive, score) == pytest.approx(roc_auc_score(positive, score), abs=1e-12)
    assert auprc_score(positive, score) == pytest.approx(average_precision_score(positive, score), abs=1e-12)
    fpr, tpr, _ = roc_curve(positive, score, drop_intermediate=False)
    assert fpr_at_tpr_loss(positive, score) == pytest.approx(fpr[tpr >= 0.95].min(), abs=1e-12)


@given(ranked_pixels())
def test_risk_coverage_areas_follow_their_definitions(pixels):
    error, unc, _ = pixels
    assert aurc_loss(error, unc) == pytest.approx(expected_aurc(error, unc), abs=1e-12)
    assert augrc_loss(error, unc) == pytest.approx(expected_augrc(error, unc), abs=1e-12)
    best = expected_aurc(np.sort(error), np.arange(len(error)))
    assert excess_aurc_loss(error, unc) == pytest.approx(expected_aurc(error, unc) - best, abs=1e-12)


@given(ranked_pixels(n_rings=4))
def test_nested_regions_are_each_regions_own_scores(pixels):
    positive, score, ring = pixels
    cell = cells_of(np.arange(len(score)) % 3 == 0, positive)
    rest = (cell == 0) & (ring == 3)
    regions = list(nested_counts(score[~rest], cell[~rest], ring[~rest], 4, np.sort(score[rest])))
    for k, counts in enumerate(regions):
        inside = ring <= k
        scores = ranking_scores(counts)
        found = scores.auroc, scores.auprc, *scores[-4:]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            alone = [metric(positive[inside], score[inside]) for metric in METRICS]
        np.testing.assert_allclose(found, alone, atol=1e-12)


@pytest.mark.parametrize("metric", METRICS)
@given(pixels=ranked_pixels())
def test_only_the_order_of_scores_matters(metric, pixels):
    positive, score, _ = pixels
    shuffle = np.random.default_rng(0).permutation(len(score))
    stretched = np.exp(3 * score.astype(np.float64)) - 7
    assert metric(positive, score) == metric(positive, stretched)
    assert metric(positive[shuffle], score[shuffle]) == pytest.approx(metric(positive, score), abs=1e-12)


@given(ranked_pixels())
def test_auroc_of_the_opposite_score(pixels):
    positive, score, _ = pixels
    assert auroc_score(positive, -score) == pytest.approx(1 - auroc_score(positive, score), abs=1e-12)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("positive", [[], [0], [1], [0, 0], [1, 1]])
def test_one_class_is_undefined(metric, positive):
    with pytest.warns(UndefinedMetricWarning, match="is undefined for . positives and . negatives and is NaN"):
        assert np.isnan(metric(np.array(positive), np.linspace(0, 1, len(positive))))


def test_a_constant_score_is_chance():
    positive, constant = np.array([1, 0, 0, 0]), np.full(4, 0.3)
    assert auroc_score(positive, constant) == 0.5
    assert auprc_score(positive, constant) == 0.25
    assert aurc_loss(positive, constant) == pytest.approx(0.25)


def test_negative_zero_ties_with_zero():
    assert auroc_score([1, 0], np.array([-0.0, 0.0], np.float32)) == 0.5


def test_large_ties_keep_their_precision():
    n = 2_000_000
    error, unc = np.zeros(n, bool), np.repeat(np.arange(n // 2), 2)
    error[-1000:] = True
    assert aurc_loss(error, unc) == pytest.approx(expected_aurc(error, unc), rel=1e-6)
