import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import average_precision_score, roc_auc_score

from fcer.core.bootstrap import (
    Replicates,
    Resamples,
    bootstrap_median,
    bootstrap_ranking,
    bootstrap_ratio,
    draw_fires,
    percentile_interval,
)
from fcer.core.codes import CODE_VALUES, codes_of
from fcer.core.levels import LEVELS, LevelCounts, level_of_code
from fcer.core.rank_counts import counts_by_level
from fcer.core.ranking import auprc


@st.composite
def pixels_of_fires(draw):
    n, n_fires = draw(st.integers(2, 40)), draw(st.integers(1, 6))
    score = draw(arrays(int, n, elements=st.integers(0, 9))) / 9
    fire = draw(arrays(int, n, elements=st.integers(0, n_fires - 1)))
    draws = draw_fires(n_fires, 5, np.random.default_rng(draw(st.integers(0, 99))))
    return score, draw(arrays(bool, n)), fire, draws


@given(pixels_of_fires(), st.integers(0, 40))
def test_ap_of_a_draw_from_levels_is_that_of_its_pixels_repeated(sample, cut):
    score, positive, fire, draws = sample
    levels = level_of_code[codes_of(score)]
    whole, part = LevelCounts(2, draws), LevelCounts(2)
    for counts, some in ((whole, slice(0, cut)), (part, slice(cut, None))):
        image = np.arange(fire[some].size)
        counts.update(fire[some], image, codes_of(score[some]), positive[some])
    whole.merge(part)
    found = np.concatenate([auprc(counts_by_level(rows[..., 1], rows[..., 0])) for rows in whole.rows()])
    for ap, weights in zip(found, draws, strict=True):
        drawn = np.repeat(np.arange(len(score)), weights[fire])
        if 0 < positive[drawn].sum() < len(drawn):
            assert ap == pytest.approx(average_precision_score(positive[drawn], levels[drawn]), abs=1e-12)
        else:
            assert np.isnan(ap)


def test_levels_follow_the_values():
    assert (np.diff(level_of_code.astype(int)) >= 0).all() and LEVELS < 2048
    for low, high, width in ((1e-8, 2**-12, 1 / 16), (2**-12, 0.5, 1 / 64), (0.5, 1 - 2**-6, 1 / 64)):
        values = np.geomspace(low, high, 999)[:-1] if high <= 0.5 else 1 - np.geomspace(1 - high, 0.5, 999)
        of_code = CODE_VALUES[(values[0] <= CODE_VALUES) & (high > CODE_VALUES)]
        level = level_of_code[codes_of(of_code)]
        for one in np.unique(level)[1:-1]:
            some = of_code[level == one]
            near = np.minimum(some, 1 - some)
            assert near.max() - near.min() <= width * near.max() * (1 + 1e-9)


@given(pixels_of_fires())
def test_ranking_of_a_draw_is_that_of_its_pixels_repeated(sample):
    score, positive, fire, draws = sample
    found = np.transpose(bootstrap_ranking(score, positive, fire, draws))
    for scores, weights in zip(found, draws, strict=True):
        drawn = np.repeat(np.arange(len(score)), weights[fire])
        if 0 < positive[drawn].sum() < len(drawn):
            expected = (
                roc_auc_score(positive[drawn], score[drawn]),
                average_precision_score(positive[drawn], score[drawn]),
            )
            np.testing.assert_allclose(scores, expected, atol=1e-12)
        else:
            assert np.isnan(scores).all()


@given(pixels_of_fires())
def test_median_and_ratio_of_a_draw(sample):
    values, unknown, fire, draws = sample
    values = np.where(unknown, np.nan, values)
    medians = bootstrap_median(values, fire, draws)
    means = bootstrap_ratio(values, np.ones_like(values), fire, draws)
    for median, mean, weights in zip(medians, means, draws, strict=True):
        drawn = np.repeat(values, weights[fire])
        drawn = drawn[~np.isnan(drawn)]
        if drawn.size:
            assert median == np.median(drawn)
            assert mean == pytest.approx(drawn.mean())
        else:
            assert np.isnan([median, mean]).all()


