"""A student as an ONNX file answers as torch does, whatever the image's size and however it is calibrated."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from documentation import blocks
from fcer.core.recalibration import NONE, Recalibration
from fcer.core.zones import ZoneFamily, ZoneRule
from fcer.data.channels import CHANNELS
from fcer.deploy.onnx_file import TOLERANCE, check_session, export_student, random_days
from fcer.errors import FcerError
from fcer.models.backbones import Backbone, BackboneSpec
from fcer.models.calibration_files import Calibration
from fcer.models.onnx_graph import OPSET
from fcer.models.raw_days import predict_days
from fcer.models.student import HeadSpec, Student, UncertaintyHead
from fcer.models.student_files import LoadedStudent, load_student
from vegetation_student import write_student

onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")

PLATT = Recalibration("platt", scale=0.7, shift=-1.0)
PRIOR = Recalibration("prior", weight=3.0)
# of another package's calibrator, which bring knots as isotonic does; two of them at one place: a step
KNOTS = Recalibration("theirs", knots=((0.0, 0.0), (0.3, 0.1), (0.45, 0.2), (0.45, 0.4), (0.6, 0.5), (1.0, 0.9)))
CASES = {
    "utae_t5": ("vegetation", 16, HeadSpec(8), KNOTS, PRIOR),
    "unet_t5": ("vegetation", 0, HeadSpec(8, (4,), logit=True), NONE, NONE),
    "unet_t1": ("all", 16, HeadSpec(8, context=True, fire=True), PLATT, NONE),
}
"""Each with another set of features, margin, head and calibration."""


def rule(level: float, miss: float) -> ZoneRule:
    return ZoneRule(ZoneFamily("threshold"), level, miss, miss, 20, 1, 4.0, 3.0)


@pytest.fixture(scope="module", params=CASES)
def exported(request, tmp_path_factory: pytest.TempPathFactory) -> tuple[LoadedStudent, Calibration, Path]:
    features, margin, spec, recalibration, prior = CASES[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    loaded = load_student(write_student(folder / "student", features=features, arch=request.param))
    loaded.student.backbone.margin = margin
    torch.manual_seed(1)
    head = UncertaintyHead(replace(spec, features=loaded.head.features)).eval().requires_grad_(False)
    loaded = replace(loaded, student=Student(loaded.student.backbone, head, loaded.student.fire_channel).eval())
    scores = prior.apply(predict_days(loaded, random_days(loaded, 1, 32, 32)).probability_BHW)
    lower, upper = np.quantile(scores, [0.4, 0.6]).tolist()
    rules = (rule(-np.inf, 0.05), rule(lower, 0.1), rule(upper, 0.2))
    calibration = Calibration("k", recalibration, prior, rules, 4.0, ("a", "b"), False, "0")
    assert export_student(folder / "student.onnx", loaded, calibration, {"uri": "somewhere"}) <= TOLERANCE
    return loaded, calibration, folder / "student.onnx"


@pytest.mark.parametrize("shape", [(2, 32, 64), (1, 7, 45)])
def test_maps_are_those_of_torch(exported: tuple[LoadedStudent, Calibration, Path], shape: tuple[int, int, int]):
    loaded, calibration, path = exported
    days = random_days(loaded, *shape)
    days[:, 0, :, :3] = np.inf  # to torch missing values too, though its door refuses them
    session = onnxruntime.InferenceSession(path)
    found = session.run(None, {"days": days})
    maps = predict_days(loaded, np.where(np.isinf(days), np.nan, days))
    for ours, torchs in zip(found[:2], maps, strict=True):
        assert ours.shape == shape and torchs.std() > 100 * TOLERANCE
        np.testing.assert_allclose(ours, torchs, atol=TOLERANCE)
    assert set(np.unique(found[3])) == {np.float32(miss) for miss in (0.05, 0.1, 0.2)}, "every zone is somewhere"
    np.testing.assert_allclose(found[2], calibration.recalibration.apply(found[0]), atol=1e-6)
    assert check_session(session, loaded, calibration, random_days(loaded, *shape)) <= TOLERANCE


def test_the_file_says_what_it_is(exported: tuple[LoadedStudent, Calibration, Path]):
    loaded, _, path = exported
    session = onnxruntime.InferenceSession(path)
    said = {key: json.loads(value) for key, value in session.get_modelmeta().custom_metadata_map.items()}
    assert said["fcer.model"] == {"uri": "somewhere"} and said["fcer.channels"] == list(CHANNELS)
    assert said["fcer.days"] == loaded.student.backbone.days and said["fcer.anchor_px"] == 3.0
    assert [zone["expected_miss_at_most"] for zone in said["fcer.guarantees"]] == [0.05, 0.1, 0.2]
    assert [opset.version for opset in onnx.load(path).opset_import] == [OPSET]


def test_another_student_is_a_mismatch(exported: tuple[LoadedStudent, Calibration, Path]):
    loaded, calibration, path = exported
    other = replace(loaded, normalization=replace(loaded.normalization, std=(2.0,) * len(CHANNELS)))
    with pytest.raises(FcerError, match="probability differs from torch's by"):
        check_session(onnxruntime.InferenceSession(path), other, calibration, random_days(loaded, 1, 32, 32))
    changed = replace(calibration, recalibration=Recalibration("platt", scale=2.0))
    with pytest.raises(FcerError, match="calibrated_probability differs"):
        check_session(onnxruntime.InferenceSession(path), loaded, changed, random_days(loaded, 1, 32, 32))


class Sized(Backbone):
    """Another package's: it keeps the size of the image that it was recorded with, or does not."""

    days = 1
    feature_channels = 8

    def __init__(self, fixed: bool) -> None:
        super().__init__(BackboneSpec("sized", 7))
        self.first = nn.Conv2d(7, 8, 3, padding=1)
        self.last = nn.Conv2d(8, 1, 1)
        self.fixed = fixed

    def features(self, x_BTCHW: Tensor) -> Tensor:
        height = int(x_BTCHW.shape[-2]) if self.fixed else x_BTCHW.shape[-2]
        return self.first(x_BTCHW[:, -1]).reshape(-1, 8, height, x_BTCHW.shape[-1]).relu()

    def fire_logits(self, features_BFHW: Tensor) -> Tensor:
        return self.last(features_BFHW)


