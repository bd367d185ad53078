"""The tidy result of an evaluation, and the files it is written to and read from."""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from fcer.core.segmentation import FIRE_THRESHOLD
from fcer.errors import PredictionsError
from fcer.evaluation.comparison import TEST_COLUMNS
from fcer.evaluation.results_check import listed_files, read_settings, read_tables, read_tests, with_digests
from fcer.evaluation.summary import summarize
from fcer.runtime.csv_cells import table_text
from fcer.runtime.files import atomic_path

__all__ = ["Results", "Settings"]

_TABLES = (
    *("sweep", "segmentation", "per_image", "anchor", "intervals", "sensitivity", "reliability"),
    *("corp", "own_errors", "risk_coverage", "thresholds"),
)
_GUARANTEES = ("zones", "zones_by_fire", "calibration")
"""Tables that not every evaluation has."""


_KEYS = ("method", "radius_px", "radius_m", "coverage", "threshold")
"""What tells apart the rows of one year."""


@dataclass(frozen=True)
class Settings:
    """What an evaluation was asked for and settled on."""

    years: tuple[int, ...]
    methods: tuple[str, ...]
    """Those that were given, then the controls."""
    reference: str
    anchor_px: float
    """Where years have anchors of their own, their mean."""
    anchor_from: str
    bootstrap: int
    seed: int
    engine: str = "exact"
    """`exact`, or `shards`: ranked by 16-bit codes."""
    auroc_bound: float = 0.0
    """How far an AUROC may be from that of exact ranks, anywhere in the tables."""
    auprc_bound: float = 0.0
    """The same of AUPRC and AP."""
    within_bound: float = 0.0
    """The same of AUROC within the predicted class, and of either class."""
    fpr95_bound: float = 0.0
    """The same of the false positive rate where 95 % of errors are found."""
    aurc_bound: float = 0.0
    """The same of AURC and E-AURC; AUGRC is off by a quarter of AUROC's bound at most."""
    controls: tuple[str, ...] = ()
    """Which of the methods are controls: they borrow their probabilities."""
    threshold: float = FIRE_THRESHOLD
    """A probability above it predicts fire."""
    synthetic: bool = False
    """Whether the fires never burnt."""
    anchors: tuple[float, ...] = ()
    """In px, one for each year; empty where all share `anchor_px`."""

    def anchor_of(self, year: int) -> float:
        """A year's anchor in px."""
        return self.anchors[self.years.index(year)] if self.anchors else self.anchor_px

    @property
    def own_methods(self) -> tuple[str, ...]:
        """The methods that are no controls."""
        return tuple(method for method in self.methods if method not in self.controls)


