"""`fcer ingest`: VIIRS detections into fires."""

import sys
from pathlib import Path

from fcer.commands.tracked import command_run
from fcer.config import Config, Resolved
from fcer.data.catalog import open_catalog
from fcer.data.channels import feature_indices
from fcer.data.detections import Ingested, are_synthetic, ingest, sources_of, to_text, write_account
from fcer.data.detections.export import write_detections
from fcer.data.detections.overview import write_overview
from fcer.data.inspection import inspect
from fcer.data.inspection import to_text as inspection_text
from fcer.pipeline.study_data import StudyData, detection_settings

__all__ = ["run"]


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
    write_overview(out / "overview.png", done, synthetic=are_synthetic(files))
    found = inspect(
        out,
        features=feature_indices("fire"),
        crop=settings.min_side,
        cache=config.work / "cache",
        workers=config.workers,
    )
    with command_run("ingest", resolved, of=str(out)) as log:
        for file, (_, digest) in zip(files, sources["files"], strict=True):
            log.dataset(file, digest[:32], "detections")
        log.dataset(out, found.fingerprint, "fires")
        log.metrics(_metrics(done))
        log.file(write_account(done, out))
        log.file(out / "overview.png")
        log.note(f"```\n{to_text(done)}\n```")
    if not config.detections:
        print("no detections were named: these are of SYNTHETIC fires")
    print(to_text(done))
    print()
    print(inspection_text(found))
    print(f"next: fcer main --data {out} --config experiments/viirs.yaml")


def _synthetic_detections(config: Config) -> Path:
    """The detections that satellites would have made of the synthetic fires."""
    data = StudyData(config).synthetic()
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
