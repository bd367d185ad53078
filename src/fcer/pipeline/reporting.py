"""The report on evaluations that lie in folders, written and logged; no torch is needed for it."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from fcer.config import Config
from fcer.config.fields import fields
from fcer.config.groups import DETECTIONS, MEMBER, PLACES, STEPS, SYNTHETIC
from fcer.errors import ConfigError
from fcer.evaluation.results import Results
from fcer.pipeline.run_log import RunLog
from fcer.report import join, write_report
from fcer.report.costs import read_costs

__all__ = ["is_the_papers", "report_results"]

_PAPER = {"normalization": "backbone", "select_by": "file_ap", "test_image": "crop"}
"""Where the paper's settings differ from the defaults, and what an evaluation must have of them."""
_FREE = {"data", "checkpoints", "year", "device", "seed", "engine", "methods", "passes", "bootstrap", "radii", "miss"}
"""Settings that say where and how the work is done, or that no number of the paper's table hangs on."""


def report_results(
    config: Config,
    folders: Sequence[Path],
    out: Path,
    log: RunLog,
    *,
    paper: bool,
    provenance: Mapping[str, str],
) -> list[Path]:
    """Write and log the report on the evaluations in `folders`; its files, the page last."""
    names = [folder.name for folder in config.ablation]
    if len(set(names)) < len(names):
        raise ConfigError(
            f"ablation: two folders are called {max(names, key=names.count)}; give each a name of its own"
        )
    results = join(folders)
    written = write_report(
        results,
        out,
        maps=[path for folder in folders for path in _maps(folder)],
        ablation={folder.name: Results.read(folder) for folder in config.ablation},
        zones=results.zones,
        costs=read_costs(folders),
        paper=paper,
        provenance={"MLflow run": log.id, **provenance, "fingerprint of results": _fingerprint(folders)},
    )
    for path in written:
        log.file(path, "report" if path.parent == out else f"report/{path.parent.name}")
    return written


def _fingerprint(folders: Sequence[Path]) -> str:
    """Of the evaluations that are reported: of what their last file says, checksums of all the others included."""
    content = b"".join((folder / "evaluation.json").read_bytes() for folder in folders)
    return hashlib.sha256(content).hexdigest()[:32]


def is_the_papers(config: Config) -> bool:
    """Whether the paper's own table belongs beside ours: all that its numbers hang on is the paper's."""
    free = {*_FREE, *PLACES, *SYNTHETIC, *DETECTIONS, *MEMBER}
    expected = {key: fields()[key].default for key in STEPS["evaluate"] if key not in free} | _PAPER
    errors_of_the_student = config.reference in (None, "student") and "student" in config.methods
    settled = all(getattr(config, key) == value for key, value in expected.items())
    return config.data is not None and errors_of_the_student and settled


def _maps(folder: Path) -> list[Path]:
    """The predicted maps of an evaluation's own years, where they lie beside it."""
    years = Results.read(folder).settings.years
    candidates = [folder / f"predictions_{year}{suffix}" for year in years for suffix in (".npz", ".hdf5", ".h5")]
    return [path for path in candidates if path.exists()]
