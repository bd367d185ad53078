import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import average_precision_score, roc_auc_score

from fcer.core.bootstrap import (
    bootstrap_average_precision,
    bootstrap_median,
    bootstrap_ranking,
    bootstrap_ratio,
    draw_fires,
    percentile_interval,
)


@st.composite
def pixels_of_fires(draw):
    n, n_fires = draw(st.integers(2, 40)), draw(st.integers(1, 6))
    score = draw(arrays(int, n, elements=st.integers(0, 9))) / 9
    fire = draw(arrays(int, n, elements=st.integers(0, n_fires - 1)))
    draws = draw_fires(n_fires, 5, np.random.default_rng(draw(st.integers(0, 99))))
    return score, draw(arrays(bool, n)), fire, draws


@given(pixels_of_fires())
def test_ap_of_a_draw_from_counts_is_that_of_its_pixels_repeated(sample):
    score, positive, fire, draws = sample
    level = np.rint(score * 9).astype(int)
    burnt, pixels = np.zeros((2, draws.shape[1], 10), int)
    np.add.at(burnt, (fire[positive], level[positive]), 1)
    np.add.at(pixels, (fire, level), 1)
    for ap, weights in zip(bootstrap_average_precision(burnt, pixels, draws), draws, strict=True):
        drawn = np.repeat(np.arange(len(score)), weights[fire])
        if 0 < positive[drawn].sum() < len(drawn):
            assert ap == pytest.approx(average_precision_score(positive[drawn], score[drawn]), abs=1e-12)
        else:
            assert np.isnan(ap)


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
