"""`fcer predict`: a fire's latest days into a GeoTIFF of fire probability and uncertainty, of one fire or of many."""

import csv
import io
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from fcer.commands import settings_of
from fcer.commands.distill import distill_year
from fcer.commands.ensemble import year_ensembles
from fcer.commands.study import ensemble_years
from fcer.commands.synthesize import synthetic_data
from fcer.config.resolve import Resolved, to_yaml
from fcer.config.settings import Config
from fcer.core.regions import radius_in_pixels
from fcer.data.catalog import Catalog, open_fires
from fcer.data.fire import Fire
from fcer.data.geotiff import import_rasterio
from fcer.deploy.map_files import MapFiles
from fcer.errors import ConfigError, DataError, FcerError
from fcer.models.student_files import load_student
from fcer.registry.find_student import CHAMPION_URI, FoundStudent, find_student, has_champion
from fcer.runtime.files import scratch_folder
from fcer.tracking import TrackedRun, tracked_run
from fcer.training import World, choose_device

__all__ = ["run"]


def run(resolved: Resolved) -> None:
    """Find the student, predict each fire, name those that could not be, and fail only where none could."""
    config = resolved.config
    settings = settings_of(config, "predict")
    import_rasterio()  # maps cannot be written without it: better said now than fire by fire
    with tracked_run("predict", settings=settings, config=to_yaml(resolved), work=config.work) as tracked:
        catalog = open_fires(config.input or synthetic_data(config))
        out = config.out or config.work / "predictions"
        problems = list(catalog.problems)
        targets = _targets(catalog, out, problems)
        files = _map_files(resolved, tracked)
        begun = time.perf_counter()
        try:
            rows = _predict(files, targets, problems)
        finally:
            for problem in problems:
                print(f"left out: {problem}", file=sys.stderr)
        seconds = time.perf_counter() - begun
        tracked.metrics({"predict/fires": len(rows), "predict/left_out": len(problems)})
        if not rows:
            raise FcerError(f"{catalog.root}: no fire of it could be predicted; see the lines above")
        tracked.metrics({"predict/seconds_per_fire": seconds / len(rows)})
        _log(tracked, files, rows)
    _say(config, out, rows, len(problems))


def _targets(catalog: Catalog, out: Path, problems: list[str]) -> list[tuple[Fire, Path]]:
    """Where each fire's map is to lie: the one file that was named, or a file of the fire's name in a folder.

    Of several fires whose maps would have one name, the first is predicted, and the others are problems.
    """
    found = len(catalog.fires) + len(catalog.problems)
    if out.suffix.lower() in (".tif", ".tiff"):
        if found > 1:
            raise ConfigError(f"out: {out} is one file, but {catalog.root} holds {found} fires; give --out a folder")
        return [(fire, out) for fire in catalog.fires]
    named = Counter(fire.name for fire in catalog.fires)
    names = [fire.name if named[fire.name] == 1 else f"{fire.year}_{fire.name}" for fire in catalog.fires]
    targets: dict[str, Fire] = {}
    for fire, name in zip(catalog.fires, names, strict=True):
        if targets.setdefault(name, fire) is not fire:
            problems.append(f"{fire.path}: its map would be {name}.tif, as that of {targets[name].path}; rename one")
    return [(fire, out / f"{name}.tif") for name, fire in targets.items()]


def _map_files(resolved: Resolved, tracked: TrackedRun) -> MapFiles:
    """The student that was asked for, ready to predict, and what of the configuration decides its files."""
    config = resolved.config
    with scratch_folder(config.work, "student") as download:
        found = _student(config, tracked, download)
        loaded = load_student(found.folder)
    loaded.student.to(choose_device(config.device, World()))
    tracked.tags({f"fcer.model.{key}": value for key, value in found.identity.items()})
    if run_id := found.identity.get("run_id"):
        tracked.link({"student": run_id})
    else:
        tracked.link_tagged({"student": ("fcer.student", loaded.head.key)})
    # A student is watched where it was chosen; the ensemble that `auto` would measure is not at hand
    own = resolved.origins["anchor"] == "default" or config.anchor == "auto"
    return MapFiles(
        loaded,
        found.identity,
        threshold=config.threshold,
        anchor_px=loaded.head.anchor_px if own else radius_in_pixels(config.anchor),
        watch_quantile=config.watch_quantile,
        png=config.png,
        geojson=config.geojson,
    )


def _student(config: Config, tracked: TrackedRun, download: Path) -> FoundStudent:
    """The named student, or the champion; where there is none and nothing was named, that of a small study."""
    if config.model is not None or has_champion():
        return find_student(config.model or CHAMPION_URI, download)
    if config.input is not None:
        raise ConfigError(f"model: no {CHAMPION_URI} is registered; run fcer distill, or name a student with --model")
    print(f"no student was named and no {CHAMPION_URI} is registered, so one is distilled first")
    (ensemble,) = year_ensembles(config, ensemble_years(config)[-1:], tracked)
    distilled = distill_year(config, ensemble, tracked, nested=True)
    return find_student(CHAMPION_URI if has_champion() else str(distilled.folder), download)


def _predict(files: MapFiles, targets: Sequence[tuple[Fire, Path]], problems: list[str]) -> list[dict[str, Any]]:
    """A row for each fire; those that cannot be predicted become problems."""
    rows = []
    for fire, path in tqdm(targets, desc="predict", unit="fire", disable=None, leave=False):
        try:
            rows.append(files.write(fire, path))
        except DataError as error:
            problems.append(str(error))
        except Exception as error:  # whatever is odd about one file, the other fires are to be predicted
            problems.append(f"{fire.path}: {type(error).__name__}: {error}")
    return rows


def _log(tracked: TrackedRun, files: MapFiles, rows: Sequence[dict[str, Any]]) -> None:
    table = io.StringIO()
    writer = csv.DictWriter(table, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    tracked.text(table.getvalue(), "predictions.csv")
    if files.png:
        for row in rows:
            tracked.file(Path(row["file"]).with_suffix(".png"), "quicklooks")


def _say(config: Config, out: Path, rows: Sequence[dict[str, Any]], left_out: int) -> None:
    fires = "1 fire" if len(rows) == 1 else f"{len(rows)} fires"
    pixels = sum(row["fire_pixels"] for row in rows)
    print(
        f"{out}: {fires} predicted{f', {left_out} left out' if left_out else ''}; "
        f"{pixels} pixels with a fire probability above {config.threshold:g}"
    )
    more = [flag for flag, given in (("--png", config.png), ("--geojson", config.geojson)) if not given]
    print(f"next: open {rows[0]['file']} in a GIS" + (f", or add {' '.join(more)} to the same command" if more else ""))
