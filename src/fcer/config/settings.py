"""Every setting of an experiment: its type, its default and what it means.

One flat set of names serves everywhere: `select_by` in YAML is `--select-by` on the command line and
`-P select_by=...` for MLflow. How values come together is in `resolve.py`, the demo's in `demo.py`.
"""

from dataclasses import dataclass
from pathlib import Path

from fcer.config import checks
from fcer.config.checks import METHODS, ON_REQUEST
from fcer.config.option import option
from fcer.runtime import doors

__all__ = ["METHODS", "Config"]


@dataclass(frozen=True)
class Config:
    """The settings of one experiment. A field's meaning stands in its `meaning`, which `--help` prints."""

    # Where things are
    data: Path | None = option(
        None, "dataset folder, YEAR/fire_X.hdf5 or YEAR/fire_X/DATE.tif; none: synthetic fires are made"
    )
    source: Path | None = option(
        None, "folder of the GeoTIFF release, YEAR/fire_X/DATE.tif; none: synthetic GeoTIFFs are made"
    )
    out: Path | None = option(None, "folder for the results; none: a folder of its own below `work`")
    work: Path = option(Path("work"), "folder for everything that a command makes and was not told where to put")

    checkpoints: Path | None = option(
        None, "folder of members: released (foldN_testAP0.xxx.pth) or our own; none: members are trained"
    )

    # Which experiment
    split: str = option(
        "wsts",
        "how data is split: by years as WildfireSpreadTS or WSTS+ (years in pairs), or fires in four groups, each of "
        "which plays a year's part",
        choices=("wsts", "wsts_plus", "fires"),
    )
    year: int | str = option(
        2021, "test year (or group of fires); all; or none, which holds nothing out, for operations", check=checks.year
    )
    fold: int | None = option(None, "one fold, one member, instead of the test year's ensemble", low=0, high=11)
    members: int = option(
        3, "members of an ensemble: the fair folds in order, then again with new seeds", low=2, high=1000
    )
    arch: str = option(
        "utae_t5", "architecture of the backbone", choices=("utae_t5", "unet_t5", "unet_t1"), door=doors.BACKBONES
    )
    width: float = option(1.0, "factor on the backbone's channels, for small ones", low=0.0625, high=1)
    normalization: str = option(
        "member",
        "statistics that inputs are standardised with: each member's own, or the backbone's as in the paper",
        choices=("member", "backbone"),
    )
    select_by: str = option(
        "val_lift",
        "what chooses the student's backbone by its median: AP on validation over persistence's on the same images, "
        "that AP alone, or AP in released file names as in the paper",
        choices=("val_lift", "val_ap", "file_ap"),
    )

    # Training of members
    member_epochs: int = option(50, "epochs of training at most", low=1, high=100_000)
    member_patience: int = option(10, "epochs without better validation AP before training stops", low=1)
    member_lr: float = option(0.001, "learning rate of AdamW", low=1e-9)
    member_weight_decay: float = option(0.01, "weight decay of AdamW", low=0)
    member_batch_size: int = option(16, "samples in a batch", low=1, high=65_536)
    member_schedule: str = option("cosine", "how the learning rate falls", choices=("cosine", "plateau"))
    pos_weight: float = option(5.0, "weight of fire pixels in the loss", low=1e-9)
    member_apart: bool = option(
        True, "keep half of the validation fires for calibration alone, where each half has 39; else all choose epochs"
    )
    member_dropout: float = option(
        0.0, "share of the decoder's maps that training leaves out, as mc_dropout then does too", low=0, high=0.9
    )
    clip_norm: float = option(1.0, "largest norm of the gradient", low=1e-9)

    # Distillation into a student; the defaults are the paper's
    teacher: str = option(
        "ensemble",
        "who teaches the student: the members by what head_target measures of them, or another method's uncertainty",
        check=checks.teacher,
    )
    views: int = option(1, "random views of each training sample that are cached", low=1, high=1000)
    freeze: bool = option(
        True, "leave the backbone as it is; false: train it together with the head, by the member_* settings"
    )
    head_hidden: tuple[int, ...] = option(
        (), "channels of hidden 1x1 layers of the head; none: one layer", low=1, high=65_536
    )
    head_logit: bool = option(False, "let the head see the backbone's logit too")
    head_context: bool = option(
        False,
        "let the head see how unsure the backbone is, and its mean probability in squares of 3, 7 and 15 px around",
    )
    head_fire: bool = option(
        False,
        "let the head see today's fire: at each pixel, in squares of 3, 7 and 15 px around it, and how near it is",
    )
    head_decoder: bool = option(
        True,
        "let the head see the decoder's features; without them and with head_target error it learns from every "
        "member, each on its own validation years",
    )
    head_far: float = option(
        1.0, "with head_target error: pixels of the whole image that it learns from, for each one near fire", low=0
    )
    head_loss: str = option("rmsle", "loss against the teacher's uncertainty", choices=("rmsle", "mse", "bce"))
    head_target: str = option(
        "std",
        "what the head is taught: the teacher's uncertainty as normalised standard deviation over members or another "
        "measure of theirs, or where the backbone errs",
        choices=("std", "mutual_information", "entropy", "error"),
    )
    head_lr: float = option(0.001, "learning rate of SGD", low=1e-9)
    head_momentum: float = option(0.9, "momentum of SGD", low=0, high=0.9999)
    head_weight_decay: float = option(0.0005, "weight decay of SGD", low=0)
    head_batch_size: int = option(4, "samples in a batch", low=1, high=65_536)
    head_power: float = option(0.9, "power of the polynomial decay of the learning rate", low=0)
    head_epochs: int = option(100, "epochs of fitting at most", low=1, high=100_000)
    head_patience: int = option(20, "epochs without better validation AUROC before fitting stops", low=1)

    # What is read from a fire
    features: str | tuple[int, ...] = option(
        "vegetation",
        "channels a model sees: vegetation, multi, all, fire, or a list of indices into the 40 preprocessed channels",
        low=0,
        high=39,
        check=checks.features,
    )
    leading: int = option(
        5, "days that precede a test label even where a model reads fewer, so that t=1 and t=5 see the same", low=1
    )
    crop: int = option(128, "side of the central crop in px, a multiple of 32", low=32, check=checks.crop)

    # Evaluation
    test_image: str = option(
        "crop", "what of a test image is predicted and scored: the central crop, or all of it", choices=("crop", "full")
    )
    engine: str = option(
        "auto",
        "how regions are ranked: exactly, in memory, or shard by shard with 16-bit codes of uncertainty, in memory "
        "that does not grow with the maps; auto: by their number",
        choices=("auto", "exact", "shards"),
    )
    predictions: tuple[Path, ...] = option(
        (), "predicted-maps files of any model, one for each year: predictions_YEAR.npz or .hdf5"
    )
    reference: str | None = option(
        None, "method whose errors all uncertainties are to find; none: student where there is one, else the first"
    )
    anchor: float | str = option(
        4.0,
        "radius of tests and summaries: px, metres (1500m), or auto (the ensemble's mean ASD)",
        low=0,
        check=checks.anchor,
    )
    radii: tuple[float | str, ...] = option(
        tuple(map(float, range(11))),
        "radii of the sweep: px or metres (1500m); the full image is added",
        low=0,
        check=checks.radii,
    )
    methods: tuple[str, ...] = option(
        tuple(name for name in METHODS if name not in ON_REQUEST),
        "methods to compare; mc_dropout and tta (flips and quarter turns) cost passes of their own, swag, packed and "
        "diffusion a training of their own",
        check=checks.methods,
        door=doors.METHODS,
    )
    threshold: float | str = option(
        0.5,
        "probability above which a pixel counts as fire: a number, or balanced (w / (1 + w), which undoes a weight w "
        "of fire pixels in training)",
        low=0,
        high=1,
        check=checks.threshold,
    )
    passes: int = option(10, "passes of mc_dropout, networks of swag, samples of diffusion", low=2, high=10_000)
    bootstrap: int = option(1000, "draws of fires behind confidence intervals; 0: no intervals", low=0, high=1_000_000)

    # Search over the head
    study: str = option("head", "name of the study: with the same name and storage, a search goes on")
    storage: str | None = option(
        None,
        "where trials are kept: sqlite:///FILE, journal:FILE or postgresql://...; none: SQLite below `work`",
        check=checks.address,
    )
    trials: int = option(
        50, "trials of the study in all, those of earlier calls and other processes included", low=1, high=1_000_000
    )
    space: Path | None = option(None, "YAML file of what is searched; none: as in experiments/search_head.yaml")
    sampler: str = option("tpe", "how trials are chosen", choices=("tpe", "gp", "random", "grid"))
    pruner: str = option("median", "how hopeless trials are stopped", choices=("median", "hyperband", "none"))
    objective: str = option(
        "auroc",
        "what is maximised: validation AUROC at the anchor; with AUPRC; with fidelity to the teacher; or AUROC within "
        "the predicted class",
        choices=("auroc", "auroc_auprc", "auroc_fidelity", "within"),
    )
    dashboard: bool = option(
        False, "serve the study by optuna-dashboard where it is installed, else say how; do nothing else"
    )

    # Prediction with a student, and which student is to be used
    model: str | None = option(
        None,
        "student: models:/NAME@ALIAS, models:/NAME/VERSION, runs:/ID, the id of a run, or a student's folder; "
        "none: models:/fcer-student@champion",
        check=checks.address,
    )
    input: Path | None = option(
        None,
        "a fire as an HDF5 file or as a folder of DATE.tif, a folder of such fires, or VIIRS detections as NASA FIRMS "
        "offers them (CSV, JSON; gzip or zip): every fire that burnt on their last full day; none: synthetic fires",
    )
    png: bool = option(False, "write a quick-look with a scale bar beside each map")
    geojson: bool = option(False, "write perimeter, zones and contours beside each map")
    gis: bool = option(
        False,
        "write what QGIS and an agency's tools open: GeoPackage, KML, QML styles, a fire mask, a STAC item, and one "
        "mosaic (VRT) of several fires",
    )
    assets: Path | None = option(
        None, "vector layer of what is at risk, such as a GeoPackage: which lie in which zone, with what probability"
    )
    onnx: Path | None = option(None, "where `fcer export` writes the student; none: student.onnx in the work folder")
    run: str | None = option(
        None, "id of the MLflow run whose student is to become champion; none: it asks for the newest one"
    )

    # Guarantees, and forecasts held to what burnt
    miss: tuple[float, ...] = option(
        (0.05, 0.1, 0.2), "shares of tomorrow's fire that zones may miss, a zone for each", check=checks.shares
    )
    maps: tuple[Path, ...] = option((), "folders or files of forecasts that `fcer predict` wrote")
    against: tuple[Path, ...] = option(
        (), "what burnt: files of detections, or a dataset folder that has the days since; none: that of --data"
    )
    online: bool = option(False, "adapt the zones to verified days (--maps, --against) instead of calibrating anew")
    swap_model: str | None = option(
        None,
        "a student that makes the rehearsal's forecasts from its middle on, under the first one's name",
        check=checks.address,
    )
    lose_channel: str | None = option(
        None, "an input channel, by name or number, that is lost from the middle of the rehearsal on"
    )
    host: str = option("127.0.0.1", "address that the student is served on")
    port: int = option(8080, "port that the student is served on; 0: any that is free", low=0, high=65535)
    poll: float = option(5.0, "seconds after which a served student looks whether another is champion", low=0.1)

    # Report
    results: tuple[Path, ...] = option(
        (), "folders that `fcer evaluate` wrote, to be joined; none: the latest below WORK"
    )
    runs: tuple[str, ...] = option((), "ids of MLflow runs of `evaluate` to be joined, in place of folders")
    experiment: str | None = option(None, "MLflow experiment whose latest evaluation of each year is taken")
    paper: bool = option(False, "set the paper's own table beside ours: where the experiment is the paper's")
    ablation: tuple[Path, ...] = option((), "folders of evaluations of other backbones or settings, to compare with")

    # Synthetic fires
    years: tuple[int, ...] | None = option(
        None, "years to make fires for; none: all of the split's", low=1000, high=9999, check=checks.years
    )
    fires_per_year: int = option(6, "synthetic fires of each year", low=1, high=9999)
    image_size: tuple[int, ...] = option(
        (136, 176), "smallest and largest side of a synthetic image in px", low=32, high=10_000, check=checks.ordered
    )
    fire_days: tuple[int, ...] = option(
        (8, 12), "shortest and longest synthetic fire in days", low=2, high=200, check=checks.ordered
    )
    geotiff: bool = option(False, "write the GeoTIFF layout beside HDF5 (needs rasterio)")

    # Fires from detections
    detections: tuple[Path, ...] = option(
        (),
        "VIIRS detections as NASA FIRMS offers them: CSV or JSON, plain, gzip or zip; none: those of synthetic fires",
    )
    layer: tuple[str, ...] = option(
        (),
        "other channels, NAME=FILE for each: GeoTIFF, GRIB or grids of one band, {date} in the name for daily ones",
        check=checks.layers,
    )
    confidence: str = option(
        "nominal", "least confidence of a detection that counts", choices=("low", "nominal", "high")
    )
    satellites: tuple[str, ...] = option((), "satellites that count, by name or letter (N, 1, 2); none: all")
    bbox: tuple[float, ...] = option((), "box of detections that count: west south east north, degrees; none: all")
    dates: tuple[str, ...] = option((), "first and last day that count, such as 2020-09-26 2020-10-02; none: all")
    day: str = option(
        "utc", "day of a detection: as in WildfireSpreadTS, or by the sun where it lies", choices=("utc", "solar")
    )
    min_detections: int = option(80, "detections of a fire at least; 80 are about 11 km²", low=1)

    # How the work is done
    seed: int = option(0, "seed of everything random: same configuration and seed, same numbers", low=0, high=2**32 - 1)
    device: str = option("auto", "where backbones are trained", choices=("auto", "cpu", "cuda"))
    precision: str = option(
        "fp32",
        "what training steps and forecasts compute with: single precision, or bf16 where the processor has it, faster "
        "and less exact; whatever is scored is computed in fp32",
        choices=("fp32", "bf16"),
    )
    loader_workers: int = option(
        0, "processes that read samples ahead of a training, for GPUs and slow disks; 0: it reads them", low=0, high=64
    )
    workers: int = option(0, "processes that work side by side; 0: one for each core", low=0, high=1024)
    cluster: str | None = option(
        None,
        "Dask cluster that does the independent pieces: tcp://HOST:8786, or local:N for N processes here; none: this "
        "machine alone",
        check=checks.cluster,
    )
