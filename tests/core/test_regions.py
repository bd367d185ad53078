from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import ndimage

from fcer.core.regions import distance_to_fire, fire_region, radius_in_pixels, ring_index
from plain_fcer import plain_region

images = arrays(bool, array_shapes(min_dims=2, max_dims=2, max_side=14))
stacks = arrays(bool, array_shapes(min_dims=3, max_dims=3, max_side=12))
radii = st.lists(st.floats(0, 15, width=16), min_size=1, max_size=6, unique=True).map(sorted)


@given(images, st.integers(0, 6))
def test_whole_radii_are_disk_dilations(fire, radius):
    np.testing.assert_array_equal(fire_region(fire, radius), plain_region(fire, radius))


@given(stacks, radii, st.booleans())
def test_rings_tell_which_region_a_pixel_is_in(fire, radii, full):
    radii = [*radii, np.inf] if full else radii
    rings = ring_index(fire, radii)
    for image, ring in zip(fire, rings, strict=True):
        for k, radius in enumerate(radii):
            everywhere = np.isinf(radius)
            expected = np.ones_like(image) if everywhere else fire_region(image, radius)
            np.testing.assert_array_equal(ring <= k, expected)


@given(images, radii)
def test_regions_are_nested_and_hold_the_fire(fire, radii):
    regions = [fire_region(fire, radius) for radius in radii]
    assert all((small <= large).all() for small, large in pairwise(regions))
    assert (fire <= regions[0]).all()


def test_a_radius_is_a_real_number():
    fire = np.zeros((9, 9), bool)
    fire[4, 4] = True
    # the knight's move is sqrt(5) away: in at that radius, out just before
    assert fire_region(fire, np.sqrt(5))[6, 5]
    assert not fire_region(fire, np.nextafter(np.sqrt(5), 0))[6, 5]
    assert np.count_nonzero(fire_region(fire, 2.3)) == 21


def test_an_image_without_fire_is_far_from_it():
    assert np.isinf(distance_to_fire(np.zeros((3, 4)))).all()
    assert not fire_region(np.zeros((3, 4)), 100).any()
    assert (ring_index(np.zeros((1, 3, 4)), [0, 5]) == 2).all()


def test_a_single_pixel_image():
    assert ring_index(np.ones((1, 1, 1)), [0, 1]).tolist() == [[[0]]]


def test_fires_at_corners_reach_into_the_image():
    fire = np.zeros((1, 20, 20), bool)
    fire[0, [0, 0, -1, -1], [0, -1, 0, -1]] = True
    expected = ndimage.distance_transform_edt(~fire[0]) <= 3
    np.testing.assert_array_equal(ring_index(fire, [3])[0] == 0, expected)


@pytest.mark.parametrize("radii", [[], [-1], [1, 1], [2, 1], [np.nan], [np.inf, 1], [1, np.inf, np.inf]])
def test_radii_must_ascend(radii):
    with pytest.raises(ValueError, match="radi"):
        ring_index(np.ones((1, 2, 2)), radii)


@pytest.mark.parametrize("radius", ["-1", "abc", "m", "nan", -0.5, "-3m"])
def test_what_is_no_radius(radius):
    with pytest.raises(ValueError, match=r"radius|convert"):
        radius_in_pixels(radius)
