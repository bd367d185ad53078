"""Draws docs/sweep.png, the start page's picture of a result: python docs/draw_sweep.py RESULTS OUT.png."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt

from fcer.evaluation.results import Results
from fcer.report.style import looks


def main(folder: Path, out: Path) -> None:
    """AUROC and AUPRC over the radius: mean over years, and its spread as a band."""
    results = Results.read(folder)
    sweep = results.over_years("sweep")
    finite = sweep[sweep["radius_px"] <= 10]
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for axis, metric in zip(axes, ("auroc", "auprc"), strict=True):
        for method, look in looks(results.settings.methods).items():
            mine = finite[finite["method"] == method]
            x, y, spread = mine["radius_px"], mine[metric], mine[f"{metric}_std"]
            axis.plot(x, y, color=look.colour, label=method, linewidth=2)
            axis.fill_between(x, y - spread, y + spread, color=look.colour, alpha=0.12, linewidth=0)
        axis.axvline(results.settings.anchor_px, color="grey", linestyle=":", linewidth=1)
        axis.set(xlabel="distance from fire up to, px (375 m each)", ylabel=metric.upper())
        axis.spines[["top", "right"]].set_visible(False)
    reference = finite[finite["method"] == results.settings.reference]
    axes[0].axhline(0.5, color="black", linestyle="--", linewidth=1, label="chance")
    axes[1].plot(reference["radius_px"], reference["prevalence"], color="black", linestyle="--", linewidth=1)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    figure.savefig(out, dpi=110)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
