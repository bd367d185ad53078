"""A student that answers requests: raw days in, maps out, plain or as base64 .npy files."""

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcer.deploy.calibrated import calibrated_maps, promises
from fcer.errors import InputError
from fcer.models.calibration_files import Calibration
from fcer.models.raw_days import predict_days
from fcer.models.student_files import LoadedStudent
from fcer.runtime.npy_text import from_text, to_text

__all__ = ["LARGEST", "Answers"]

LARGEST = 2**19
"""Pixels of all samples of a request, some 700 px squared: twice as many took up to 3.6 GB and 34 s of MLflow's 60."""


class Answers:
    """Raw days in, probability and uncertainty out; of a calibrated student calibrated probability and zones, too.

    Threads may ask side by side.
    """

    def __init__(self, loaded: LoadedStudent, calibration: Calibration | None = None) -> None:
        self.loaded = loaded
        self.calibration = calibration
        self._turn = threading.Lock()

    def answer(self, inputs: NDArray[Any], npy: str | None) -> dict[str, Any]:
        """Maps (samples, rows, columns) by name. Whoever asks with a .npy file is answered with such files."""
        if npy is None:
            if inputs.size == 0:
                raise InputError("inputs: it is empty; give days there, or as a base64 .npy file in params.npy")
            return {**self._maps(inputs), **self._promises()}
        if inputs.size:
            raise InputError("params.npy: there are days in inputs too; leave those empty: [[[[[]]]]]")
        maps = self._maps(from_text(npy, "params.npy"))
        return {**{name: to_text(values) for name, values in maps.items()}, **self._promises()}

    def _maps(self, raw: NDArray[Any]) -> dict[str, NDArray[np.float32]]:
        pixels = raw.shape[0] * raw.shape[-2] * raw.shape[-1] if raw.ndim == 5 else 0
        if pixels > LARGEST:
            raise InputError(
                f"input: {pixels} pixels are too many for one request, which may hold {LARGEST} (samples x rows x "
                "columns); ask for fewer at a time"
            )
        # One pass uses every core: passes side by side would only take as many times the memory
        with self._turn:
            maps = predict_days(self.loaded, raw)
        found = {"probability": maps.probability_BHW.numpy(), "uncertainty": maps.uncertainty_BHW.numpy()}
        if self.calibration is None:
            return found
        return found | calibrated_maps(found["probability"], found["uncertainty"], self.calibration)

    def _promises(self) -> dict[str, Any]:
        """What the zones guarantee, in words and numbers."""
        return {} if self.calibration is None else {"guarantees": promises(self.calibration)}
