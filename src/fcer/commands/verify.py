"""`fcer verify`: forecasts held to what burnt, the record of it, and an alarm where a promise does not hold."""

import sys
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from filelock import FileLock

from fcer.commands.tracked import command_run
from fcer.config import Config, Resolved
from fcer.data.detections import DetectionSettings
from fcer.errors import AlarmError, ConfigError, DataError
from fcer.registry.records import store_season
from fcer.runtime.work import Work
from fcer.tracking import TrackedRun, link_to
from fcer.tracking.verification_runs import log_season
from fcer.verification.alarms import Season, judge
from fcer.verification.days import days_of
from fcer.verification.forecast import find_maps
from fcer.verification.page import write_page
from fcer.verification.record import read_record, write_record
from fcer.verification.truth import open_truth
from fcer.verification.verify import Verified, verify_maps

__all__ = ["raise_alarm", "run", "say_where", "tell_of_record", "truth_settings"]


def run(resolved: Resolved) -> None:
    """Score what can be scored, write and log the record, and end with an alarm where there is one."""
    config = resolved.config
    if not config.maps:
        _rehearse_instead(resolved)
        return
    if not config.against:
        raise ConfigError("against: say what burnt, with files of detections or a dataset folder")
    out = config.out or Work(config.work).verification
    with command_run("verify", resolved) as log:
        out.mkdir(parents=True, exist_ok=True)
        with FileLock(out / ".record.lock"):  # two commands at once would each lose the other's rows
            verified = _verified(config, out)
            touched = {(one.student, one.day.year) for one in verified.forecasts}
            seasons = [season for season in judge(verified.record) if (season.student, season.year) in touched]
            runs = tell_of_record(log, out, verified.record, seasons)
        log.metrics({"verify/new": verified.new, "verify/waiting": len(verified.waiting)})
        log.metrics({"verify/missing": len(verified.missing), "verify/left_out": len(verified.problems)})
    _say(out, verified)
    say_where(out, runs)
    raise_alarm(seasons)


def _rehearse_instead(resolved: Resolved) -> None:
    from fcer.commands import rehearse

    if resolved.config.against:
        raise ConfigError("maps: name the forecasts that are to be verified, as fcer predict wrote them")
    print("no forecasts were named, so a season of synthetic fires is rehearsed")
    rehearse.run(resolved, name="verify")


def truth_settings(config: Config) -> DetectionSettings:
    """What of the configuration decides which detections count as fire."""
    return DetectionSettings(confidence=config.confidence, satellites=config.satellites, day=config.day)


def _verified(config: Config, out: Path) -> Verified:
    paths = find_maps(config.maps)
    truth = open_truth(config.against, truth_settings(config))
    verified = verify_maps(paths, truth, read_record(out / "record.csv"))
    for kind, sentences in (("waiting", verified.waiting), ("missing", verified.missing)):
        for sentence in sentences:
            print(f"{kind}: {sentence}")
    for problem in verified.problems:
        print(f"left out: {problem}", file=sys.stderr)
    if not verified.forecasts:
        raise DataError(f"{config.maps[0]}: none of {len(paths)} maps can be verified; {verified.problems[0]}")
    return verified


def tell_of_record(
    log: TrackedRun, out: Path, record: pd.DataFrame, seasons: Iterable[Season], rehearsal: str = ""
) -> list[TrackedRun]:
    """The record as files, as runs and with the registered versions: each may be done again, and is then the same.

    A rehearsal, by its key, has a run of its own, and versions hear nothing of it. Returns the runs of the seasons.
    """
    write_record(out / "record.csv", record)
    write_page(out / "record.html", record, judge(record))
    files, runs = [out / "record.csv", out / "record.html"], []
    for season in seasons:
        runs.append(log_season(log, season, days_of(record, season), files, rehearsal))
        if not rehearsal:
            store_season(season, record)
    return runs


def say_where(out: Path, runs: Iterable[TrackedRun]) -> None:
    """Where the record is to be seen."""
    for run in runs:
        print(f"record by date: {link_to(run.id, below=True)}")
    print(f"next: open {out / 'record.html'}")


def raise_alarm(seasons: Iterable[Season]) -> None:
    """End with exit code 3 and one sentence, where there is an alarm."""
    if said := [season.sentence for season in seasons if season.alarms]:
        raise AlarmError(". ".join(said))


def _say(out: Path, verified: Verified) -> None:
    print(
        f"{out}: {verified.new} forecasts verified, {verified.repeated} on record before, {len(verified.waiting)} "
        f"waiting, {len(verified.missing)} whose day was not seen, {len(verified.problems)} left out"
    )
    students = {one.student: one.label for one in verified.forecasts}
    if len(students) > 1:
        named = ", ".join(sorted(students.values()))
        print(f"maps of {len(students)} students ({named}): each has a record of its own")
