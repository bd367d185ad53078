"""The wheel works outside the checkout, and scores maps where torch is not installed."""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest

from fcer import __version__

ROOT = Path(__file__).parents[2]
SOURCES = ("src", "pyproject.toml", "README.md", "LICENSE")
UNNEEDED = ("torch", "safetensors", "optuna", "plotly", "rasterio", "distributed")
"""What scoring maps needs not."""
MAPS = ROOT / "tests" / "data" / "golden"

pytest.importorskip("build", reason="the package `build` is not installed: make test installs it")
pytest.importorskip("setuptools", reason="setuptools, which builds the wheel, is not installed here")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that nothing is left in the checkout; without isolation, which would need a network."""
    checkout = tmp_path_factory.mktemp("checkout")
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, checkout / name)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(checkout / "dist")]
    done = subprocess.run([*command, str(checkout)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = (checkout / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of its own with the wheel in it, and this one's packages but the checkout and what is unneeded.

    Those are not there at all: neither to import, nor as what pip leaves beside.
    """
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    done = subprocess.run(install, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (own,) = (home / "lib").glob("python*/site-packages")
    left_out = re.compile(rf"({'|'.join(UNNEEDED)}|fcer|__editable__.*)([-_.].*)?|.*\.pth")
    for folder in (Path(path) for path in sys.path if Path(path).name in ("site-packages", "dist-packages")):
        for found in folder.iterdir():
            if not left_out.fullmatch(found.name) and not (own / found.name).exists():
                (own / found.name).symlink_to(found)
    return python


@pytest.fixture
def clean() -> dict[str, str]:
    """Variables without any that would bring the checkout back."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "MLFLOW"))}
    return {**kept, "MLFLOW_DISABLE_TELEMETRY": "true"}


def test_wheel_holds_what_is_no_python(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    data = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src" / "fcer").rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    assert "fcer/report/page.html" in data
    assert "fcer/data/wsts_stats.json" in data
    assert "fcer/py.typed" in data
    assert data <= names
    assert not [name for name in names if name.startswith(("tests/", "docs/"))]


def test_maps_are_scored_without_torch(python: Path, clean: dict[str, str], tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    maps = [str(path) for path in sorted(MAPS.glob("predictions_*.npz"))]
    command = [python.with_name("fcer"), "evaluate", "--predictions", *maps, "--out", "results", "--bootstrap", "0"]
    done = subprocess.run(command, cwd=empty, env=clean, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), "not a word though MLflow's store is made first"
    assert "student > ensemble" in done.stdout
    assert json.loads((empty / "results" / "evaluation.json").read_text())["years"] == [2018, 2019]


def test_library_scores_maps_without_torch_and_mlflow(python: Path, clean: dict[str, str], tmp_path: Path) -> None:
    y = np.zeros((2, 16, 16), int)
    y[:, 5:9, 5:9] = 1
    prob = np.clip(y * 0.7 + np.random.default_rng(0).random(y.shape) * 0.5, 0, 1)
    np.savez(tmp_path / "predictions_2021.npz", y=y, mine_prob=prob, mine_unc=1 - abs(2 * prob - 1))
    script = (
        "import sys, fcer\n"
        "results = fcer.evaluate(fcer.open_maps('predictions_2021.npz'), bootstrap=0, progress=None)\n"
        "assert list(results.anchor['method']) == ['mine', 'probability']\n"
        "assert not {'torch', 'mlflow', 'optuna', 'plotly', 'dask'} & set(sys.modules), sorted(sys.modules)\n"
        "print(fcer.__file__, fcer.__version__)\n"
    )
    done = subprocess.run([python, "-c", script], cwd=tmp_path, env=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    where, version = done.stdout.split()
    assert Path(where).is_relative_to(python.parents[1])
    assert version == __version__


def test_a_command_that_needs_torch_says_how_to_get_it(python: Path, clean: dict[str, str], tmp_path: Path) -> None:
    """Which also shows that there is none."""
    command = [python.with_name("fcer"), "train", "--fires-per-year", "1"]
    done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True)
    said = "fcer: train: needs the package torch; get it with pip install 'fcer[models]'\n"
    assert (done.returncode, done.stderr) == (2, said)
