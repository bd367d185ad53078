"""A predicted map at a glance, as PNG: probability with the fire's edge, and uncertainty, with a guaranteed zone.

Drawn with matplotlib, which MLflow brings along: plotly would need a browser for each picture.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from fcer.core.arrays import BoolArray, FloatArray
from fcer.core.regions import PIXEL_METRES
from fcer.deploy.calibrated import GuaranteedZone
from fcer.report.map_figure import scale_bar
from fcer.runtime.files import atomic_path

__all__ = ["QuickLook", "mask_edges", "write_quicklook"]

_INK, _TODAY, _ZONE, _NOTHING = "#222222", "#0072b2", "#c2185b", "#d9d9d9"
_BEYOND, _VEIL = "#8d86a0", 0.25
_PANEL_INCHES = 4.6
_DPI = 150


@dataclass(frozen=True)
class QuickLook:
    """What is drawn; maps are (H, W), NaN where nothing is known."""

    title: str
    note: str
    probability: FloatArray
    uncertainty: FloatArray
    today: BoolArray
    fire: BoolArray
    """Predicted."""
    zone: GuaranteedZone | None
    """None where the student has no calibration."""
    pixel_m: tuple[float, float]
    """Width and height of a pixel on the ground."""

    @property
    def aspect(self) -> float:
        """How much taller than wide a pixel is."""
        return self.pixel_m[1] / self.pixel_m[0]


def write_quicklook(path: Path, look: QuickLook) -> None:
    """Draw both panels side by side; the file appears once it is whole."""
    figure = _draw(look)
    with atomic_path(path) as partial:
        figure.savefig(partial, dpi=_DPI, metadata={"Software": None})  # the same picture, the same bytes


def mask_edges(mask: BoolArray) -> NDArray[np.float64]:
    """The sides of pixels between a mask and what is not in it: (n, 2 ends, x and y), the image's rim included.

    >>> mask_edges(np.array([[True]])).tolist()
    [[[-0.5, -0.5], [0.5, -0.5]], [[-0.5, 0.5], [0.5, 0.5]], [[-0.5, -0.5], [-0.5, 0.5]], [[0.5, -0.5], [0.5, 0.5]]]
    """
    right, down = np.eye(2)
    framed = np.pad(mask, 1)
    level = np.argwhere(framed[1:, 1:-1] != framed[:-1, 1:-1])[:, ::-1] - 0.5
    upright = np.argwhere(framed[1:-1, 1:] != framed[1:-1, :-1])[:, ::-1] - 0.5
    return np.concatenate([np.stack([level, level + right], 1), np.stack([upright, upright + down], 1)])


def _draw(look: QuickLook) -> Figure:
    height, width = look.probability.shape
    tall = float(np.clip(_PANEL_INCHES * height * look.aspect / width, 2.5, 9))
    figure = Figure(figsize=(2 * _PANEL_INCHES + 0.6, tall + 1.75), facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    # Names come from files: a dollar in one is no formula
    figure.suptitle(look.title, fontsize=13, x=0.005, ha="left", color=_INK, parse_math=False)
    left, right = figure.subplots(1, 2)
    _panel(left, look.probability, look, cmap="YlOrBr", vmin=0, vmax=1, label="fire probability")
    rows, columns = np.nonzero(look.today)
    dot = max(1.0, 0.4 * 72 * _PANEL_INCHES / width)  # in points, as wide as two fifths of a pixel
    left.scatter(columns, rows, s=dot**2, c=_TODAY, linewidths=0)
    _outline(left, look.fire, _INK)
    top = float(np.nanmax(look.uncertainty)) or 1.0
    _panel(right, look.uncertainty, look, cmap="Blues", vmin=0, vmax=top, label="uncertainty")
    if look.zone is not None:
        # A line alone does not say which side is inside
        beyond = np.ma.masked_where(look.zone.mask, np.ones(look.zone.mask.shape))
        left.imshow(beyond, aspect=look.aspect, cmap=ListedColormap([_BEYOND]), alpha=_VEIL, interpolation="nearest")
        for axes in (left, right):
            _outline(axes, look.zone.mask, _ZONE)
    missed = 100 * look.zone.rule.miss if look.zone else 0.0
    promise = f"zone: at most {missed:.3g} % of tomorrow's fire expected outside"
    marks = [
        Line2D([], [], color=_TODAY, marker="o", ms=5, lw=0, label="active fire today"),
        Line2D([], [], color=_INK, lw=1.6, label="predicted perimeter"),
        *([Line2D([], [], color=_ZONE, lw=1.6, label=promise)] if look.zone else []),
        *([Patch(color=_BEYOND, alpha=_VEIL, label="outside of it")] if look.zone and not look.zone.mask.all() else []),
        *([Patch(color=_NOTHING, label="no data")] if np.isnan(look.probability).any() else []),
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=len(marks), frameon=False, fontsize=9)
    left.set_title(look.note, fontsize=9, loc="left", color="#555555", parse_math=False)
    return figure


def _panel(axes: Axes, values: FloatArray, look: QuickLook, *, label: str, **colours: Any) -> None:
    axes.set_facecolor(_NOTHING)
    image = axes.imshow(values, aspect=look.aspect, interpolation="nearest", **colours)
    bar = axes.figure.colorbar(image, ax=axes, orientation="horizontal", shrink=0.6, aspect=30, pad=0.02)
    bar.set_label(label, fontsize=9)
    bar.ax.tick_params(labelsize=8)
    axes.set_xticks([])
    axes.set_yticks([])
    _scale(axes, values.shape, look.pixel_m[0])


def _outline(axes: Axes, mask: BoolArray, colour: str) -> None:
    """Along the sides of pixels, so that it is clear which are inside."""
    axes.add_collection(LineCollection(list(mask_edges(mask)), colors=colour, linewidths=1.4, capstyle="round"))


def _scale(axes: Axes, shape: tuple[int, ...], pixel_m: float) -> None:
    """A bar of a round length in the lower left corner, on any ground."""
    height, width = shape
    kilometres = scale_bar(round(width * pixel_m / PIXEL_METRES))
    length, thick = kilometres * 1000 / pixel_m, height / 90
    x, y = 0.04 * width - 0.5, 0.95 * height - 0.5
    on_top: dict[str, Any] = {"zorder": 5}
    axes.add_patch(Rectangle((x, y), length, thick, facecolor=_INK, edgecolor="white", linewidth=0.8, **on_top))
    halo = [withStroke(linewidth=2.5, foreground="white")]
    axes.text(x, y - thick, f"{kilometres:g} km", fontsize=9, color=_INK, va="bottom", path_effects=halo, **on_top)
