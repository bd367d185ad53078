"""The student as MLflow loads it: this file is the model's code, the student's folder its artifact.

Nothing is unpickled. Input and output are said in `student_model.py`, where the model's signature is made.
"""

from pathlib import Path
from typing import Any

import mlflow
import numpy as np

from fcer.models.raw_days import predict_days
from fcer.models.student_files import load_student


class _Answers:
    """Raw days in, probability and uncertainty out."""

    def load_context(self, context: Any) -> None:
        """Read the student once."""
        self.loaded = load_student(Path(context.artifacts["student"]))

    def predict(self, context, model_input, params=None):  # type: ignore[no-untyped-def]  # noqa: ARG002
        """Maps (samples, rows, columns) by name. MLflow would take types for a signature."""
        maps = predict_days(self.loaded, np.asarray(model_input))
        return {"probability": maps.probability_BHW.numpy(), "uncertainty": maps.uncertainty_BHW.numpy()}


class ServedStudent(_Answers, mlflow.pyfunc.PythonModel):  # type: ignore[name-defined,misc]  # mlflow loads it lazily
    """What MLflow wants a model to be. From a `predict` of its own it would derive a second signature."""


mlflow.models.set_model(ServedStudent())
