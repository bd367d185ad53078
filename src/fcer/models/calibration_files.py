"""A calibration beside its student: `calibration.json`, plain numbers with a checksum, bound to the student's key."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from fcer.core.recalibration import Recalibration
from fcer.core.zones import FamilyName, ZoneRule
from fcer.errors import CheckpointError
from fcer.models.expectations import Expectations
from fcer.runtime.files import write_text

__all__ = [
    "Adaptation",
    "Calibration",
    "calibration_file",
    "calibration_id",
    "calibration_table_file",
    "calibration_text",
    "load_calibration",
    "save_calibration",
]

_MAX_BYTES = 16 << 20
"""Thousands of knots fit many times over."""


@dataclass(frozen=True)
class Adaptation:
    """Which verified days zones were adapted to."""

    first: str
    last: str
    days: int
    fires: int

    def __post_init__(self) -> None:
        if date.fromisoformat(self.first) > date.fromisoformat(self.last) or not self.days >= 1 or not self.fires >= 1:
            raise ValueError(f"zones are not adapted from {self.first} to {self.last}")


@dataclass(frozen=True)
class Calibration:
    """What was learnt of a student on fires that it was not trained on."""

    student: str
    """The key of the student whose probabilities these are (`HeadInfo.key`)."""
    recalibration: Recalibration
    """Makes probabilities mean what they say near the fire."""
    zone_prior: Recalibration
    """What probabilities go through before zones are drawn: `none` or `prior`, settled before any fire was seen."""
    rules: tuple[ZoneRule, ...]
    radius_px: float
    """The recalibration was fitted at most so far from fire."""
    fires: tuple[str, ...]
    """The fires that calibrated it."""
    chose_epoch: bool
    """Whether fires among them also chose the student's epoch, which flatters it a little."""
    code_version: str
    expected: Expectations | None = None
    """What forecasts are held to once the day is seen; none: an older version did not ask."""
    adapted: "Adaptation | None" = None
    """To which verified days zones were adapted; none: they are as calibration fires made them."""

    calibrators: tuple[str, ...] = ()
    """Of other packages, that took part in choosing the recalibration; applying it needs none of them."""

    def __post_init__(self) -> None:
        if self.zone_prior.kind not in ("none", "prior"):
            raise ValueError(f"zones are drawn from probabilities under none or prior, not {self.zone_prior.kind}")
        if not 0 <= self.radius_px < float("inf"):
            raise ValueError(f"radius_px is {self.radius_px}, which no radius can be")

    def rules_of(self, family: FamilyName) -> tuple[ZoneRule, ...]:
        """The rules of one family, the smallest miss and so the largest zone first."""
        return tuple(sorted((rule for rule in self.rules if rule.family.name == family), key=lambda rule: rule.miss))


def calibration_file(folder: Path) -> Path:
    """Where a student's calibration lies."""
    return folder / "calibration.json"


def calibration_table_file(folder: Path) -> Path:
    """Where it is written what the calibration changed, in every region of the sweep."""
    return folder / "calibration_by_region.csv"


def calibration_text(calibration: Calibration) -> str:
    """The calibration as JSON with its checksum."""
    content = {
        "student": calibration.student,
        "recalibration": calibration.recalibration.to_dict(),
        "zone_prior": calibration.zone_prior.to_dict(),
        "rules": [rule.to_dict() for rule in calibration.rules],
        "radius_px": calibration.radius_px,
        "fires": list(calibration.fires),
        "chose_epoch": calibration.chose_epoch,
        "code_version": calibration.code_version,
        **({"expected": calibration.expected.to_dict()} if calibration.expected else {}),
        **({"adapted": asdict(calibration.adapted)} if calibration.adapted else {}),
        **({"calibrators": list(calibration.calibrators)} if calibration.calibrators else {}),
    }
    return json.dumps({"calibration": content, "sha256": _digest(content)}, indent=1, allow_nan=False) + "\n"


def calibration_id(calibration: Calibration) -> str:
    """Twelve letters that stand for all of it."""
    return hashlib.sha256(calibration_text(calibration).encode()).hexdigest()[:12]


def save_calibration(folder: Path, calibration: Calibration) -> Path:
    """Write the calibration into a student's folder, whole or not at all."""
    return write_text(calibration_file(folder), calibration_text(calibration))


def load_calibration(folder: Path, student: str) -> Calibration | None:
    """The calibration in a student's folder, None where there is none; another student's is refused.

    `student` is the key of the student in the folder.
    """
    path = calibration_file(folder)
    if not path.is_file():
        return None
    if path.stat().st_size > _MAX_BYTES:
        raise CheckpointError(f"{path}: far too large for a calibration; run `fcer calibrate` again")
    try:
        stored = json.loads(path.read_bytes(), parse_constant=_refuse_constant)
        content = stored["calibration"]
        intact = stored["sha256"] == _digest(content)
        calibration = _parse(content) if intact else None
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error}); run `fcer calibrate` again") from None
    if calibration is None:
        raise CheckpointError(f"{path}: its checksum does not fit, so that it was changed; run `fcer calibrate` again")
    if calibration.student != student:
        raise CheckpointError(
            f"{path}: calibrates the student {calibration.student[:12]}, not {student[:12]}, whose probabilities mean "
            "something else; run `fcer calibrate` on this one"
        )
    return calibration


def _parse(content: Mapping[str, Any]) -> Calibration:
    values = dict(content)
    values["calibrators"] = tuple(values.get("calibrators", ()))
    texts = (values["student"], values["code_version"], *values["fires"], *values["calibrators"])
    radius = values["radius_px"]
    if not all(isinstance(text, str) for text in texts) or not isinstance(values["chose_epoch"], bool):
        raise TypeError("a name is not text, or chose_epoch neither true nor false")
    if isinstance(radius, bool) or not isinstance(radius, int | float):
        raise TypeError(f"radius_px is {radius!r}")
    values["recalibration"] = Recalibration.from_dict(values["recalibration"])
    values["zone_prior"] = Recalibration.from_dict(values["zone_prior"])
    if "expected" in values:
        values["expected"] = Expectations.from_dict(values["expected"])
    if "adapted" in values:
        values["adapted"] = Adaptation(**values["adapted"])
    values["rules"] = tuple(ZoneRule.from_dict(rule) for rule in values["rules"])
    return Calibration(**{**values, "fires": tuple(values["fires"])})


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _refuse_constant(name: str) -> float:
    raise ValueError(f"it holds {name}")