def test_a_backbone_of_another_package(tmp_path: Path):
    torch.manual_seed(0)
    loaded = load_student(write_student(tmp_path / "student", features="vegetation", arch="unet_t1"))
    for fixed in (False, True):
        head = UncertaintyHead(HeadSpec(8)).eval()
        other = replace(loaded, student=Student(Sized(fixed).eval().requires_grad_(False), head).eval())
        path = tmp_path / f"{fixed}.onnx"
        if fixed:
            with pytest.raises(FcerError, match="no graph for every size can be made"):
                export_student(path, other, None, {})
        else:
            assert export_student(path, other, None, {}) <= TOLERANCE
        assert path.exists() != fixed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_student(tmp_path / "student", features="fire", arch="unet_t1")


def test_the_command_and_what_the_page_does_with_its_file(folder: Path, tmp_path: Path, fcer_main):
    loaded = load_student(folder)
    code, out, err = fcer_main("export", "--model", folder, "--onnx", "student.onnx")
    assert (code, err) == (0, "") and "student.onnx: ONNX opset 18, at most " in out and "not calibrated" in out
    days = random_days(loaded, 1, 20, 30)
    np.save("days.npy", days)
    (block,) = (block.text for block in blocks("python") if "onnxruntime" in block.text)
    told: dict = {}
    exec(block, told)
    assert told["names"] == ["probability", "uncertainty"] and told["promised"] == "[]"
    np.testing.assert_allclose(told["maps"]["probability"], predict_days(loaded, days).probability_BHW, atol=1e-4)


def test_what_cannot_be_done_is_said_in_a_sentence(folder: Path, tmp_path: Path, fcer_main, monkeypatch):
    code, _, err = fcer_main("export", "--model", "models:/fcer-student/77", "--onnx", "student.onnx")
    assert code == 2 and "has no models:/fcer-student/77" in err and not Path("student.onnx").exists()
    Path("file").write_text("no folder")
    code, _, err = fcer_main("export", "--model", folder, "--onnx", "file/student.onnx")
    assert code == 2 and "file/student.onnx cannot be written" in err and len(err.splitlines()) == 1
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    code, _, err = fcer_main("export", "--model", folder)
    assert code == 2 and "pip install 'fcer[onnx]'" in err and len(err.splitlines()) == 1
