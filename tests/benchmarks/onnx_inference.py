"""The same days through the student in torch and through its ONNX file, raw days to maps, on the same cores."""

import tempfile
from pathlib import Path

import numpy as np
from tests.benchmarks.rows import show
from tests.benchmarks.serving import SIZE, make_student
from tests.benchmarks.timing import seconds

from fcer.deploy.onnx_file import export_student, import_onnx, random_days
from fcer.models.raw_days import predict_days
from fcer.runtime.parallel import cores


def main() -> None:
    """Print one row: ONNX Runtime is here to need no torch, and need not be faster."""
    _, onnxruntime = import_onnx()
    with tempfile.TemporaryDirectory() as folder:
        loaded = make_student(Path(folder) / "student")
        difference = export_student(Path(folder) / "student.onnx", loaded, None, {})
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = cores()
        session = onnxruntime.InferenceSession(str(Path(folder) / "student.onnx"), options)
        days = np.ascontiguousarray(random_days(loaded, 4, SIZE, SIZE))
        ours, theirs = seconds(lambda: session.run(None, {"days": days}), lambda: predict_days(loaded, days))
        title = f"utae_t5 student, 4 samples of {SIZE} px: ONNX against torch"
        show(title, ours, theirs, 0.5, f"maps differ by {difference:.0e} at most")
