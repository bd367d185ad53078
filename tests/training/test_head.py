"""Fitting the head: gradients against autograd, AUROC against scikit-learn, the best epoch kept, kills survived."""

import dataclasses
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from fcer.core.surface import asd_loss
from fcer.errors import ConfigError, DataError, FcerError
from fcer.models.student import HeadSpec, UncertaintyHead
from fcer.training import head as fitting
from fcer.training.epochs import EpochRecord
from fcer.training.feature_cache import FeatureCache
from fcer.training.head import HeadTask, fit_head, make_head
from fcer.training.head_losses import LOSSES, rmsle
from fcer.training.head_settings import HeadSettings
from fcer.training.schedules import head_learning_rate
from fcer.training.validation_region import gather_region, mean_asd
from plain_fcer import plain_region
from split_cases import InMemory
from training_cases import untimed


@pytest.fixture(scope="module")
def task() -> HeadTask:
    validation = InMemory(6, seed=1)
    return HeadTask.of(InMemory(11), validation, gather_region(validation, 4.0), "std")


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.8])
def test_errors_are_those_at_the_threshold(threshold: float):
    split = InMemory(6, seed=1)
    region = gather_region(split, 4.0, threshold)
    expected = []
    for block in split.blocks():
        for logits, y in zip(block.logits_BP.double().numpy(), block.y_BP.numpy().astype(bool), strict=True):
            wrong = (1 / (1 + np.exp(-logits)) > threshold) != y
            expected.append(wrong[plain_region(y.reshape(16, 16), 4.0).ravel()] if y.any() else [])
    assert np.array_equal(region.error_P, np.concatenate(expected))


QUICK = HeadSettings(epochs=6, patience=6, lr=0.05)


def weights(head: UncertaintyHead) -> torch.Tensor:
    return torch.cat([value.flatten() for value in head.state_dict().values()])


@pytest.mark.parametrize("name", LOSSES)
@given(seed=st.integers(0, 10**6), batch=st.integers(1, 4), scale=st.sampled_from([0.1, 1.0, 5.0]))
def test_slopes_are_what_autograd_finds(name: str, seed: int, batch: int, scale: float):
    generator = torch.Generator().manual_seed(seed)
    logits = (torch.randn(batch, 30, generator=generator, dtype=torch.float64) * scale).requires_grad_()
    target = torch.rand(batch, 30, generator=generator, dtype=torch.float64)
    target = LOSSES[name].prepare(target)
    value = LOSSES[name].value(logits, target)
    value.backward()
    slope = logits.detach().clone()
    ours = LOSSES[name].slope(slope, target, torch.empty(2, *slope.shape, dtype=torch.float64))
    torch.testing.assert_close(ours, value.detach())
    torch.testing.assert_close(slope, logits.grad)


def test_rmsle_is_the_papers_formula_image_by_image():
    rng = np.random.default_rng(0)
    s, t = rng.uniform(0.01, 0.99, (2, 3, 50))
    expected = np.mean([np.sqrt(np.mean((np.log(b + 1) - np.log(a + 1)) ** 2)) for a, b in zip(s, t, strict=True)])
    logits = torch.from_numpy(np.log(s / (1 - s)))
    log_target = LOSSES["rmsle"].prepare(torch.from_numpy(t))
    assert float(rmsle(logits, log_target)) == pytest.approx(expected, rel=1e-9)
    perfect = torch.logit(torch.from_numpy(t)).requires_grad_()
    rmsle(perfect, log_target).backward()
    assert torch.isfinite(perfect.grad).all(), "a perfect student still has a gradient"