@dataclass(frozen=True)
class Results:
    """Everything that FCER says of some methods on some years.

    Attributes
    ----------
    sweep:
        One row per year, method and radius; infinity is the full image.
    segmentation:
        One row per year and method, over all pixels of all images.
    per_image:
        One row per fire image and method, at the anchor; NaN where its region has no error, or only errors.
    tests:
        Paired one-sided tests of per-image scores, `a` greater than `b`, by year and pooled, by image and
        by fire; `ci_low` and `ci_high` hold the median difference with 95% confidence, drawing fires.
    anchor:
        As `sweep`, at the anchor alone, with the calibration error in bins of equal mass.
    intervals:
        95% confidence of each metric, and of its differences between methods, drawing fires.
    sensitivity:
        The comparison repeated at other anchors: around the anchor, and at each method's own ASD.
    reliability:
        Mean probability and fire rate by bin of probability, at the anchor.
    corp:
        Fire rate by probability from isotonic regression, at the anchor, with the band of a calibrated forecast.
    own_errors:
        How each method ranks the errors of its own probability, at the anchor; one row per year and method.
    risk_coverage:
        Share of errors among the pixels that a method is surest of, at the anchor; one row per year, method
        and share of pixels kept.
    thresholds:
        How each method ranks the errors that the reference would make at other thresholds, at the anchor; ranked by
        16-bit codes.
    zones:
        Guaranteed zones: nominal and realised miss and area, one row per year, method, family and nominal miss;
        None where no fires calibrate any.
    zones_by_fire:
        The same by fire.
    calibration:
        Raw and calibrated probabilities side by side, one row per year, method and radius; None likewise.
    """

    settings: Settings
    sweep: pd.DataFrame
    segmentation: pd.DataFrame
    per_image: pd.DataFrame
    tests: pd.DataFrame
    anchor: pd.DataFrame
    intervals: pd.DataFrame
    sensitivity: pd.DataFrame
    reliability: pd.DataFrame
    corp: pd.DataFrame
    own_errors: pd.DataFrame
    risk_coverage: pd.DataFrame
    thresholds: pd.DataFrame
    zones: pd.DataFrame | None = None
    zones_by_fire: pd.DataFrame | None = None
    calibration: pd.DataFrame | None = None

    @property
    def auprc_baseline(self) -> float:
        """AUPRC of random uncertainty at the anchor: the share of errors, over the images that are tested."""
        one = self.per_image[self.per_image["method"] == self.settings.reference]
        tested = one[one["auroc"].notna()]
        n_pixels = int(tested["n_pixels"].sum())
        return int(tested["n_errors"].sum()) / n_pixels if n_pixels else math.nan

    def over_years(self, table: str) -> pd.DataFrame:
        """Mean and population standard deviation over years of a table with one row per year and method.

        That is `sweep`, `anchor`, `segmentation`, `own_errors`, `risk_coverage` or `thresholds`. One row per method
        (and radius, coverage or threshold); a metric's deviation is in the column `METRIC_std`. Years in which a
        metric is undefined do not count for it. Anchors that differ between years are averaged like a metric.
        """
        frame: pd.DataFrame = getattr(self, table)
        shared = ("method",) if table == "anchor" and self.settings.anchors else _KEYS
        keys = [key for key in shared if key in frame]
        groups = frame.drop(columns="year").groupby(keys, sort=False)
        means, deviations = groups.mean(), groups.std(ddof=0).add_suffix("_std")
        columns = [name for metric in means for name in (metric, f"{metric}_std")]
        return means.join(deviations)[columns].reset_index()

    def summary(self) -> str:
        """A table for the terminal: each year, the mean, and the tests in one line each."""
        return summarize(self)

    def write(self, directory: Path | str) -> None:
        """Write every table as CSV, the tests and the settings as JSON; each file whole or not at all."""
        directory = Path(directory)
        # where that file is, all others are of the same evaluation: what is there of another counts no longer
        (directory / "evaluation.json").unlink(missing_ok=True)
        for name in _TABLES:
            _write_table(directory / f"{name}.csv", getattr(self, name))
        for name in _GUARANTEES:
            if (table := getattr(self, name)) is None:
                (directory / f"{name}.csv").unlink(missing_ok=True)  # of an earlier evaluation
            else:
                _write_table(directory / f"{name}.csv", table)
        _write_json(directory / "tests.json", [_plain(row) for row in self.tests.to_dict("records")])
        # last: where this file is, all of them are
        _write_json(directory / "evaluation.json", with_digests(asdict(self.settings), self.files(directory)[:-1]))

    @staticmethod
    def files(directory: Path | str) -> list[Path]:
        """What `write` has written."""
        more = [path for name in _GUARANTEES if (path := Path(directory) / f"{name}.csv").exists()]
        return [*Results._beside(Path(directory)), *more, Path(directory) / "evaluation.json"]

    @staticmethod
    def _beside(directory: Path) -> list[Path]:
        """All that every evaluation has but evaluation.json."""
        return [directory / name for name in (*(f"{table}.csv" for table in _TABLES), "tests.json")]

    @classmethod
    def read(cls, directory: Path | str) -> "Results":
        """Read what `write` wrote; a PredictionsError where a file is damaged, or of another evaluation."""
        directory = Path(directory)
        if not (directory / "evaluation.json").is_file():
            raise PredictionsError(f"{directory}: no finished evaluation there; run fcer evaluate --out {directory}")
        listed = listed_files(directory / "evaluation.json")
        more = [name for name in _GUARANTEES if f"{name}.csv" in listed]
        files = [*cls._beside(directory), *(directory / f"{name}.csv" for name in more)]
        settings = read_settings(directory / "evaluation.json", files, Settings)
        tables = read_tables(directory, settings, [*_TABLES, *more])
        # read as whole numbers where no control is among the methods
        counts = {name: table.astype(_some_counts(table, "float64")) for name, table in tables.items()}
        return cls(settings, tests=read_tests(directory / "tests.json", settings, TEST_COLUMNS), **counts)


def _write_table(path: Path, table: pd.DataFrame) -> None:
    with atomic_path(path) as beside:
        beside.write_text(table_text(table.astype(_some_counts(table, "Int64"))), encoding="utf-8", newline="")


def _some_counts(table: pd.DataFrame, dtype: str) -> dict[str, str]:
    """Counts that controls have none of, with the type that they should have."""
    return {name: dtype for name in ("asd_images", "missed") if name in table}


def _write_json(path: Path, content: Any) -> None:
    with atomic_path(path) as beside:
        beside.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")


def _plain(row: dict[Any, Any]) -> dict[Any, Any]:
    """NaN is no JSON: null stands for it."""
    return {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in row.items()}
