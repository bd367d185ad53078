"""The interval of an AUROC over draws of fires the plain way: pixels of the drawn fires laid side by side."""

from collections.abc import Sequence

import numpy as np
from sklearn.metrics import roc_auc_score


def plain_interval(
    errors: Sequence[np.ndarray], scores: Sequence[np.ndarray], fires: Sequence[object], seed: int
) -> tuple[float, float]:
    """Of images of some fires; those without a pixel take no part."""
    images = [k for k, error in enumerate(errors) if error.size]
    names = list(dict.fromkeys(fires[k] for k in images))
    rng, drawn = np.random.default_rng(seed), []
    for times in rng.multinomial(len(names), [1 / len(names)] * len(names), size=1000):
        chosen = [k for k in images for _ in range(times[names.index(fires[k])])]
        error = np.concatenate([errors[k] for k in chosen])
        if 0 < error.sum() < error.size:
            drawn.append(roc_auc_score(error, np.concatenate([scores[k] for k in chosen])))
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(low), float(high)
