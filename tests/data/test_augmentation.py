import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcer.data.augmentation import View, draw_view, turn

VIEWS = [View(0, 0, bool(m), bool(u), q) for m in (0, 1) for u in (0, 1) for q in range(4)]


def bearing(image: np.ndarray) -> float:
    """The compass direction from the pixel marked 1 to the pixel marked 2, in degrees clockwise from north."""
    (r1, c1), (r2, c2) = np.argwhere(image == 1)[0], np.argwhere(image == 2)[0]
    return float(np.degrees(np.arctan2(c2 - c1, -(r2 - r1))) % 360)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("target", [(0, 6), (6, 1), (2, 3), (5, 5), (3, 0)])
def test_angles_turn_with_the_picture(view: View, target: tuple[int, int]):
    image = np.zeros((2, 7, 7), np.float32)
    image[0, 3, 3], image[0][target] = 1, 2
    image[1] = bearing(image[0])
    turned = turn(image, view, angle_channels=[1])
    difference = (turned[1] - bearing(turned[0]) + 180) % 360 - 180
    np.testing.assert_allclose(difference, 0, atol=1e-3)


def test_a_north_wind_after_a_counter_clockwise_quarter_turn_comes_from_the_west():
    wind = np.zeros((1, 2, 2), np.float32)
    np.testing.assert_array_equal(turn(wind, View(0, 0, False, False, 1), [0]), np.full((1, 2, 2), 270))


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_but_places_changes_in_other_channels(view: View, rng: np.random.Generator):
    image = rng.normal(size=(3, 4, 5, 5)).astype(np.float32)
    turned = turn(image, view)
    for before, after in zip(image.reshape(12, -1), turned.reshape(12, -1), strict=True):
        np.testing.assert_array_equal(np.sort(before), np.sort(after))


def test_missing_angles_stay_missing():
    image = np.full((1, 3, 3), np.nan, np.float32)
    assert np.isnan(turn(image, View(0, 0, True, False, 2), [0])).all()


def test_sixteen_views_are_eight_different_pictures():
    image = np.arange(9, dtype=np.float32).reshape(3, 3)
    assert len({turn(image, view).tobytes() for view in VIEWS}) == 8


@given(st.integers(0, 2**32), st.integers(8, 20), st.integers(8, 20))
def test_a_crop_lies_inside_the_image(seed, height, width):
    rng = np.random.default_rng(seed)
    view = draw_view(rng, np.zeros((height, width), bool), np.zeros((height, width)), crop=8)
    assert 0 <= view.top <= height - 8
    assert 0 <= view.left <= width - 8


def fire_inside(view: View, label: np.ndarray, crop: int) -> int:
    return int(label[view.top : view.top + crop, view.left : view.left + crop].sum())


def test_the_crop_with_most_fire_wins_then_the_one_with_earlier_fire():
    label, burning = np.zeros((60, 60), bool), np.zeros((60, 60))
    label[50:, 50:] = True
    found = [fire_inside(draw_view(np.random.default_rng(k), label, burning, 16), label, 16) for k in range(200)]
    one_try = [fire_inside(draw_view(np.random.default_rng(k), label, burning, 16, 1), label, 16) for k in range(200)]
    assert np.mean(found) > 3 * np.mean(one_try)
    burning[:10, :10] = 1
    seeds = [np.random.default_rng(k) for k in range(200)]
    unlabelled = [draw_view(rng, np.zeros_like(label), burning, 16) for rng in seeds]
    assert np.mean([fire_inside(view, burning > 0, 16) > 0 for view in unlabelled]) > 0.25
    both = [draw_view(np.random.default_rng(k), label, burning, 16) for k in range(200)]
    assert [fire_inside(view, label, 16) for view in both] == found, "earlier fire only breaks ties"


def test_the_last_row_and_column_can_be_cropped():
    views = [draw_view(np.random.default_rng(k), np.zeros((9, 9), bool), np.zeros((9, 9)), 8) for k in range(50)]
    assert {view.top for view in views} == {view.left for view in views} == {0, 1}
