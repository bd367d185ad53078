"""What a run records of code and environment, where no run has to be started for it."""

import os
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

import fcer
from fcer.tracking import provenance
from fcer.tracking.provenance import code_version, environment, said_of_now
from fcer.tracking.server import tracking_uri


def test_the_environment_is_known_without_an_installed_package(monkeypatch: pytest.MonkeyPatch):
    """MLflow's own environment runs the checkout: fcer has no metadata there."""

    def metadata(name: str) -> str:
        if name == "fcer":
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(provenance, "version", metadata)
    assert environment()["fcer"] == fcer.__version__
    assert environment()["packages"]["torch"].startswith("2.")


def git(folder: Path, *arguments: str) -> str:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    call = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder), *arguments]
    return subprocess.run(call, env=environment, check=True, capture_output=True, text=True).stdout.strip()


def test_the_code_is_known_by_its_commit_and_whether_it_was_changed(tmp_path: Path):
    package = tmp_path / "src" / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    assert code_version(package) == {}, "no checkout"
    git(tmp_path, "init")
    assert code_version(package) == {}, "it lies in a checkout that does not hold it"
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    commit = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "notes.txt").write_text("not code")
    assert code_version(package) == {"mlflow.source.git.commit": commit, "fcer.code_changed": "false"}
    (package / "new.py").write_text("")
    assert code_version(package)["fcer.code_changed"] == "true"


def test_without_git_the_version_is_all_there_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert code_version() == {}


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("http://me:secret@server:5000/path", "http://me:***@server:5000/path"),
        ("http://server:5000", "http://server:5000"),
        ("postgresql://me:se@cret@db/mlflow", "postgresql://me:***@db/mlflow"),
    ],
)
def test_a_server_is_named_without_its_password(uri: str, shown: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    assert tracking_uri() == shown


def test_a_store_in_a_file_is_named_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///mlflow.db")
    assert tracking_uri() == f"sqlite:///{tmp_path.resolve()}/mlflow.db"


def test_a_page_says_when_and_by_which_code_it_was_made():
    said = said_of_now()
    assert list(said) == ["made", "fcer version", "commit"] and said["fcer version"] == fcer.__version__
    assert said["commit"].startswith(code_version().get("mlflow.source.git.commit", "unknown"))
