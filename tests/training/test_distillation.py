"""From members to a student on disk: found by content, finished after a kill, frozen or trained along."""

import dataclasses
import math
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score

from fcer.core.ranking import auroc_score, auroc_within_score
from fcer.core.regions import fire_region
from fcer.data.dataset import Dataset
from fcer.errors import CheckpointError, ConfigError, FcerWarning
from fcer.maps.predicted_maps import open_maps
from fcer.models import load_checkpoint, predict_logits
from fcer.models.members import Member
from fcer.models.raw_days import predict_days
from fcer.models.student_files import backbone_file, head_file, load_student, read_fire_scores
from fcer.pipeline.costs import _spent
from fcer.training import Distilled, HeadSettings, Teaching, distil, joint
from fcer.training.distillation import read_history
from fcer.training.epochs import EpochRecord
from fcer.training.feature_cache import FeatureCache
from fcer.training.fire_scores import write_fire_scores
from fcer.training.history import write_history
from fcer.uncertainty import Predictors, write_method_maps
from plain_interval import plain_interval
from teaching_cases import make_teaching
from training_cases import QUICK as MEMBER
from training_cases import same_weights, untimed

pytestmark = pytest.mark.filterwarnings("ignore:student:fcer.errors.FcerWarning")  # three epochs are few

HEAD = HeadSettings(epochs=3, patience=3, lr=0.05)
JOINT = dataclasses.replace(MEMBER, epochs=3, patience=3)


@pytest.fixture
def folders(cached: FeatureCache, tmp_path: Path) -> dict[str, Path]:
    """The session's cache, and students of a test's own."""
    return {"cache": cached.folder.parent, "students": tmp_path / "students"}


