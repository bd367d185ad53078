import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss

from fcer.core.calibration import brier_loss, ece_loss, nll_loss, reliability_curve
from fcer.errors import UndefinedMetricWarning


@st.composite
def forecasts(draw):
    n = draw(st.integers(1, 80))
    fire = draw(arrays(bool, n))
    return fire, draw(arrays(np.float32, n, elements=st.floats(0, 1, width=32)))


@given(forecasts())
def test_losses_are_scikit_learns(forecast):
    fire, prob = forecast
    p = prob.astype(np.float64)
    assert brier_loss(fire, prob) == pytest.approx(brier_score_loss(fire, p, labels=[False, True]), abs=1e-12)
    clipped = np.clip(p, 1e-7, 1 - 1e-7)
    assert nll_loss(fire, prob) == pytest.approx(log_loss(fire, clipped, labels=[False, True]), abs=1e-9)


def test_certain_and_wrong_costs_the_clip():
    assert nll_loss([1], [0.0]) == pytest.approx(-np.log(1e-7))
    assert nll_loss([0], np.array([1.0], np.float16)) == pytest.approx(-np.log(1e-7))


@given(forecasts(), st.integers(1, 20))
def test_bins_of_equal_width(forecast, n_bins):
    fire, prob = forecast
    curve = reliability_curve(fire, prob, n_bins)
    # scikit-learn puts a probability on an edge into the lower bin
    off_edge = ~np.isclose(prob * n_bins, np.round(prob * n_bins)) | (prob == 0) | (prob == 1)
    if off_edge.all():
        rate, mean = calibration_curve(fire, prob.astype(np.float64), n_bins=n_bins)
        np.testing.assert_allclose(curve.fire_rate, rate)
        np.testing.assert_allclose(curve.mean_prob, mean)
    assert curve.n_pixels.sum() == len(fire)
    assert (curve.lower <= curve.mean_prob + 1e-12).all()
    assert (curve.mean_prob <= curve.upper + 1e-12).all()


@given(forecasts(), st.integers(1, 20))
def test_bins_of_equal_mass_do_not_part_ties(forecast, n_bins):
    fire, prob = forecast
    curve = reliability_curve(fire, prob, n_bins, "mass")
    shuffle = np.random.default_rng(0).permutation(len(fire))
    again = reliability_curve(fire[shuffle], prob[shuffle], n_bins, "mass")
    np.testing.assert_array_equal(curve.n_pixels, again.n_pixels)
    assert curve.n_pixels.sum() == len(fire)
    assert len(curve.n_pixels) <= n_bins


def test_bins_of_equal_mass_hold_equal_shares():
    prob = np.random.default_rng(0).random(900) ** 3
    assert reliability_curve(prob > 0.5, prob, 9, "mass").n_pixels.tolist() == [100] * 9


@pytest.mark.parametrize("binning", ["width", "mass"])
def test_calibration_error(binning):
    rng = np.random.default_rng(0)
    prob = rng.random(200_000)
    fire = rng.random(200_000) < prob
    assert ece_loss(fire, prob, binning=binning) < 0.01
    assert ece_loss(fire, prob**2, binning=binning) == pytest.approx(np.mean(prob - prob**2), abs=0.01)


@pytest.mark.parametrize("loss", [brier_loss, nll_loss, ece_loss])
def test_no_pixels_are_undefined(loss):
    with pytest.warns(UndefinedMetricWarning, match="of no pixels is undefined and is NaN"):
        assert np.isnan(loss([], []))
