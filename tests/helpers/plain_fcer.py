"""FCER by the book: scikit-learn on regions made by `binary_dilation`, one at a time.

Slow and plain. Tests hold the engine to it, and the benchmark measures how much faster the engine is.
"""

from collections.abc import Mapping

import numpy as np
from scipy import ndimage, stats
from sklearn.metrics import average_precision_score, roc_auc_score

RADII = (*range(11), np.inf)
METHODS = ("student", "ensemble")


def plain_evaluation(maps: Mapping[str, np.ndarray], anchor: float = 4) -> dict[str, np.ndarray]:
    """AP, ASD, sweep, per-image scores and pooled tests of two methods; errors are the student's."""
    fire = maps["y"] > 0
    error = (maps["student_prob"] > 0.5) != fire
    expected = {
        "ap": [average_precision_score(fire.ravel(), maps[f"{name}_prob"].ravel()) for name in METHODS],
        "asd_m": [375 * plain_mean_asd(maps[f"{name}_prob"] > 0.5, fire) for name in METHODS],
    }
    on_fire = fire.any(axis=(1, 2))
    fire, error = fire[on_fire], error[on_fire]
    maps = {name: maps[f"{name}"][on_fire] for name in maps if name.endswith(("_prob", "_unc"))}
    for radius in RADII:
        region = np.array([plain_region(image, radius) for image in fire])
        for name in METHODS:
            scores = plain_scores(
                fire[region], error[region], maps[f"{name}_prob"][region], maps[f"{name}_unc"][region]
            )
            expected.setdefault(f"sweep {name}", []).append(scores)
    for name in METHODS:
        expected[f"images {name}"] = plain_image_scores(fire, error, maps[f"{name}_unc"], anchor)
    for k, metric in enumerate(("auroc", "auprc")):
        delta = np.subtract(*(np.array(expected[f"images {name}"])[:, k] for name in METHODS))
        delta = delta[~np.isnan(delta) & (delta != 0)]
        expected[f"p {metric}"] = [stats.wilcoxon(delta, alternative="greater").pvalue]
    return {name: np.array(values) for name, values in expected.items()}


def plain_region(fire: np.ndarray, radius: float) -> np.ndarray:
    if np.isinf(radius):
        return np.ones_like(fire)
    side = np.arange(-int(radius), int(radius) + 1)
    disk = side[:, None] ** 2 + side**2 <= radius**2
    return ndimage.binary_dilation(fire, disk)


def plain_scores(fire: np.ndarray, error: np.ndarray, prob: np.ndarray, unc: np.ndarray) -> tuple[float, ...]:
    p = prob.astype(np.float64)
    clipped = np.clip(p, 1e-7, 1 - 1e-7)
    return (
        roc_auc_score(error, unc),
        average_precision_score(error, unc),
        np.mean((p - fire) ** 2),
        -np.mean(np.where(fire, np.log(clipped), np.log(1 - clipped))),
    )


def plain_mean_asd(predicted: np.ndarray, fire: np.ndarray) -> float:
    losses = [plain_asd(*masks) for masks in zip(predicted, fire, strict=True) if all(mask.any() for mask in masks)]
    return float(np.mean(losses))


def plain_asd(predicted: np.ndarray, fire: np.ndarray) -> float:
    a, b = (ndimage.binary_dilation(mask) & ~mask for mask in (predicted, fire))
    there, back = ndimage.distance_transform_edt(~b)[a], ndimage.distance_transform_edt(~a)[b]
    return float((there.mean() + back.mean()) / 2)


def plain_image_scores(
    fire: np.ndarray, error: np.ndarray, unc: np.ndarray, anchor: float
) -> list[tuple[float, float]]:
    scores = []
    for image in range(len(fire)):
        region = plain_region(fire[image], anchor)
        wrong, u = error[image][region], unc[image][region]
        defined = 0 < wrong.sum() < wrong.size
        scores.append((roc_auc_score(wrong, u), average_precision_score(wrong, u)) if defined else (np.nan, np.nan))
    return scores
