"""`fcer distill`: the student of each test year, tracked and registered."""

from fcer.commands import recorded_of
from fcer.commands.tracked import command_run, year_names
from fcer.config import Resolved
from fcer.pipeline.study import Study

__all__ = ["run"]


def run(resolved: Resolved) -> None:
    """Distil year by year; several years are runs below one."""
    study = Study(resolved)
    years = study.setup.ensemble_years
    with command_run("distill", resolved, of=year_names(study.setup)) as log:
        study = study.under(log)
        study.ensembles(years)
        for year in years:
            if len(years) == 1:
                study.student(year)
                continue
            with log.child(f"distill {year}", {**recorded_of(resolved.config, "distill"), "year": year}) as below:
                study.under(below).student(year)
    print("next: fcer evaluate with the same options, or make ui to see the runs")
