"""Families with a training of their own: trained once, gone on with after a kill, and compared like the others."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from fcer.errors import ConfigError
from fcer.maps.predicted_maps import open_maps
from fcer.training import TRAINED_FAMILIES, MemberSettings, Teaching, train_family
from fcer.training.feature_cache import cache_features
from fcer.uncertainty import Predictors, write_method_maps
from fcer.uncertainty.costs import measure_costs
from fcer.uncertainty.families import family_facts, read_family
from training_cases import FEATURES

SETTINGS = MemberSettings(arch="unet_t1", width=1 / 16, features=FEATURES, crop=32, epochs=1, batch_size=4)


@pytest.fixture(scope="module")
def families(teaching: Teaching, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("families")
    return {name: train_family(name, teaching, SETTINGS, root / "cache", root) for name in TRAINED_FAMILIES}


def test_their_maps_stand_beside_the_others_with_what_they_cost(
    families: dict[str, Path], teaching: Teaching, tmp_path: Path
):
    predictors = Predictors(teaching.teachers, teaching.backbone, dropout_passes=3, families=families)
    path, methods, samples = (
        tmp_path / "predictions_2020.npz",
        ["ensemble", "mc_dropout", *families],
        teaching.validation(),
    )
    write_method_maps(path, predictors, samples, 2020, methods)
    with open_maps(path) as maps:
        assert maps.methods == tuple(methods) and maps.sampled == ("diffusion",)
        everything = slice(0, maps.shape[0])
        for name in methods:
            assert maps.unc(name, everything).max() > 0, name
        drawn = maps.samples("diffusion", everything)
        assert drawn.shape[1] == 3
        np.testing.assert_allclose(maps.prob("diffusion", everything), drawn.mean(1), atol=1e-6)
    costs = {cost.method: cost for cost in measure_costs(predictors, samples, methods, {"swag": 1.5})}
    assert [costs[name].passes for name in methods] == [3, 3, 3, 1, 1]
    one = sum(weight.numel() for weight in teaching.backbone.backbone.parameters())
    assert (
        costs["mc_dropout"].parameters == one < costs["diffusion"].parameters
        and costs["ensemble"].parameters == 3 * one
    )
    assert costs["swag"].train_seconds == 1.5 and np.isnan(costs["packed"].train_seconds)
    assert all(cost.ms_per_sample > 0 for cost in costs.values())


@pytest.mark.parametrize("name", TRAINED_FAMILIES)
def test_killed_and_started_again_it_is_the_same(
    families: dict[str, Path], teaching: Teaching, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    """The state after an epoch is all that is needed to go on."""
    from fcer.training import epoch_loop

    written = []

    def write_and_die(*what: object) -> None:
        kept(*what)
        written.append(what)
        raise KeyboardInterrupt

    kept = epoch_loop.write_resume
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(epoch_loop, "write_resume", write_and_die)
        train_family(name, teaching, SETTINGS, families[name].parent / "cache", tmp_path)
    assert written and not list(tmp_path.glob("*.safetensors"))
    again = train_family(name, teaching, SETTINGS, families[name].parent / "cache", tmp_path)
    assert again.name == families[name].name and not list(tmp_path.glob("*.resume"))
    ours, theirs = read_family(again), read_family(families[name])
    assert set(ours) == set(theirs) and all(np.array_equal(ours[key], theirs[key]) for key in ours)
    assert float(family_facts(again)["seconds"]) >= 0


def test_without_its_weights_a_family_is_refused(teaching: Teaching, tmp_path: Path):
    predictors = Predictors(teaching.teachers, teaching.backbone)
    with pytest.raises(ConfigError, match=r"^methods: packed needs a training of its own"):
        write_method_maps(tmp_path / "predictions_2020.npz", predictors, teaching.validation(), 2020, ["packed"])


@pytest.mark.parametrize("teacher", ["entropy", "diffusion"])
def test_any_method_may_teach(families: dict[str, Path], teaching: Teaching, tmp_path: Path, teacher: str):
    other = dataclasses.replace(
        teaching, teacher=teacher, passes=3, families=families if teacher == "diffusion" else {}
    )
    cached = cache_features(other, tmp_path / "cache")
    path = tmp_path / "predictions_2020.npz"
    # as many samples a batch as are cached together, so that the same is drawn
    write_method_maps(path, other.predictors, other.validation(), 2020, [teacher])
    with open_maps(path) as maps:
        said = maps.unc(teacher, slice(0, maps.shape[0]))
    np.testing.assert_allclose(cached.validation.targets("std").view(said.shape), said, atol=1e-3)
    assert cached.key != cache_features(teaching, tmp_path / "cache").key
