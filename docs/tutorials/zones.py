"""Probabilities one can believe, and zones with a guarantee.

A model that was trained with a weight on fire pixels says 50 % where it means much less. This page makes its
probabilities mean what they say near the fire, and draws zones that are guaranteed to miss little of tomorrow's fire on
average. Both are learnt on some fires and held to others. It needs predicted maps only, no model.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import ndimage

from fcer import PredictedMaps, evaluate
from fcer.core.zones import draw_zone
from fcer.errors import InputError
from fcer.evaluation.recalibrated import calibrated_maps, choose_from_maps
from fcer.evaluation.zone_table import zone_tables
from fcer.evaluation.zones import fit_family, fit_rules

# %%
# ## Maps of some fires
#
# A toy again. Each fire has three days, fires differ in size and in how well the model sees them, and the model's
# probabilities are those of a loss in which a fire pixel weighs as much as ten others.

WEIGHT, SIDE, N_DAYS = 10.0, 48, 3


def predict_fires(n_fires: int, year: int) -> PredictedMaps:
    """Maps of toy fires, as a model would predict them."""
    rng = np.random.default_rng(year)
    rows, columns = np.mgrid[:SIDE, :SIDE] - SIDE / 2
    burnt, prob = [], []
    for _fire in range(n_fires):
        radius, skill = rng.uniform(3, 9), rng.uniform(0.5, 2)
        for _day in range(N_DAYS):
            seen = np.hypot(rows, columns) + 8 * ndimage.gaussian_filter(rng.normal(size=(SIDE, SIDE)), 2)
            chance = 1 / (1 + np.exp((seen - radius) / skill))
            burnt.append(rng.random(chance.shape) < chance)
            prob.append(WEIGHT * chance / (WEIGHT * chance + 1 - chance))
    p = np.clip(prob, 1e-6, 1 - 1e-6)
    entropy = -(p * np.log2(p) + (1 - p) * np.log2(1 - p))
    fire_id = np.repeat([f"{year}_{i}" for i in range(n_fires)], N_DAYS)
    return PredictedMaps.from_arrays({"y": burnt, "mine_prob": p, "mine_unc": entropy, "fire_id": fire_id}, year=year)


known, new = predict_fires(40, year=2020), predict_fires(30, year=2021)

# %%
# ## Probabilities
#
# Four ways to recalibrate are compared by cross-validation over whole fires, on pixels within 4 px of the forecast's
# fire: `none`, `prior` (undo the weight), `platt` (scale and shift the logit), `isotonic`. The simplest one that is as
# good as the best, within the noise over fires, is taken.

choice = choose_from_maps([known], "mine", radius=4, weight=WEIGHT)
print("NLL on held-out fires:", {kind: round(nll, 3) for kind, nll in choice.nll.items()})
print("chosen:", choice.recalibration.kind)

both = calibrated_maps(new, {"mine": choice.recalibration})
scores = evaluate(both, reference="mine", bootstrap=0, progress=None).anchor
print(scores[["method", "brier", "nll", "auroc"]].round(3).to_string(index=False))

# %%
# ## Zones
#
# A zone is where a score is at least some level. A family of zones goes from nothing to the whole image; the smallest
# zone is sought whose expected miss (the share of tomorrow's burnt pixels outside, averaged over a fire's days) is at
# most what is asked for. Three families are compared: a threshold on the probability, a margin around the predicted
# fire in metres, and the probability widened by the uncertainty.

found = zone_tables([known], new, ["mine"], misses=(0.05, 0.1, 0.2), n_draws=200)
columns = ["family", "nominal_miss", "realised_miss", "area_km2", "times_burnt", "fires"]
print(found.table[columns].round(3).to_string(index=False))

# %%
# `nominal_miss` is what was asked for, `realised_miss` what happened on the new fires. The guarantee holds in
# expectation, over fires that could have changed places with those that calibrated; see
# [guarantees and their assumptions](../understand/guarantees.md). What an uncertainty map is worth shows as area: at
# the same miss, the better map has the smaller zone.
#
# With few fires less can be promised. Nine fires cannot guarantee a miss below 1 / (9 + 1):

few = fit_family([predict_fires(9, year=2019)], "mine", "threshold")
try:
    fit_rules(few, misses=[0.05])
except InputError as refused:
    print(refused)

# %%
# One day's zones on a map:

rules = fit_rules(fit_family([known], "mine", "threshold"), misses=[0.05, 0.2])
day = slice(4, 5)
p, fire = new.prob("mine", day)[0], new.fire(day)[0]
figure, axis = plt.subplots(figsize=(4.5, 4.5), layout="constrained")
axis.imshow(np.ma.masked_where(~fire, fire), cmap="autumn", interpolation="nearest")
for rule, colour in zip(rules, ("tab:blue", "tab:purple"), strict=True):
    zone = draw_zone(rule.family.score(p, p), rule.level)
    axis.contour(zone.mask, levels=[0.5], colors=colour)
    axis.plot([], [], color=colour, label=f"expected miss at most {rule.miss:.0%}")
axis.set(xticks=[], yticks=[], title="what burnt (red) and two zones")
axis.legend(loc="lower left", fontsize=8)
figure.savefig("zones_map.png", dpi=120)

# %%
# ![What burnt, and two zones around it](zones_map.png)
