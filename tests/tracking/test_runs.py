"""What a run records, where no run has to be started for it."""

from importlib.metadata import PackageNotFoundError, version

import pytest

import fcer
from fcer.tracking import runs


def test_the_environment_is_known_without_an_installed_package(monkeypatch: pytest.MonkeyPatch):
    """MLflow's own environment runs the checkout: fcer has no metadata there."""

    def metadata(name: str) -> str:
        if name == "fcer":
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(runs, "version", metadata)
    environment = runs._environment()
    assert environment["fcer"] == fcer.__version__
    assert environment["packages"]["torch"].startswith("2.")
