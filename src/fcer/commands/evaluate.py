"""`fcer evaluate`: the FCER protocol, on predicted maps from anywhere or on those of an ensemble and its student."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fcer.commands import settings_of
from fcer.config.resolve import Resolved, to_yaml
from fcer.config.settings import Config
from fcer.evaluation import evaluate_files
from fcer.tracking import TrackedRun, log_results, tracked_run

__all__ = ["evaluate_maps", "evaluate_years", "run"]


def run(resolved: Resolved) -> None:
    """Evaluate, write the results, log them, print the table."""
    config = resolved.config
    out = config.out or config.work / "results"
    settings = settings_of(config, "evaluate")
    if config.predictions:
        # Nothing is known of how these maps came about
        keys = ("predictions", "reference", "anchor", "radii", "bootstrap", "seed", "engine")
        settings = {key: settings[key] for key in keys}
    with tracked_run("evaluate", settings=settings, config=to_yaml(resolved), work=config.work) as tracked:
        if config.predictions:
            for path in config.predictions:
                if path.is_file():
                    with path.open("rb") as file:
                        tracked.dataset(path, hashlib.file_digest(file, "sha256").hexdigest()[:32], "predictions")
            evaluate_maps(config, config.predictions, out, tracked)
        else:
            evaluate_years(resolved, out, tracked)
    print(f"next: fcer report --results {out}, or make ui to compare the runs")


def evaluate_years(resolved: Resolved, out: Path, tracked: TrackedRun) -> None:
    """Predict the test years with ensemble and student, and evaluate that."""
    from fcer.commands.predictions import predict_years  # predicting needs torch, evaluating does not

    predicted = predict_years(resolved, out, tracked)
    evaluate_maps(
        resolved.config, predicted.files, out, tracked, passes=predicted.passes, anchor_px=predicted.anchor_px
    )


def evaluate_maps(
    config: Config,
    files: Sequence[Path],
    out: Path,
    tracked: TrackedRun,
    *,
    passes: Mapping[str, int] | None = None,
    anchor_px: float | None = None,
) -> None:
    """Evaluate predicted maps of some years; the results are on disk before they are logged.

    `anchor_px` is what `auto` means where validation years have told; else it is the ASD of the maps themselves.
    """
    anchor = anchor_px if config.anchor == "auto" and anchor_px is not None else config.anchor
    results = evaluate_files(
        files,
        reference=config.reference,
        anchor=anchor,
        radii=config.radii,
        bootstrap=config.bootstrap,
        seed=config.seed,
        engine=config.engine,
        workers=config.workers,
    )
    if anchor != config.anchor:
        origin = "the ensemble's mean ASD on the validation years"
        results = replace(results, settings=replace(results.settings, anchor_from=origin))
    results.write(out)
    print(results.summary())
    print(f"\nwritten to {out}: sweep.csv, segmentation.csv, per_image.csv, tests.json and more")
    log_results(tracked, results, out, passes=passes)
