"""Pictures that the build draws, each from a toy whose numbers the functions of `fcer.core` compute."""

import io
from collections.abc import Callable

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import ndimage

from fcer.core import auroc_score, distance_to_fire, fire_region

__all__ = ["FIGURES"]

ANCHOR, FAR = 4.0, 8.0
_SIDE = 48
_RED, _BLUE = "#d84315", "#1565c0"


def _toy() -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """A fire, and a forecast of it that is drawn too large and a little to one side."""
    rng = np.random.default_rng(4)
    rows, columns = np.mgrid[:_SIDE, :_SIDE]
    rough = ndimage.gaussian_filter(rng.normal(size=(_SIDE, _SIDE)), 3)
    distance = np.hypot(rows - 25, columns - 22) + 20 * rough
    seen = np.hypot(rows - 22, columns - 29) + 18 * ndimage.shift(rough, (1, 2), mode="nearest")
    noise = ndimage.gaussian_filter(rng.normal(size=(_SIDE, _SIDE)), 2) * 9
    return distance < 8, 1 / (1 + np.exp((seen + noise - 13) / 1.2))


def _within(unc: NDArray[np.float64], wrong: NDArray[np.bool_], predicted: NDArray[np.bool_]) -> float:
    """Won pairs among all pairs of a wrong and a right pixel that were predicted alike."""
    won = pairs = 0.0
    for kind in (predicted, ~predicted):
        n = float(wrong[kind].sum()) * float((~wrong[kind]).sum())
        won += n * auroc_score(wrong[kind], unc[kind]) if n else 0.0
        pairs += n
    return won / pairs


def regions() -> bytes:
    """The region at several radii, around one fire."""
    fire, _ = _toy()
    distance = distance_to_fire(fire)
    figure, axes = plt.subplots(1, 4, figsize=(10, 3.1), layout="constrained")
    for axis, radius in zip(axes, (0, 2, ANCHOR, 10), strict=True):
        shown = np.where(fire, 2, distance <= radius)
        axis.imshow(shown, cmap=ListedColormap(["#f5f5f5", "#ffcc80", _RED]), vmin=0, vmax=2)
        _bare(axis, f"r = {radius:g} px ({radius * 0.375:g} km)")
    return _svg(figure)


def within() -> bytes:
    """Errors of a forecast, and two maps that score alike over the region but not among pixels predicted alike."""
    fire, prob = _toy()
    predicted = prob > 0.5
    near = fire_region(fire, FAR)
    wrong = predicted != fire
    entropy = -(prob * np.log2(prob) + (1 - prob) * np.log2(1 - prob))
    figure, axes = plt.subplots(1, 3, figsize=(10, 4.5), layout="constrained")
    kinds = np.where(near, 1, 0) + 1 * (near & predicted & fire) + 2 * (near & predicted & ~fire)
    kinds += 3 * (near & ~predicted & fire)
    colours = ListedColormap(["#f5f5f5", "#e0e0e0", "#8d6e63", _RED, _BLUE])
    axes[0].imshow(kinds, cmap=colours, vmin=0, vmax=4, interpolation="nearest")
    alarms = (wrong & predicted & near).sum() / (wrong & near).sum()
    _bare(axes[0], f"errors within {FAR:g} px\nred: false alarms ({alarms:.0%})\nblue: missed fire")
    names = ("predicted class alone", "entropy of the forecast")
    for axis, name, unc in zip(axes[1:], names, (predicted.astype(float), entropy), strict=True):
        axis.imshow(np.where(near, unc, np.nan), cmap="viridis", vmin=0, vmax=1)
        whole = auroc_score(wrong[near], unc[near])
        alike = _within(unc[near], wrong[near], predicted[near])
        _bare(axis, f"{name}\nAUROC {whole:.2f}\namong pixels predicted alike {alike:.2f}")
    return _svg(figure)


def _bare(axis: Axes, title: str) -> None:
    axis.set(xticks=[], yticks=[])
    axis.set_title(title, fontsize=12)


def _svg(figure: Figure) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format="svg", metadata={"Date": None})
    plt.close(figure)
    return content.getvalue()


FIGURES: dict[str, Callable[[], bytes]] = {"regions": regions, "within": within}
