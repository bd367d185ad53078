"""An overview map as PNG: where the fires lie, and the largest of them day by day."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure

from fcer.core.regions import PIXEL_METRES
from fcer.data.channels import ACTIVE_FIRE
from fcer.data.detections.ingest import Ingested
from fcer.data.detections.write import IngestedFire
from fcer.data.hdf5 import open_hdf5
from fcer.runtime.files import atomic_path

__all__ = ["write_overview"]

_INK = "#222222"
_DPI = 130


def write_overview(path: Path, done: Ingested, *, synthetic: bool) -> None:
    """All fires on the left, by place and fire pixels; on the right the largest, each pixel by its last day of fire."""
    figure = Figure(figsize=(12, 5.6), facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
    _places(left, done)
    _largest(right, max(done.fires, key=lambda fire: fire.pixels))
    figure.suptitle(
        f"{len(done.fires)} fires from {done.in_fires} of {sum(done.read.values())} "
        f"{'SYNTHETIC detections' if synthetic else 'VIIRS detections (NASA FIRMS)'}, to {done.last_full_day}",
        fontsize=12,
        x=0.005,
        ha="left",
        color=_INK,
    )
    with atomic_path(path) as partial:
        figure.savefig(partial, dpi=_DPI, metadata={"Software": None})  # the same picture, the same bytes


def _places(axes: Axes, done: Ingested) -> None:
    # Fires at the date line stand together: longitudes count from the first fire's
    first = done.fires[0].lnglat[0]
    lng = np.array([first + (fire.lnglat[0] - first + 180) % 360 - 180 for fire in done.fires])
    lat = np.array([fire.lnglat[1] for fire in done.fires])
    size = np.array([fire.pixels for fire in done.fires])
    axes.scatter(lng, lat, s=20 + 400 * size / size.max(), c="#d95f0e", alpha=0.6, edgecolors=_INK, linewidths=0.6)
    axes.set_aspect(1 / max(0.1, float(np.cos(np.radians(lat.mean())))), adjustable="datalim")
    axes.margins(0.15)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_title("fires; a disc's area is its fire pixels", fontsize=10, loc="left")
    axes.set_xlabel("longitude")
    axes.set_ylabel("latitude")


def _largest(axes: Axes, fire: IngestedFire) -> None:
    burning = open_hdf5(fire.path).read(slice(None), (ACTIVE_FIRE,))[:, 0] > 0
    n = len(burning)
    last = np.where(burning.any(0), n - 1 - burning[::-1].argmax(0), -1).astype(float)
    last[last < 0] = np.nan
    height, width = last.shape
    km = PIXEL_METRES / 1000
    axes.set_facecolor("#f4f4f4")
    image = axes.imshow(
        last,
        cmap="YlOrRd",
        norm=BoundaryNorm(np.arange(-0.5, max(n, 2)), 256),
        extent=(0, width * km, 0, height * km),
        interpolation="nearest",
    )
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.8)
    ticks = np.unique(np.linspace(0, n - 1, min(n, 7)).round().astype(int)).tolist()
    bar.set_ticks(ticks, labels=[f"{fire.days[k]:%m-%d}" for k in ticks])
    axes.set_title(f"{fire.path.stem}: last day of fire", fontsize=10, loc="left", parse_math=False)
    axes.set_xlabel("km")
