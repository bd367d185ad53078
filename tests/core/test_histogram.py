import math

import numpy as np
import pytest
from fcer.core.histogram import RankBound, histogram_counts, mass_reliability, rank_bound
from hypothesis import given
from hypothesis import strategies as st

from fcer.core.calibration import reliability_curve
from fcer.core.codes import CODE_VALUES, N_CODES, codes_of, rounded_codes
from fcer.core.ranking import auprc, auroc, rank_counts, ranking_scores


def histograms(positive, scores):
    codes = codes_of(scores)
    return np.bincount(codes[positive], minlength=N_CODES), np.bincount(codes, minlength=N_CODES)


def rounded(scores):
    mask = np.zeros(N_CODES, dtype=bool)
    mask[rounded_codes(scores, codes_of(scores))] = True
    return mask


@st.composite
def some_pixels(draw):
    """Few or many pixels whose scores tie, lie within one code, or lie far apart; perhaps of one class only."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 300))
    kind = draw(st.sampled_from(["ties", "crowded", "spread", "small"]))
    scores = {
        "ties": rng.integers(0, 4, n) / 3,
        "crowded": 0.5 + rng.random(n) * 1e-3,
        "spread": rng.random(n),
        "small": rng.random(n) ** 30,
    }[kind]
    positive = rng.random(n) < draw(st.sampled_from([0.0, 0.05, 0.5, 1.0]))
    return positive, scores.astype(draw(st.sampled_from([np.float16, np.float32, np.float64])))


@given(some_pixels())
def test_metrics_are_those_of_the_coded_scores(pixels):
    positive, scores = pixels
    found = ranking_scores(histogram_counts(*histograms(positive, scores)))
    expected = ranking_scores(rank_counts(positive, CODE_VALUES[codes_of(scores)]))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@given(some_pixels())
def test_exact_metrics_lie_within_the_bound(pixels):
    positive, scores = pixels
    counts = histogram_counts(*histograms(positive, scores))
    bound = rank_bound(*histograms(positive, scores), rounded(scores))
    exact = rank_counts(positive, scores)
    if not counts.both_classes:
        assert bound == RankBound()
        return
    assert abs(float(auroc(counts) - auroc(exact))) <= bound.auroc + 1e-12
    assert abs(float(auprc(counts) - auprc(exact))) <= bound.auprc + 1e-12
    if scores.dtype == np.float16:
        assert bound == RankBound()


@pytest.mark.parametrize("errors_first", [True, False])
def test_the_bound_is_reached(errors_first):
    # all within one code: the best or the worst order is as far as one can be from a tie
    positive = np.array([True, True, False, False, False])
    scores = 0.7 + np.array([4, 3, 2, 1, 0] if errors_first else [0, 1, 2, 3, 4]) * 1e-7
    counts = histogram_counts(*histograms(positive, scores))
    bound = rank_bound(*histograms(positive, scores), rounded(scores))
    exact = rank_counts(positive, scores)
    assert abs(float(auroc(counts) - auroc(exact))) == pytest.approx(bound.auroc) == pytest.approx(0.5)
    if errors_first:
        assert float(auprc(exact) - auprc(counts)) == pytest.approx(bound.auprc)


def test_numbers_that_codes_stand_for_are_ties_and_widen_no_bound():
    positive, scores = np.array([True, False, True, False]), np.array([0.0, 0.0, 1.0, 1.0])
    assert rank_bound(*histograms(positive, scores), rounded(scores)) == RankBound()


def test_bounds_of_many_pixels_stay_positive_and_small():
    rng = np.random.default_rng(0)
    scores = rng.random(400_000)
    positive = rng.random(scores.size) < scores / 10
    bound = rank_bound(*histograms(positive, scores), rounded(scores))
    assert 0 < bound.auroc < 1e-3
    assert 0 < bound.auprc < 1e-3


def test_pairs_beyond_64_bits_are_counted_in_floating_point():
    positives, pixels = np.zeros((2, N_CODES), dtype=np.int64)
    positives[[100, 200]] = 2_000_000_000, 4_000_000_000
    pixels[[100, 200]] = 2_000_000_000 + 3 * 10**9, 4_000_000_000 + 10**9
    small = histogram_counts(positives // 10**9, pixels // 10**9)
    large = histogram_counts(positives, pixels)
    assert float(auroc(large)) == pytest.approx(float(auroc(small)), rel=1e-12)
    assert float(auprc(large)) == pytest.approx(float(auprc(small)), rel=1e-12)


def test_several_regions_at_once():
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 9, (3, 40))
    positives = rng.integers(0, pixels + 1)
    together = auprc(histogram_counts(positives, pixels))
    apart = [float(auprc(histogram_counts(*one))) for one in zip(positives, pixels, strict=True)]
    np.testing.assert_allclose(together, apart, rtol=1e-14)


@given(some_pixels())
def test_reliability_in_bins_of_equal_mass(pixels):
    fire, prob = pixels
    codes = codes_of(prob)
    found = mass_reliability(*histograms(fire, prob))
    expected = reliability_curve(fire, CODE_VALUES[codes], binning="mass")
    for name in found._fields:
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12, atol=1e-15)


def test_reliability_of_no_pixels():
    assert mass_reliability(*np.zeros((2, N_CODES), dtype=np.int64)).n_pixels.size == 0
    assert math.isnan(float(auprc(histogram_counts(*np.zeros((2, N_CODES), dtype=np.int64)))))
