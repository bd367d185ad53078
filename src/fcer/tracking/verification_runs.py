"""A student's record in MLflow: one run a student, a run below it for each day, metrics by date on both.

The chart of the student's run over time is the record; over steps, too, which are days of the year.
"""

from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

import mlflow
from mlflow.exceptions import MlflowException
from mlflow.utils.mlflow_tags import MLFLOW_PARENT_RUN_ID

from fcer.runtime.csv_cells import table_text
from fcer.tracking.runs import TrackedRun
from fcer.tracking.server import failed
from fcer.tracking.views import CHARTED
from fcer.verification.alarms import Season
from fcer.verification.days import Day

__all__ = ["log_season"]

_RECORD, _DAY, _MARK = "fcer.record", "fcer.verified_day", "fcer.verified_mark"


def log_season(
    command: TrackedRun, season: Season, days: Sequence[Day], files: Sequence[Path], rehearsal: str = ""
) -> TrackedRun:
    """Log the days that MLflow does not have yet, or of which more is known by now, and the latest files.

    `rehearsal` is the key of one, whose record is never that of forecasts which were lived with.
    The season's run is returned.
    """
    of = " ".join(filter(None, (season.student, str(season.year), rehearsal)))
    there = _found(f"tags.`{_RECORD}` = '{of}'")
    record = next(iter(there.values()), None)
    known = {} if record is None else _found(f"tags.`{MLFLOW_PARENT_RUN_ID}` = '{record[0]}'")
    settings = {"model": season.model, "student": season.student, "season": season.year}
    with command.child(
        f"{'rehearsal' if rehearsal else 'record'} {season.model} {season.year}",
        settings,
        attach=record and record[0],
        beside=True,
    ) as run:
        run.tags({_RECORD: of, CHARTED: "record", "fcer.alarm": season.sentence or "none"})
        run.link_tagged({"student": ("fcer.student", season.student)})
        command.link({f"record_{season.student[:12]}": run.id})
        new_year = date(season.year, 1, 1) - timedelta(days=1)
        for day in days:
            earlier = known.get(str(day.day))
            if earlier and earlier[1] == day.mark:
                continue
            run.dated(day.metrics, day.day, new_year)
            attach = earlier[0] if earlier else None
            with run.child(str(day.day), {"date": str(day.day), **settings}, reopen=True, attach=attach) as one:
                one.dated(day.metrics, day.day, new_year)
                one.text(table_text(day.rows), "forecasts.csv")
                one.tags({_DAY: str(day.day), _MARK: day.mark})
        for path in files:
            run.file(path)
        run.note(f"**{season.sentence}**" if season.alarms else f"{season.fires} fires verified, no alarm.")
    return run


def _found(wanted: str) -> dict[str, tuple[str, str]]:
    """Runs by the day that they are of, with their id and what was known of the day; "" where they are of none."""
    client = mlflow.MlflowClient()
    try:
        experiments = [one.experiment_id for one in client.search_experiments()]
        runs = client.search_runs(experiments, wanted, max_results=1000)
    except MlflowException as error:
        raise failed(error) from error
    # A run that was killed may lack some of what it says that it has
    return {
        run.data.tags.get(_DAY, ""): (run.info.run_id, run.data.tags.get(_MARK, "") * (run.info.status == "FINISHED"))
        for run in reversed(runs)
    }
