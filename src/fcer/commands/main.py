"""`fcer main`, and `mlflow run .`: the whole study, from members to the report, under one run."""

from dataclasses import replace

from fcer.commands import recorded_of
from fcer.commands.evaluate import tell
from fcer.commands.tracked import command_run, year_names
from fcer.config import Resolved
from fcer.pipeline.study import Study
from fcer.tracking import link_to
from fcer.tracking.evaluation_notes import evaluation_note
from fcer.tracking.evaluation_runs import headline
from fcer.tracking.provenance import said_of_now

__all__ = ["run"]


def run(resolved: Resolved) -> None:
    """Members, students, maps, evaluation, report; what is complete, of the same inputs, is not done again."""
    if resolved.origins["year"] == "default":
        resolved = Resolved(replace(resolved.config, year="all"), {**resolved.origins, "year": "main"})
    settings = recorded_of(resolved.config, "main")
    study = Study(resolved)
    out, of = resolved.config.out or study.setup.work.study, year_names(study.setup)
    with command_run("main", resolved, of=of) as log:
        with log.child(f"evaluate {of}", settings) as evaluation:
            results = study.under(evaluation).evaluation(out)
            tell(results, out)
        with log.child(f"report {out}", {}) as report:
            report.link({"evaluation": evaluation.id})
            page = study.under(report).report(out, provenance={**said_of_now(), "evaluation run": evaluation.id})
            report.note(evaluation_note(results))
        data, years = study.data(), study.setup.test_years
        log.dataset(data.catalog.root, data.fingerprint(years), "study", data.profile(years))
        log.metrics(headline(results))
        log.link({"evaluation": evaluation.id, "report": report.id})
        log.note(evaluation_note(results))
        log.file(page, "report")
        for figure in sorted((page.parent / "figures").glob("*.png")):
            log.file(figure, "figures")
        print(f"report: {page} (open it in a browser, it needs no network)")
    print(f"the sweep: {link_to(evaluation.id, below=True)}")
    print("next: make ui to see both")
