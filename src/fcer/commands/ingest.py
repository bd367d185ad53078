"""`fcer ingest`: VIIRS detections into fires."""

import sys
from pathlib import Path

from fcer.commands import settings_of
from fcer.commands.synthesize import synthetic_data
from fcer.config.resolve import Resolved, to_yaml
from fcer.config.settings import Config
from fcer.data.catalog import open_catalog
from fcer.data.channels import feature_indices
from fcer.data.detections import DetectionSettings, Ingested, ingest, sources_of, to_text, write_account
from fcer.data.detections.export import write_detections
from fcer.data.detections.overview import write_overview
from fcer.data.inspection import inspect
from fcer.data.inspection import to_text as inspection_text
from fcer.tracking import tracked_run

__all__ = ["detection_settings", "run"]


def run(resolved: Resolved) -> None:
    """Write the fires and an overview map, account for every detection, and say what the dataset now holds."""
    config = resolved.config
    settings = detection_settings(config)
    files = config.detections or (_synthetic_detections(config),)
    sources = sources_of(files, settings, config.layer)
    out = config.out or config.work / f"detections-{sources['key']}"
    done = ingest(files, out, settings, config.layer)
    for problem in done.problems:
        print(f"left out: {problem}", file=sys.stderr)
    write_overview(out / "overview.png", done, synthetic=not config.detections)
    found = inspect(
        out,
        features=feature_indices("fire"),
        crop=settings.min_side,
        cache=config.work / "cache",
        workers=config.workers,
    )
    described = settings_of(config, "ingest")
    with tracked_run("ingest", settings=described, config=to_yaml(resolved), work=config.work) as tracked:
        for file, (_, digest) in zip(files, sources["files"], strict=True):
            tracked.dataset(file, digest[:32], "detections")
        tracked.dataset(out, found.fingerprint, "fires")
        tracked.metrics(_metrics(done))
        tracked.file(write_account(done, out))
        tracked.file(out / "overview.png")
    if not config.detections:
        print("no detections were named: these are of SYNTHETIC fires")
    print(to_text(done))
    print()
    print(inspection_text(found))
    print(f"next: fcer main --data {out} --split fires --features fire --arch unet_t1")


def detection_settings(config: Config) -> DetectionSettings:
    """What of the configuration decides fires from detections."""
    return DetectionSettings(
        confidence=config.confidence,
        satellites=config.satellites,
        bbox=config.bbox,
        dates=config.dates,
        day=config.day,
        min_detections=config.min_detections,
    )


def _synthetic_detections(config: Config) -> Path:
    """The detections that satellites would have made of the synthetic fires."""
    data = synthetic_data(config)
    file = config.work / f"{data.name}.csv"
    write_detections(file, open_catalog(data).fires)
    return file


def _metrics(done: Ingested) -> dict[str, float]:
    counts = {
        "ingest/read": sum(done.read.values()),
        "ingest/dropped": sum(done.dropped.values()),
        "ingest/in_fires": done.in_fires,
        "ingest/fires": len(done.fires),
        "ingest/fire_pixels": sum(fire.pixels for fire in done.fires),
    }
    agreement = done.agreement and {"ingest/agreement": min(done.agreement.shares)}
    return {**{name: float(n) for name, n in counts.items()}, **(agreement or {})}
