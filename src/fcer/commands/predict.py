"""`fcer predict`: a fire's latest days into a GeoTIFF of fire probability and uncertainty, of one fire or of many."""

import sys
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from fcer.commands.tracked import command_run
from fcer.config import Config, Resolved
from fcer.data.catalog import Catalog, open_fires
from fcer.data.detection_files import is_detections
from fcer.data.fire import Fire
from fcer.data.geotiff import import_rasterio
from fcer.deploy.assets import read_assets
from fcer.deploy.fires import map_targets, predict_fires, rows_as_csv
from fcer.deploy.gis_extra import import_pyogrio, import_pystac
from fcer.deploy.gis_files import write_gis_of_all
from fcer.deploy.map_files import MapFiles
from fcer.deploy.outlines import write_geojson
from fcer.errors import ConfigError, DataError, FcerWarning
from fcer.models.calibration_files import load_calibration
from fcer.models.device import choose_device
from fcer.models.student_files import load_student
from fcer.pipeline.run_log import RunLog
from fcer.registry.find_student import CHAMPION_URI, FoundStudent, champion_for, find_student
from fcer.runtime.files import scratch_folder
from fcer.runtime.work import Work

__all__ = ["map_files", "run"]


def run(resolved: Resolved) -> None:
    """Find the student, predict each fire, name those that could not be, and fail only where none could."""
    config = resolved.config
    out = config.out or Work(config.work).predictions
    import_rasterio()  # maps cannot be written without it: better said now than fire by fire
    if config.gis:
        import_pyogrio()
        import_pystac()
    assets = None if config.assets is None else read_assets(config.assets)
    with command_run("predict", resolved, of=config.input.name if config.input else "") as log:
        catalog = _fires(config)
        problems = list(catalog.problems)
        targets = map_targets(catalog, out, problems)
        files = replace(map_files(resolved, log, catalog.fires), gis=config.gis, assets=assets)
        begun = time.perf_counter()
        rows = predict_fires(files, targets, problems)
        _say_left_out(catalog.root, rows, problems)
        log.metrics({"predict/fires": len(rows), "predict/left_out": len(problems)})
        log.metrics({"predict/seconds_per_fire": (time.perf_counter() - begun) / len(rows)})
        log.text(rows_as_csv(rows), "predictions.csv")
        if files.features and out.is_dir():  # one file of all fires, which MLflow draws on a map
            write_geojson(out / "all_fires.geojson", files.features)
            log.file(out / "all_fires.geojson")
            if config.gis:
                maps = [Path(row["file"]) for row in rows if row["area_km2"] != ""]
                for written in write_gis_of_all(out, files.features, maps):
                    log.file(written)
        if assets is not None:
            _at_risk(out, rows, log)
        log.note(_told(config, out, rows, len(problems)))
        for row in rows if config.png else ():
            log.file(Path(row["file"]).with_suffix(".png"), "quicklooks")
        _say(config, out, rows, len(problems))


def _say_left_out(root: Path, rows: Sequence[dict[str, Any]], problems: Sequence[str]) -> None:
    """Name the fires that were left out; where none is left, that is the failure, and MLflow has its reason."""
    if not rows and len(problems) == 1:
        raise DataError(problems[0])
    for problem in problems:
        print(f"left out: {problem}", file=sys.stderr)
    if not rows:
        why = f" ({problems[0]}, and {len(problems) - 1} more)" if problems else ""
        raise DataError(f"{root}: no fire of it could be predicted{why}")


def _at_risk(out: Path, rows: Sequence[dict[str, Any]], log: RunLog) -> None:
    """Keep the tables of assets, and say how many forecasts reach any."""
    reached = [Path(row["file"]).with_suffix(".assets.csv") for row in rows if row["assets_at_risk"]]
    for table in reached:
        log.file(table, "assets")
    total = sum(row["assets_at_risk"] for row in rows)
    where = f"; see {reached[0]}" if reached else ""
    print(f"{out}: {total} assets lie on the maps of {len(reached)} of {len(rows)} fires{where}")


