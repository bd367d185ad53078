"""What a run was made with: the environment, and the version of the code."""

import os
import platform
import shutil
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from mlflow.tracking.context.registry import resolve_tags
from mlflow.utils.mlflow_tags import MLFLOW_GIT_COMMIT

import fcer

__all__ = ["code_version", "environment", "said_of_now", "source_tags"]

_PACKAGES = ("torch", "mlflow", "optuna", "numpy", "scipy", "scikit-learn", "pandas", "h5py")


def environment() -> dict[str, Any]:
    """Versions of what computes, and what it runs on."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        # The package itself need not be installed: MLflow's own environment runs the checkout
        "fcer": fcer.__version__,
        "packages": {name: found for name in _PACKAGES if (found := _installed(name))},
    }


def _installed(name: str) -> str | None:
    """A package's version; none where it is not installed, as torch need not be to score maps."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def code_version(package: Path = Path(fcer.__file__).parent) -> dict[str, str]:
    """Commit of the checkout that holds the package, and whether its code was changed since; else nothing."""
    # A package that merely lies in a checkout, as in a venv there, is not its code
    if shutil.which("git") is None or _git(package, "ls-files", "--error-unmatch", "__init__.py") is None:
        return {}
    commit, changes = _git(package, "rev-parse", "HEAD"), _git(package, "status", "--porcelain", "--", ".")
    if commit is None or changes is None:
        return {}
    return {MLFLOW_GIT_COMMIT: commit, "fcer.code_changed": str(bool(changes)).lower()}


def said_of_now() -> dict[str, str]:
    """For a page: when it was made, and by which code."""
    code = code_version()
    changed = ", changed since" if code.get("fcer.code_changed") == "true" else ""
    return {
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "fcer version": fcer.__version__,
        "commit": f"{code[MLFLOW_GIT_COMMIT]}{changed}" if code else "unknown: not run from a checkout",
    }


def source_tags() -> dict[str, str]:
    """What MLflow tells of any run: who started which program. The commit is that of the code, not of its launcher."""
    tags: dict[str, str] = resolve_tags()
    tags.pop(MLFLOW_GIT_COMMIT, None)
    return tags


def _git(folder: Path, *arguments: str) -> str | None:
    # Within a hook these name the repository that the hook belongs to
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    done = subprocess.run(["git", "-C", folder, *arguments], env=environment, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None
