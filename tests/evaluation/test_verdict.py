"""Sentences that the paired tests carry, and none that they do not."""

import re

import numpy as np
import pytest

from fcer.evaluation import evaluate, verdict
from fcer.maps.predicted_maps import PredictedMaps
from shard_cases import fire_arrays


def maps_of(uncertainties, seed=0, n_images=60, fires=True) -> PredictedMaps:
    """One prediction, and uncertainties made from where it is wrong and random numbers."""
    stacks = fire_arrays(seed, n_images=n_images)
    rng = np.random.default_rng(seed)
    wrong = (stacks["student_prob"] > 0.5) != stacks["y"]
    kept = {"y": stacks["y"]} | ({"fire_id": stacks["fire_id"]} if fires else {})
    for name, make in uncertainties.items():
        unc = np.clip(make(wrong, rng.random(wrong.shape)), 0, 1).astype(np.float32)
        kept |= {f"{name}_prob": stacks["student_prob"], f"{name}_unc": unc}
    return PredictedMaps.from_arrays(kept, year=2018)


def said(maps: PredictedMaps) -> list[str]:
    results = evaluate(maps, bootstrap=0, radii=[0])
    assert results.summary().replace("\n  ", " ").startswith("\n".join(verdict(results)))
    return verdict(results)


def noise(_, random):
    return random


def knowing(much):
    return lambda wrong, random: (1 - much) * random + much * wrong


@pytest.mark.parametrize("seed", range(3))
def test_noise_yields_no_best_method(seed):
    sentences = said(maps_of(dict.fromkeys(("student", "ensemble", "dropout", "entropy"), noise), seed))
    assert not any("highest" in sentence or "better" in sentence for sentence in sentences)
    assert sentences[0].startswith("AUROC: no method is best: ")
    assert "not separable by fire, n " in sentences[0]
    controls = [re.search(r"a control (.*): probability \((.*)\) is not .* \((.*)\)$", one) for one in sentences]
    assert any(controls)
    for words, control, best in (found.groups() for found in controls if found):
        assert words == ("does as well" if control >= best else "cannot be told from it")


def test_a_method_that_knows_more_is_highest_and_one_that_knows_less_is_told_so():
    maps = maps_of({"student": knowing(0.3), "ensemble": knowing(0.1), "entropy": knowing(0.7)})
    sentences = said(maps)
    assert sentences[0].startswith("AUROC: entropy (") and "is highest, above student (0." in sentences[0]
    assert any(s.startswith("AUROC: student is worse than its own backbone's entropy (") for s in sentences)
    within = [s for s in sentences if s.startswith("AUROC within the predicted class: ")]
    assert "entropy" in within[0] and "is highest" in within[0]
    assert not any("control" in sentence for sentence in sentences)


def test_images_are_tested_only_where_fires_are_unknown():
    sentences = said(maps_of({"student": knowing(0.5), "ensemble": noise}, fires=False))
    assert "by image, n " in sentences[0]


def test_what_is_below_chance_is_said():
    sentences = said(maps_of({"student": lambda wrong, random: random * (1 - wrong), "ensemble": noise}))
    assert any(s.startswith("AUROC: below chance: student at radius 0, full (0.000 at the lowest)") for s in sentences)


def test_persistence_is_no_rival_in_finding_errors():
    alone = maps_of({"student": knowing(0.3), "entropy": knowing(0.1)})
    beside = maps_of({"student": knowing(0.3), "entropy": knowing(0.1), "persistence": lambda wrong, _: 0 * wrong})
    tests = evaluate(beside, bootstrap=0, radii=[0]).tests
    assert not tests.isin(["persistence"]).to_numpy().any()
    expected = evaluate(alone, bootstrap=0, radii=[0]).tests
    assert tests["p_holm"].to_numpy() == pytest.approx(expected["p_holm"].to_numpy(), nan_ok=True)
    assert said(beside) == said(alone)
