import dataclasses
from itertools import pairwise

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sklearn.metrics import average_precision_score

import fcer
from fcer.data.folds import WSTS
from fcer.data.samples import Samples
from fcer.errors import ConfigError, DataError, FcerError
from fcer.models import load_checkpoint, predict_logits, read_info
from fcer.models.persistence_baseline import persistence_ap
from fcer.training import optimisers, train_member, training_key
from fcer.training.member import _samples, history_file
from fcer.training.validation import Validation
from training_cases import ATTENTIVE, FEATURES, FOLD, QUICK, same_weights, untimed


@pytest.fixture
def path(tmp_path):
    return tmp_path / "members" / "fold0.safetensors"


def scripted(monkeypatch, aps):
    """Validation that finds the given APs, one after the other; returns the weights that it saw."""
    seen, left = [], iter(aps)

    def validate(learner, *rest):
        seen.append({name: value.clone() for name, value in learner.backbone.state_dict().items()})
        return Validation(0.5, next(left))

    monkeypatch.setattr("fcer.training.member.validate", validate)
    return seen


def test_the_checkpoint_says_what_it_is(tiny, path):
    result = train_member(tiny, FOLD, QUICK, path)
    backbone, info = load_checkpoint(path)
    assert result.trained
    assert (result.path, result.info) == (path, info)
    assert (info.arch, info.width, info.channels, info.features) == ("unet_t1", 1 / 16, 3, FEATURES)
    assert (info.fold, info.train_years, info.val_years, info.test_years) == (0, (2018, 2019), (2020,), (2021,))
    normalization = tiny.normalization((2018, 2019))
    assert (info.mean, info.std) == (normalization.mean, normalization.std)
    assert info.dataset_fingerprint == tiny.fingerprint((2018, 2019, 2020))
    assert info.code_version == fcer.__version__
    assert info.training_key == training_key(tiny, FOLD, QUICK)
    assert info.pos_weight == QUICK.pos_weight
    assert [record.epoch for record in result.records] == [1, 2, 3]
    assert info.val_ap == max(record.score for record in result.records)
    assert {p.name for p in path.parent.iterdir()} == {path.name, history_file(path).name}

    # the AP in the header is that of the weights beside it
    samples = Samples(tiny.fires((2020,)), days=1, features=FEATURES, normalization=normalization, crop=32)
    prob = predict_logits(backbone, torch.from_numpy(np.stack([sample.x for sample in samples]))).sigmoid()
    y = np.stack([sample.y for sample in samples])
    assert info.val_ap == pytest.approx(average_precision_score(y.ravel(), prob.numpy().ravel()), abs=1e-4)


def test_same_seed_same_weights(tiny, tmp_path):
    a, b, c = (tmp_path / f"{name}.safetensors" for name in "abc")
    first = train_member(tiny, FOLD, ATTENTIVE, a)
    torch.manual_seed(99)  # what others draw is of no account
    second = train_member(tiny, FOLD, dataclasses.replace(ATTENTIVE, loader_workers=1), b)
    assert same_weights(a, b)
    assert untimed(first.records) == untimed(second.records)
    train_member(tiny, FOLD, dataclasses.replace(ATTENTIVE, seed=1), c)
    assert not same_weights(a, c)


def test_steps_in_bf16_where_the_processor_has_it(tiny, tmp_path, monkeypatch):
    """Here imitated. The header says so; the score is of the weights in single precision, as they will be used."""
    usual, half = (tmp_path / f"{name}.safetensors" for name in ("usual", "half"))
    settings = dataclasses.replace(ATTENTIVE, epochs=1)
    train_member(tiny, FOLD, settings, usual)
    in_half = dataclasses.replace(settings, precision="bf16")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": False})
    with pytest.raises(ConfigError, match=r"^precision: this processor has no bf16"):
        train_member(tiny, FOLD, in_half, half)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
    result = train_member(tiny, FOLD, in_half, half)
    assert (read_info(usual).precision, read_info(half).precision) == ("fp32", "bf16")
    assert not same_weights(usual, half)
    assert all(value.dtype != torch.bfloat16 for value in load_file(half).values())
    validation = _samples(tiny, FOLD, settings)[1]
    backbone, _ = load_checkpoint(half)
    prob = predict_logits(backbone, torch.from_numpy(np.stack([sample.x for sample in validation]))).sigmoid()
    y = np.stack([sample.y for sample in validation])
    assert result.info.val_ap == pytest.approx(average_precision_score(y.ravel(), prob.numpy().ravel()), abs=1e-4)


