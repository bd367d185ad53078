"""`fcer main`, and `mlflow run .`: the whole study, from members to the report, under one run."""

from dataclasses import replace

from fcer.commands import COMMANDS, MEMBER_OPTIONS, SYNTHETIC_OPTIONS, settings_of
from fcer.commands.evaluate import evaluate_years
from fcer.commands.report import report_study
from fcer.config.resolve import Resolved, to_yaml
from fcer.config.settings import Config, fields
from fcer.tracking import tracked_run

__all__ = ["run"]

_PAPER = {"normalization": "backbone", "select_by": "file_ap", "test_image": "crop"}
"""Where the paper's settings differ from the defaults, and what an evaluation must have of them."""
_PLACES = ("data", "checkpoints", "year", "device", "work", "workers", "cluster", "seed")
_FREE = {*_PLACES, *SYNTHETIC_OPTIONS, *MEMBER_OPTIONS}
"""Settings that say where and how the work is done, or that released members and real data do not depend on."""


def run(resolved: Resolved) -> None:
    """Members, students, maps, evaluation, report; what is complete, of the same inputs, is not done again."""
    if resolved.origins["year"] == "default":
        whole = {**resolved.origins, "year": "main"}
        resolved = Resolved(replace(resolved.config, year="all"), whole)
    config = resolved.config
    settings = settings_of(config, "main")
    out = config.out or config.work / "study"
    with tracked_run("main", settings=settings, config=to_yaml(resolved), work=config.work) as tracked:
        with tracked_run("evaluate", settings=settings, parent=tracked) as evaluation:
            evaluate_years(resolved, out, evaluation)
        with tracked_run("report", settings={}, parent=tracked) as report:
            report.link({"evaluation": evaluation.id})
            data = str(config.data) if config.data else "synthetic fires"
            provenance = {"data": data, "evaluation run": evaluation.id}
            report_study(config, [out], out / "report", report, paper=_is_the_papers(config), provenance=provenance)
    print("next: make ui to compare the runs")


def _is_the_papers(config: Config) -> bool:
    """Whether the paper's own table belongs beside ours: every setting that changes numbers is the paper's."""
    expected = {key: fields()[key].default for key in COMMANDS["distill"].options if key not in _FREE} | _PAPER
    return config.data is not None and all(getattr(config, key) == value for key, value in expected.items())
