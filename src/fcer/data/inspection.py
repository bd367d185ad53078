"""What a dataset's folder holds: counts, samples of each fold, missing values, and everything that is broken."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from fcer.data.catalog import find_years, open_catalog
from fcer.data.channels import ACTIVE_FIRE, CHANNELS
from fcer.data.dataset import usable_fires
from fcer.data.fire import Fire
from fcer.data.folds import WSTS, WSTS_PLUS, Fold
from fcer.data.readers import reader_of
from fcer.data.samples import TEST_LEADING_DAYS
from fcer.data.survey import Survey, dataset_fingerprint

__all__ = ["Inspection", "YearSummary", "inspect", "to_text"]

DAYS = (1, 5)
"""Days that the backbones read."""


@dataclass(frozen=True)
class YearSummary:
    """One year in numbers."""

    year: int
    fires: int
    days: int
    samples: dict[int, int]
    """By the number of days that a sample reads."""
    test_samples: int
    fire_share: float
    """Burning pixels among all."""


@dataclass(frozen=True)
class Inspection:
    """What `inspect` found."""

    root: Path
    years: tuple[YearSummary, ...]
    missing: dict[str, float]
    """Share of missing values by channel, for channels with any."""
    problems: tuple[str, ...]
    """Fires that cannot be used, each with the reason."""
    notes: tuple[str, ...]
    """Fires that can be used in part, each with what is lost."""
    fingerprint: str


def inspect(root: Path, *, features: Sequence[int], crop: int, cache: Path, workers: int = 0) -> Inspection:
    """Read everything below `root` once and sum it up."""
    catalog = open_catalog(root)
    usable, unusable = usable_fires(catalog.fires, features=features, crop=crop, cache=cache, workers=workers)
    there = {fire.year for fire in catalog.fires} if reader_of(root) else set(find_years(root))
    empty = [f"{root / str(year)}: no usable fire" for year in sorted(there - {fire.year for fire in usable})]
    return Inspection(
        root=root,
        years=tuple(_summary(year, usable) for year in sorted({fire.year for fire in usable})),
        missing=_missing(usable.values()),
        problems=(*catalog.problems, *unusable, *empty),
        notes=tuple(note for fire in usable for note in _notes(fire)),
        fingerprint=dataset_fingerprint(usable),
    )


def to_text(found: Inspection) -> str:
    """The inspection as a page for the terminal."""
    lines = [f"{found.root}  (fingerprint {found.fingerprint})", ""]
    lines.append(f"{'year':>6}{'fires':>7}{'days':>7}{'samples t=5':>13}{'t=1':>7}{'test':>7}{'fire pixels':>13}")
    lines += [
        f"{y.year:>6}{y.fires:>7}{y.days:>7}{y.samples[5]:>13}{y.samples[1]:>7}{y.test_samples:>7}{y.fire_share:>13.3%}"
        for y in found.years
    ]
    folds = [_fold_line(fold, found) for fold in _folds(found)]
    if folds:
        lines += ["", f"{'fold':>6}  {'train':<22}{'validate':<22}{'test':<18}(samples, t=5)", *folds]
    if found.missing:
        lines += ["", f"missing values: {_missing_line(found.missing)}"]
    for title, sentences in (("partly used", found.notes), ("cannot be used", found.problems)):
        if sentences:
            lines += ["", f"{title} ({len(sentences)}):", *(f"  {sentence}" for sentence in sentences)]
    return "\n".join(lines)


def _summary(year: int, usable: dict[Fire, Survey]) -> YearSummary:
    of_year = {fire: survey for fire, survey in usable.items() if fire.year == year}
    return YearSummary(
        year=year,
        fires=len(of_year),
        days=sum(fire.days for fire in of_year),
        samples={t: sum(len(fire.first_days(t)) for fire in of_year) for t in DAYS},
        test_samples=sum(len(fire.first_days(TEST_LEADING_DAYS)) for fire in of_year),
        fire_share=sum(s.fire_pixels for s in of_year.values()) / sum(s.pixels for s in of_year.values()),
    )


def _missing(surveys: Collection[Survey]) -> dict[str, float]:
    pixels = sum(survey.pixels for survey in surveys)
    shares = {
        name: sum(survey.missing[c] for survey in surveys) / pixels
        for c, name in enumerate(CHANNELS)
        if pixels and c != ACTIVE_FIRE
    }
    return {name: share for name, share in shares.items() if share > 0}


def _missing_line(missing: dict[str, float]) -> str:
    """Channels that are there in part, by share; those that are not there at all are only counted."""
    partly = [f"{name} {share:.2%}" for name, share in missing.items() if share < 1]
    wholly = len(missing) - len(partly)
    if wholly == len(CHANNELS) - 1:
        return f"all {wholly} channels but {CHANNELS[ACTIVE_FIRE]}; choose --features fire, or ingest with --layer"
    absent = ", ".join(name for name, share in missing.items() if share == 1)
    return ", ".join([*partly, *([f"wholly {absent}"] if wholly else [])])


def _notes(fire: Fire) -> list[str]:
    notes = []
    if fire.dates and (gaps := fire.gaps()):
        between = ", ".join(f"{fire.dates[gap - 1]} and {fire.dates[gap]}" for gap in gaps)
        lost = max(0, fire.days - TEST_LEADING_DAYS) - len(fire.first_days(TEST_LEADING_DAYS))
        notes.append(
            f"{fire.path}: days are missing between {between}; "
            f"{lost} of its samples (t=5) would span a gap and are left out"
        )
    if fire.days <= TEST_LEADING_DAYS:
        notes.append(f"{fire.path}: {fire.days} days are too short for a sample of 5 days and a label")
    if fire.dates is None:
        notes.append(f"{fire.path}: no dates (`img_dates`), so a missing day would go unnoticed")
    return notes


def _folds(found: Inspection) -> list[Fold]:
    there = {summary.year for summary in found.years}
    return [
        fold for folds in (WSTS, WSTS_PLUS) for fold in folds if {*fold.train, *fold.validation, *fold.test} <= there
    ]


def _fold_line(fold: Fold, found: Inspection) -> str:
    summaries = {summary.year: summary for summary in found.years}

    def part(years: tuple[int, ...], width: int) -> str:
        samples = sum(summaries[year].samples[5] for year in years)
        return f"{' '.join(map(str, years))} ({samples})".ljust(width)

    return f"{fold.number:>6}  {part(fold.train, 22)}{part(fold.validation, 22)}{part(fold.test, 18)}".rstrip()
