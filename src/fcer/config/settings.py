"""Every setting of an experiment: its type, its default and what it means.

One flat set of names serves everywhere: `select_by` in YAML is `--select-by` on the command line and
`-P select_by=...` for MLflow. How values come together is in `resolve.py`.
"""

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fcer.config import checks
from fcer.config.checks import METHODS

__all__ = ["DEMO", "METHODS", "Config", "fields", "help_text", "in_words", "kinds", "parts"]


def _option(
    default: Any,
    meaning: str,
    *,
    choices: Sequence[str] = (),
    low: float = -math.inf,
    high: float = math.inf,
    check: Callable[[Any], str | None] | None = None,
) -> Any:
    """A field with its meaning and the values it may take; `check` returns what is wrong, or None."""
    metadata = {"meaning": meaning, "choices": tuple(choices), "low": low, "high": high, "check": check}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Config:
    """The settings of one experiment. A field's meaning stands in its `meaning`, which `--help` prints."""

    # Where things are
    data: Path | None = _option(
        None, "dataset folder, YEAR/fire_X.hdf5 or YEAR/fire_X/DATE.tif; none: synthetic fires are made"
    )
    source: Path | None = _option(
        None, "folder of the GeoTIFF release, YEAR/fire_X/DATE.tif; none: synthetic GeoTIFFs are made"
    )
    out: Path | None = _option(None, "folder for the results; none: a folder of its own below `work`")
    work: Path = _option(Path("work"), "folder for everything that a command makes and was not told where to put")

    checkpoints: Path | None = _option(
        None, "folder of members: released (foldN_testAP0.xxx.pth) or our own; none: members are trained"
    )

    # Which experiment
    split: str = _option(
        "wsts", "how years are split: WildfireSpreadTS or WSTS+ (years in pairs)", choices=("wsts", "wsts_plus")
    )
    year: int | str = _option(2021, "test year, or all", check=checks.year_or_all)
    fold: int | None = _option(None, "one fold, one member, instead of the test year's ensemble", low=0, high=11)
    members: int = _option(3, "members of an ensemble: the fair folds in order, then again with new seeds", low=2)
    arch: str = _option("utae_t5", "architecture of the backbone", choices=("utae_t5", "unet_t5", "unet_t1"))
    width: float = _option(1.0, "factor on the backbone's channels, for small ones", low=0.0625, high=1)
    normalization: str = _option(
        "member",
        "statistics that inputs are standardised with: each member's own, or the backbone's as in the paper",
        choices=("member", "backbone"),
    )
    select_by: str = _option(
        "val_ap",
        "AP whose median chooses the student's backbone: on validation, or in released file names as in the paper",
        choices=("val_ap", "file_ap"),
    )

    # Training of members
    member_epochs: int = _option(50, "epochs of training at most", low=1)
    member_patience: int = _option(10, "epochs without better validation AP before training stops", low=1)
    member_lr: float = _option(0.001, "learning rate of AdamW", low=1e-9)
    member_weight_decay: float = _option(0.01, "weight decay of AdamW", low=0)
    member_batch_size: int = _option(16, "samples in a batch", low=1)
    member_schedule: str = _option("cosine", "how the learning rate falls", choices=("cosine", "plateau"))
    pos_weight: float = _option(5.0, "weight of fire pixels in the loss", low=1e-9)
    clip_norm: float = _option(1.0, "largest norm of the gradient", low=1e-9)

    # Distillation into a student; the defaults are the paper's
    views: int = _option(1, "random views of each training sample that are cached", low=1)
    freeze: bool = _option(
        True, "leave the backbone as it is; false: train it together with the head, by the member_* settings"
    )
    head_hidden: tuple[int, ...] = _option((), "channels of hidden 1x1 layers of the head; none: one layer", low=1)
    head_logit: bool = _option(False, "let the head see the backbone's logit too")
    head_loss: str = _option("rmsle", "loss against the teacher's uncertainty", choices=("rmsle", "mse", "bce"))
    head_target: str = _option(
        "std",
        "the teacher's uncertainty: normalised standard deviation over members, or another measure of theirs",
        choices=("std", "mutual_information", "entropy"),
    )
    head_lr: float = _option(0.001, "learning rate of SGD", low=1e-9)
    head_momentum: float = _option(0.9, "momentum of SGD", low=0, high=0.9999)
    head_weight_decay: float = _option(0.0005, "weight decay of SGD", low=0)
    head_batch_size: int = _option(4, "samples in a batch", low=1)
    head_power: float = _option(0.9, "power of the polynomial decay of the learning rate", low=0)
    head_epochs: int = _option(100, "epochs of fitting at most", low=1)
    head_patience: int = _option(20, "epochs without better validation AUROC before fitting stops", low=1)

    # What is read from a fire
    features: str | tuple[int, ...] = _option(
        "vegetation",
        "channels a model sees: vegetation, multi, all, fire, or a list of indices into the 40 preprocessed channels",
        low=0,
        high=39,
        check=checks.features,
    )
    crop: int = _option(128, "side of the central crop in px, a multiple of 32", low=32, check=checks.crop)

    # Evaluation
    test_image: str = _option(
        "crop", "what of a test image is predicted and scored: the central crop, or all of it", choices=("crop", "full")
    )
    engine: str = _option(
        "auto",
        "how regions are ranked: exactly, in memory, or shard by shard with 16-bit codes of uncertainty, in memory "
        "that does not grow with the maps; auto: by their number",
        choices=("auto", "exact", "shards"),
    )
    predictions: tuple[Path, ...] = _option(
        (), "predicted-maps files of any model, one for each year: predictions_YEAR.npz or .hdf5"
    )
    reference: str | None = _option(
        None, "method whose errors all uncertainties are to find; none: student where there is one, else the first"
    )
    anchor: float | str = _option(
        4.0,
        "radius of tests and summaries: px, metres (1500m), or auto (the ensemble's mean ASD)",
        low=0,
        check=checks.anchor,
    )
    radii: tuple[float | str, ...] = _option(
        tuple(map(float, range(11))),
        "radii of the sweep: px or metres (1500m); the full image is added",
        low=0,
        check=checks.radii,
    )
    methods: tuple[str, ...] = _option(
        tuple(name for name in METHODS if name not in ("mc_dropout", "tta")),
        "methods to compare; mc_dropout and tta (flips and quarter turns) cost passes of their own",
        check=checks.methods,
    )
    passes: int = _option(10, "passes of mc_dropout", low=2)
    bootstrap: int = _option(1000, "draws of fires behind confidence intervals; 0: no intervals", low=0)

    # Search over the head
    study: str = _option("head", "name of the study: with the same name and storage, a search goes on")
    storage: str | None = _option(
        None, "where trials are kept: sqlite:///FILE, journal:FILE or postgresql://...; none: SQLite below `work`"
    )
    trials: int = _option(50, "trials of the study in all, those of earlier calls and other processes included", low=1)
    space: Path | None = _option(None, "YAML file of what is searched; none: as in experiments/search_head.yaml")
    sampler: str = _option("tpe", "how trials are chosen", choices=("tpe", "gp", "cmaes", "random", "grid"))
    pruner: str = _option("median", "how hopeless trials are stopped", choices=("median", "hyperband", "none"))
    objective: str = _option(
        "auroc",
        "what is maximised: validation AUROC at the anchor; with AUPRC; or with fidelity to the teacher",
        choices=("auroc", "auroc_auprc", "auroc_fidelity"),
    )
    dashboard: bool = _option(False, "say how to open optuna-dashboard on the study, and do nothing else")

    # Prediction with a student, and which student is to be used
    model: str | None = _option(
        None,
        "student: models:/NAME@ALIAS, models:/NAME/VERSION, runs:/ID, the id of a run, or a student's folder; "
        "none: models:/fcer-student@champion",
    )
    input: Path | None = _option(
        None,
        "a fire as an HDF5 file or as a folder of DATE.tif, or a folder of such fires; none: synthetic fires are made",
    )
    threshold: float = _option(0.5, "probability above which a pixel counts as fire", low=0, high=1)
    watch_quantile: float = _option(
        0.9, "quantile of the uncertainty near the predicted edge above which a pixel is watched", low=0, high=1
    )
    png: bool = _option(False, "write a quick-look with a scale bar beside each map")
    geojson: bool = _option(False, "write the predicted perimeter and the watch zone beside each map")
    run: str | None = _option(
        None, "id of the MLflow run whose student is to become champion; none: the newest one that is registered"
    )

    # Report
    results: tuple[Path, ...] = _option((), "folders that `fcer evaluate` wrote, to be joined; none: WORK/results")
    runs: tuple[str, ...] = _option((), "ids of MLflow runs of `evaluate` to be joined, in place of folders")
    experiment: str | None = _option(None, "MLflow experiment whose latest evaluation of each year is taken")
    paper: bool = _option(False, "set the paper's own table beside ours: where the experiment is the paper's")
    ablation: tuple[Path, ...] = _option((), "folders of evaluations of other backbones or settings, to compare with")

    # Synthetic fires
    years: tuple[int, ...] = _option(
        (2018, 2019, 2020, 2021), "years to make fires for", low=1000, high=9999, check=checks.years
    )
    fires_per_year: int = _option(6, "synthetic fires of each year", low=1)
    image_size: tuple[int, ...] = _option(
        (136, 176), "smallest and largest side of a synthetic image in px", low=32, high=10_000, check=checks.ordered
    )
    fire_days: tuple[int, ...] = _option(
        (8, 12), "shortest and longest synthetic fire in days", low=2, high=200, check=checks.ordered
    )
    geotiff: bool = _option(False, "write the GeoTIFF layout beside HDF5 (needs rasterio)")

    # Fires from detections
    detections: tuple[Path, ...] = _option(
        (), "VIIRS detections as NASA FIRMS offers them: CSV or JSON, plain, gzip or zip; none: of synthetic fires"
    )
    layer: tuple[str, ...] = _option(
        (), "other channels, NAME=FILE for each: rasters that GDAL reads, {date} in the name for daily ones"
    )
    confidence: str = _option(
        "nominal", "least confidence of a detection that counts", choices=("low", "nominal", "high")
    )
    satellites: tuple[str, ...] = _option((), "satellites that count, by name or letter (N, 1, 2); none: all")
    bbox: tuple[float, ...] = _option((), "box of detections that count: west south east north, degrees; none: all")
    dates: tuple[str, ...] = _option((), "first and last day that count, such as 2020-09-26 2020-10-02; none: all")
    day: str = _option(
        "utc", "day of a detection: as in WildfireSpreadTS, or by the sun where it lies", choices=("utc", "solar")
    )
    min_detections: int = _option(80, "detections of a fire at least; 80 are about 11 km²", low=1)

    # How the work is done
    seed: int = _option(0, "seed of everything random: same configuration and seed, same numbers", low=0)
    device: str = _option("auto", "where backbones are trained", choices=("auto", "cpu", "cuda"))
    workers: int = _option(0, "processes that work side by side; 0: one for each core", low=0)
    cluster: str | None = _option(
        None,
        "Dask cluster that does the independent pieces: tcp://HOST:8786, or local:N for N processes here; none: none",
        check=checks.cluster,
    )


