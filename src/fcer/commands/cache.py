"""`fcer cache list|clear`: what was kept to save time, how large it is, and how to be rid of it."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from fcer.config import Resolved
from fcer.runtime.sealed_text import read_sealed_json
from fcer.runtime.work import Work

__all__ = ["run"]


@dataclass(frozen=True)
class _Cache:
    """One feature cache."""

    folder: Path
    what: str
    bytes: int
    complete: float
    """The share of it that is there."""


def run(resolved: Resolved, action: str) -> None:
    """List the feature caches, or remove them; whatever needs one makes it anew."""
    root = Work(resolved.config.work).features
    caches = _caches(root)
    if not caches:
        print(f"no feature cache in {root}; fcer distill makes one")
        return
    for cache in caches:
        state = "" if cache.complete >= 1 else f", {cache.complete:.0%} complete"
        print(f"{cache.folder.name}  {cache.bytes / 1e6:10.2f} MB  {cache.what}{state}")
    total = sum(cache.bytes for cache in caches) / 1e6
    if action == "clear":
        for cache in caches:
            shutil.rmtree(cache.folder)
        print(f"removed {len(caches)}, {total:.2f} MB")
    else:
        print(f"{len(caches)} in {root}, {total:.2f} MB; fcer cache clear removes them")


def _caches(root: Path) -> list[_Cache]:
    found = []
    for folder in sorted(path for path in root.glob("*") if path.is_dir()):
        size = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
        try:
            described = read_sealed_json(folder / "cache.json")
            years = ", ".join(map(str, described["test_years"]))
            training, validation = described["samples"]
            what = f"{described['arch']} {years}: {described['what']}, {training} + {validation} samples"
            complete = size / described["bytes"]
        except (OSError, ValueError, KeyError, TypeError):
            what, complete = "without a description", 1.0
        found.append(_Cache(folder, what, size, complete))
    return found
