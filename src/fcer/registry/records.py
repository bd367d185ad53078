"""What verification found of a student, kept with its registered version: promotion reads it."""

import json

import mlflow
import pandas as pd
from mlflow.exceptions import MlflowException

from fcer.tracking.server import ABSENT, failed
from fcer.tracking.student_model import REGISTERED
from fcer.verification.alarms import Season
from fcer.verification.truth import SEEN

__all__ = ["ALARM", "VERIFIED_BY_FIRE", "store_season"]

ALARM = "fcer.alarm"
"""The version's tag that holds the latest alarm's sentence; it is absent where there is no alarm."""
VERIFIED = "fcer.verified"
VERIFIED_BY_FIRE = "verified_by_fire"
"""The version's tag that holds scores by fire of verified forecasts, as `val_by_fire` those of validation."""
_MOST = 200
"""Fires in the tag: the latest ones."""


def store_season(season: Season, record: pd.DataFrame) -> str | None:
    """Tag the student's registered version with its latest season; which one, in words, None where none is."""
    client = mlflow.MlflowClient()
    try:
        found = client.search_model_versions(f"name = '{REGISTERED}' and tags.key = '{season.student}'")
        for version in found:
            _tag(client, version.version, season, record)
    except MlflowException as error:
        if error.error_code in ABSENT:
            return None
        raise failed(error) from error
    return f"version {found[0].version} of {REGISTERED}" if found else None


def _tag(client: mlflow.MlflowClient, version: str, season: Season, record: pd.DataFrame) -> None:
    own = record[(record["student"] == season.student) & (record["status"] == SEEN)]
    through = own["date"].max()
    said = {"season": season.year, "fires": season.fires, "days": int(own["date"].nunique()), "through": through}
    client.set_model_version_tag(REGISTERED, version, VERIFIED, json.dumps(said))
    client.set_model_version_tag(REGISTERED, version, VERIFIED_BY_FIRE, json.dumps(_by_fire(own)))
    if season.alarms:
        client.set_model_version_tag(REGISTERED, version, ALARM, season.sentence)
    elif ALARM in client.get_model_version(REGISTERED, version).tags:
        client.delete_model_version_tag(REGISTERED, version, ALARM)


def _by_fire(own: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Each fire's mean scores over its days; skill stands in for likelihood, the lower the worse."""
    latest = own.groupby("fire")["date"].max().sort_values().index[-_MOST:]
    columns = {"auroc": "auroc", "auroc_within": "auroc_within", "nll": "nll_skill"}
    means = own[own["fire"].isin(latest)].groupby("fire")[list(columns.values())].mean()
    signs = {"auroc": 1.0, "auroc_within": 1.0, "nll": -1.0}
    return {
        str(fire): {name: round(signs[name] * row[of], 6) for name, of in columns.items() if not pd.isna(row[of])}
        for fire, row in means.iterrows()
    }