@pytest.mark.parametrize(("logit", "context"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_linear_head_learns_what_autograd_would_teach_it(
    loss: str, logit: bool, context: bool, task: HeadTask, monkeypatch
):
    settings = dataclasses.replace(QUICK, loss=loss, logit=logit, context=context)
    quick = fit_head(task, settings)

    def by_autograd(head, loss, inputs, target_BP, _room):
        head.zero_grad()
        with torch.enable_grad():
            value = loss.value(fitting._logits(head, inputs), target_BP)
        value.backward()
        return value.detach()

    monkeypatch.setattr(fitting, "set_linear_gradients", by_autograd)
    plain = fit_head(task, settings)
    torch.testing.assert_close(weights(quick.head), weights(plain.head), rtol=1e-4, atol=1e-6)
    assert [r.score for r in quick.records] == pytest.approx([r.score for r in plain.records], abs=1e-4)


@pytest.mark.parametrize("logit", [False, True])
def test_features_that_memory_does_not_hold_are_converted_batch_by_batch(logit: bool, task: HeadTask, monkeypatch):
    monkeypatch.setattr("fcer.training.feature_shards._WIDE_BYTES", 0)
    narrow = HeadTask.of(InMemory(11), InMemory(6, seed=1), task.region, "std")
    assert next(narrow.training.blocks()).features_BFP.dtype == torch.float16
    assert next(task.training.blocks()).features_BFP.dtype == torch.float32
    settings = dataclasses.replace(QUICK, logit=logit)
    assert torch.equal(weights(fit_head(narrow, settings).head), weights(fit_head(task, settings).head))


@pytest.mark.parametrize("hidden", [(), (5,), (6, 3)])
def test_validation_is_what_scikit_learn_says_of_dilated_regions(hidden: tuple[int, ...], task: HeadTask):
    settings = dataclasses.replace(QUICK, hidden=hidden, epochs=1)
    fitted = fit_head(task, settings)
    errors, scores, losses = [], [], []
    with torch.no_grad():
        for block in InMemory(6, seed=1).blocks():
            logits = fitted.head(block.features_BFP.float()[..., None], block.logits_BP[..., None])[..., 0]
            for k, y in enumerate(block.y_BP.numpy()):
                near = plain_region(y.reshape(16, 16) > 0, 4).ravel() & y.any()
                errors.append(((block.logits_BP[k].numpy() > 0) != y)[near])
                scores.append(logits[k].sigmoid().numpy()[near])
            losses.append(logits)
        some = slice(None), slice(None, None, 17)
        loss = rmsle(torch.cat(losses)[some], InMemory(6, seed=1).targets("std").log1p()[some])
    (record,) = fitted.records
    assert record.score == pytest.approx(roc_auc_score(np.concatenate(errors), np.concatenate(scores)), abs=1e-9)
    assert record.val_loss == pytest.approx(float(loss), rel=1e-5)


def test_half_precision_changes_nothing_beyond_a_thousandth():
    exact, rounded = InMemory(40, seed=2), InMemory(40, seed=2)
    generator = torch.Generator().manual_seed(5)
    # half a step of half precision, and no longer representable in it
    wiggle = [1 + 4e-4 * (2 * torch.rand(b.features_BFP.shape, generator=generator) - 1) for b in exact.blocks()]
    exact._blocks = [
        block._replace(features_BFP=block.features_BFP.float() * by)
        for block, by in zip(exact.blocks(), wiggle, strict=True)
    ]
    scores = [
        fit_head(HeadTask.of(split, split, gather_region(split, 4.0), "std"), QUICK).records[-1].score
        for split in (exact, rounded)
    ]
    assert scores[0] == pytest.approx(scores[1], abs=1e-3)


def test_the_loss_of_some_pixels_stands_for_that_of_all(cached: FeatureCache):
    region = gather_region(cached.validation, 4.0)
    task = HeadTask.of(cached.training, cached.validation, region, "std")
    head = fit_head(task, QUICK).head
    with torch.no_grad():
        maps = [
            head(b.features_BFP.float()[..., None], b.logits_BP[..., None])[..., 0] for b in cached.validation.blocks()
        ]
        whole = rmsle(torch.cat(maps), cached.validation.targets("std").log1p())
    assert fitting.validation_loss(task.prepared("rmsle"), QUICK, head) == pytest.approx(float(whole), rel=0.15), (
        "of 60 pixels an image"
    )


def test_the_best_epoch_is_kept_and_not_the_last(task: HeadTask):
    """Steps this large overshoot: the score falls again after the first epochs."""
    settings = dataclasses.replace(QUICK, lr=40.0, weight_decay=0.05, epochs=8, patience=8, seed=1)
    fitted = fit_head(task, settings)
    scores = [record.score for record in fitted.records]
    assert fitted.best_epoch == int(np.argmax(scores)) + 1 < len(scores), "a test in which the two differ"
    assert task.region.auroc(fitted.head) == max(scores) > scores[-1]


def test_fitting_finds_the_errors(task: HeadTask):
    fitted = fit_head(task, dataclasses.replace(QUICK, lr=1.0, epochs=40, patience=40))
    assert fitted.records[-1].train_loss < fitted.records[0].train_loss
    assert max(record.score for record in fitted.records) > 0.85


def test_it_stops_when_the_score_no_longer_rises(task: HeadTask):
    fitted = fit_head(task, dataclasses.replace(QUICK, lr=40.0, weight_decay=0.05, epochs=100, patience=3, seed=1))
    assert len(fitted.records) == fitted.best_epoch + 3


def test_same_seed_same_head_other_seed_another(task: HeadTask):
    one, same, other = (weights(fit_head(task, dataclasses.replace(QUICK, seed=s)).head) for s in (0, 0, 1))
    assert torch.equal(one, same) and not torch.equal(one, other)


def test_whoever_calls_keeps_their_random_numbers(task: HeadTask):
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    fit_head(task, QUICK)
    assert torch.equal(torch.rand(4), expected)


@pytest.mark.parametrize("hidden", [(), (5,)])
@pytest.mark.parametrize("after", [1, 4])
def test_a_kill_changes_nothing(hidden: tuple[int, ...], after: int, task: HeadTask, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(fitting, "_SECONDS_BETWEEN_SAVES", -1.0)
    settings = dataclasses.replace(QUICK, hidden=hidden)
    undisturbed = fit_head(task, settings)

    def kill(record: EpochRecord) -> None:
        if record.epoch == after:
            raise KeyboardInterrupt

    resume = (tmp_path / "fit.resume", "key")
    with pytest.raises(KeyboardInterrupt):
        fit_head(task, settings, resume=resume, on_epoch=kill)
    told: list[EpochRecord] = []
    begun, train = [], fitting.train_epoch
    monkeypatch.setattr(fitting, "train_epoch", lambda *a: (begun.append(a[-1]), train(*a))[1])
    finished = fit_head(task, settings, resume=resume, on_epoch=told.append)
    assert begun == list(range(after + 1, 7)), "what was done is not done again"
    assert torch.equal(weights(finished.head), weights(undisturbed.head))
    assert untimed(finished.records) == untimed(undisturbed.records)
    assert [record.epoch for record in told] == [1, 2, 3, 4, 5, 6]


def test_the_learning_rate_falls_by_its_power():
    settings = HeadSettings()
    rates = [head_learning_rate(settings, done) for done in range(100)]
    assert rates[0] == 1e-3
    assert rates[50] == pytest.approx(1e-3 * 0.5**0.9)
    assert all(a > b > 0 for a, b in pairwise(rates))
    flat = dataclasses.replace(settings, power=0)
    assert {head_learning_rate(flat, done) for done in range(100)} == {1e-3}


def test_the_optimiser_is_the_papers():
    head, optimizer = make_head(16, HeadSettings())
    (group,) = optimizer.param_groups
    assert (group["lr"], group["momentum"], group["weight_decay"]) == (1e-3, 0.9, 5e-4)
    assert head.spec == HeadSpec(16) and sum(p.numel() for p in head.parameters()) == 17


def test_a_loss_that_explodes_is_said():
    split = InMemory(4)
    targets = split.targets("std")
    targets[1, 3] = math.nan
    broken = dataclasses.replace(HeadTask.of(split, split, gather_region(split, 4.0), "std"), training_targets=targets)
    with pytest.raises(
        FcerError, match=r"no longer finite in epoch 1 at a learning rate of 0\.05; start again with a lo"
    ):
        fit_head(broken, QUICK)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"loss": "l1"}, "head settings: head_loss is 'l1', but should be one of rmsle, mse, bce"),
        ({"target": "x"}, "head_target is 'x', but should be one of std, mutual_information, entropy"),
        ({"epochs": 0}, "head_epochs is 0, but should be at least 1"),
        ({"hidden": (4, 0)}, "head_hidden is 0, but should be at least 1"),
        ({"lr": math.inf}, "head_lr is inf, but should be a number"),
        ({"momentum": 1.0}, "head_momentum is 1.0, but should be at most 0.9999"),
    ],
)
def test_settings_that_cannot_be(changed: dict[str, object], sentence: str):
    with pytest.raises(ConfigError, match=sentence):
        HeadSettings(**changed)


