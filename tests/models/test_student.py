"""The student: a head on a hook, and nothing of the backbone changed by it."""

import json
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional as F

from backbone_cases import days_of_fire, small_backbone
from fcer.data.normalization import Normalization
from fcer.data.samples import preprocess
from fcer.errors import CheckpointError, InputError
from fcer.models import fast
from fcer.models.backbones import ARCHITECTURES, Backbone
from fcer.models.checkpoints import CheckpointInfo
from fcer.models.raw_days import needed_channels, predict_days
from fcer.models.student import HeadSpec, Student, StudentMaps, UncertaintyHead
from fcer.models.student_files import HeadInfo, backbone_file, head_file, load_student, read_head_info, save_student

FEATURES = (3, 38, 39)


def make_head(backbone: Backbone, hidden: tuple[int, ...] = (), logit: bool = False, seed: int = 0) -> UncertaintyHead:
    torch.manual_seed(seed)
    return UncertaintyHead(HeadSpec(backbone.feature_channels, hidden, logit))


def head_info(head: UncertaintyHead, **changed: object) -> HeadInfo:
    values = {
        "features": head.spec.features,
        "hidden": head.spec.hidden,
        "logit": head.spec.logit,
        "loss": "rmsle",
        "target": "std",
        "frozen": True,
        "anchor_px": 4.0,
        "val_auroc": 0.7,
        "epoch": 3,
        "backbone": "",
        "teachers": ("a", "b"),
        "dataset_fingerprint": "f",
        "code_version": "0",
        "key": "k",
    }
    return HeadInfo(**{**values, **changed})


def backbone_info(backbone: Backbone) -> CheckpointInfo:
    rng = np.random.default_rng(1)
    return CheckpointInfo(
        arch=backbone.spec.arch,
        channels=backbone.spec.channels,
        width=backbone.spec.width,
        fold=0,
        train_years=(2018, 2019),
        val_years=(2020,),
        test_years=(2021,),
        features=FEATURES,
        mean=tuple(rng.normal(size=23)),
        std=tuple(rng.uniform(0.5, 2, size=23)),
        val_ap=0.5,
        dataset_fingerprint="f",
        code_version="0",
    )


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    backbone = small_backbone("utae_t5")
    head = make_head(backbone)
    save_student(tmp_path / "student", backbone, backbone_info(backbone), head, head_info(head))
    return tmp_path / "student"


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_backbone_is_not_touched(arch: str):
    backbone = small_backbone(arch)
    x = days_of_fire(backbone)
    with torch.no_grad():
        expected = backbone(x)
    before = {name: value.clone() for name, value in backbone.state_dict().items()}
    gradients = {name: value.requires_grad for name, value in backbone.named_parameters()}
    modules = [type(module) for module in backbone.modules()]

    student = Student(backbone, make_head(backbone)).eval()
    student.predict(x)
    after = backbone.state_dict()
    assert after.keys() == before.keys() and all(torch.equal(after[name], before[name]) for name in before)
    assert {name: value.requires_grad for name, value in backbone.named_parameters()} == gradients
    assert [type(module) for module in backbone.modules()] == modules
    with torch.no_grad():
        assert torch.equal(backbone(x), expected), "the same output, hook or no hook"


def plain_windows(prob: np.ndarray) -> np.ndarray:
    """The mean around each pixel of what lies inside the image, pixel by pixel."""
    means = np.empty((3, *prob.shape), np.float32)
    for k, reach in enumerate((1, 3, 7)):
        for row, column in np.ndindex(prob.shape):
            rows, columns = (slice(max(0, at - reach), at + reach + 1) for at in (row, column))
            means[k, row, column] = prob[rows, columns].mean()
    return means


@pytest.mark.parametrize("hidden", [(), (5,), (6, 4)])
@pytest.mark.parametrize(("logit", "context"), [(False, False), (True, False), (False, True), (True, True)])
def test_probability_is_the_backbones_and_uncertainty_the_heads(hidden: tuple[int, ...], logit: bool, context: bool):
    backbone = small_backbone("utae_t5")
    head = UncertaintyHead(HeadSpec(backbone.feature_channels, hidden, logit, context))
    x = days_of_fire(backbone)
    maps = Student(backbone, head).eval().predict(x)
    with torch.no_grad():
        features, logits = backbone.features(x), backbone(x)
        windows = torch.from_numpy(np.stack([plain_windows(image) for image in logits[:, 0].sigmoid().numpy()]))
        around = torch.cat([windows, -logits.abs()], 1)
        inputs = torch.cat([features, *([logits] if logit else []), *([around] if context else [])], 1)
        rows = torch.cat([features, logits, around], 1).flatten(2)
        torch.testing.assert_close(head.of_pixels(rows).view_as(logits[:, 0]), head(features, logits[:, 0]))
        for k, layer in enumerate(head.layers[::2]):
            inputs = F.conv2d(inputs if k == 0 else inputs.relu(), layer.weight, layer.bias)
    torch.testing.assert_close(maps.probability_BHW, logits[:, 0].sigmoid())
    torch.testing.assert_close(maps.uncertainty_BHW, inputs[:, 0].sigmoid())


