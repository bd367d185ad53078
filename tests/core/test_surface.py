import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import ndimage

from fcer.core.surface import asd_loss, boundary, hausdorff95_loss, surface_losses
from fcer.errors import UndefinedMetricWarning
from plain_fcer import plain_asd

pairs = array_shapes(min_dims=2, max_dims=2, max_side=14).flatmap(
    lambda shape: st.tuples(arrays(bool, shape), arrays(bool, shape))
)


def has_boundary(mask: np.ndarray) -> bool:
    return bool(mask.any() and not mask.all())


@given(pairs)
def test_asd_by_the_book(masks):
    assume(all(map(has_boundary, masks)))
    assert asd_loss(*masks) == pytest.approx(plain_asd(*masks), abs=1e-12)


@given(pairs)
def test_hausdorff_by_the_book(masks):
    assume(all(map(has_boundary, masks)))
    a, b = (ndimage.binary_dilation(mask) & ~mask for mask in masks)
    there, back = ndimage.distance_transform_edt(~b)[a], ndimage.distance_transform_edt(~a)[b]
    expected = max(np.percentile(there, 95), np.percentile(back, 95))
    assert hausdorff95_loss(*masks) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("loss", [asd_loss, hausdorff95_loss])
@given(masks=pairs)
def test_losses_are_symmetric_and_zero_for_equals(loss, masks):
    assume(all(map(has_boundary, masks)))
    assert loss(*masks) == loss(*masks[::-1])
    assert loss(masks[0], masks[0]) == 0


@given(pairs)
def test_distance_does_not_depend_on_where_the_image_lies(masks):
    assume(all(map(has_boundary, masks)))
    wide = [np.pad(mask, 3) for mask in masks]
    turned = [np.rot90(mask) for mask in wide]
    assert asd_loss(*wide) == pytest.approx(asd_loss(*turned), abs=1e-12)


def test_the_boundary_is_the_outer_ring_inside_the_image():
    mask = np.zeros((4, 5), bool)
    mask[0, 1:3] = True
    expected = [[1, 0, 0, 1, 0], [0, 1, 1, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]]
    assert boundary(mask).astype(int).tolist() == expected


@pytest.mark.parametrize("predicted, fire", [([[0, 0]], [[1, 0]]), ([[1, 0]], [[0, 0]]), ([[1]], [[1]])])
def test_no_boundary_is_undefined(predicted, fire):
    with pytest.warns(UndefinedMetricWarning, match="of a mask without a boundary is undefined and is NaN"):
        assert np.isnan(asd_loss(predicted, fire))
    with pytest.warns(UndefinedMetricWarning, match="Hausdorff distance of a mask without a boundary"):
        assert np.isnan(hausdorff95_loss(predicted, fire))


def test_long_boundaries_are_measured_alike(rng):
    masks = rng.random((2, 60, 70)) < 0.3
    assert np.prod([np.count_nonzero(boundary(mask)) for mask in masks]) > 100_000
    assert asd_loss(*masks) == pytest.approx(plain_asd(*masks), abs=1e-12)


def test_each_image_of_a_stack_on_its_own():
    fire = np.zeros((3, 6, 6), bool)
    fire[:, 2:4, 2:4] = True
    predicted = fire.copy()
    predicted[1] = False
    predicted[2] = np.roll(fire[2], 1, axis=0)
    losses = surface_losses(predicted, fire)
    assert losses.asd[0] == 0
    assert np.isnan(losses.asd[1])
    assert losses.asd[2] == asd_loss(predicted[2], fire[2]) > 0
