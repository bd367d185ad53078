import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from sklearn.metrics import average_precision_score, roc_auc_score

from fcer.core.calibration import ece_loss, nll_loss
from fcer.core.near_fire import list_near_fire
from fcer.core.per_image import image_scores
from fcer.core.ranking import auroc_within_score
from fcer.core.region_sweep import sweep
from fcer.core.regions import fire_region
from fcer.errors import UndefinedMetricWarning
from plain_fcer import plain_region

RADII = [0, 1.5, 3, np.inf]


@st.composite
def maps(draw):
    shape = draw(array_shapes(min_dims=3, max_dims=3, max_side=9))
    levels = draw(st.integers(1, 40))
    values = arrays(np.uint8, shape, elements=st.integers(0, levels)).map(lambda a: (a / levels).astype(np.float32))
    return draw(arrays(bool, shape)), draw(values), draw(values), draw(values)


@pytest.mark.filterwarnings("ignore::fcer.errors.UndefinedMetricWarning")
@given(maps())
def test_a_sweep_by_the_book(stack):
    fire, prob, unc, reference = stack
    curve = sweep(fire, prob, unc, reference_prob=reference, radii=RADII)
    error = (reference > 0.5) != fire
    on_fire = fire.any(axis=(1, 2))
    for k, radius in enumerate(RADII):
        region = np.array([fire_region(image, radius) for image in fire]) & on_fire[:, None, None]
        e, u, p, y = error[region], unc[region], prob[region].astype(np.float64), fire[region]
        assert (curve.n_pixels[k], curve.n_errors[k]) == (e.size, e.sum())
        if 0 < e.sum() < e.size:
            assert curve.auroc[k] == pytest.approx(roc_auc_score(e, u), abs=1e-12)
            assert curve.auprc[k] == pytest.approx(average_precision_score(e, u), abs=1e-12)
        else:
            assert np.isnan([curve.auroc[k], curve.auprc[k], curve.aurc[k], curve.fpr95[k], curve.augrc[k]]).all()
        f = y.mean() if e.size else np.nan
        if e.size and 0 < f < 1:
            assert curve.brier_skill[k] == pytest.approx(1 - np.mean((p - y) ** 2) / (f * (1 - f)))
            entropy = -f * np.log(f) - (1 - f) * np.log(1 - f)
            assert curve.nll_skill[k] == pytest.approx(1 - nll_loss(y, p) / entropy)
        else:
            assert np.isnan([curve.brier_skill[k], curve.nll_skill[k]]).all()
        if e.any():
            assert curve.false_alarm_share[k] == pytest.approx((e & (reference[region] > 0.5)).sum() / e.sum())
        within = auroc_within_score(e, u, reference[region] > 0.5)
        np.testing.assert_allclose(curve.auroc_within[k], within, atol=1e-12)
        if e.size:
            assert curve.brier[k] == pytest.approx(np.mean((p - y) ** 2))
            assert curve.ece[k] == pytest.approx(ece_loss(y, p), abs=1e-12)
            assert curve.prevalence[k] == pytest.approx(e.mean())
        else:
            assert np.isnan([curve.brier[k], curve.nll[k], curve.prevalence[k], curve.ece[k]]).all()


@pytest.mark.filterwarnings("ignore::fcer.errors.UndefinedMetricWarning")
@given(maps())
def test_images_without_fire_do_not_count(stack):
    fire, prob, unc, _ = stack
    quiet = np.zeros((2, *fire.shape[1:]))
    more = [np.concatenate([quiet, a, quiet + 0.7]) for a in (fire.astype(float), prob, unc)]
    more[0][-2:] = 0
    for ours, theirs in zip(sweep(*more, radii=RADII), sweep(fire, prob, unc, radii=RADII), strict=True):
        np.testing.assert_allclose(ours, theirs, equal_nan=True)


def test_each_image_alone_and_in_any_order_of_radii(rng):
    fire = rng.random((4, 12, 12)) < 0.05
    fire[:, 5, 5] = True
    prob, unc = rng.random((2, 4, 12, 12)).round(1)
    near = list_near_fire(fire, prob, (0.0, 1.0, 2.0, 3.0))
    flat = unc.ravel()[near.position]
    scores = image_scores(near, flat, [3, 0, 2])
    error = (prob > 0.5) != fire
    for i in range(4):
        for column, radius in enumerate([3, 0, 2]):
            region = plain_region(fire[i], radius)
            e, u = error[i][region], unc[i][region]
            assert (scores.n_pixels[i, column], scores.n_errors[i, column]) == (e.size, e.sum())
            if 0 < e.sum() < e.size:
                assert scores.auroc[i, column] == pytest.approx(roc_auc_score(e, u), abs=1e-12)
                assert scores.auprc[i, column] == pytest.approx(average_precision_score(e, u), abs=1e-12)
            else:
                assert np.isnan([scores.auroc[i, column], scores.auprc[i, column]]).all()


def test_half_precision_ranks_like_its_exact_values(rng):
    fire, prob, unc = rng.random((3, 2, 30, 30)).astype(np.float16)
    fire = fire > 0.97
    for ours, theirs in zip(sweep(fire, prob, unc), sweep(fire, prob.astype(float), unc.astype(float)), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_another_threshold_makes_other_errors(rng):
    fire, prob, unc = rng.random((3, 20, 20))
    curve = sweep(fire > 0.9, prob, unc, threshold=0.8)
    assert curve.n_errors[-1] == np.count_nonzero((prob > 0.8) != (fire > 0.9))


def test_undefined_regions_are_named():
    fire = np.zeros((1, 5, 5))
    fire[0, 2, 2] = 1
    with pytest.warns(UndefinedMetricWarning, match="undefined and NaN for radius 0, 1, inf: errors or right"):
        curve = sweep(fire, fire, fire, radii=[0, 1, np.inf])
    assert np.isnan(curve.auroc).all()
    assert curve.brier.tolist() == [0, 0, 0]


def test_no_fire_at_all():
    with pytest.warns(UndefinedMetricWarning):
        curve = sweep(np.zeros((2, 4, 4)), np.ones((2, 4, 4)), np.ones((2, 4, 4)))
    assert curve.n_pixels.tolist() == [0] * 12


def test_one_image_needs_no_stack(rng):
    fire, prob, unc = rng.random((3, 20, 20))
    one, stack = sweep(fire > 0.9, prob, unc), sweep(fire[None] > 0.9, prob[None], unc[None])
    np.testing.assert_array_equal(one.auroc, stack.auroc)


def test_maps_of_different_shapes_are_refused():
    with pytest.raises(ValueError, match="maps differ in shape"):
        sweep(np.ones((1, 2, 2)), np.ones((1, 2, 3)), np.ones((1, 2, 2)))