def test_images_of_any_size():
    backbone = small_backbone("utae_t5")
    student = Student(backbone, make_head(backbone)).eval()
    x = days_of_fire(backbone, height=40, width=50)
    maps = student.predict(x)
    padded = student.predict(F.pad(x, (0, 14, 0, 24, 0, 0), mode="replicate"))
    for ours, whole in zip(maps, padded, strict=True):
        assert ours.shape == (2, 40, 50)
        torch.testing.assert_close(ours, whole[:, :40, :50])


def test_a_backbone_in_training_does_not_predict():
    backbone = small_backbone("unet_t1").train()
    with pytest.raises(ValueError, match="eval mode"):
        Student(backbone, make_head(backbone)).predict(days_of_fire(backbone))


def test_threads_do_not_mix_up_their_features():
    backbone = fast(small_backbone("utae_t5"))
    student = Student(backbone, make_head(backbone)).eval()
    inputs = [days_of_fire(backbone, batch=1, seed=k) for k in range(8)]
    alone = [student.predict(x).uncertainty_BHW for x in inputs]
    found: dict[tuple[int, int], Tensor] = {}

    def ask(k: int) -> None:
        for turn in range(5):
            found[k, turn] = student.predict(inputs[k]).uncertainty_BHW

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 40
    for (k, _), uncertainty in found.items():
        torch.testing.assert_close(uncertainty, alone[k])


@pytest.mark.parametrize(("hidden", "logit"), [((), False), ((4,), True)])
def test_what_is_read_back_is_what_was_saved(hidden: tuple[int, ...], logit: bool, tmp_path: Path):
    backbone = small_backbone("utae_t5")
    head = make_head(backbone, hidden, logit)
    save_student(tmp_path, backbone, backbone_info(backbone), head, head_info(head))
    loaded = load_student(tmp_path)
    x = days_of_fire(backbone)
    expected = Student(fast(backbone), head).eval().predict(x)
    for ours, theirs in zip(loaded.student.predict(x), expected, strict=True):
        assert torch.equal(ours, theirs)
    assert loaded.backbone == backbone_info(backbone)
    assert loaded.head == read_head_info(tmp_path)
    assert loaded.head.spec == head.spec and len(loaded.head.backbone) == 64
    assert loaded.normalization.mean == loaded.backbone.mean


def another_backbone(folder: Path) -> None:
    other = small_backbone("utae_t5", phase=500)
    head = make_head(other)
    save_student(folder / "other", other, backbone_info(other), head, head_info(head))
    backbone_file(folder / "other").replace(backbone_file(folder))


def truncated(folder: Path) -> None:
    head_file(folder).write_bytes(head_file(folder).read_bytes()[:-8])


def without_header(folder: Path) -> None:
    save_file(load_file(head_file(folder)), head_file(folder))


def with_header(**changed: object):
    def change(folder: Path) -> None:
        info = read_head_info(folder)
        values = {**info.__dict__, **changed}
        save_file(load_file(head_file(folder)), head_file(folder), {"fcer": json.dumps(values)})

    return change


def not_finite(folder: Path) -> None:
    info = read_head_info(folder)
    weights = {name: value * float("nan") for name, value in load_file(head_file(folder)).items()}
    save_file(weights, head_file(folder), {"fcer": json.dumps(info.__dict__)})


def no_head(folder: Path) -> None:
    head_file(folder).unlink()


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (another_backbone, "backbone.safetensors: not the backbone that the head was made for"),
        (truncated, "head.safetensors: not a safetensors file, or cut short"),
        (without_header, "head.safetensors: its header does not say what the weights are; give a file that `fcer dist"),
        (with_header(hidden=[3]), "its weights do not fit its header"),
        (with_header(val_auroc=2.0), "its header cannot be used"),
        (
            with_header(val_auroc_low=0.8, val_auroc_high=0.6),
            "its header cannot be used (a val_auroc from 0.8 to 0.6 is",
        ),
        (with_header(val_auroc_high=0.9), "its header cannot be used (a val_auroc from None to 0.9 is impossible)"),
        (with_header(logit="no"), "its header cannot be used (logit is 'no', but should be true or false)"),
        (with_header(more=1), "its header cannot be used (more missing or unknown)"),
        (not_finite, "its weights are not finite"),
        (no_head, "head.safetensors: there is no such file"),
    ],
)
def test_a_damaged_student_is_one_sentence(damage, sentence: str, saved: Path):
    damage(saved)
    with pytest.raises(CheckpointError) as error:
        load_student(saved)
    assert sentence in str(error.value) and "\n" not in str(error.value)


