"""`fcer rehearse`: a season replayed day by day, as it would be lived: predict, wait, verify, and perhaps an alarm."""

import warnings
from dataclasses import replace
from datetime import date
from pathlib import Path

import pandas as pd

from fcer.commands.predict import map_files
from fcer.commands.tracked import command_run
from fcer.commands.verify import raise_alarm, tell_of_record
from fcer.config import Config, Resolved
from fcer.data.catalog import Catalog, open_catalog
from fcer.data.channels import CHANNELS
from fcer.data.fire import Fire
from fcer.data.folds import GROUPS
from fcer.deploy.map_files import MapFiles
from fcer.errors import ConfigError, DataError, FcerWarning
from fcer.models.student_files import LoadedStudent, load_student
from fcer.pipeline.study_data import StudyData
from fcer.registry.find_student import find_student
from fcer.runtime.files import scratch_folder
from fcer.runtime.work import Work
from fcer.verification.alarms import Season, judge
from fcer.verification.rehearsal import Rehearsal

__all__ = ["run"]


def run(resolved: Resolved, name: str = "rehearse") -> None:
    """Replay, say from when on something was wrong and when the alarm came, and end with the alarm."""
    config = resolved.config
    lost = _channel(config.lose_channel)
    with command_run(name, resolved) as log:
        data = StudyData(config)
        catalog = open_catalog(data.root)
        files = map_files(resolved, log, catalog.fires)
        fires = _fires(config, files.loaded, data.root, catalog)
        swapped = _swapped(config, files) if config.swap_model else None
        rehearsal = Rehearsal(fires, files, swapped, lost)
        if not rehearsal.days:
            raise DataError(f"data: no fire has {files.loaded.student.backbone.days + 1} days; give a longer season")
        out = config.out or rehearsal.step.home(Work(config.work).rehearsals, files.loaded.folder.name)
        record = rehearsal.run(out, print)
        seasons = judge(record)
        tell_of_record(log, out, record, seasons, rehearsal.step.key[:12])
    _say(out, rehearsal, seasons, record)
    raise_alarm(seasons)


def _channel(named: str | None) -> int | None:
    if named is None:
        return None
    if named.isdigit() and int(named) < len(CHANNELS):
        return int(named)
    found = [k for k, channel in enumerate(CHANNELS) if channel.lower() == named.lower()]
    if not found:
        raise ConfigError(f"lose_channel: there is no channel {named!r}; give 0 to 22, or one of {', '.join(CHANNELS)}")
    return found[0]


def _swapped(config: Config, files: MapFiles) -> MapFiles:
    """The other student, with all that the first one says of itself."""
    assert config.swap_model is not None
    with scratch_folder(config.work, "swapped") as download:
        loaded = load_student(find_student(config.swap_model, download).folder)
    if loaded.student.backbone.days != files.loaded.student.backbone.days:
        raise ConfigError(f"swap_model: {config.swap_model} reads another number of days; give one that reads as many")
    return replace(files, loaded=loaded, features=[])


def _fires(config: Config, loaded: LoadedStudent, root: Path, catalog: Catalog) -> tuple[Fire, ...]:
    """Those that the student was neither trained nor validated on, as far as its own years tell."""
    tested = loaded.backbone.test_years
    if config.years is None and tested and set(tested) <= set(GROUPS):
        groups = StudyData(replace(config, data=root, split="fires", features=loaded.backbone.features))
        return groups.open(tested).fires(tested)
    years = sorted({fire.year for fire in catalog.fires})
    wanted = [year for year in config.years or years if year in years]
    unseen = [year for year in wanted if year not in (*loaded.backbone.train_years, *loaded.backbone.val_years)]
    if not wanted:
        raise DataError(f"{root}: holds no fire of the years {', '.join(map(str, config.years or ()))}")
    if not unseen:
        sentence = "the student was trained or validated on every year of this data: its record flatters it"
        warnings.warn(sentence, FcerWarning, stacklevel=2)
    chosen = unseen if config.years is None and unseen else wanted
    return tuple(fire for fire in catalog.fires if fire.year in chosen)


def _say(out: Path, rehearsal: Rehearsal, seasons: list[Season], record: pd.DataFrame) -> None:
    days = rehearsal.days
    print(
        f"{out}: {len(record)} forecasts of {len(rehearsal.fires)} fires on {len(days)} days, {days[0]} to {days[-1]}"
    )
    if rehearsal.middle is not None:
        what = "another student" if rehearsal.swapped else CHANNELS[rehearsal.lost or 0]
        happened = f"{what} {'made the forecasts' if rehearsal.swapped else 'was lost'} from {rehearsal.middle} on"
        first = min((alarm.since for season in seasons for alarm in season.alarms), default=None)
        none_since = record["date"].max() <= str(rehearsal.middle)
        found = (
            "no forecast could be made, which predict says at once" if none_since else _delay(first, rehearsal.middle)
        )
        print(f"{happened}: {found}")
    print(f"next: open {out / 'record.html'}, or the run named rehearsal in the MLflow UI")


def _delay(alarm: date | None, middle: date) -> str:
    if alarm is None:
        return "no alarm"
    days = (alarm - middle).days
    return f"alarm {days} days later, on {alarm}" if days >= 0 else f"a false alarm before it, on {alarm}"
