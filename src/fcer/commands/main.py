"""`fcer main`, and `mlflow run .`: the whole study, from members to the report, under one run."""

from dataclasses import replace

from fcer.commands import recorded_of
from fcer.commands.evaluate import tell
from fcer.commands.tracked import command_run
from fcer.config import Resolved
from fcer.pipeline.study import Study
from fcer.tracking.provenance import said_of_now

__all__ = ["run"]


def run(resolved: Resolved) -> None:
    """Members, students, maps, evaluation, report; what is complete, of the same inputs, is not done again."""
    if resolved.origins["year"] == "default":
        resolved = Resolved(replace(resolved.config, year="all"), {**resolved.origins, "year": "main"})
    settings = recorded_of(resolved.config, "main")
    with command_run("main", resolved) as log:
        study = Study(resolved, log=log)
        out = resolved.config.out or study.setup.work.study
        with log.child("evaluate", settings) as evaluation:
            tell(study.under(evaluation).evaluation(out), out)
        with log.child("report", {}) as report:
            report.link({"evaluation": evaluation.id})
            page = study.under(report).report(out, provenance={**said_of_now(), "evaluation run": evaluation.id})
        print(f"report: {page} (open it in a browser, it needs no network)")
    print("next: make ui to compare the runs")
