"""Two rankers that are told of the same pixels: the same counts, but for codes that round, and those within a bound."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcer.core.calibration import mass_reliability, reliability_curve
from fcer.core.codes import CODE_VALUES, codes_of
from fcer.core.rank_bounds import RankBound
from fcer.core.rank_counts import cells_of
from fcer.core.rankers import CodedRanks, SortedRanks
from fcer.core.ranking import RankingScores, auprc, auroc, ranking_scores

N_RINGS = 3


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
    wrong = rng.random(n) < draw(st.sampled_from([0.0, 0.05, 0.5, 1.0]))
    cell = cells_of(rng.random(n) < draw(st.sampled_from([0.0, 0.3, 1.0])), wrong)
    ring = rng.integers(0, N_RINGS, n).astype(np.uint8)
    return scores.astype(draw(st.sampled_from([np.float16, np.float32, np.float64]))), cell, ring


def told(ranks, scores, cell, ring, cut=0):
    """A ranker that was told of the pixels in two pieces, those that may be as the rest."""
    pieces = []
    for some in (np.arange(len(scores)) < cut, np.arange(len(scores)) >= cut):
        piece = ranks(N_RINGS)
        rest = (cell == 0) & (ring == N_RINGS - 1) & some
        piece.update(scores[some & ~rest], cell[some & ~rest], ring[some & ~rest])
        piece.update_rest(scores[rest])
        pieces.append(piece)
    pieces[0].merge(pieces[1])
    return pieces[0]


def scored(ranks) -> list[RankingScores]:
    return [ranking_scores(counts) for counts in ranks.regions()]


@given(some_pixels(), st.integers(0, 300))
def test_codes_rank_as_their_values_sorted(pixels, cut):
    scores, cell, ring = pixels
    coded = told(CodedRanks, *pixels, cut)
    exact = told(SortedRanks, CODE_VALUES[codes_of(scores)], cell, ring, len(scores) - cut)
    np.testing.assert_allclose(scored(coded), scored(exact), rtol=0, atol=1e-12)
    for ours, theirs in zip(coded.value_counts(), exact.value_counts(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@given(some_pixels())
def test_exact_metrics_lie_within_the_bound(pixels):
    coded, exact = (told(ranks, *pixels) for ranks in (CodedRanks, SortedRanks))
    bound = coded.bound()
    if pixels[0].dtype == np.float16:
        assert bound == RankBound()
    assert exact.bound() == RankBound()
    limits = bound._asdict()
    limits |= {"auroc_within": bound.within, "auroc_alarms": bound.within, "auroc_missed": bound.within}
    limits |= {"e_aurc": bound.aurc, "augrc": bound.auroc / 4, "false_alarm_share": 0}
    for ours, theirs in zip(scored(coded), scored(exact), strict=True):
        for name, value in ours._asdict().items():
            np.testing.assert_allclose(value, getattr(theirs, name), rtol=0, atol=limits[name] + 1e-12, err_msg=name)


@pytest.mark.parametrize("errors_first", [True, False])
def test_the_bound_is_reached(errors_first):
    # all within one code: the best or the worst order is as far as one can be from a tie
    cell, ring = np.array([1, 1, 0, 0, 0]), np.zeros(5, np.uint8)
    scores = 0.7 + np.array([4, 3, 2, 1, 0] if errors_first else [0, 1, 2, 3, 4]) * 1e-7
    coded, exact = (told(ranks, scores, cell, ring) for ranks in (CodedRanks, SortedRanks))
    bound, found, true = coded.bound(), scored(coded)[0], scored(exact)[0]
    assert abs(found.auroc - true.auroc) == pytest.approx(bound.auroc) == pytest.approx(0.5)
    if errors_first:
        assert true.auprc - found.auprc == pytest.approx(bound.auprc)
        assert found.fpr95 - true.fpr95 == pytest.approx(bound.fpr95) == 1
    else:
        assert true.aurc - found.aurc == pytest.approx(bound.aurc)


def test_bounds_of_many_pixels_stay_positive_and_small():
    rng = np.random.default_rng(0)
    scores = rng.random(400_000)
    wrong = rng.random(scores.size) < scores / 10
    bound = told(CodedRanks, scores, cells_of(scores > 0.5, wrong), np.zeros(scores.size, np.uint8)).bound()
    for name, value in bound._asdict().items():
        assert 0 < value < 1e-3, name


def test_pairs_beyond_64_bits_are_counted_in_floating_point():
    small, large = CodedRanks(1), CodedRanks(1)
    scores, cells = np.array([0.1, 0.2, 0.1, 0.2]), np.array([1, 1, 0, 0], np.uint8)
    for ranks, times in ((small, 1), (large, 10**9)):
        ranks.update(scores, cells, np.zeros(4, np.uint8))
        ((found, _),) = ranks._cells
        ranks._cells = [(found, times * np.array([3, 1, 2, 4]))]
    (few,), (many,) = small.regions(), large.regions()
    assert float(auroc(many.pooled)) == pytest.approx(float(auroc(few.pooled)), rel=1e-12)
    assert float(auprc(many.pooled)) == pytest.approx(float(auprc(few.pooled)), rel=1e-12)


@given(some_pixels())
def test_reliability_in_bins_of_equal_mass(pixels):
    scores, cell, _ = pixels
    found = mass_reliability(*told(CodedRanks, *pixels).value_counts())
    expected = reliability_curve(cell % 2, CODE_VALUES[codes_of(scores)], binning="mass")
    for name in found._fields:
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("ranks", [SortedRanks, CodedRanks])
def test_no_pixels_at_all(ranks):
    assert mass_reliability(*ranks(1).value_counts()).n_pixels.size == 0
    (counts,) = ranks(1).regions()
    assert np.isnan(float(auprc(counts.pooled)))
