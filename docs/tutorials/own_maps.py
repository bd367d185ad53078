"""Score maps of your own.

You have a fire-spread model and, for some days whose outcome is known, three maps each: what burnt, the fire
probability that your model gave, and how uncertain it said it was. This page scores the uncertainty near the fire. It
needs neither torch nor MLflow, and runs in seconds.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import ndimage

from fcer import PredictedMaps, evaluate, open_maps, write_maps

# %%
# ## Maps
#
# Here a toy stands in for your model: ten fires of four days each, blobs on a grid of 64 px. The forecast is a blurred
# and shifted view of what burnt, drawn too large, as models do whose fire pixels weigh more in training.

rng = np.random.default_rng(0)
n_fires, n_days, side = 10, 4, 64
rows, columns = np.mgrid[:side, :side]

burnt, probability = [], []
for _fire in range(n_fires):
    centre = rng.uniform(24, 40, 2)
    for day in range(n_days):
        rough = ndimage.gaussian_filter(rng.normal(size=(side, side)), 3) * 12
        distance = np.hypot(rows - centre[0], columns - centre[1]) + 3 * rough
        burnt.append(distance < 6 + 2 * day)
        seen = ndimage.shift(ndimage.gaussian_filter(distance, 2), rng.normal(0, 1.5, 2), mode="nearest")
        probability.append(1 / (1 + np.exp((seen - 10 - 2 * day) / 2)))

y = np.array(burnt)
prob = np.array(probability)
fire_id = np.repeat([f"fire_{i}" for i in range(n_fires)], n_days)

# %%
# Three uncertainties for the same forecast: the entropy of its probability, a random map, and a map that knows nothing
# but where fire was predicted. Give `fire_id` whenever you know it: days of one fire resemble each other, and tests
# and intervals then count fires, not days.

entropy = -(prob * np.log2(prob) + (1 - prob) * np.log2(1 - prob))
maps = PredictedMaps.from_arrays(
    {
        "y": y,
        "entropy_prob": prob,
        "entropy_unc": entropy,
        "random_prob": prob,
        "random_unc": rng.random(prob.shape),
        "class_prob": prob,
        "class_unc": (prob > 0.5).astype(float),
        "fire_id": fire_id,
    },
    year=2021,
)

# %%
# Bad maps are refused here, in a sentence: NaN, values outside 0 to 1, shapes that differ, a year without fire.
#
# To share the maps, or to score them on the command line (`fcer evaluate --predictions`), store them in a file.

write_maps("predictions_2021.npz", maps)
same = open_maps("predictions_2021.npz")

# %%
# ## Scores
#
# `reference` names the method whose errors every uncertainty is to find. The result holds one table for each question;
# `summary()` is what the command line prints.

results = evaluate(same, reference="entropy", bootstrap=200, progress=None)
print(results.summary())

# %%
# The sweep has one row for each method and distance from fire; infinity is the whole image.

finite = results.sweep[np.isfinite(results.sweep["radius_px"])]
figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
for method, curve in finite.groupby("method", sort=False):
    axis.plot(curve["radius_px"], curve["auroc"], marker="o", label=method)
axis.set(xlabel="distance from fire (px of 375 m)", ylabel="AUROC", ylim=(0, 1))
axis.legend()
figure.savefig("own_maps_sweep.png", dpi=120)

# %%
# ![AUROC over the distance from fire](own_maps_sweep.png)
#
# Beyond six pixels the map that only knows the predicted class scores as well as entropy, or better. That is no
# success of the map: most errors of this forecast are false alarms, and false alarms lie where fire was predicted. See
# [what FCER can and cannot tell](../understand/fcer.md).
#
# `results.write("results")` stores every table; `fcer report --results results` makes figures and a page of it.

results.write("results")
