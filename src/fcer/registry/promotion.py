"""The registry's side of a promotion: who challenges, who is champion, and moving the alias in one call."""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import mlflow
from mlflow.entities import Run
from mlflow.entities.model_registry import ModelVersion
from mlflow.exceptions import MlflowException
from mlflow.utils.mlflow_tags import MLFLOW_DATASET_CONTEXT, MLFLOW_PARENT_RUN_ID

from fcer.errors import ConfigError
from fcer.registry.records import ALARM, VERIFIED_BY_FIRE
from fcer.registry.standing import PROMOTED, Decision, Standing, decide
from fcer.tracking.server import ABSENT, failed, prepare_client, tracking_uri
from fcer.tracking.student_model import BY_FIRE, CHAMPION, REGISTERED, REGISTERED_AS, kind_of_champion

__all__ = ["Promotion", "find_challenger", "promote"]


class Promotion(NamedTuple):
    """What was decided, against whom."""

    decision: Decision
    champion: Standing | None
    """As it was before."""


def find_challenger(run: str | None) -> Standing:
    """The student that a run registered; without a run the newest of all."""
    prepare_client()
    client = mlflow.MlflowClient()
    with _answered():
        if run is None:
            newest = _newest(client, f"name = '{REGISTERED}'")
            if newest is None:
                raise ConfigError(f"run: no student is registered at {tracking_uri()}; fcer distill registers one")
            return _standing(client, newest)
        known = _get_run(client, run)
        if known is None:
            raise ConfigError(f"run: there is no run {run!r} at {tracking_uri()}; give the id of a run of fcer distill")
        found = _newest(client, f"name = '{REGISTERED}' and run_id = '{run}'") or _registered_before(client, known)
        if found is None:
            raise ConfigError(f"run: {run} has no registered student; {_instead(client, known)}")
        return _standing(client, found)


def promote(challenger: Standing, promoted_by: str) -> Promotion:
    """Make the challenger champion where `decide` says so; `promoted_by` is the run that keeps record of it."""
    client = mlflow.MlflowClient()
    with _answered():
        aliases = client.get_registered_model(REGISTERED).aliases
        champion = _champion(client, aliases.get(challenger.alias))
        decision = decide(challenger, champion, _best_so_far(client, challenger))
        if decision.outcome == PROMOTED:
            # Each alias moves in one call: whoever else promotes now, there is a champion at any time
            for alias in _to_move(aliases, challenger.alias):
                client.set_registered_model_alias(REGISTERED, alias, challenger.version)
            before = champion.version if champion else "none"
            for name, value in (("promoted_by", promoted_by), ("promoted_from", before)):
                client.set_model_version_tag(REGISTERED, challenger.version, name, value)
    return Promotion(decision, champion)


def _to_move(aliases: Mapping[str, str], alias: str) -> list[str]:
    """The challenger's own alias; and `champion` as well, where that is the same version so far, or none."""
    return sorted({alias, *([CHAMPION] if aliases.get(CHAMPION) in (None, aliases.get(alias)) else [])})


def _champion(client: mlflow.MlflowClient, version: str | None) -> Standing | None:
    return None if version is None else _standing(client, client.get_model_version(REGISTERED, version))


def _best_so_far(client: mlflow.MlflowClient, challenger: Standing) -> Standing | None:
    """The best of all that were champion, among those validated on the challenger's fires within the same anchor."""
    versions = client.search_model_versions(f"name = '{REGISTERED}'")
    were = {version.tags.get("promoted_from") for version in versions}
    were |= {str(version.version) for version in versions if "promoted_by" in version.tags}
    standings = [_standing(client, version) for version in versions if str(version.version) in were]
    alike = [
        one
        for one in standings
        if one.auroc is not None and (one.anchor_px, one.data) == (challenger.anchor_px, challenger.data)
    ]
    return max(alike, key=lambda one: one.auroc or 0.0, default=None)


def _newest(client: mlflow.MlflowClient, wanted: str) -> ModelVersion | None:
    found = client.search_model_versions(wanted, max_results=1, order_by=["version_number DESC"])
    return next(iter(found), None)


def _registered_before(client: mlflow.MlflowClient, run: Run) -> ModelVersion | None:
    """The version of a run whose student an earlier run had registered."""
    named = run.data.tags.get(REGISTERED_AS, "").rpartition("/")[2]
    return _newest(client, f"name = '{REGISTERED}' and version_number = '{named}'") if named else None


def _standing(client: mlflow.MlflowClient, version: ModelVersion) -> Standing:
    run = _get_run(client, version.run_id) if version.run_id else None
    fires = _number(version, "val_fires")
    return Standing(
        version=str(version.version),
        alias=kind_of_champion(version),
        run_id=version.run_id or None,
        auroc=_number(version, "val_auroc"),
        low=_number(version, "val_auroc_low"),
        high=_number(version, "val_auroc_high"),
        anchor_px=_number(version, "anchor_px"),
        fires=None if fires is None else int(fires),
        years=run.data.tags.get("fcer.val_years") if run else None,
        data=_validated_on(run) if run else None,
        by_fire=_by_fire(version, BY_FIRE),
        verified=_by_fire(version, VERIFIED_BY_FIRE),
        alarm=version.tags.get(ALARM),
    )


def _by_fire(version: ModelVersion, tag: str) -> dict[str, dict[str, float]]:
    """Scores by fire as the version's tag has them; none where it has no such tag."""
    text = version.tags.get(tag, "{}")
    try:
        read = {
            str(fire): {str(name): float(value) for name, value in scores.items() if value is not None}
            for fire, scores in json.loads(text).items()
        }
    except (ValueError, TypeError, AttributeError, RecursionError):
        where = f"version {version.version} of {REGISTERED}"
        raise ConfigError(
            f"{where}: its tag {tag} is not {{fire: {{score: number}}}} as JSON; remove it in the MLflow UI"
        ) from None
    return read


def _validated_on(run: Run) -> str | None:
    """The fingerprint of the data that a run logged for validation."""
    for one in run.inputs.dataset_inputs if run.inputs else ():
        if any((tag.key, tag.value) == (MLFLOW_DATASET_CONTEXT, "validation") for tag in one.tags):
            return str(one.dataset.digest)
    return None


def _number(version: ModelVersion, tag: str) -> float | None:
    """A tag's number; tags can be edited by hand, so that anything may be there."""
    text = version.tags.get(tag)
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        where = f"version {version.version} of {REGISTERED}"
        raise ConfigError(f"{where}: its tag {tag} is {text!r}, but should be a number; correct it in the MLflow UI")
    return value


def _get_run(client: mlflow.MlflowClient, run_id: str) -> Run | None:
    try:
        return client.get_run(run_id)
    except MlflowException as error:
        if error.error_code not in ABSENT:
            raise
        return None


def _instead(client: mlflow.MlflowClient, run: Run) -> str:
    """Which run was perhaps meant: a study's and several years' students are registered by runs below its own."""
    filed = f"tags.`{MLFLOW_PARENT_RUN_ID}` = '{run.info.run_id}'"
    below = {one.info.run_id for one in client.search_runs([run.info.experiment_id], filed)}
    registered = client.search_model_versions(f"name = '{REGISTERED}'")
    named = ", ".join(str(one.run_id) for one in registered if one.run_id in below)
    return f"runs below it have: give one of {named}" if named else "give the id of a run of fcer distill"


@contextmanager
def _answered() -> Iterator[None]:
    """What MLflow fails with, in one sentence."""
    try:
        yield
    except MlflowException as error:
        raise failed(error) from error
