"""Fires of very different length and size, with predicted maps of them, any two of which could change places."""

from typing import NamedTuple

import numpy as np
from scipy import ndimage
from scipy.special import expit


class SimulatedFires(NamedTuple):
    """Maps (images, H, W), and whose each image is."""

    y: np.ndarray
    prob: np.ndarray
    unc: np.ndarray
    fire: np.ndarray

    def arrays(self) -> dict[str, np.ndarray]:
        """As in a predicted-maps file."""
        names = np.array([f"fire_{k:05d}" for k in self.fire])
        prob, unc = self.prob.astype(np.float32), self.unc.astype(np.float32)
        return {"y": self.y.astype(np.uint8), "student_prob": prob, "student_unc": unc, "fire_id": names}


def simulate_fires(n_fires: int, rng: np.random.Generator, side: int = 20) -> SimulatedFires:
    """Long fires are large and well predicted; most are short, small, and often escape where nothing was predicted."""
    days = np.ceil(rng.pareto(1.2, n_fires) + 0.2).clip(1, 25).astype(int)
    fire = np.repeat(np.arange(n_fires), days)
    skill = (days / 25)[fire] ** 0.5 + rng.normal(0, 0.1, n_fires)[fire]
    rows, columns = np.mgrid[:side, :side]
    centre = rng.uniform(0.3, 0.7, (2, n_fires))[:, fire] * side
    radius = 1.2 + 4 * (days / 25)[fire] * rng.uniform(0.7, 1.3, fire.size)
    shift = rng.normal(0, 1, (2, fire.size)) * (3.5 * (1 - skill.clip(0, 1)))
    distance, seen = (
        np.hypot(rows - (centre[0] + dy)[:, None, None], columns - (centre[1] + dx)[:, None, None])
        for dy, dx in ((shift[0], shift[1]), (0 * shift[0], 0 * shift[1]))
    )
    noise = ndimage.gaussian_filter(rng.normal(0, 1, distance.shape), (0, 1, 1))
    prob = expit(2 * (radius[:, None, None] - seen) + 2 * noise)
    doubt = np.exp(-np.abs(seen - radius[:, None, None]) / 2) * (1.2 - skill.clip(0, 1))[:, None, None]
    quiet = rng.random(fire.size) < 0.1  # days on which nothing burns
    y = (distance <= radius[:, None, None]) & ~quiet[:, None, None]
    return SimulatedFires(y, prob, doubt.clip(0, 1), fire)


def mean_of_days(values: np.ndarray, fire: np.ndarray) -> np.ndarray:
    """Each fire's mean over its days (images, ...) that have a value; NaN where none has."""
    known = ~np.isnan(values).any(axis=1)
    nothing = np.full(values.shape[1], np.nan)
    days = [known & (fire == k) for k in range(fire.max() + 1)]
    return np.stack([values[some].mean(axis=0) if some.any() else nothing for some in days])
