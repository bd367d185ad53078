"""The quick-look: a picture of the right make, drawn from the right numbers."""

from pathlib import Path

import numpy as np
import pytest
import rasterio
from hypothesis import given
from hypothesis.extra import numpy as npst
from matplotlib.collections import LineCollection

from fcer.core.zones import ZoneFamily, ZoneRule
from fcer.deploy.calibrated import GuaranteedZone
from fcer.deploy.quicklook import QuickLook, _draw, mask_edges, write_quicklook

PROMISE = "zone: at most 20 % of tomorrow's fire expected outside"


def zone_of(mask: np.ndarray) -> GuaranteedZone:
    rule = ZoneRule(ZoneFamily("threshold"), 0.1, 0.2, 0.19, 9, 1, area_km2=40.0, area_2n_km2=30.0)
    return GuaranteedZone(rule, mask, 0.1, 40.0, 0.0, "words")


def look_of(shape: tuple[int, int] = (30, 40), pixel_m: tuple[float, float] = (375.0, 375.0), **changed) -> QuickLook:
    rows, columns = np.indices(shape)
    probability = np.exp(-((rows - 12) ** 2 + (columns - 20) ** 2) / 60).astype(np.float32)
    fire = probability > 0.5
    values = {
        "title": "fire_1, 2021-08-13",
        "note": "predicted by fcer-student 1 from 5 days to 2021-08-12",
        "probability": probability,
        "uncertainty": 4 * probability * (1 - probability),
        "today": probability > 0.8,
        "fire": fire,
        "zone": zone_of(probability > 0.1),
    }
    return QuickLook(**{**values, **changed}, pixel_m=pixel_m)


def texts(look: QuickLook) -> list[str]:
    figure = _draw(look)
    found = [figure.get_suptitle(), *(text.get_text() for axes in figure.axes for text in axes.texts)]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    return [*found, *legend, figure.axes[0].get_title(loc="left")]


@given(npst.arrays(bool, (5, 6)))
def test_edges_are_the_sides_between_in_and_out(mask: np.ndarray):
    expected = set()
    for row, column in np.argwhere(mask).tolist():
        for down, right in ((0, 1), (0, -1), (1, 0), (-1, 0)):
            r, c = row + down, column + right
            if not (0 <= r < 5 and 0 <= c < 6 and mask[r, c]):
                x, y = column + right / 2, row + down / 2
                ends = ((x, y - 0.5), (x, y + 0.5)) if right else ((x - 0.5, y), (x + 0.5, y))
                expected.add(ends)
    assert {(tuple(a), tuple(b)) for a, b in mask_edges(mask).tolist()} == expected


def test_it_is_a_picture_and_the_same_each_time(tmp_path: Path):
    for name in ("a.png", "b.png"):
        write_quicklook(tmp_path / name, look_of())
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    with rasterio.open(tmp_path / "a.png") as picture:
        assert picture.driver == "PNG" and picture.width > 1000 and picture.height > 500
        assert np.ptp(picture.read(1)) > 200
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "b.png"]


def test_maps_and_outlines_are_those_that_were_given():
    look = look_of()
    left, right = _draw(look).axes[:2]
    drawn = (
        (left, look.probability, [look.fire, look.zone.mask]),
        (right, look.uncertainty, [look.zone.mask]),
    )
    for axes, values, masks in drawn:
        np.testing.assert_array_equal(axes.images[0].get_array(), values)
        outlines = [each for each in axes.collections if isinstance(each, LineCollection)]
        for outline, mask in zip(outlines, masks, strict=True):
            np.testing.assert_array_equal(np.array(outline.get_segments()), mask_edges(mask))
    veil = left.images[1].get_array()
    np.testing.assert_array_equal(np.ma.getmaskarray(veil), look.zone.mask)
    dots = next(each for each in left.collections if not isinstance(each, LineCollection))
    np.testing.assert_array_equal(np.asarray(dots.get_offsets())[:, ::-1], np.argwhere(look.today))


@pytest.mark.parametrize(("pixel_m", "kilometres"), [(375.0, 5), (100.0, 1), (1000.0, 10)])
def test_the_scale_bar_is_as_long_as_it_says(pixel_m: float, kilometres: int):
    look = look_of(pixel_m=(pixel_m, 2 * pixel_m))
    axes = _draw(look).axes[0]
    (bar,) = axes.patches
    assert bar.get_width() * pixel_m == pytest.approx(1000 * kilometres)
    assert f"{kilometres} km" in texts(look)
    assert axes.get_aspect() == 2, "pixels that are taller than wide are drawn so"


def test_it_says_what_is_what():
    said = texts(look_of())
    assert said[0] == "fire_1, 2021-08-13" and said[-1].startswith("predicted by fcer-student 1")
    assert {"active fire today", "predicted perimeter", PROMISE, "outside of it"} <= set(said) and "no data" not in said
    holed = look_of().probability
    holed[:3] = np.nan
    assert "no data" in texts(look_of(probability=holed))


def test_odd_names_and_empty_maps_are_drawn(tmp_path: Path):
    nothing = np.zeros((30, 40), bool)
    still = np.zeros((30, 40), np.float32)
    odd = look_of(title=r"$\frac{fire_1", uncertainty=still, today=nothing, fire=nothing, zone=None)
    write_quicklook(tmp_path / "odd.png", odd)
    assert (tmp_path / "odd.png").stat().st_size > 10_000
