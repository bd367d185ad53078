"""Which MLflow server is meant, and how to talk to it."""

import logging
import os
import sqlite3
from pathlib import Path

import mlflow
from mlflow.exceptions import MlflowException
from sqlalchemy.exc import SQLAlchemyError

from fcer.errors import FcerError
from fcer.runtime.secrets import masked
from fcer.tracking.first_start import make_store

__all__ = ["ABSENT", "EXPERIMENT", "failed", "prepare_client", "tracking_uri"]

EXPERIMENT = "fcer"
ABSENT = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")
"""What MLflow answers where there is no such run, model, version or alias, or none can have that name."""

_SQLITE = "sqlite:///"


def prepare_client() -> None:
    """Make MLflow's client quiet, and quick to say that a server is gone; a store in a file is made where it is not."""
    # Tables that are created and experiments that are new are no news
    for chatty in ("mlflow", "alembic"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    # We say in one sentence what its traceback would say in fifty lines
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)
    # A server that accepts and never answers would hold up the end of a command for 16 minutes; so for 1.5
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    try:
        make_store(str(mlflow.get_tracking_uri()))
    except (OSError, sqlite3.Error, SQLAlchemyError, MlflowException) as error:
        raise failed(error) from error


def tracking_uri() -> str:
    """The server's address, the same from every folder and without a password, to be shown and to be compared."""
    uri = str(mlflow.get_tracking_uri())
    if uri.startswith(_SQLITE):
        return _SQLITE + Path(uri.removeprefix(_SQLITE)).resolve().as_posix()
    return masked(uri)


def failed(error: Exception) -> FcerError:
    """What MLflow failed with, in one sentence."""
    reason = " ".join(str(error).partition("[SQL: ")[0].split())[:200]
    return FcerError(
        f"MLflow at {tracking_uri()} failed ({reason}); check MLFLOW_TRACKING_URI, and that its server runs"
    )