def test_folds_begin_with_weights_and_views_of_their_own(tiny):
    """Else members would agree more than their data makes them."""
    a, b = (_samples(tiny, fold, QUICK)[0] for fold in (FOLD, WSTS[1]))
    assert (FOLD.train, WSTS[1].train) == ((2018, 2019), (2018, 2019))
    assert not np.array_equal(a[0].x, b[0].x)


def test_training_views_change_and_validation_does_not(tiny):
    training, validation = _samples(tiny, FOLD, QUICK)
    assert (training.augment, validation.augment) == (True, False)
    assert {fire.year for fire in training.fires} == {2018, 2019}  # every training year, not the last alone
    assert {fire.year for fire in validation.fires} == {2020}


def test_random_numbers_of_the_caller_go_on(tiny, path):
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    train_member(tiny, FOLD, dataclasses.replace(QUICK, epochs=1), path)
    assert torch.equal(torch.rand(2), expected)


def test_the_best_epoch_is_kept_not_the_last(tiny, path, monkeypatch):
    seen = scripted(monkeypatch, [0.2, 0.6, 0.6, 0.4])
    result = train_member(tiny, FOLD, dataclasses.replace(QUICK, epochs=4, patience=9), path)
    weights = load_file(path)
    same = [all(torch.equal(weights[name], value) for name, value in epoch.items()) for epoch in seen]
    assert same == [False, True, False, False]
    assert (result.best_epoch, result.info.val_ap) == (2, 0.6)


def test_training_stops_when_validation_ap_stalls(tiny, path, monkeypatch):
    scripted(monkeypatch, [0.2, 0.6, 0.5, 0.55, 0.9, 0.9])
    result = train_member(tiny, FOLD, dataclasses.replace(QUICK, epochs=6, patience=2), path)
    assert [record.score for record in result.records] == [0.2, 0.6, 0.5, 0.55]
    assert result.best_epoch == 2


def steps_with_rates(monkeypatch):
    """The learning rate of every optimiser step."""
    rates, step = [], optimisers.AdamW.step

    def watched(self, *args, **kwargs):
        rates.append({group["lr"] for group in self.param_groups})
        return step(self, *args, **kwargs)

    monkeypatch.setattr(optimisers.AdamW, "step", watched)
    return rates


def test_plateau_halves_the_learning_rate(tiny, path, monkeypatch):
    scripted(monkeypatch, [0.5, 0.4, 0.4, 0.6])
    rates = steps_with_rates(monkeypatch)
    settings = dataclasses.replace(QUICK, epochs=4, schedule="plateau", patience=4, lr=0.008, batch_size=1000)
    result = train_member(tiny, FOLD, settings, path)
    assert [record.lr for record in result.records] == [0.008, 0.008, 0.008, 0.004]
    assert rates == [{0.008}, {0.008}, {0.008}, {0.004}]


def test_cosine_lowers_the_learning_rate_every_epoch(tiny, path, monkeypatch):
    rates = steps_with_rates(monkeypatch)
    result = train_member(tiny, FOLD, dataclasses.replace(QUICK, batch_size=1000), path)
    lrs = [record.lr for record in result.records]
    assert lrs[0] == QUICK.lr
    assert all(later < earlier for earlier, later in pairwise(lrs))
    assert lrs[-1] > 0
    assert rates == [{lr} for lr in lrs]


def test_gradients_are_clipped(tiny, tmp_path, monkeypatch):
    """AdamW forgets the gradient's scale, but not that of one step against the next: only its cut shows."""
    norms, step = [], optimisers.AdamW.step

    def watched(self, *args, **kwargs):
        grads = [weight.grad for group in self.param_groups for weight in group["params"]]
        norms.append(float(torch.nn.utils.get_total_norm(grads)))
        return step(self, *args, **kwargs)

    monkeypatch.setattr(optimisers.AdamW, "step", watched)
    train_member(tiny, FOLD, dataclasses.replace(QUICK, epochs=1, clip_norm=1e3), tmp_path / "free.safetensors")
    free = list(norms)
    norms.clear()
    train_member(tiny, FOLD, dataclasses.replace(QUICK, epochs=1, clip_norm=1e-3), tmp_path / "cut.safetensors")
    assert min(free) > 1e-2
    assert max(norms) <= 1.001e-3


