"""A student as an ONNX file: described in the file itself, and held to torch before it has its name."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcer.data.channels import ACTIVE_FIRE, ANGLES, CHANNELS, LAND_COVER, LAND_COVER_CLASSES
from fcer.deploy.calibrated import calibrated_maps, promises
from fcer.errors import ConfigError, FcerError
from fcer.models.calibration_files import Calibration, calibration_id
from fcer.models.onnx_graph import OPSET, StudentGraph, write_graph
from fcer.models.raw_days import needed_channels, predict_days
from fcer.models.student_files import LoadedStudent
from fcer.runtime.files import atomic_path

__all__ = ["TOLERANCE", "check_session", "export_student", "import_onnx", "random_days"]

TOLERANCE = 1e-4
"""How far maps may be from those of torch."""

_SHAPES = ((1, 40, 33), (3, 32, 71))
"""Samples, rows and columns of random days that every file is checked on: of no size that was recorded."""
_LARGEST = 512


def import_onnx() -> tuple[Any, Any]:
    """The packages onnx and onnxruntime; a ConfigError says how to get them."""
    try:
        import onnx
        import onnxruntime
    except ImportError as error:
        raise ConfigError(f"onnx: needs the package {error.name}; get it with pip install 'fcer[onnx]'") from None
    return onnx, onnxruntime


def export_student(
    path: Path,
    loaded: LoadedStudent,
    calibration: Calibration | None,
    identity: Mapping[str, str],
    real: NDArray[np.float32] | None = None,
) -> float:
    """Write the file and return its largest difference from torch; above `TOLERANCE` no file is left.

    Parameters
    ----------
    loaded, calibration
        The student, and what it is calibrated by.
    identity
        What the file says of where it comes from.
    real
        Days (1, days, 23, rows, columns) of a fire to check it on, besides random ones.
    """
    onnx, onnxruntime = import_onnx()
    samples = [random_days(loaded, *shape) for shape in _SHAPES]
    if real is not None:
        samples.append(real[..., :_LARGEST, :_LARGEST])
    try:
        with atomic_path(path) as partial:
            write_graph(StudentGraph(loaded, calibration), partial)
            model = onnx.load(partial)
            onnx.helper.set_model_props(model, _described(loaded, calibration, identity))
            model.doc_string = "raw days to maps of tomorrow's fire; NaN where a value is missing"
            onnx.checker.check_model(model)
            partial.write_bytes(model.SerializeToString())
            session = onnxruntime.InferenceSession(str(partial), providers=["CPUExecutionProvider"])
            return max(check_session(session, loaded, calibration, days) for days in samples)
    except OSError as error:
        raise ConfigError(f"onnx: {path} cannot be written ({error.strerror}); choose another --onnx") from None
    except FcerError:
        raise
    except Exception as error:  # a backbone of another package may do what ONNX, or a recorded pass, cannot hold
        reason = str(error).strip().partition("\n")[0]
        raise FcerError(
            f"onnx: no graph for every size can be made of {loaded.backbone.arch} ({reason}); serve this student with "
            "fcer serve"
        ) from error


def check_session(
    session: Any, loaded: LoadedStudent, calibration: Calibration | None, days: NDArray[np.float32]
) -> float:
    """The largest difference between the maps of a session and of torch; an error where that is too large.

    What follows from the probability, calibrated one and zones, is held to the session's own: at a zone's edge a
    rounding of the seventh digit decides.
    """
    found = dict(zip((output.name for output in session.get_outputs()), session.run(None, {"days": days}), strict=True))
    maps = predict_days(loaded, days)
    expected = {"probability": maps.probability_BHW.numpy(), "uncertainty": maps.uncertainty_BHW.numpy()}
    if calibration is not None:
        expected |= calibrated_maps(found["probability"], found["uncertainty"], calibration)
    if found.keys() != expected.keys():
        raise FcerError(f"onnx: the graph answers {', '.join(found)} instead of {', '.join(expected)}; report this")
    off = {name: float(np.abs(values - found[name]).max()) for name, values in expected.items()}
    for name, difference in off.items():
        if not difference <= TOLERANCE:  # NaN, too
            raise FcerError(
                f"onnx: {name} differs from torch's by {difference:.2g} on days of shape {days.shape}, more than "
                f"{TOLERANCE:g}; no file was written: serve this student with fcer serve"
            )
    return max(off.values())


def random_days(loaded: LoadedStudent, samples: int, rows: int, columns: int) -> NDArray[np.float32]:
    """Days such as the student knows them, with every tenth value missing and fire on every twentieth pixel."""
    rng = np.random.default_rng(0)
    shape = (samples, loaded.student.backbone.days, rows, columns)
    mean, std = loaded.normalization.arrays(range(len(CHANNELS)))
    days = mean + std * rng.standard_normal((*shape[:2], len(CHANNELS), *shape[2:]), dtype=np.float32)
    for channel in ANGLES:
        days[:, :, channel] = rng.uniform(0, 360, shape)
    days[:, :, LAND_COVER] = rng.integers(0, LAND_COVER_CLASSES + 2, shape)
    days[rng.random(days.shape) < 0.1] = np.nan
    days[:, :, ACTIVE_FIRE] = np.where(rng.random(shape) < 0.05, rng.integers(1, 24, shape), 0)
    return days


def _described(loaded: LoadedStudent, calibration: Calibration | None, identity: Mapping[str, str]) -> dict[str, str]:
    """What a reader of the file needs to know, each as JSON."""
    told: dict[str, Any] = {
        "fcer.model": dict(identity),
        "fcer.arch": loaded.backbone.arch,
        "fcer.days": loaded.student.backbone.days,
        "fcer.channels": list(CHANNELS),
        "fcer.channels_read": needed_channels(loaded),
        "fcer.anchor_px": loaded.head.anchor_px,
        "fcer.opset": OPSET,
        "fcer.calibration": None if calibration is None else calibration_id(calibration),
        "fcer.guarantees": [] if calibration is None else promises(calibration),
    }
    return {name: json.dumps(value, ensure_ascii=False) for name, value in told.items()}
