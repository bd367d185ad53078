"""Predicted maps of any origin, evaluated, written and logged; no torch is needed for it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from fcer.config import Config
from fcer.core.recalibration import NONE, Recalibration
from fcer.errors import ConfigError
from fcer.evaluation import Results, evaluate_files
from fcer.evaluation.guarantees import Guarantees, cross_fitted, with_guarantees
from fcer.evaluation.looks import looks
from fcer.evaluation.sample_table import sample_table
from fcer.maps.predicted_maps import open_maps
from fcer.pipeline.run_log import RunLog
from fcer.runtime.csv_cells import table_text
from fcer.runtime.files import atomic_path

__all__ = ["prior_of", "score_maps"]


def prior_of(config: Config) -> Recalibration:
    """What undoes the weight of fire pixels in the loss, where it is known: of members that we trained."""
    known = config.checkpoints is None and not config.predictions
    return Recalibration("prior", weight=config.pos_weight) if known else NONE


def _write_samples(files: Sequence[Path], out: Path, log: RunLog) -> None:
    """samples.csv, where a method comes with samples."""
    table, path = sample_table(files), out / "samples.csv"
    path.unlink(missing_ok=True)
    if len(table):
        with atomic_path(path) as partial:
            partial.write_text(table_text(table), encoding="utf-8", newline="")
        log.file(path, "results")


def score_maps(
    config: Config,
    files: Sequence[Path],
    out: Path,
    log: RunLog,
    *,
    passes: Mapping[str, int] | None = None,
    anchors: Mapping[int, float] | None = None,
    threshold: float | None = None,
    synthetic: bool = False,
    of_students: Callable[[Results], Guarantees | None] | None = None,
) -> Results:
    """Evaluate the maps of some years; the results are on disk before they are logged.

    Parameters
    ----------
    config:
        Reference, anchor, radii, draws and engine are taken from it.
    files:
        One predicted-maps file for each year.
    out:
        Folder for the results.
    log:
        The run that keeps them.
    passes:
        What each method costs, where that is known.
    anchors:
        What `auto` means in each year, where its validation years have told; else it is the ASD of the maps themselves.
    threshold:
        What the configuration's means for the backbones, where they are known; else it has to be a number.
    synthetic:
        Whether the fires never burnt, which every table and page then says first.
    of_students:
        Gives what students' own calibrations promise on these years; else years calibrate each other alone.
    """
    if threshold is None and isinstance(config.threshold, str):
        raise ConfigError(
            f"threshold: {config.threshold} needs the weight that members were trained with; give a number"
        )
    anchor = anchors if config.anchor == "auto" and anchors else config.anchor
    results = evaluate_files(
        files,
        reference=config.reference,
        anchor=anchor,
        radii=config.radii,
        threshold=float(config.threshold) if threshold is None else threshold,
        bootstrap=config.bootstrap,
        seed=config.seed,
        engine=config.engine,
        workers=config.workers,
    )
    if anchor != config.anchor:
        origin = "its ensemble's mean ASD on its own validation years"
        results = replace(results, settings=replace(results.settings, anchor_from=origin))
    if synthetic:
        results = replace(results, settings=replace(results.settings, synthetic=True))
    found = [of_students(results)] if of_students else []
    with ExitStack() as opened:
        years = [opened.enter_context(open_maps(path, values=False)) for path in files]
        found.append(cross_fitted(years, results, config.miss, prior_of(config)))
    results = with_guarantees(results, Guarantees.join([one for one in found if one is not None]))
    results.write(out)
    _write_samples(files, out, log)

    colours = {method: look.colour for method, look in looks(results.settings.methods).items()}
    log.results(results, out, passes=passes or {}, colours=colours)
    return results
