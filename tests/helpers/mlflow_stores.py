"""Empty MLflow stores as copies of one: MLflow fills a fresh SQLite file in dozens of steps, which takes seconds."""

import getpass
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path


def fresh_store(folder: Path) -> str:
    """The address of the MLflow store in a folder, which is made empty unless it is there."""
    file = folder / "mlflow.db"
    if not file.exists():
        from fcer.tracking.first_start import make_store  # imports MLflow, which most tests need not

        # of this version of MLflow, so that it serves every process and every later run of the tests
        made = Path(tempfile.gettempdir()) / f"fcer-tests-{getpass.getuser()}-mlflow-{version('mlflow')}.db"
        make_store(f"sqlite:///{made}")
        shutil.copy(made, file)
    return f"sqlite:///{file}"
