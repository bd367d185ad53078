"""`fcer report`: evaluated years joined into the paper's table, tests and figures, and one page with all of them."""

from pathlib import Path

from fcer.commands import COMMANDS, recorded_of
from fcer.commands.tracked import command_run
from fcer.config import Resolved
from fcer.config.groups import PLACES
from fcer.errors import ConfigError
from fcer.pipeline.reporting import report_results
from fcer.pipeline.run_log import RunLog
from fcer.report import join
from fcer.runtime.work import Work
from fcer.tracking import fetch_results
from fcer.tracking.evaluation_notes import evaluation_note
from fcer.tracking.provenance import said_of_now

__all__ = ["run"]

_OWN = ("results", "runs", "experiment", "ablation", "paper")
"""Options of the report itself; all others are for an evaluation that has to be made first."""


def run(resolved: Resolved) -> None:
    """Join, write, log, and say where the page is."""
    config = resolved.config
    if sum(map(bool, (config.results, config.runs, config.experiment))) > 1:
        raise ConfigError("results, runs, experiment: these are three ways to name evaluations; give one of them")
    settings = {key: value for key, value in recorded_of(config, "report").items() if key in _OWN}
    named = [*map(str, config.results), *config.runs, *filter(None, [config.experiment])]
    of = " ".join(named) if len(named) < 3 else f"{named[0]} and {len(named) - 1} more"
    with command_run("report", resolved, settings, of=of) as log:
        folders = _folders(resolved, log)
        # beside the one evaluation, as `main` puts it; of several, below `work`
        several = config.runs or config.experiment or len(folders) > 1
        out = config.out or (Work(config.work).report if several else folders[0] / "report")
        if config.runs or config.experiment:
            log.link({f"evaluation{k}": folder.parent.name for k, folder in enumerate(folders)})
        provenance = {**said_of_now(), "results": ", ".join(map(str, folders))}
        written = report_results(config, folders, out, log, paper=config.paper, provenance=provenance)
        log.note(evaluation_note(join(folders)))
    print(f"report: {written[-1]} ({len(written)} files; open it in a browser, it needs no network)")


def _folders(resolved: Resolved, log: RunLog) -> list[Path]:
    """The evaluations that were named; where none was and none is there, one is made now."""
    config = resolved.config
    if config.runs or config.experiment:
        out = config.out or Work(config.work).report
        return fetch_results(out / "evaluations", runs=config.runs, experiment=config.experiment)
    if config.results:
        return list(config.results)
    latest = _latest(Work(config.work))
    if latest is not None:
        given = [key for key in COMMANDS["evaluate"].options if resolved.origins[key] not in ("default", "demo")]
        ignored = [key for key in given if key not in (*_OWN, "out", *PLACES)]
        if ignored:
            raise ConfigError(
                f"{ignored[0]}: {latest} holds an evaluation already, which is reported as it is; "
                "name evaluations with --results, or run fcer evaluate first"
            )
        print(f"report on {latest}")
    else:
        from fcer.pipeline.study import Study  # it may need torch, which a report does not

        latest = Work(config.work).results / "demo"
        print(f"no evaluation was named and {config.work} holds none, so one is made")
        with log.child("evaluate", recorded_of(config, "report")) as evaluation:
            print(Study(resolved, log=evaluation).evaluation(latest).summary())
    return [latest]


def _latest(work: Work) -> Path | None:
    """The evaluation below `work` that was written last, be it of `evaluate` or of a whole study."""
    found = [*work.results.glob("*/evaluation.json"), *work.study.glob("evaluation.json")]
    return max(found, key=lambda path: path.stat().st_mtime).parent if found else None
