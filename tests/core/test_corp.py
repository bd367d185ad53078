"""Reliability by isotonic regression: against scikit-learn, and what the Brier score is made of."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from fcer.core.calibration import brier_loss
from fcer.core.corp import brier_parts, corp_curve
from fcer.core.rankers import ValueCounts


def counts_of(burnt, prob) -> ValueCounts:
    values, place = np.unique(prob, return_inverse=True)
    return ValueCounts(values, np.bincount(place[burnt], minlength=values.size), np.bincount(place))


def pixels(seed, n, bias=0.0):
    rng = np.random.default_rng(seed)
    prob = rng.random(n).round(2)
    return rng.random(n) < np.clip(prob + bias, 0, 1), prob


@given(st.integers(0, 999), st.integers(1, 80))
def test_parts_add_up_and_are_never_negative(seed, n):
    burnt, prob = pixels(seed, n)
    brier = brier_loss(burnt, prob)
    parts = brier_parts(counts_of(burnt, prob), brier)
    assert parts.miscalibration - parts.discrimination + parts.uncertainty == pytest.approx(brier, abs=1e-12)
    assert min(parts) > -1e-12
    assert parts.uncertainty == pytest.approx(burnt.mean() * (1 - burnt.mean()))


@given(st.integers(0, 999), st.integers(2, 80))
def test_the_curve_is_scikit_learns(seed, n):
    burnt, prob = pixels(seed, n)
    curve = corp_curve(counts_of(burnt, prob), None)
    expected = IsotonicRegression().fit(prob, burnt).predict(prob)
    found = curve.fire_rate[np.searchsorted(curve.lower, prob, side="right") - 1]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert curve.n_pixels.sum() == n
    assert (np.diff(curve.fire_rate) > 0).all()
    assert np.isnan(curve.band_low).all()


def test_a_calibrated_forecast_lies_in_its_band_and_another_does_not():
    inside = {}
    for bias in (0.0, 0.15):
        burnt, prob = pixels(1, 20_000, bias)
        curve = corp_curve(counts_of(burnt, prob), np.random.default_rng(0))
        held = (curve.band_low <= curve.fire_rate) & (curve.fire_rate <= curve.band_high)
        inside[bias] = np.average(held, weights=curve.n_pixels)
    assert inside[0.0] > 0.8
    assert inside[0.15] < 0.2


def test_no_pixels():
    empty = ValueCounts(np.empty(0), np.empty(0, int), np.empty(0, int))
    assert np.isnan(brier_parts(empty, np.nan)).all()
    assert corp_curve(empty, None).n_pixels.size == 0
