"""The student as MLflow loads and serves it: this file is the model's code, the student's folder its artifact.

Nothing is unpickled. Input and output are said in `student_model.py`, where the model's signature is made.
"""

from pathlib import Path
from typing import Any

import mlflow
import numpy as np
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE

from fcer.errors import InputError
from fcer.runtime.threads import wait_politely

wait_politely()  # a server has neighbours; counts only before torch is imported, by the next lines

from fcer.deploy.answers import Answers  # noqa: E402
from fcer.models.calibration_files import load_calibration  # noqa: E402
from fcer.models.student_files import load_student  # noqa: E402


class _Served:
    """Raw days in, maps out."""

    def load_context(self, context: Any) -> None:
        """Read the student once."""
        loaded = load_student(Path(context.artifacts["student"]))
        self.answers = Answers(loaded, load_calibration(loaded.folder, loaded.head.key))

    def predict(self, context, model_input, params=None):  # type: ignore[no-untyped-def]  # noqa: ARG002
        """Maps (samples, rows, columns) by name. MLflow would take types for a signature."""
        try:
            return self.answers.answer(np.asarray(model_input), (params or {}).get("npy"))
        except InputError as error:
            # MLflow's server answers 400 with the sentence; of any other error it would hide the words
            raise MlflowException(str(error), error_code=INVALID_PARAMETER_VALUE) from None


class ServedStudent(_Served, mlflow.pyfunc.PythonModel):  # type: ignore[name-defined,misc]  # mlflow loads it lazily
    """What MLflow wants a model to be. From a `predict` of its own it would derive a second signature."""


mlflow.models.set_model(ServedStudent())