def test_a_head_of_an_older_version_is_read_and_knows_no_interval(saved: Path):
    info = read_head_info(saved)
    new = ("val_auroc_low", "val_auroc_high", "val_fires", "val_years")
    older = {name: value for name, value in info.__dict__.items() if name not in new}
    save_file(load_file(head_file(saved)), head_file(saved), {"fcer": json.dumps(older)})
    assert load_student(saved).head == info
    assert info.scores == {"val_auroc": 0.7}


def test_a_head_says_its_interval(tmp_path: Path):
    backbone = small_backbone("utae_t5")
    head = make_head(backbone)
    known = {"val_auroc_low": 0.6, "val_auroc_high": 0.8, "val_fires": 9, "val_years": (2019, 2020)}
    save_student(tmp_path, backbone, backbone_info(backbone), head, head_info(head, **known))
    info = read_head_info(tmp_path)
    assert {name: getattr(info, name) for name in known} == known
    assert info.scores == {"val_auroc": 0.7, "val_auroc_low": 0.6, "val_auroc_high": 0.8, "val_fires": 9.0}


def raw_days(rng: np.random.Generator, batch: int = 2, height: int = 40, width: int = 36) -> np.ndarray:
    raw = rng.normal(size=(batch, 5, 23, height, width)).astype(np.float32)
    raw[rng.random(raw.shape) < 0.1] = np.nan
    return raw


def test_raw_days_are_standardised_inside(saved: Path, rng: np.random.Generator):
    loaded = load_student(saved)
    raw = raw_days(rng)
    maps = predict_days(loaded, raw)
    statistics = Normalization(loaded.backbone.mean, loaded.backbone.std, "")
    x = torch.from_numpy(np.stack([preprocess(days, range(23), FEATURES, statistics) for days in raw]))
    for ours, theirs in zip(maps, loaded.student.predict(x), strict=True):
        assert torch.equal(ours, theirs) and ours.shape == (2, 40, 36)
    assert needed_channels(loaded) == [3, 22]
    for ours, theirs in zip(predict_days(loaded, raw[:, :, [3, 22]]), maps, strict=True):
        assert torch.equal(ours, theirs)


def test_many_samples_are_predicted_in_passes(saved: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch):
    loaded = load_student(saved)
    raw = raw_days(rng, batch=5)
    sizes = []
    predict = loaded.student.predict

    def watched(x: Tensor, precision: str) -> StudentMaps:
        sizes.append(len(x))
        return predict(x, precision)

    monkeypatch.setattr(loaded.student, "predict", watched)
    whole = predict_days(loaded, raw)
    monkeypatch.setattr("fcer.models.raw_days._PASS", 2 * 40 * 36 + 1)
    for ours, theirs in zip(predict_days(loaded, raw), whole, strict=True):
        torch.testing.assert_close(ours, theirs)
    monkeypatch.setattr("fcer.models.raw_days._PASS", 1)
    for ours, theirs in zip(predict_days(loaded, raw), whole, strict=True):
        torch.testing.assert_close(ours, theirs)
    assert sizes == [5, 2, 2, 1, 1, 1, 1, 1, 1]


def test_missing_days_are_no_missing_sample(saved: Path, rng: np.random.Generator):
    raw = raw_days(rng)
    raw[:, :4] = np.nan
    raw[:, 4, 22] = np.nan
    for maps in predict_days(load_student(saved), raw):
        assert torch.isfinite(maps).all()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda raw: raw[0], "shape (5, 23, 40, 36) does not fit; give (samples, 5 days, channels, rows, columns)"),
        (lambda raw: raw[:, :4], "shape (2, 4, 23, 40, 36) does not fit"),
        (lambda raw: raw[:, :, :7], "with all 23 raw channels or these 2: NDVI (3), active fire (22)"),
        (lambda raw: raw[:0], "does not fit"),
        (lambda raw: raw.astype(str), "numbers are needed, not <U"),
        (lambda raw: np.where(raw > 1, np.inf, raw), "infinite values; give NaN where a value is missing"),
        (lambda raw: raw.astype(np.float64) * 1e300, "infinite values"),
        (lambda raw: np.stack([raw[0], raw[1] * np.nan]), "sample 1 (of 0 to 1) holds nothing but NaN"),
        (lambda raw: raw[:, :, [3, 22]] * np.nan, "or give values for NDVI (3), active fire (22)"),
    ],
)
def test_input_that_cannot_be_one(change, sentence: str, saved: Path, rng: np.random.Generator):
    with pytest.raises(InputError) as error:
        predict_days(load_student(saved), change(raw_days(rng)))
    assert sentence in str(error.value)
