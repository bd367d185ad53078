"""`fcer evaluate`: the FCER protocol, on predicted maps from anywhere or on those of an ensemble and its student."""

import re
from pathlib import Path

from fcer.commands import recorded_of
from fcer.commands.tracked import command_run, span, year_names
from fcer.config import Config, Resolved
from fcer.evaluation.results import Results
from fcer.pipeline.scoring import score_maps
from fcer.runtime.files import file_digest
from fcer.runtime.work import Work

__all__ = ["run", "tell"]

_OF_MAPS = ("predictions", "reference", "anchor", "radii", "bootstrap", "seed", "engine")
"""What is known of an evaluation of predicted maps from anywhere; how they came about is not."""


def run(resolved: Resolved) -> None:
    """Evaluate, write the results, log them, print the table."""
    config = resolved.config
    of = _of(config)
    out = config.out or Work(config.work).results / of.replace(" ", "_")
    settings = recorded_of(config, "evaluate")
    if config.predictions:
        settings = {key: settings[key] for key in _OF_MAPS if key in settings}
    with command_run("evaluate", resolved, settings, of=of, charts=True) as log:
        if config.predictions:
            for path in filter(Path.is_file, config.predictions):
                log.dataset(path, file_digest(path)[:32], "predictions")
            results = score_maps(config, config.predictions, out, log)
        else:
            from fcer.pipeline.study import Study  # predicting needs torch, evaluating does not

            results = Study(resolved, log=log).evaluation(out)
        tell(results, out)
    print(f"next: fcer report --results {out}, or make ui to compare the runs")


def tell(results: Results, out: Path) -> None:
    """Print an evaluation, and where it lies."""
    print(results.summary())
    print(f"\nwritten to {out}: sweep.csv, segmentation.csv, per_image.csv, tests.json and more")


def _of(config: Config) -> str:
    """The years that are evaluated, as far as names tell."""
    if not config.predictions:
        from fcer.pipeline.study_data import StudyData

        return year_names(StudyData(config))
    years = [int(year) for path in config.predictions for year in re.findall(r"\d{4}", path.stem)[-1:]]
    return span(sorted(years)) if len(years) == len(config.predictions) else config.predictions[0].stem