def _fires(config: Config) -> Catalog:
    """The fires of a file or a folder, those that detections tell of, or synthetic ones."""
    if config.input is not None and not is_detections(config.input):
        return open_fires(config.input)
    from fcer.pipeline.study_data import StudyData  # an agency's own fires need no study

    data = StudyData(config)
    if config.input is None:
        return open_fires(data.synthetic())
    folder, done = data.ingested([config.input])
    active = {fire.path.resolve() for fire in done.active()}
    print(f"{len(active)} of them burnt on {done.last_full_day}, the last full day: predicted for the day after")
    found = open_fires(folder)
    return replace(found, fires=tuple(fire for fire in found.fires if fire.path.resolve() in active))


def map_files(resolved: Resolved, log: RunLog, fires: Sequence[Fire]) -> MapFiles:
    """The student that was asked for, or that fits the fires, and what of the configuration decides its files."""
    config = resolved.config
    with scratch_folder(config.work, "student") as download:
        found = _student(resolved, log, download, fires)
        loaded = load_student(found.folder)
        calibration = load_calibration(found.folder, loaded.head.key)
    if calibration is None:
        sentence = "the student has no calibration: its probabilities are as it says, and no zone is drawn"
        warnings.warn(f"{sentence}; run fcer calibrate on it", FcerWarning, stacklevel=2)
    loaded.student.to(choose_device(config.device))
    log.tags({f"fcer.model.{key}": value for key, value in found.identity.items()})
    if run_id := found.identity.get("run_id"):
        log.link({"student": run_id})
    else:
        log.link_tagged({"student": ("fcer.student", loaded.head.key)})
    return MapFiles(
        loaded, found.identity, calibration, threshold=_threshold(config), png=config.png, geojson=config.geojson
    )


def _threshold(config: Config) -> float:
    if isinstance(config.threshold, str):
        raise ConfigError(f"threshold: a forecast is cut at a number, not at {config.threshold}; give one")
    return config.threshold


def _student(resolved: Resolved, log: RunLog, download: Path, fires: Sequence[Fire]) -> FoundStudent:
    """The named student, or the fires' champion; where there is none and nothing was named, that of a small study."""
    config = resolved.config
    if config.model is not None:
        return find_student(config.model, download)
    if (champion := champion_for(_measured(fires))) is not None:
        if champion != CHAMPION_URI:
            print(f"{champion} predicts: {CHAMPION_URI} reads channels that these fires do not have")
        return find_student(champion, download)
    if config.input is not None:
        raise ConfigError(f"model: no {CHAMPION_URI} is registered; run fcer distill, or name a student with --model")
    from fcer.pipeline.study import Study  # whoever has a student needs no trainer

    print(f"no student was named and no {CHAMPION_URI} is registered, so one is distilled first")
    study = Study(resolved, log=log)
    distilled = study.student(study.setup.ensemble_years[-1], nested=True)
    # From its folder: MLflow hears of it in its own time, and a map must not depend on when
    return find_student(str(distilled.folder), download)


def _measured(fires: Sequence[Fire]) -> set[int]:
    """The channels of the first fire that can be read; the others are said later, fire by fire."""
    for fire in fires:
        with suppress(DataError):
            return fire.measured_channels()
    return set()


def _told(config: Config, out: Path, rows: Sequence[dict[str, Any]], left_out: int) -> str:
    fires = "1 fire" if len(rows) == 1 else f"{len(rows)} fires"
    pixels = sum(row["fire_pixels"] for row in rows)
    return (
        f"{out}: {fires} predicted{f', {left_out} left out' if left_out else ''}; "
        f"{pixels} pixels with a fire probability above {_threshold(config):g}"
    )


def _say(config: Config, out: Path, rows: Sequence[dict[str, Any]], left_out: int) -> None:
    print(_told(config, out, rows, left_out))
    more = [flag for flag, given in (("--png", config.png), ("--gis", config.gis)) if not given]
    print(f"next: open {rows[0]['file']} in a GIS" + (f", or add {' '.join(more)} to the same command" if more else ""))