DEMO: Mapping[str, Any] = {
    "fires_per_year": 8,
    "image_size": (80, 112),
    "fire_days": (9, 13),
    "crop": 64,
    "width": 0.125,
    "member_epochs": 12,
    "member_patience": 6,
    "member_lr": 0.005,
    "member_batch_size": 4,
    "pos_weight": 10.0,
}
"""Settings for two cores and a few minutes, as in experiments/demo.yaml: a study that names neither data nor a
configuration is this one."""


def fields() -> dict[str, dataclasses.Field[Any]]:
    """The fields of Config by name."""
    return {f.name: f for f in dataclasses.fields(Config)}


def help_text(key: str) -> str:
    """What a field means and its default, for `--help`."""
    f = fields()[key]
    items = f.default if isinstance(f.default, tuple) else (f.default,)
    text = " ".join(f"{item:g}" if isinstance(item, float) else str(item) for item in items) or "none"
    if f.default is None or isinstance(f.default, bool):
        text = text.lower()  # as one would type it
    return f"{f.metadata['meaning']} (default: {text})"


def kinds(key: str) -> tuple[Any, ...]:
    """The types that a field accepts, a union taken apart."""
    return parts(typing.get_type_hints(Config)[key])


def parts(kind: Any) -> tuple[Any, ...]:
    """A union taken apart."""
    return typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)


def in_words(key: str) -> str:
    """A field's type in words."""
    f = fields()[key]
    if f.metadata["choices"]:
        return "one of " + ", ".join(f.metadata["choices"])
    return _in_words(kinds(key))


def _in_words(accepted: Sequence[Any]) -> str:
    names = {
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "a name",
        Path: "a path",
        types.NoneType: "none",
    }
    return " or ".join(
        names[kind] if kind in names else "a list, each item " + _in_words(parts(typing.get_args(kind)[0]))
        for kind in accepted
    )
