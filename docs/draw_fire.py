"""Draws docs/synthetic_fire.png, one fire's days on the page of synthetic fires.

.venv/bin/python docs/draw_fire.py
"""

import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from fcer.config.resolve import resolve
from fcer.data.catalog import open_catalog
from fcer.data.channels import CHANNELS
from fcer.data.synthetic.fires import synthesize
from fcer.pipeline.study_data import recipe_of

HERE = Path(__file__).parent
YEAR, FIRE, DAYS = 2021, 6, (0, 2, 4, 6, 8)


def main() -> None:
    """One row of days: vegetation, what burnt before, what burns, and the wind."""
    with tempfile.TemporaryDirectory() as folder:
        synthesize(recipe_of(resolve(HERE.parent / "experiments" / "demo.yaml").config), Path(folder))
        fire = open_catalog(Path(folder), [YEAR]).fires[FIRE]
        days = fire.read(slice(None), range(len(CHANNELS)))
    active = days[:, 22] > 0
    figure, axes = plt.subplots(1, len(DAYS), figsize=(13, 2.7), layout="constrained")
    for axis, day in zip(axes, DAYS, strict=True):
        background = axis.imshow(days[0, 3] / 1e4, cmap="YlGn", vmin=0.1, vmax=0.9)
        before = active[:day].any(0)
        axis.imshow(np.ma.masked_where(~before, before), cmap="binary", vmin=0, vmax=1.6, interpolation="nearest")
        axis.imshow(np.ma.masked_where(~active[day], active[day]), cmap="autumn", interpolation="nearest")
        towards, speed = np.radians(days[day, 7].mean() + 180), days[day, 6].mean()
        axis.annotate(
            "",
            (0.15 + 0.06 * speed * np.sin(towards), 0.16 + 0.06 * speed * np.cos(towards)),
            (0.15, 0.16),
            xycoords="axes fraction",
            arrowprops={"width": 1.5, "headwidth": 7, "color": "#1f4e9c"},
        )
        axis.set_title(f"day {day + 1}: {active[day].sum()} px", fontsize=10)
        axis.set_xticks([])
        axis.set_yticks([])
    axes[0].plot([60, 60 + 10_000 / 375], [fire.height - 6] * 2, color="black", linewidth=3)
    axes[0].text(60, fire.height - 9, "10 km", fontsize=8)
    figure.colorbar(background, ax=axes[-1], label="NDVI on day 1", shrink=0.85)
    figure.savefig(HERE / "synthetic_fire.png", dpi=90)


if __name__ == "__main__":
    main()
