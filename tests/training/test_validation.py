import dataclasses

import h5py
import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, log_loss

from fcer.data.channels import ACTIVE_FIRE
from fcer.data.samples import Samples
from fcer.errors import DataError
from fcer.training import train_member
from fcer.training.distributed import World
from fcer.training.learner import make_learner
from fcer.training.validation import _pooled, check_classes, validate
from training_cases import ATTENTIVE, FEATURES, FOLD, QUICK, YEARS, tiny_data


def central(dataset, years=FOLD.validation, days=5) -> Samples:
    normalization = dataset.normalization(FOLD.train)
    return Samples(dataset.fires(years), days=days, features=FEATURES, normalization=normalization, crop=32)


@pytest.mark.parametrize("workers", [0, 1])
def test_loss_and_ap_are_those_of_all_pixels_together(tiny, workers):
    settings = dataclasses.replace(ATTENTIVE, pos_weight=3.0, batch_size=5, loader_workers=workers)
    learner = make_learner(settings, FOLD, torch.device("cpu"), World())
    learner.backbone.margin = 0  # so that the bare network says the same
    samples = central(tiny)
    found = validate(learner, samples, settings, World())

    learner.backbone.eval()
    with torch.inference_mode():
        logits = learner.backbone(torch.from_numpy(np.stack([sample.x for sample in samples])))
    y = np.stack([sample.y for sample in samples]).ravel()
    prob = logits.sigmoid().numpy().ravel()
    assert found.ap == pytest.approx(average_precision_score(y, prob), abs=1e-4)
    mean_weight = np.where(y, 3.0, 1.0).mean()
    expected = log_loss(y, prob.astype(float), sample_weight=np.where(y, 3.0, 1.0)) * mean_weight
    assert found.loss == pytest.approx(expected, rel=1e-4)


def test_the_backbone_goes_on_as_it_was(tiny):
    learner = make_learner(ATTENTIVE, FOLD, torch.device("cpu"), World())
    before = {name: value.clone() for name, value in learner.backbone.state_dict().items()}
    learner.model.train()
    first, second = (validate(learner, central(tiny), ATTENTIVE, World()) for _ in range(2))
    assert first == second
    assert learner.backbone.training
    assert all(torch.equal(before[name], value) for name, value in learner.backbone.state_dict().items())


def test_parts_of_several_processes_are_pooled(rng):
    fire, prob = rng.random((7, 4, 4)) < 0.3, rng.random((7, 4, 4), np.float32)
    whole = _pooled([(14.0, prob, fire)])
    parts = _pooled([(6.0, prob[::2], fire[::2]), (8.0, prob[1::2], fire[1::2])])
    assert whole == parts
    assert whole.loss == 2.0
    assert whole.ap == pytest.approx(average_precision_score(fire.ravel(), prob.ravel()))


@pytest.fixture
def without(tiny, tmp_path):
    """The tiny fires with a year's active fire replaced."""

    def changed(year, value):
        for fire in tiny.fires(YEARS):
            copy = tmp_path / "fires" / str(fire.year) / fire.path.name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(fire.path.read_bytes())
            if fire.year == year:
                with h5py.File(copy, "r+") as file:
                    file["data"][:, ACTIVE_FIRE] = value
        return tiny_data(tmp_path / "fires")

    return changed


@pytest.mark.parametrize(("value", "found"), [(0, "only pixels without fire"), (12, "only pixels with fire")])
def test_a_validation_year_of_one_class_is_refused_before_training(without, tmp_path, monkeypatch, value, found):
    monkeypatch.setattr("fcer.training.member.make_learner", None)
    with pytest.raises(DataError, match=f"^validation years 2020: {found} in the central 32 px of .* undefined; add"):
        train_member(without(2020, value), FOLD, QUICK, tmp_path / "member.safetensors")
    assert not list(tmp_path.glob("member*"))


def test_a_validation_year_without_samples(short):
    with pytest.raises(DataError, match="validation years 2020, 2021: no sample"):
        check_classes(central(short, (2020, 2021)), (2020, 2021))


def test_both_classes_are_found_wherever_they_are(without):
    """Fire in one of the two years only, the first of which has none."""
    dataset = without(2020, 0)
    check_classes(central(dataset, (2020, 2021)), (2020, 2021))
