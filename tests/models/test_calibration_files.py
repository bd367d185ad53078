"""A calibration beside its student: read as it was written, and nothing else."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from fcer.core.recalibration import NONE, Recalibration
from fcer.core.zones import ZoneFamily, ZoneRule
from fcer.errors import CheckpointError
from fcer.models.calibration_files import Calibration, calibration_file, load_calibration, save_calibration
from fcer.models.student_files import load_student, read_head_info
from student_cases import write_student

RULES = tuple(
    ZoneRule(ZoneFamily(name), level, miss, miss - 0.01, 23, 1, 40.0 / miss, 31.0 / miss)
    for name, level in (("threshold", 0.013), ("margin", -math.inf))
    for miss in (0.2, 0.05, 0.1)
)
CALIBRATION = Calibration(
    student="abc",
    recalibration=Recalibration("isotonic", knots=((0.0, 0.0), (0.3, 1 / 3), (1.0, 1.0))),
    zone_prior=Recalibration("prior", weight=10.0),
    rules=RULES,
    radius_px=4.0,
    fires=("fire_1", "Fire ä"),
    chose_epoch=True,
    code_version="0.1.0",
)


def test_it_is_read_as_it_was_written(tmp_path: Path):
    assert load_calibration(tmp_path, "abc") is None
    save_calibration(tmp_path, CALIBRATION)
    assert load_calibration(tmp_path, "abc") == CALIBRATION
    assert [path.name for path in tmp_path.iterdir()] == ["calibration.json"]
    assert [rule.miss for rule in CALIBRATION.rules_of("threshold")] == [0.05, 0.1, 0.2]


def test_it_lies_beside_its_student_and_is_refused_by_another(tmp_path: Path):
    folder = write_student(tmp_path / "one", key="one")
    save_calibration(folder, replace(CALIBRATION, student=read_head_info(folder).key))
    load_student(folder)
    assert load_calibration(folder, read_head_info(folder).key)
    other = write_student(tmp_path / "other", key="other")
    calibration_file(other).write_bytes(calibration_file(folder).read_bytes())
    with pytest.raises(
        CheckpointError, match=r"calibrates the student one, not other, .* run `fcer calibrate` on this"
    ):
        load_calibration(other, read_head_info(other).key)


def test_a_changed_number_is_noticed(tmp_path: Path):
    path = save_calibration(tmp_path, CALIBRATION)
    path.write_text(path.read_text().replace("0.013", "0.9"))
    with pytest.raises(CheckpointError, match="its checksum does not fit"):
        load_calibration(tmp_path, "abc")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("0.013", "NaN"),
        ("{", ""),
        ('"sha256"', '"md5"'),
        ('"calibration"', '"other"'),
    ],
)
def test_a_damaged_file_is_a_sentence(tmp_path: Path, old: str, new: str):
    path = save_calibration(tmp_path, CALIBRATION)
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(CheckpointError, match=r"calibration\.json: cannot be read \(.*run `fcer calibrate` again"):
        load_calibration(tmp_path, "abc")


@pytest.mark.parametrize("text", ["", "[]", "3", "[" * 100_000, '{"calibration": {}, "sha256": 1e999}'])
def test_anything_else_is_a_sentence(tmp_path: Path, text: str):
    calibration_file(tmp_path).write_text(text)
    with pytest.raises(CheckpointError, match=r"calibration\.json: "):
        load_calibration(tmp_path, "abc")


@pytest.mark.parametrize(
    "change",
    [
        {"student": 3},
        {"fires": [1]},
        {"chose_epoch": "no"},
        {"radius_px": "4"},
        {"radius_px": -1.0},
        {"zone_prior": {"kind": "platt", "scale": 1.0, "shift": 0.0}},
        {"rules": [{}]},
        {"rules": 3},
        {"recalibration": {"kind": "os.system"}},
        {"more": 1},
    ],
)
def test_a_file_with_a_checksum_of_its_own_is_checked_too(tmp_path: Path, change: dict):
    from fcer.models.calibration_files import _digest

    path = save_calibration(tmp_path, CALIBRATION)
    content = json.loads(path.read_text())["calibration"] | change
    path.write_text(json.dumps({"calibration": content, "sha256": _digest(content)}))
    with pytest.raises(CheckpointError, match=r"calibration\.json: cannot be read \("):
        load_calibration(tmp_path, "abc")


def test_a_huge_file_is_not_read(tmp_path: Path):
    with calibration_file(tmp_path).open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(CheckpointError, match="far too large"):
        load_calibration(tmp_path, "abc")


def test_zones_never_stand_on_what_their_fires_fitted():
    with pytest.raises(ValueError, match="none or prior, not platt"):
        replace(CALIBRATION, zone_prior=Recalibration("platt", scale=2.0))
    assert replace(CALIBRATION, zone_prior=NONE).zone_prior == NONE