def test_every_draw_has_as_many_fires_as_there_are(rng):
    draws = draw_fires(7, 100, rng)
    assert (draws.sum(axis=1) == 7).all()
    assert draws.mean(axis=0) == pytest.approx(np.ones(7), abs=0.5)
    assert draw_fires(0, 3, rng).shape == (3, 0)


def test_the_interval_covers_the_truth_as_often_as_it_says(rng):
    covered = 0
    for _ in range(200):
        values, fire = rng.standard_normal(40), np.arange(40)
        draws = bootstrap_ratio(values, np.ones(40), fire, draw_fires(40, 300, rng))
        low, high = percentile_interval(draws)
        covered += low <= 0 <= high
    assert 0.88 <= covered / 200 <= 0.99


def coverage(draw_scores, truth, rng) -> dict[str, float]:
    """How often intervals of the mean of 7 fires' scores, by size, hold the truth."""
    held = {"percentiles": 0, "ours": 0}
    for _ in range(400):
        scores, sizes = draw_scores(rng), rng.integers(5, 15, 7)
        resamples = Resamples.draw(7, 1000, rng)
        rows = bootstrap_ratio(scores * sizes, sizes, np.arange(7), resamples.weights)
        found = resamples.replicates(rows)
        for name, (low, high) in (
            ("percentiles", percentile_interval(found.draws)),
            ("ours", found.interval(found.whole)),
        ):
            held[name] += low <= truth <= high
    return {name: times / 400 for name, times in held.items()}


SCORES = {
    "symmetric": (lambda rng: rng.standard_normal(7), 0.0),
    "skewed, as scores are": (lambda rng: rng.beta(4, 2, 7), 2 / 3),
}


@pytest.mark.parametrize("case", SCORES)
def test_intervals_of_seven_fires_hold_the_truth_nearly_as_often_as_they_say(case):
    held = coverage(*SCORES[case], np.random.default_rng(0))
    assert 0.82 < held["percentiles"] < 0.9, "which is why they are not used"
    assert 0.905 < held["ours"] < 0.98


def test_an_interval_of_many_fires_is_that_of_percentiles(rng):
    resamples = Resamples.draw(500, 2000, rng)
    values = rng.standard_normal(500)
    found = resamples.replicates(bootstrap_ratio(values, np.ones(500), np.arange(500), resamples.weights))
    assert found.interval(found.whole) == pytest.approx(percentile_interval(found.draws), abs=0.02)


def test_what_ties_have_moved_is_put_right():
    found = Replicates.of(0.5, np.array([0.45, 0.5, 0.55]), np.linspace(0.4, 0.6, 101))
    low, high = found.interval(0.7)
    assert (low + high) / 2 == pytest.approx(0.7)
    assert np.isnan(found.interval(np.nan)).all()


def test_a_single_fire_has_no_interval_and_equal_ones_have_no_width():
    resamples = Resamples.draw(1, 50, np.random.default_rng(0))
    alone = resamples.replicates(bootstrap_ratio(np.ones(1), np.ones(1), np.zeros(1, int), resamples.weights))
    assert np.isnan(alone.interval(1.0)).all()
    equal = Replicates.of(1.0, np.ones(5), np.ones(50))
    assert equal.interval(1.0) == (1.0, 1.0)


def test_days_of_one_fire_widen_the_interval(rng):
    per_fire = rng.standard_normal(20)
    values = np.repeat(per_fire, 10)
    widths = []
    for fire in (np.arange(200), np.repeat(np.arange(20), 10)):
        draws = draw_fires(fire.max() + 1, 500, rng)
        widths.append(np.diff(percentile_interval(bootstrap_ratio(values, np.ones(200), fire, draws)))[0])
    assert widths[1] > 2 * widths[0]


def test_an_interval_of_nothing_defined():
    assert np.isnan(percentile_interval(np.array([np.nan, np.nan]))).all()
