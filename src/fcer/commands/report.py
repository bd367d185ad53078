"""`fcer report`: evaluated years joined into the paper's table, tests and figures, and one page with all of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from fcer.commands import COMMANDS, settings_of
from fcer.config.resolve import Resolved, to_yaml
from fcer.config.settings import Config
from fcer.errors import ConfigError
from fcer.evaluation.results import Results
from fcer.report import join, write_report
from fcer.tracking import TrackedRun, fetch_results, tracked_run

__all__ = ["report_study", "run"]

_OWN = ("results", "runs", "experiment", "ablation", "paper")
"""Options of the report itself; all others are for an evaluation that has to be made first."""


def run(resolved: Resolved) -> None:
    """Join, write, log, and say where the page is."""
    config = resolved.config
    if sum(map(bool, (config.results, config.runs, config.experiment))) > 1:
        raise ConfigError("results, runs, experiment: these are three ways to name evaluations; give one of them")
    out = config.out or config.work / "report"
    settings = {key: value for key, value in settings_of(config, "report").items() if key in _OWN}
    with tracked_run("report", settings=settings, config=to_yaml(resolved), work=config.work) as tracked:
        folders = _folders(resolved, out, tracked)
        if config.runs or config.experiment:
            tracked.link({f"evaluation{k}": folder.parent.name for k, folder in enumerate(folders)})
        provenance = {"results": ", ".join(map(str, folders))}
        report_study(config, folders, out, tracked, paper=config.paper, provenance=provenance)


def report_study(
    config: Config,
    folders: Sequence[Path],
    out: Path,
    tracked: TrackedRun,
    *,
    paper: bool,
    provenance: Mapping[str, str],
) -> None:
    """The report of the evaluations in `folders`, on disk and logged."""
    maps = [path for folder in folders for path in _maps(folder)]
    names = [folder.name for folder in config.ablation]
    if len(set(names)) < len(names):
        raise ConfigError(
            f"ablation: two folders are called {max(names, key=names.count)}; give each a name of its own"
        )
    ablation = {folder.name: Results.read(folder) for folder in config.ablation}
    written = write_report(
        join(folders),
        out,
        maps=maps,
        ablation=ablation,
        paper=paper,
        provenance={"MLflow run": tracked.id, **provenance},
    )
    for path in written:
        tracked.file(path, "report" if path.parent == out else f"report/{path.parent.name}")
    print(f"report: {written[-1]} ({len(written)} files; open it in a browser, it needs no network)")


def _maps(folder: Path) -> list[Path]:
    """The predicted maps of an evaluation's own years, where they lie beside it."""
    years = Results.read(folder).settings.years
    candidates = [folder / f"predictions_{year}{suffix}" for year in years for suffix in (".npz", ".hdf5", ".h5")]
    return [path for path in candidates if path.exists()]


def _folders(resolved: Resolved, out: Path, tracked: TrackedRun) -> list[Path]:
    """The evaluations that were named; where none was and none is there, one is made now."""
    config = resolved.config
    if config.runs or config.experiment:
        return fetch_results(out / "evaluations", runs=config.runs, experiment=config.experiment)
    if config.results:
        return list(config.results)
    latest = config.work / "results"
    if (latest / "evaluation.json").exists():
        given = [key for key in COMMANDS["evaluate"].options if resolved.origins[key] not in ("default", "demo")]
        ignored = [key for key in given if key not in (*_OWN, "out", "work", "workers", "cluster")]
        if ignored:
            raise ConfigError(
                f"{ignored[0]}: {latest} holds an evaluation already, which is reported as it is; "
                "name evaluations with --results, or run fcer evaluate first"
            )
        print(f"report on {latest}")
    else:
        from fcer.commands.evaluate import evaluate_years  # it may need torch, which a report does not

        print(f"no evaluation was named and {latest} holds none, so one is made")
        with tracked_run("evaluate", settings=settings_of(config, "report"), parent=tracked) as evaluation:
            evaluate_years(resolved, latest, evaluation)
    return [latest]
