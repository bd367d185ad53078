import dataclasses
import math

import h5py
import pytest

from fcer.data.channels import ACTIVE_FIRE
from fcer.data.dataset import open_dataset
from fcer.data.folds import WSTS
from fcer.errors import ConfigError
from fcer.training import MemberSettings, training_key
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
    "device": "auto",
    "loader_workers": 2,
}


def test_every_setting_is_in_the_table():
    assert OTHER.keys() == {field.name for field in dataclasses.fields(MemberSettings)}


@pytest.mark.parametrize("name", OTHER)
def test_the_key_changes_with_what_decides_the_weights_alone(tiny, name):
    changed = dataclasses.replace(QUICK, **{name: OTHER[name]})
    assert changed != QUICK
    same = training_key(tiny, FOLD, changed) == training_key(tiny, FOLD, QUICK)
    assert same == (name in ("device", "loader_workers"))


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
        ("arch", "resnet", "arch: there is no backbone 'resnet'; choose one of"),
        ("features", (0, 99), "features: 99 is none"),
        ("crop", 40, "crop: 40 is not a multiple of 32"),
        ("crop", 0, "crop: 0 is not a multiple of 32"),
        ("epochs", 0, "epochs: 0 is too small; give at least 1"),
        ("batch_size", 0, "batch_size: 0 is too small; give at least 1"),
        ("patience", 0, "patience: 0 is too small; give at least 1"),
        ("seed", -1, "seed: -1 is too small; give at least 0"),
        ("loader_workers", -1, "loader_workers: -1 is too small; give at least 0"),
        ("lr", 0.0, "lr: 0.0 cannot be used; give a number above 0"),
        ("lr", math.nan, "lr: nan cannot be used; give a number above 0"),
        ("pos_weight", -1.0, "pos_weight: -1.0 cannot be used; give a number above 0"),
        ("clip_norm", math.inf, "clip_norm: inf cannot be used; give a number above 0"),
        ("weight_decay", -0.1, "weight_decay: -0.1 cannot be used; give 0 or more"),
        ("schedule", "linear", "schedule: 'linear' is none of cosine, plateau; choose one"),
        ("device", "tpu", "device: 'tpu' is none of auto, cpu, cuda; choose one"),
    ],
)
def test_values_that_cannot_be_used(name, value, sentence):
    with pytest.raises(ConfigError, match=f"^{sentence}"):
        dataclasses.replace(QUICK, **{name: value})
