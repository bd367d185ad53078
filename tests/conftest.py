import os
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# Some plug-in of a library may talk to its makers: never from a test
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"

from fcer.cli import main
from fcer.data.synthetic.fires import synthesize
from fcer.runtime.threads import cores, wait_politely
from golden_fires import write_golden_dataset
from mlflow_stores import fresh_store
from small_recipe import SMALL

HERE = Path(__file__).parent

# Tests run side by side; none of the above has imported torch yet
wait_politely()

SLOW = frozenset(
    [
        "commands",
        "docker",
        "packaging",
        "pipeline",
        "torture",
        "tracking",
        "test_mlproject.py",
        "data/test_bad_data.py",
        "data/test_conversion.py",
        "data/test_golden_loader.py",
        "data/test_synthetic.py",
        "deploy/test_onnx_file.py",
        "docs/test_tutorials.py",
        "evaluation/test_honest_numbers.py",
        "evaluation/test_padding.py",
        "evaluation/test_pieces.py",
        "evaluation/test_shard_engine.py",
        "evaluation/test_shard_golden.py",
        "evaluation/test_shards.py",
        "models/test_ensemble.py",
        "models/test_inference.py",
        "models/test_released.py",
        "registry/test_find_student.py",
        "registry/test_promotion.py",
        "registry/test_serve.py",
        "report/test_cases.py",
        "report/test_figures.py",
        "report/test_join.py",
        "report/test_page.py",
        "report/test_write_report.py",
        "report/test_zone_section.py",
        "runtime/test_cluster.py",
        "runtime/test_threads.py",
        "search/test_queue.py",
        "search/test_trials.py",
        "training/test_distillation.py",
        "training/test_distributed.py",
        "training/test_families.py",
        "training/test_feature_cache.py",
        "training/test_fire_interval.py",
        "training/test_member.py",
        "training/test_resume.py",
        "uncertainty/test_diffusion.py",
        "uncertainty/test_methods.py",
    ]
)
"""Tests that run whole commands, train, or start servers, by their path: `make test-fast` leaves them out."""


def _is_slow(path: Path) -> bool:
    place = path.relative_to(HERE).as_posix() if path.is_relative_to(HERE) else ""
    return any(place == name or place.startswith(f"{name}/") for name in SLOW)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _is_slow(item.path):
            item.add_marker(pytest.mark.slow)


def _has_tests(path: Path) -> bool:
    return path.is_dir() or path.name.startswith(("test_", "conftest")) or ">>>" in path.read_text()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Every worker imports all that may hold an example, which takes longer than half of the fast tests."""
    if collection_path.suffix == ".py" and not _has_tests(collection_path):
        return True
    return True if config.option.markexpr == "not slow" and _is_slow(collection_path) else None


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One more than cores: a third of the slow tests' time is waiting for servers, browsers and other processes."""
    return cores() + (config.option.markexpr != "not slow")


# Time per example says nothing on a machine that does other things besides
settings.register_profile("fcer", deadline=None, max_examples=50)
settings.register_profile("fast", settings.get_profile("fcer"), max_examples=10)
settings.load_profile("fcer")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.markexpr == "not slow":
        settings.load_profile("fast")


@pytest.fixture(scope="session")
def golden_hdf5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_golden_dataset(tmp_path_factory.mktemp("golden_hdf5"))


@pytest.fixture(scope="session")
def golden_geotiff(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_golden_dataset(tmp_path_factory.mktemp("golden_geotiff"), geotiff=True)


@pytest.fixture(scope="session")
def small_fires(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few synthetic fires in both forms; tests only read them."""
    root = tmp_path_factory.mktemp("small_fires")
    synthesize(SMALL, root, geotiff=True, workers=1)
    return root


@pytest.fixture(scope="session")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An MLflow store for tests that do not look into it."""
    return fresh_store(tmp_path_factory.mktemp("store"))


@pytest.fixture
def store(shared_store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A store without a server, which the test's commands log to from an empty folder."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", shared_store)
    monkeypatch.chdir(tmp_path)
    return shared_store


@pytest.fixture
def fcer_main(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared_store: str
) -> Callable[..., tuple[int, str, str]]:
    """Run a command in an empty folder: exit code, what it printed, what it complained about."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", shared_store)

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        capfd.readouterr()
        with warnings.catch_warnings():
            # Python starts with these ignored; pytest shows them, to whichever test makes a process's first store
            warnings.filterwarnings("ignore", category=DeprecationWarning, module="mlflow")
            code = main([str(argument) for argument in arguments])
        printed = capfd.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
