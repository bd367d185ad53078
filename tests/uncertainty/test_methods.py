"""Each method's maps against its definition, computed sample by sample with plain torch, and the passes it costs."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import ndimage
from scipy.special import logit

from backbone_cases import small_backbone
from fcer.config.checks import METHODS
from fcer.core.disagreement import entropy
from fcer.core.recalibration import NONE, Recalibration
from fcer.data.catalog import open_catalog
from fcer.data.folds import fair_folds
from fcer.data.normalization import Normalization
from fcer.data.samples import Samples, preprocess
from fcer.errors import CheckpointError, ConfigError, DataError
from fcer.maps.predicted_maps import open_maps
from fcer.models.calibration_files import Calibration, save_calibration
from fcer.models.checkpoints import CheckpointInfo, save_checkpoint
from fcer.models.ensemble import BATCH, batches_of
from fcer.models.inference import predict, predict_logits
from fcer.models.members import Member, fold_file, load_members
from fcer.models.student import HeadSpec, UncertaintyHead
from fcer.models.student_files import HeadInfo, LoadedStudent, load_student, save_student
from fcer.uncertainty import Predictors, pass_counts, write_method_maps
from fcer.uncertainty.feature_fits import fits_file, load_fits, save_fits
from fcer.uncertainty.laplace import logit_variance
from fcer.uncertainty.mc_dropout import PUT_IN, dropout_left_on

TRAINED = ("swag", "packed", "diffusion")
"""With weights of their own: tests/training/test_families.py."""
FEATURES = (7, 38, 39)  # with an angle, which turns along
CROP = 32
PLATT = Recalibration("platt", scale=2.0, shift=-0.5)


def info_of(member: int, arch: str) -> CheckpointInfo:
    rng = np.random.default_rng(member)
    fold = fair_folds(2021)[member]
    return CheckpointInfo(
        arch=arch,
        channels=3,
        width=0.125,
        fold=fold.number,
        train_years=fold.train,
        val_years=fold.validation,
        test_years=fold.test,
        features=FEATURES,
        mean=tuple(np.where(np.arange(23) == 22, rng.uniform(0, 3), 0.0)),
        std=tuple(np.where(np.arange(23) == 22, rng.uniform(4, 9), 1.0)),
        val_ap=0.1 * member,
        dataset_fingerprint="f",
        code_version="0",
    )


def make_student(folder: Path, member: int, arch: str, *, frozen: bool) -> LoadedStudent:
    backbone = small_backbone(arch, phase=100 * member if frozen else 777)
    torch.manual_seed(1)
    head = UncertaintyHead(HeadSpec(backbone.feature_channels))
    described = {"loss": "rmsle", "target": "std", "anchor_px": 4.0, "val_auroc": 0.6, "epoch": 1, "backbone": ""}
    origin = {"teachers": ("a",), "dataset_fingerprint": "f", "code_version": "0", "key": "k"}
    info = HeadInfo(features=8, hidden=(), logit=False, frozen=frozen, **described, **origin)
    save_student(folder, backbone, info_of(member, arch), head, info)
    save_calibration(folder, Calibration("k", PLATT, NONE, (), 4.0, ("a", "b"), chose_epoch=True, code_version="0"))
    if frozen:
        generator = torch.Generator().manual_seed(2)
        roots = (torch.randn(n, size, size, generator=generator).double() for n, size in ((1, 73), (2, 8)))
        covariance, precision = (root @ root.mT / root.shape[1] + 1e-3 * torch.eye(root.shape[1]) for root in roots)
        mean = torch.randn(2, 8, generator=generator).double()
        fits = {"laplace_covariance": covariance[0], "density_mean": mean, "density_precision": precision}
        save_fits(folder, info.key, fits)
    return load_student(folder)


def available(predictors: Predictors) -> list[str]:
    """A student that was trained along brings no fits of its features."""
    left_out = TRAINED if predictors.trained_along is None else (*TRAINED, "laplace", "density")
    return [name for name in METHODS if name not in left_out]


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> list[Member]:
    folder = tmp_path_factory.mktemp("members")
    for k, fold in enumerate(fair_folds(2021)):
        backbone = small_backbone("utae_t5", phase=100 * k)
        save_checkpoint(fold_file(folder, fold.number), backbone, info_of(k, "utae_t5"))
    return load_members(folder, "utae_t5", fair_folds(2021), FEATURES)


@pytest.fixture(scope="module", params=[True, False], ids=["frozen", "trained along"])
def predictors(request, members: list[Member], tmp_path_factory: pytest.TempPathFactory) -> Predictors:
    student = make_student(tmp_path_factory.mktemp("student"), 1, "utae_t5", frozen=request.param)
    return Predictors(members, members[1], student, dropout_passes=4, seed=3)


@pytest.fixture(scope="module")
def samples(small_fires: Path) -> Samples:
    return Samples(open_catalog(small_fires, [2018]).fires, days=5, features=FEATURES, crop=CROP)


@pytest.fixture(scope="module")
def maps(predictors: Predictors, samples: Samples, tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    path = tmp_path_factory.mktemp("maps") / "predictions_2018.npz"
    names = available(predictors)
    write_method_maps(path, predictors, samples, 2018, names)
    with open_maps(path) as stored:
        assert list(stored.methods) == names
        return {
            f"{name}_{kind}": getattr(stored, kind)(name, slice(None)) for name in names for kind in ("prob", "unc")
        } | {"y": stored.fire(slice(None))}


def shown(samples: Samples, normalization: Normalization, index: int) -> torch.Tensor:
    raw, _ = samples.raw(index)
    return torch.from_numpy(preprocess(raw, samples.channels, FEATURES, normalization))[None]


def test_ensemble_and_student(maps, predictors: Predictors, samples: Samples):
    for index in range(len(samples)):
        probs = []
        with torch.no_grad():
            for member in predictors.members:
                backbone, _ = member.original()
                probs.append(backbone(shown(samples, member.normalization, index)).sigmoid()[0, 0].numpy())
        np.testing.assert_allclose(maps["ensemble_prob"][index], np.mean(probs, 0), atol=1e-5)
        np.testing.assert_allclose(
            maps["ensemble_unc"][index], np.std(probs, 0, ddof=1, dtype=np.float64) * np.sqrt(3), atol=1e-4
        )
        loaded = predictors.student
        prob, unc = loaded.student.predict(shown(samples, loaded.normalization, index))
        np.testing.assert_allclose(maps["student_prob"][index], prob[0], atol=1e-5)
        np.testing.assert_allclose(maps["student_unc"][index], unc[0], atol=1e-5)
        assert np.array_equal(maps["y"][index], samples.raw(index)[1] > 0)
        mean = np.mean(probs, 0)
        np.testing.assert_allclose(maps["ensemble_entropy_unc"][index], entropy(mean), atol=1e-4)
        information = entropy(mean) - np.mean([entropy(p) for p in probs], 0)
        np.testing.assert_allclose(maps["ensemble_mi_unc"][index], information, atol=1e-4)


def test_baselines_share_the_students_probability(maps):
    for name in ("entropy", "calibrated_entropy", "random", "boundary_distance", "today_distance", "probability"):
        assert np.array_equal(maps[f"{name}_prob"], maps["student_prob"])
    np.testing.assert_allclose(maps["entropy_unc"], entropy(maps["student_prob"]), atol=1e-5)
    calibrated = 1 / (1 + np.exp(0.5 - 2 * logit(maps["student_prob"].astype(float))))
    np.testing.assert_allclose(maps["calibrated_entropy_unc"], entropy(calibrated), atol=1e-4)
    assert np.array_equal(maps["probability_unc"], maps["student_prob"])
    unc = maps["random_unc"]
    assert 0.45 < unc.mean() < 0.55 and len(np.unique(unc)) > 0.99 * unc.size


def test_persistence_is_todays_fire_and_ranks_nothing(maps, samples: Samples):
    for index in range(len(samples)):
        fire, first = samples.locate(index)
        middle = [
            slice(round((side - CROP) / 2), round((side - CROP) / 2) + CROP) for side in (fire.height, fire.width)
        ]
        today = fire.read(slice(first + 4, first + 5), [22], *middle)[0, 0] > 0
        assert np.array_equal(maps["persistence_prob"][index], today)
    assert np.ptp(maps["persistence_prob"]) == 1, "else this tests nothing"
    assert not maps["persistence_unc"].any()


def test_laplace_and_density_read_the_backbones_features(maps, predictors: Predictors, samples: Samples):
    if predictors.trained_along:
        for name in ("laplace", "density"):
            with pytest.raises(ConfigError, match=f"methods: {name} is fitted with a student on its frozen backbone"):
                write_method_maps(Path("nowhere.npz"), predictors, samples, 2018, [name])
        return
    fits = load_fits(predictors)
    for index in range(len(samples)):
        backbone, statistics = predictors.alone
        logits, features = predict(backbone, shown(samples, statistics, index))
        variance = logit_variance(features, fits["laplace_covariance"])[0].numpy()
        np.testing.assert_allclose(maps["laplace_unc"][index], variance / (1 + variance), rtol=1e-3)
        damped = 1 / (1 + np.exp(-logits[0, 0].numpy() / np.sqrt(1 + np.pi * variance / 8)))
        np.testing.assert_allclose(maps["laplace_prob"][index], damped, atol=1e-5)
        off = features[0].double() - fits["density_mean"][(logits[0, 0] > 0).long()].permute(2, 0, 1)
        precision = fits["density_precision"][(logits[0, 0] > 0).long()]
        distance = torch.einsum("fhw,hwfg,ghw->hw", off, precision, off).numpy()
        np.testing.assert_allclose(maps["density_unc"][index], distance / (8 + distance), rtol=1e-3)


def test_nearness_to_the_predicted_edge_falls_with_distance(maps):
    for prob, unc in zip(maps["boundary_distance_prob"], maps["boundary_distance_unc"], strict=True):
        mask = prob > 0.5
        edge = ndimage.binary_dilation(mask) & ~mask
        if not edge.any():
            assert not unc.any(), "without a predicted fire nothing is near its edge"
            continue
        np.testing.assert_allclose(unc, 1 / (1 + ndimage.distance_transform_edt(~edge)), rtol=1e-6)
    assert maps["boundary_distance_unc"].max() == 1


def test_nearness_to_todays_fire_falls_with_distance(maps):
    for today, unc in zip(maps["persistence_prob"] > 0, maps["today_distance_unc"], strict=True):
        expected = 1 / (1 + ndimage.distance_transform_edt(~today)) if today.any() else np.zeros(today.shape)
        np.testing.assert_allclose(unc, expected, rtol=1e-6)
    assert maps["today_distance_unc"].max() == 1


def turned_by_hand(predictors: Predictors, samples: Samples, index: int) -> np.ndarray:
    """Mean probability over quarter turns and mirrors: winds blow elsewhere in a turned world."""
    backbone, statistics = predictors.alone
    raw, _ = samples.raw(index)
    angle = samples.channels.index(7)
    passes = []
    for mirrored in (False, True):
        for quarters in range(4):
            turned = raw[..., ::-1] if mirrored else raw
            turned = np.rot90(turned, quarters, axes=(-2, -1)).copy()
            direction = -turned[:, angle] if mirrored else turned[:, angle]
            turned[:, angle] = (direction - 90 * quarters) % 360
            x = torch.from_numpy(preprocess(turned, samples.channels, FEATURES, statistics))[None]
            prob = np.rot90(predict_logits(backbone, x).sigmoid()[0, 0].numpy(), -quarters)
            passes.append(prob[:, ::-1] if mirrored else prob)
    return np.mean(passes, 0)


def test_turned_input_turned_back(maps, predictors: Predictors, samples: Samples):
    np.testing.assert_allclose(maps["tta_prob"][0], turned_by_hand(predictors, samples, 0), atol=1e-5)
    assert maps["tta_unc"].max() > 0


def test_dropout_is_left_on_and_drawn_by_the_seed(maps, predictors: Predictors, samples: Samples, tmp_path: Path):
    assert maps["mc_dropout_unc"].max() > 0
    backbone, _ = predictors.alone
    with dropout_left_on(backbone):
        modes = {type(m).__name__ for m in backbone.modules() if m.training}
        rates = {m.p for m in backbone.modules() if isinstance(m, torch.nn.Dropout2d)}
    assert modes - {"Identity"} == {"Dropout", "Dropout2d"}, "everything else is as in prediction"
    assert rates == {PUT_IN}, "in the decoder too"
    dropouts = [m for m in backbone.modules() if isinstance(m, torch.nn.Dropout | torch.nn.Dropout2d)]
    assert not any(m.training for m in dropouts), "off again afterwards"
    assert {m.p for m in dropouts if isinstance(m, torch.nn.Dropout2d)} == {0.0}
    again = tmp_path / "predictions_2018.npz"
    write_method_maps(again, predictors, samples, 2018, ["mc_dropout", "random"])
    with open_maps(again) as stored:
        for name in ("mc_dropout", "random"):
            assert np.array_equal(stored.unc(name, slice(None)), maps[f"{name}_unc"])


def test_whole_images_are_predicted_as_large_as_they_are(predictors: Predictors, small_fires: Path, tmp_path: Path):
    whole = Samples(open_catalog(small_fires, [2018, 2019]).fires, days=5, features=FEATURES, crop=None)
    path = tmp_path / "predictions_2018.npz"
    write_method_maps(path, predictors, whole, 2018, available(predictors))
    with open_maps(path) as stored:
        fires = [whole.locate(k)[0] for k in range(len(whole))]
        assert stored.size.tolist() == [[fire.height, fire.width] for fire in fires]
        assert len({tuple(size) for size in stored.size.tolist()}) > 1, "else this tests nothing"
        assert stored.shape == (len(whole), *stored.size.max(axis=0))
        outside = ~stored.inside(slice(None))
        loaded = predictors.student
        for name in available(predictors):
            prob, unc = stored.prob(name, slice(None)), stored.unc(name, slice(None))
            assert not prob[outside].any() and not unc[outside].any()
            if name == "persistence":
                continue  # its fire may lie still, or be gone
            assert all(np.ptp(image[: size[0], : size[1]]) > 0 for image, size in zip(prob, stored.size, strict=True))
        for index, (rows, columns) in enumerate(stored.size):
            own = slice(index, index + 1), slice(rows), slice(columns)
            assert np.array_equal(stored.arrays["y"][own][0], whole.raw(index)[1])
            prob, unc = loaded.student.predict(shown(whole, loaded.normalization, index))
            np.testing.assert_allclose(stored.arrays["student_prob"][own], prob, atol=1e-5)
            np.testing.assert_allclose(stored.arrays["student_unc"][own], unc, atol=1e-5)
        for index in (0, len(whole) - 1):
            rows, columns = stored.size[index]
            tta = turned_by_hand(predictors, whole, index)
            np.testing.assert_allclose(stored.arrays["tta_prob"][index, :rows, :columns], tta, atol=1e-5)


def test_whole_images_go_through_in_batches_of_one_size(small_fires: Path):
    fires = open_catalog(small_fires, [2018, 2019]).fires
    whole = Samples(fires, days=1, features=FEATURES, crop=None)
    batches = list(batches_of(whole))
    assert [k for where in batches for k in range(where.start, where.stop)] == list(range(len(whole)))
    for where in batches:
        assert len({whole.raw(k)[1].shape for k in range(where.start, where.stop)}) == 1
        assert where.stop - where.start <= BATCH
    crops = Samples(fires, days=1, features=FEATURES, crop=CROP)
    assert [where.start for where in batches_of(crops)] == list(range(0, len(crops), BATCH))


def test_no_sample_is_said(predictors: Predictors, small_fires: Path, tmp_path: Path):
    none = Samples(open_catalog(small_fires, [2018]).fires, days=50, features=FEATURES, crop=None)
    with pytest.raises(
        DataError, match=r"^2018: no fire has 51 days in a row, which a sample takes; add longer fires$"
    ):
        write_method_maps(tmp_path / "predictions_2018.npz", predictors, none, 2018, ["ensemble"])


def test_a_frozen_student_and_the_baselines_cost_no_pass(members: list[Member], samples: Samples, tmp_path: Path):
    passed: Counter[int] = Counter()
    hooks = [
        m.backbone.decoder.register_forward_hook(lambda _m, _i, out, k=k: passed.update({k: len(out)}))  # type: ignore[misc]
        for k, m in enumerate(members)
    ]
    student = make_student(tmp_path / "student", 1, "utae_t5", frozen=True)
    hooks.append(student.student.backbone.decoder.register_forward_hook(lambda *_: passed.update({"student": 1})))
    predictors = Predictors(members, members[1], student)
    cheap = [name for name in METHODS if name not in ("mc_dropout", "tta", *TRAINED)]
    write_method_maps(tmp_path / "predictions_2018.npz", predictors, samples, 2018, cheap)
    assert passed == dict.fromkeys(range(3), len(samples))
    for hook in hooks:
        hook.remove()
    assert pass_counts(predictors, list(METHODS)) == {
        "student": 1,
        "ensemble": 3,
        "entropy": 1,
        "calibrated_entropy": 1,
        "ensemble_entropy": 3,
        "ensemble_mi": 3,
        "mc_dropout": 10,
        "tta": 8,
        "laplace": 1,
        "density": 1,
        "swag": 10,
        "packed": 1,
        "diffusion": 1,
        "random": 1,
        "boundary_distance": 1,
        "today_distance": 1,
        "probability": 1,
        "persistence": 0,
    }


def test_without_a_student_the_others_are_there(members: list[Member], samples: Samples, tmp_path: Path):
    path = tmp_path / "predictions_2018.npz"
    write_method_maps(path, Predictors(members, members[1]), samples, 2018, ["ensemble", "entropy"])
    with open_maps(path) as stored:
        assert stored.methods == ("ensemble", "entropy")
    with pytest.raises(ValueError, match="no student"):
        write_method_maps(path, Predictors(members, members[1]), samples, 2018, ["student"])


def test_what_cannot_be_compared_is_said_before_anything_is_predicted(samples: Samples, tmp_path: Path):
    for k, fold in enumerate(fair_folds(2021)):
        backbone = small_backbone("unet_t1", phase=100 * k)
        save_checkpoint(fold_file(tmp_path, fold.number), backbone, info_of(k, "unet_t1"))
    members = load_members(tmp_path, "unet_t1", fair_folds(2021), FEATURES)
    path = tmp_path / "predictions_2018.npz"
    with pytest.raises(ConfigError, match="methods: swag needs a training of its own"):
        write_method_maps(path, Predictors(members, members[0]), samples, 2018, ["swag"])
    with pytest.raises(ConfigError, match="methods: calibrated_entropy needs a student, whose calibration it uses"):
        write_method_maps(path, Predictors(members, members[0]), samples, 2018, ["calibrated_entropy"])
    with pytest.raises(ConfigError, match="an ensemble needs two members or more, but there is 1"):
        write_method_maps(path, Predictors(members[:1], members[0]), samples, 2018, ["ensemble"])
    assert not path.exists()


def test_a_flipped_bit_in_what_methods_have_learnt_is_found(tmp_path: Path, members: list[Member]):
    student = make_student(tmp_path, 1, "utae_t5", frozen=True)
    path = fits_file(tmp_path)
    content = bytearray(path.read_bytes())
    content[-100] ^= 4
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"feature_fits\.safetensors: .*copy or train it again"):
        load_fits(Predictors(members, members[1], student))