def test_biases_and_norms_are_not_decayed(tiny, path, monkeypatch):
    """With a decay this strong, every decayed weight vanishes at the first step."""
    settings = dataclasses.replace(QUICK, epochs=1, lr=1e-4, weight_decay=1e4, batch_size=1000)
    scripted(monkeypatch, [0.5])
    train_member(tiny, FOLD, settings, path)
    for name, value in load_file(path).items():
        if value.ndim > 1:
            assert value.abs().max() < 1e-3, name
        elif name.endswith("bn1.weight"):
            assert value.min() > 0.99, name


@pytest.mark.slow
def test_a_member_learns(tiny, path):
    settings = dataclasses.replace(QUICK, epochs=15, lr=1e-2, batch_size=4, patience=15, pos_weight=3.0)
    result = train_member(tiny, FOLD, settings, path)
    validation = _samples(tiny, FOLD, settings)[1]
    prevalence = np.mean([sample.y for sample in validation])
    assert result.info.val_ap > 2 * prevalence
    assert result.info.val_ap > persistence_ap(validation)
    assert result.records[-1].train_loss < 0.7 * result.records[0].train_loss


def test_a_finished_member_is_not_trained_again(tiny, path, monkeypatch):
    trained = train_member(tiny, FOLD, QUICK, path)
    before = path.read_bytes()
    path.with_suffix(".resume").write_bytes(b"left by a kill")
    monkeypatch.setattr("fcer.training.member.make_learner", None)
    again = train_member(tiny, FOLD, dataclasses.replace(QUICK, device="auto", loader_workers=2), path)
    assert (again.trained, again.records, again.best_epoch) == (False, [], None)
    assert (again.info, again.path) == (trained.info, path)
    assert path.read_bytes() == before
    assert {p.name for p in path.parent.iterdir()} == {path.name, history_file(path).name}


def test_a_member_of_other_settings_or_data_is_refused(tiny, path):
    train_member(tiny, FOLD, dataclasses.replace(QUICK, epochs=1), path)
    before = path.read_bytes()
    with pytest.raises(ConfigError, match=r"fold0\.safetensors: holds .* trained with other settings or"):
        train_member(tiny, FOLD, dataclasses.replace(QUICK, epochs=1, lr=1e-4), path)
    with pytest.raises(ConfigError, match=r"trained with other settings or for another fold; remove the file to train"):
        train_member(tiny, WSTS[6], dataclasses.replace(QUICK, epochs=1), path)  # the same years in other roles
    with pytest.raises(ConfigError, match=r"fold0\.safetensors: holds .* trained on other data; remove the file"):
        train_member(tiny, WSTS[1], dataclasses.replace(QUICK, epochs=1), path)
    assert path.read_bytes() == before


@pytest.mark.filterwarnings("error")
def test_a_loss_that_is_not_finite_is_one_sentence(tiny, path):
    settings = dataclasses.replace(QUICK, lr=1e30)
    with pytest.raises(FcerError, match=r"^fold 0: the loss is no longer finite in epoch 1 .* 1e\+30; .* --member-lr$"):
        train_member(tiny, FOLD, settings, path)
    assert not list(path.parent.glob("*"))


def test_fires_too_short_or_too_small_for_a_sample(tiny, short, path):
    with pytest.raises(DataError, match=r"^training years 2018, 2019: no fire has 6 consecutive days, .* --arch$"):
        train_member(short, FOLD, ATTENTIVE, path)
    with pytest.raises(DataError, match=r"smaller than the crop of 64; choose a smaller --crop$"):
        train_member(tiny, FOLD, dataclasses.replace(QUICK, crop=64), path)


def test_a_small_dataset_makes_one_batch(short, path):
    """Six samples and batches of 16: nothing may be dropped."""
    result = train_member(short, FOLD, dataclasses.replace(QUICK, epochs=1, batch_size=16), path)
    assert result.trained
    assert np.isfinite(result.records[0].train_loss)


def test_it_is_quiet_outside_a_terminal(tiny, path, capfd):
    train_member(tiny, FOLD, dataclasses.replace(QUICK, epochs=1), path)
    assert capfd.readouterr() == ("", "")


def test_the_header_is_read_by_others(tiny, path):
    train_member(tiny, FOLD, dataclasses.replace(QUICK, epochs=1, width=0.1), path)
    assert read_info(path).width == 0.125  # the sixteenths that a backbone is built in
