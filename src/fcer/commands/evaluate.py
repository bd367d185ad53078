"""`fcer evaluate`: the FCER protocol, on predicted maps from anywhere or on an ensemble's own."""

from collections.abc import Sequence
from pathlib import Path

from fcer.evaluation import evaluate_files
from fcer.resolve import Resolved

__all__ = ["run"]


def run(resolved: Resolved) -> None:
    """Evaluate, write the results, print the table."""
    config = resolved.config
    out = config.out or config.work / "results"
    files: Sequence[Path] = config.predictions
    if not files:
        # Predicting needs torch, evaluating does not
        from fcer.commands.predictions import predict_years

        files = predict_years(resolved, out)
    results = evaluate_files(
        files,
        reference=config.reference,
        anchor=config.anchor,
        radii=config.radii,
        bootstrap=config.bootstrap,
        seed=config.seed,
    )
    results.write(out)
    print(results.summary())
    print(f"\nwritten to {out}: sweep.csv, segmentation.csv, per_image.csv, tests.json and more")
