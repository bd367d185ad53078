"""The watch zone: near the predicted edge, and the most uncertain part of that."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from fcer.core.watch_zone import edge_region, watch_zone

SHAPE = (9, 11)
masks = npst.arrays(bool, SHAPE)
# Few distinct values, so that ties are common
uncertainties = npst.arrays(np.float32, SHAPE, elements=st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, np.nan]))
quantiles = st.floats(0, 1)
anchors = st.floats(0, 12)


def plain_edge(fire: np.ndarray) -> list[tuple[int, int]]:
    """Pixels that do not burn, beside one that does."""
    height, width = fire.shape
    sides = ((0, 1), (0, -1), (1, 0), (-1, 0))
    return [
        (r, c)
        for r in range(height)
        for c in range(width)
        if not fire[r, c] and any(0 <= r + i < height and 0 <= c + j < width and fire[r + i, c + j] for i, j in sides)
    ]


def plain_zone(fire: np.ndarray, unc: np.ndarray, anchor: float, quantile: float) -> np.ndarray:
    edge = plain_edge(fire)
    near = [
        (r, c)
        for r, c in np.ndindex(fire.shape)
        if not np.isnan(unc[r, c]) and any(np.hypot(r - i, c - j) <= anchor for i, j in edge)
    ]
    zone = np.zeros(fire.shape, bool)
    if near:
        known = [unc[place] for place in near]
        limit = np.quantile(np.array(known), quantile)
        for place in near:
            zone[place] = unc[place] > limit or unc[place] == limit == max(known)
    return zone


@given(masks, uncertainties, anchors, quantiles)
def test_it_is_what_a_plain_loop_finds(fire: np.ndarray, unc: np.ndarray, anchor: float, quantile: float):
    found = watch_zone(fire, unc, anchor=anchor, quantile=quantile)
    np.testing.assert_array_equal(found, plain_zone(fire, unc, anchor, quantile))


@given(masks, uncertainties, anchors, quantiles)
def test_it_lies_near_the_edge_and_where_something_is_known(
    fire: np.ndarray, unc: np.ndarray, anchor: float, quantile: float
):
    zone = watch_zone(fire, unc, anchor=anchor, quantile=quantile)
    assert not (zone & ~edge_region(fire, anchor)).any()
    assert not (zone & np.isnan(unc)).any()


@given(masks, uncertainties, anchors, quantiles, quantiles)
def test_it_shrinks_as_the_quantile_grows(fire: np.ndarray, unc: np.ndarray, anchor: float, a: float, b: float):
    wide, narrow = (watch_zone(fire, unc, anchor=anchor, quantile=q) for q in sorted((a, b)))
    assert not (narrow & ~wide).any()
    near = edge_region(fire, anchor) & ~np.isnan(unc)
    assert narrow.any() == near.any(), "however many share the largest, there is something to watch"


@given(masks, anchors, anchors)
def test_the_edge_region_grows_with_the_anchor(fire: np.ndarray, a: float, b: float):
    small, large = (edge_region(fire, anchor) for anchor in sorted((a, b)))
    assert not (small & ~large).any()


def test_without_an_edge_nothing_is_watched():
    for fire in (np.zeros(SHAPE, bool), np.ones(SHAPE, bool)):
        assert not edge_region(fire, np.inf).any()
        assert not watch_zone(fire, np.ones(SHAPE), anchor=np.inf, quantile=0).any()