def without_errors(split: InMemory) -> None:
    split._blocks = [b._replace(logits_BP=torch.where(b.y_BP > 0, 1.0, -1.0)) for b in split._blocks]


def without_fire(split: InMemory) -> None:
    split._blocks = [b._replace(y_BP=torch.zeros_like(b.y_BP)) for b in split._blocks]


@pytest.mark.parametrize(("change", "found"), [(without_errors, "no error"), (without_fire, "no pixel")])
def test_a_region_that_cannot_choose(change, found: str):
    split = InMemory(4)
    change(split)
    with pytest.raises(DataError, match=f"validation years: the backbone makes {found} within 4 px of fire"):
        gather_region(split, 4.0)


def test_the_anchor_is_the_ensembles_mean_asd(cached: FeatureCache):
    split = InMemory(6)
    distances = []
    for block in split.blocks():
        predicted = block.passes_BKP.float().mean(1) > 0.5
        for ours, theirs in zip(predicted.numpy(), block.y_BP.numpy(), strict=True):
            if theirs.any() and ours.any():
                distances.append(asd_loss(ours.reshape(16, 16), theirs.reshape(16, 16)))
    assert mean_asd(split) == pytest.approx(np.mean(distances))
    split._blocks = [b._replace(passes_BKP=torch.zeros_like(b.passes_BKP)) for b in split._blocks]
    with pytest.raises(ConfigError, match="the ensemble misses every fire"):
        mean_asd(split)
