"""The student as MLflow loads and serves it: this file is the model's code, the student's folder its artifact.

Nothing is unpickled. Input and output are said in `student_model.py`, where the model's signature is made.
"""

import threading
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE
from numpy.typing import NDArray

from fcer.errors import InputError
from fcer.runtime.npy_text import from_text, to_text
from fcer.runtime.threads import wait_politely

wait_politely()  # a server has neighbours; counts only before torch is imported, by the next lines

from fcer.deploy.calibrated import calibrate_map, promises  # noqa: E402
from fcer.models.calibration_files import load_calibration  # noqa: E402
from fcer.models.raw_days import predict_days  # noqa: E402
from fcer.models.student_files import load_student  # noqa: E402

_LARGEST = 2**19
"""Pixels of all samples of a request, some 700 px squared: twice as many took up to 3.6 GB and 34 s of MLflow's 60."""


class _Answers:
    """Raw days in, probability and uncertainty out; of a calibrated student calibrated probability and zones, too."""

    def load_context(self, context: Any) -> None:
        """Read the student once."""
        self.loaded = load_student(Path(context.artifacts["student"]))
        self.calibration = load_calibration(self.loaded.folder, self.loaded.head.key)
        self.turn = threading.Lock()

    def predict(self, context, model_input, params=None):  # type: ignore[no-untyped-def]  # noqa: ARG002
        """Maps (samples, rows, columns) by name. MLflow would take types for a signature."""
        try:
            return self._answer(np.asarray(model_input), (params or {}).get("npy"))
        except InputError as error:
            # MLflow's server answers 400 with the sentence; of any other error it would hide the words
            raise MlflowException(str(error), error_code=INVALID_PARAMETER_VALUE) from None

    def _answer(self, inputs: NDArray[Any], npy: str | None) -> dict[str, Any]:
        """Whoever asks with a .npy file is answered with such files."""
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
        if pixels > _LARGEST:
            raise InputError(
                f"input: {pixels} pixels are too many for one request, which may hold {_LARGEST} (samples x rows x "
                "columns); ask for fewer at a time"
            )
        # One pass uses every core: passes side by side would only take as many times the memory
        with self.turn:
            maps = predict_days(self.loaded, raw)
        found = {"probability": maps.probability_BHW.numpy(), "uncertainty": maps.uncertainty_BHW.numpy()}
        if self.calibration is None:
            return found
        each = [calibrate_map(p, u, self.calibration) for p, u in zip(*found.values(), strict=True)]
        calibrated = {
            "calibrated_probability": [one.probability for one in each],
            "zone": [one.innermost for one in each],
        }
        return found | {name: np.stack(values) for name, values in calibrated.items()}

    def _promises(self) -> dict[str, Any]:
        """What the zones guarantee, in words and numbers."""
        return {} if self.calibration is None else {"guarantees": promises(self.calibration)}


class ServedStudent(_Answers, mlflow.pyfunc.PythonModel):  # type: ignore[name-defined,misc]  # mlflow loads it lazily
    """What MLflow wants a model to be. From a `predict` of its own it would derive a second signature."""


mlflow.models.set_model(ServedStudent())
