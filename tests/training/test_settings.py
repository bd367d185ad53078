import dataclasses
import json
import math

import h5py
import pytest

from fcer.config.fields import fields, option_of
from fcer.config.settings import Config
from fcer.data.channels import ACTIVE_FIRE
from fcer.data.dataset import open_dataset
from fcer.data.folds import WSTS
from fcer.errors import ConfigError
from fcer.models.backbones import ARCHITECTURES
from fcer.training import HeadSettings, MemberSettings, training_key
from fcer.training.feature_shards import TARGETS
from fcer.training.head_losses import LOSSES
from training_cases import FEATURES, FOLD, QUICK, YEARS

OTHER = {
    "arch": "utae_t5",
    "width": 0.25,
    "features": (0, 39),
    "crop": 64,
    "epochs": 4,
    "lr": 1e-4,
    "weight_decay": 0.0,
    "batch_size": 3,
    "schedule": "plateau",
    "patience": 2,
    "pos_weight": 1.0,
    "clip_norm": 5.0,
    "seed": 7,
    "dropout": 0.25,
    "apart": False,  # which decides nothing where fires are few
    "device": "auto",
    "precision": "bf16",
    "loader_workers": 2,
}


def test_every_setting_is_in_the_table():
    assert OTHER.keys() == {field.name for field in dataclasses.fields(MemberSettings)}


@pytest.mark.parametrize("name", OTHER)
def test_the_key_changes_with_what_decides_the_weights_alone(tiny, name):
    changed = dataclasses.replace(QUICK, **{name: OTHER[name]})
    assert changed != QUICK
    same = training_key(tiny, FOLD, changed) == training_key(tiny, FOLD, QUICK)
    assert same == (name in ("device", "loader_workers", "apart"))


def test_the_key_changes_with_the_roles_of_the_years(tiny):
    assert len({training_key(tiny, fold, QUICK) for fold in WSTS}) == len(WSTS)


@pytest.mark.parametrize(("year", "same"), [(2018, False), (2020, False), (2021, True)])
def test_the_key_changes_with_the_data_that_was_seen(tiny, tmp_path, year, same):
    """A test year's fires do not decide anything."""
    for fire in tiny.fires(YEARS):
        copy = tmp_path / str(fire.year) / fire.path.name
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(fire.path.read_bytes())
        if fire.year == year:
            with h5py.File(copy, "r+") as file:
                file["data"][0, ACTIVE_FIRE, 0, 0] = 23
    changed = open_dataset(tmp_path, YEARS, features=FEATURES, crop=32, cache=tmp_path / "cache", workers=1)
    assert (training_key(changed, FOLD, QUICK) == training_key(tiny, FOLD, QUICK)) is same


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("arch", "resnet", "arch is 'resnet', but should be one of utae_t5, unet_t5, unet_t1"),
        ("features", (0, 99), "features is 99, but should be at most 39"),
        ("crop", 40, "crop is 40: not a multiple of 32"),
        ("crop", 0, "crop is 0, but should be at least 32"),
        ("epochs", 0, "member_epochs is 0, but should be at least 1"),
        ("batch_size", 0, "member_batch_size is 0, but should be at least 1"),
        ("seed", -1, "seed is -1, but should be at least 0"),
        ("lr", 0.0, "member_lr is 0.0, but should be at least 1e-09"),
        ("lr", math.nan, "member_lr is nan, but should be a number"),
        ("clip_norm", math.inf, "clip_norm is inf, but should be a number"),
        ("weight_decay", -0.1, "member_weight_decay is -0.1, but should be at least 0"),
        ("schedule", "linear", "member_schedule is 'linear', but should be one of cosine, plateau"),
        ("loader_workers", -1, "loader_workers is -1, but should be at least 0"),
        ("precision", "fp16", "precision is 'fp16', but should be one of fp32, bf16"),
        ("device", "tpu", "device is 'tpu', but should be one of auto, cpu, cuda"),
    ],
)
def test_however_they_are_built_values_pass_the_checks_of_the_configuration(name, value, sentence):
    with pytest.raises(ConfigError, match=f"^member settings: {sentence}"):
        dataclasses.replace(QUICK, **{name: value})


@pytest.mark.parametrize("cls", [HeadSettings, MemberSettings])
def test_every_setting_of_a_step_stands_in_the_configuration_and_none_is_forgotten(cls):
    """Each value of the configuration differs here, so that a mix-up would be seen."""
    values = {"seed": 7, "features": (0, 39), "arch": "unet_t5", "width": 0.5, "crop": 64, "device": "cpu"}
    values |= {"precision": "bf16", "loader_workers": 3}
    values |= {"pos_weight": 3.0, "clip_norm": 2.0, "head_hidden": (4,), "head_logit": True, "head_loss": "mse"}
    values |= {"head_context": True, "head_fire": True, "head_decoder": False}
    values |= {"head_target": "entropy", "member_schedule": "plateau", "member_apart": False}
    mine = [key for key in fields() if key.startswith(cls.prefix)]
    values |= {key: getattr(Config, key) / 2 for key in mine if isinstance(getattr(Config, key), float)}
    values |= {key: getattr(Config, key) + 1 + k for k, key in enumerate(mine) if type(getattr(Config, key)) is int}
    settings = cls.of(Config(**values))
    taken = {key: getattr(settings, key.removeprefix(cls.prefix)) for key in values if key in mine}
    assert set(taken) == set(mine) and taken == {key: values[key] for key in mine}
    others = {key: getattr(settings, key) for key in values if hasattr(settings, key) and key not in mine}
    assert others == {key: values[key] for key in others} and others["seed"] == 7
    assert cls() == cls.of(Config())


def test_a_further_round_changes_the_seed_alone():
    first, second = (MemberSettings.of(Config(seed=5), round) for round in (0, 1))
    assert first.seed == 5 != second.seed
    assert dataclasses.replace(second, seed=5) == first


def test_what_keys_are_made_of_has_the_names_and_values_it_always_had():
    """Members and students of earlier versions are found again by these."""
    assert json.dumps(MemberSettings().deciding()) == (
        '{"arch": "utae_t5", "width": 1.0, "features": [0, 1, 2, 3, 4, 38, 39], "crop": 128, "epochs": 50, '
        '"lr": 0.001, "weight_decay": 0.01, "batch_size": 16, "schedule": "cosine", "patience": 10, "pos_weight": 5.0, '
        '"clip_norm": 1.0, "seed": 0}'
    )
    assert json.dumps(dataclasses.asdict(HeadSettings())) == (
        '{"hidden": [], "logit": false, "context": false, "fire": false, "decoder": true, "far": 1.0, '
        '"loss": "rmsle", "target": "std", "lr": 0.001, '
        '"momentum": 0.9, "weight_decay": 0.0005, "batch_size": 4, "power": 0.9, "epochs": 100, "patience": 20, '
        '"seed": 0}'
    )


def test_the_choices_of_the_configuration_are_those_that_there_are():
    assert option_of("arch").choices == tuple(ARCHITECTURES)
    assert option_of("head_loss").choices == tuple(LOSSES)
    assert set(option_of("head_target").choices) >= set(TARGETS)