def maps_near_fire(
    teaching: Teaching, made: Distilled, threshold: float = 0.5
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Errors and uncertainty near fire on the validation years, image by image, from maps in single precision."""
    burnt, probs, scores = maps_of(teaching, made)
    return [(prob > threshold) != y for y, prob in zip(burnt, probs, strict=True)], scores


def maps_of(teaching: Teaching, made: Distilled) -> tuple[list[np.ndarray], ...]:
    """The same before errors are looked for: what burnt, probability and uncertainty."""
    loaded = load_student(made.folder)
    found = []
    for x, y in teaching.validation(loaded.normalization):
        prob, unc = (m[0].numpy() for m in loaded.student.predict(torch.from_numpy(x)[None]))
        near = fire_region(y, made.info.anchor_px)
        found.append((y[near].astype(bool), prob[near], unc[near]))
    return tuple(list(part) for part in zip(*found, strict=True))


def score_of_maps(teaching: Teaching, made: Distilled, threshold: float = 0.5) -> float:
    """AUROC of all of them together."""
    errors, scores = maps_near_fire(teaching, made, threshold)
    return auroc_score(np.concatenate(errors), np.concatenate(scores))


def kill_after(epoch: int):
    def on_epoch(record: EpochRecord) -> None:
        if record.epoch == epoch:
            raise KeyboardInterrupt

    return on_epoch


def test_the_folder_holds_a_student(teaching: Teaching, folders: dict[str, Path]):
    told: list[EpochRecord] = []
    made = distil(teaching, HEAD, anchor=4.0, on_epoch=told.append, **folders)
    assert made.fitted and told == made.records and len(told) == 3
    assert sorted(path.name for path in made.folder.iterdir()) == [
        "backbone.safetensors",
        "feature_fits.safetensors",
        "head.safetensors",
        "history.json",
        "validation.json",
    ]
    assert made.folder.name.startswith("unet_t1-2021-")
    loaded = load_student(made.folder)
    assert loaded.head == made.info
    assert (made.info.frozen, made.info.anchor_px, made.info.features) == (True, 4.0, 8)
    assert made.info.val_auroc == max(record.score for record in made.records)
    assert made.info.teachers == tuple(member.digest for member in teaching.teachers)
    assert [record.epoch for record in read_history(made.folder)] == [1, 2, 3]


@pytest.mark.parametrize("content", ["", '[{"epoch": 1', "{}\n[]", '[{"epocH": 1}]', "[1]", "{}"])
def test_a_damaged_history_is_said(content: str, tmp_path: Path):
    path = tmp_path / "history.json"
    path.write_text(content)
    with pytest.raises(CheckpointError, match=r"history\.json: cannot be read .*; remove the folder"):
        read_history(tmp_path)
    with pytest.warns(FcerWarning, match=r"history\.json: cannot be read .*what its training cost is not known"):
        assert math.isnan(_spent(path))


def test_a_digit_of_a_history_that_flipped_is_found(tmp_path: Path):
    """It would be logged as a curve, and added to what the method costs."""
    path = tmp_path / "history.json"
    write_history(path, [EpochRecord(1, 0.5, 0.25, 0.75, 0.1, 17.0)])
    assert read_history(tmp_path)[0].score == 0.75 and _spent(path) == 17
    path.write_text(path.read_text().replace("0.75", "0.74"))
    with pytest.raises(CheckpointError, match=r"history\.json: its bytes have changed since it was written"):
        read_history(tmp_path)
    with pytest.warns(FcerWarning, match="what its training cost is not known"):
        assert math.isnan(_spent(path))


@pytest.mark.parametrize("damage", ["0.74", "x", '"'])
def test_damaged_scores_by_fire_are_no_tag(damage: str, tmp_path: Path):
    write_fire_scores(tmp_path, {"2018/a": {"auroc": 0.75}})
    assert read_fire_scores(tmp_path) == {"2018/a": {"auroc": 0.75}}
    path = tmp_path / "validation.json"
    path.write_text(path.read_text().replace("0.75", damage))
    with pytest.raises(CheckpointError, match=r"validation\.json: .*remove the folder"):
        read_fire_scores(tmp_path)


def test_a_frozen_backbone_is_the_members_bit_by_bit(teaching: Teaching, folders: dict[str, Path]):
    made = distil(teaching, HEAD, anchor=4.0, **folders)
    assert same_weights(backbone_file(made.folder), teaching.backbone.path)
    assert load_checkpoint(backbone_file(made.folder))[1] == load_checkpoint(teaching.backbone.path)[1]


def test_the_students_maps_have_the_validation_score_it_claims(teaching: Teaching, folders: dict[str, Path]):
    """From files to score by another way than cached half-precision features."""
    made = distil(teaching, HEAD, anchor=2.5, **folders)
    assert score_of_maps(teaching, made) == pytest.approx(made.info.val_auroc, abs=1e-3)


@pytest.mark.parametrize("along", [None, JOINT], ids=["frozen", "joint"])
def test_it_knows_its_interval_over_draws_of_the_validation_fires(along, teaching: Teaching, folders: dict[str, Path]):
    settings = dataclasses.replace(HEAD, seed=3)
    info = (made := distil(teaching, settings, anchor=4.0, joint=along, **folders)).info
    samples = teaching.validation()
    fires = [samples.locate(k)[0].name for k in range(len(samples))]
    plain = plain_interval(*maps_near_fire(teaching, made), fires, seed=3)
    assert (info.val_auroc_low, info.val_auroc_high) == pytest.approx(plain, abs=1e-3)
    assert info.val_auroc_low < info.val_auroc_high, "its fires differ"
    assert (info.val_fires, info.val_years) == (2, teaching.backbone.fold.validation)


@pytest.mark.parametrize(
    ("along", "settings"),
    [(None, HEAD), (JOINT, HEAD), (None, dataclasses.replace(HEAD, target="error", loss="bce"))],
    ids=["frozen", "joint", "error"],
)
def test_scores_by_fire_are_those_of_its_maps(along, settings: HeadSettings, teaching: Teaching, folders):
    """What promotions compare, computed again from files, by scikit-learn and by the plain count of pairs."""
    made = distil(teaching, settings, anchor=4.0, joint=along, **folders)
    told = read_fire_scores(made.folder)
    assert told is not None
    samples = teaching.validation()
    fires = [f"{fire.year}/{fire.name}" for fire in (samples.locate(k)[0] for k in range(len(samples)))]
    assert list(told) == sorted(set(fires)) and len(told) == 2
    maps = maps_of(teaching, made)
    for name, scores in told.items():
        burnt, prob, unc = (np.concatenate([part[k] for k in range(len(fires)) if fires[k] == name]) for part in maps)
        error = (prob > 0.5) != burnt
        assert scores["pixels"] == error.size and abs(scores["errors"] - error.sum()) <= 2, "as half precision allows"
        assert scores["nll"] == pytest.approx(log_loss(burnt, prob.astype(float)), abs=2e-3)
        if settings.target != "error":  # whose scores are of heads that had not seen the fire
            assert scores["auroc"] == pytest.approx(roc_auc_score(error, unc), abs=2e-3)
            assert scores["auroc_within"] == pytest.approx(auroc_within_score(error, unc, prob > 0.5), abs=4e-3)
    assert made.info.val_nll == pytest.approx(
        np.average([one["nll"] for one in told.values()], weights=[one["pixels"] for one in told.values()]), abs=1e-5
    )
    assert made.info.scores["val_auroc_within"] == made.info.val_auroc_within


def test_the_second_time_it_is_taken_as_it_is(teaching: Teaching, folders: dict[str, Path]):
    first = distil(teaching, HEAD, anchor=4.0, **folders)
    written = head_file(first.folder).stat().st_mtime_ns
    second = distil(teaching, HEAD, anchor=4.0, cache=folders["students"] / "none", students=folders["students"])
    assert not second.fitted and (second.folder, second.info) == (first.folder, first.info)
    assert second.records == first.records, "what is logged of it is the same"
    assert not (folders["students"] / "none").exists(), "it needs no cache"
    assert head_file(first.folder).stat().st_mtime_ns == written


def test_whatever_decides_it_names_another_folder(tiny: Dataset, members: list[Member], folders: dict[str, Path]):
    teaching = make_teaching(tiny, members)
    made = [
        distil(teaching, HEAD, anchor=4.0, **folders),
        distil(teaching, HEAD, anchor="1500m", **folders),
        distil(teaching, HEAD, anchor=3.0, **folders),
        distil(teaching, HEAD, anchor="auto", **folders),
        distil(teaching, dataclasses.replace(HEAD, lr=0.01), anchor=4.0, **folders),
        distil(teaching, dataclasses.replace(HEAD, target="entropy"), anchor=4.0, **folders),
        distil(dataclasses.replace(teaching, backbone=members[0]), HEAD, anchor=4.0, **folders),
    ]
    assert made[0].folder == made[1].folder, "four pixels are 1500 m"
    assert len({student.folder for student in made}) == len(made) - 1
    assert made[3].info.anchor_px > 0


@pytest.mark.parametrize("along", [None, JOINT], ids=["frozen", "joint"])
def test_killed_and_started_again_it_is_the_same(along, teaching: Teaching, folders, tmp_path: Path, monkeypatch):
    monkeypatch.setattr("fcer.training.head._SECONDS_BETWEEN_SAVES", -1.0)
    cache = folders["cache"]
    undisturbed = distil(teaching, HEAD, anchor=4.0, cache=cache, students=tmp_path / "undisturbed", joint=along)
    killed = {"anchor": 4.0, "cache": cache, "students": tmp_path / "killed", "joint": along}
    with pytest.raises(KeyboardInterrupt):
        distil(teaching, HEAD, on_epoch=kill_after(2), **killed)
    assert [path.name for path in (tmp_path / "killed").glob("*/*")] == ["fit.resume"]
    finished = distil(teaching, HEAD, **killed)
    assert finished.info == undisturbed.info
    assert untimed(finished.records) == untimed(undisturbed.records)
    for file in (backbone_file, head_file):
        assert file(finished.folder).read_bytes() == file(undisturbed.folder).read_bytes()
    assert not (finished.folder / "fit.resume").exists()


def test_trained_along_the_backbone_changes_and_the_best_epoch_is_kept(teaching: Teaching, folders: dict[str, Path]):
    made = distil(teaching, HEAD, anchor=4.0, joint=JOINT, **folders)
    frozen = distil(teaching, HEAD, anchor=4.0, **folders)
    assert made.folder != frozen.folder and not made.info.frozen
    assert not same_weights(backbone_file(made.folder), teaching.backbone.path)
    assert not same_weights(head_file(made.folder), head_file(frozen.folder))
    assert made.info.val_auroc == made.records[made.info.epoch - 1].score
    assert made.records[-1].train_loss < made.records[0].train_loss, "it learns"
    assert all(record.val_ap is not None for record in made.records)
    assert all(record.val_ap is None for record in frozen.records)
    assert "val_ap" not in (frozen.folder / "history.json").read_text()
    assert distil(teaching, HEAD, anchor=4.0, joint=JOINT, **folders).records == made.records, "as it is read back"


@pytest.mark.parametrize(
    ("frozen_ap", "aps", "scores", "expected"),
    [
        (0.5, [0.5, 0.6, 0.4], [0.7, 0.6, 0.9], 1),  # the third segments worse
        (0.5, [0.4, 0.6, 0.6], [0.9, 0.6, 0.7], 3),
        (0.5, [0.1, 0.3, 0.2], [0.9, 0.6, 0.7], 2),  # none is as good: the one that segments best
    ],
)
def test_trained_along_no_epoch_that_segments_worse_than_before_is_chosen(
    frozen_ap: float, aps, scores, expected: int, teaching: Teaching, folders, monkeypatch
):
    """Errors move with the backbone: one that is wrong more often may be easier to see through."""
    told = iter(zip(aps, scores, strict=True))

    def epoch(_joint, _student, _optimizer, records, _bar):
        ap, score = next(told)
        return EpochRecord(len(records) + 1, 0.5, 0.5, score, 1e-3, 1.0, ap)

    monkeypatch.setattr(joint, "_epoch", epoch)
    monkeypatch.setattr(joint, "_cached_ap", lambda _split: frozen_ap)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = distil(teaching, HEAD, anchor=4.0, joint=JOINT, **folders)
    assert (made.info.epoch, made.info.val_auroc) == (expected, scores[expected - 1])
    worse = [str(one.message) for one in caught if "stays below the frozen one's" in str(one.message)]
    assert len(worse) == (max(aps) < frozen_ap)
    assert all("(0.300 at best, against 0.500); give a lower --member-lr" in said for said in worse)


def test_the_frozen_backbones_ap_is_that_of_its_maps(teaching: Teaching, cached: FeatureCache):
    backbone, normalization = teaching.backbone.backbone, teaching.backbone.normalization
    samples = teaching.validation(normalization)
    prob = predict_logits(backbone, torch.from_numpy(np.stack([x for x, _ in samples]))).sigmoid()
    expected = average_precision_score(np.stack([y for _, y in samples]).ravel(), prob.numpy().ravel())
    assert joint._cached_ap(cached.validation) == pytest.approx(expected, abs=1e-4)


def test_a_student_that_was_still_getting_better_is_said(teaching: Teaching, folders: dict[str, Path], monkeypatch):
    scores = iter(np.linspace(0.1, 0.3, 20))
    monkeypatch.setattr("fcer.training.validation_region.ValidationRegion.auroc", lambda *_: next(scores))
    sentence = r"^student: its best epoch is 20 of 20, .*; give more --head-epochs, or a higher --head-lr$"
    for _ in ("fitted", "found again"):
        with pytest.warns(FcerWarning, match=sentence):
            distil(teaching, dataclasses.replace(HEAD, epochs=20), anchor=4.0, **folders)


def test_a_head_may_see_what_is_around_a_pixel(teaching: Teaching, folders: dict[str, Path]):
    made = distil(teaching, dataclasses.replace(HEAD, context=True, logit=True), anchor=4.0, **folders)
    assert made.info.context and load_student(made.folder).student.head.layers[0].in_channels == 8 + 1 + 4
    assert score_of_maps(teaching, made) == pytest.approx(made.info.val_auroc, abs=2e-3)


def test_a_head_may_learn_the_backbones_errors(teaching: Teaching, folders: dict[str, Path]):
    error = dataclasses.replace(HEAD, target="error", loss="bce")
    told: list[EpochRecord] = []
    made = distil(teaching, error, anchor=4.0, on_epoch=told.append, **folders)
    assert (made.info.target, made.info.frozen) == ("error", True) and told == made.records
    assert load_student(made.folder).head == made.info
    again = distil(teaching, error, anchor=4.0, **folders)
    assert not again.fitted and again.records == made.records
    with pytest.raises(ConfigError, match=r"^head_target: the errors of a backbone that is trained along move with it"):
        distil(teaching, error, anchor=4.0, joint=JOINT, **folders)


def test_a_student_of_surroundings_learns_from_every_member_and_predicts_raw_days(
    teaching: Teaching, folders: dict[str, Path], tmp_path: Path
):
    around = {"decoder": False, "logit": True, "context": True, "fire": True, "hidden": (4,)}
    made = distil(teaching, dataclasses.replace(HEAD, target="error", loss="bce", **around), anchor=4.0, **folders)
    assert len(list(folders["cache"].glob("*-validation"))) == 2, "two other members, each on its own year"
    loaded = load_student(made.folder)
    assert loaded.student.head.spec.rows == list(range(8, 8 + 1 + 4 + 5))
    samples = teaching.validation()
    predictors = Predictors(teaching.teachers, teaching.backbone, loaded)
    write_method_maps(tmp_path / "predictions_2020.npz", predictors, samples, 2020, ["student"])
    served = predict_days(loaded, np.stack([samples.raw(k)[0] for k in range(len(samples))]))
    with open_maps(tmp_path / "predictions_2020.npz") as maps:
        everything = slice(0, len(samples))
        np.testing.assert_allclose(maps.unc("student", everything), served.uncertainty_BHW, atol=1e-5)
        np.testing.assert_allclose(maps.prob("student", everything), served.probability_BHW, atol=1e-5)


@pytest.mark.parametrize("along", [None, JOINT], ids=["frozen", "joint"])
def test_errors_are_those_at_the_threshold(along, teaching: Teaching, folders: dict[str, Path]):
    made = distil(teaching, HEAD, anchor=4.0, joint=along, threshold=0.44, **folders)
    assert made.info.threshold == 0.44
    assert score_of_maps(teaching, made, 0.44) == pytest.approx(made.info.val_auroc, abs=2e-3)
    assert abs(score_of_maps(teaching, made) - made.info.val_auroc) > 4e-3, "other errors than at one half"


def test_trained_along_the_score_is_that_of_its_own_maps(teaching: Teaching, folders: dict[str, Path]):
    made = distil(teaching, HEAD, anchor=4.0, joint=JOINT, **folders)
    assert score_of_maps(teaching, made) == pytest.approx(made.info.val_auroc, abs=1e-3)


def test_trained_along_both_losses_count(teaching: Teaching, folders: dict[str, Path], monkeypatch):
    """The segmentation is taught what burnt, the head what its teachers disagree on."""
    steps = []
    loss = joint._Joint.loss

    def watched(self, student, x, y, target):
        value, output = loss(self, student, x, y, target)
        logits, uncertainty = student(x)
        fire = joint.fire_loss(logits[:, None], y, self.settings.pos_weight)
        taught = joint.LOSSES["rmsle"].value(uncertainty.flatten(1), target)
        if not student.training:
            steps.append((float(value), float(fire + taught)))
        return value, output

    monkeypatch.setattr(joint._Joint, "loss", watched)
    distil(teaching, HEAD, anchor=4.0, joint=dataclasses.replace(JOINT, epochs=1), **folders)
    assert steps and all(ours == pytest.approx(both, rel=1e-5) for ours, both in steps)
