"""The examples in docs/design.md as an installed package: a module, and the notes that pip leaves beside it."""

import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from documentation import DOCS, blocks_of
from fcer.data.readers import reader
from fcer.evaluation.calibrators import calibrator
from fcer.models.backbones import backbone
from fcer.uncertainty.registry import method

DOORS = (method, backbone, reader, calibrator)
EXAMPLES = "\n".join(blocks_of(DOCS / "design.md", "python"))
NAMED: dict[str, dict[str, str]] = tomllib.loads("\n".join(blocks_of(DOCS / "design.md", "toml")))["project"][
    "entry-points"
]


def write_package(folder: Path, named: dict[str, dict[str, str]] = NAMED, code: str = EXAMPLES) -> Path:
    """Write it into `folder`, which then only has to be on the path."""
    facts = folder / "their_package-1.0.dist-info"
    facts.mkdir(parents=True)
    (folder / "their_package.py").write_text(code)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    lines = [line for group, things in named.items() for line in (f"[{group}]", *map(" = ".join, things.items()))]
    (facts / "entry_points.txt").write_text("\n".join([*lines, ""]))
    return folder


@contextmanager
def installed(folder: Path) -> Iterator[None]:
    """Within the block, the package of `folder` is installed."""
    sys.path.insert(0, str(folder))
    _forget()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        _forget()


def _forget() -> None:
    sys.modules.pop("their_package", None)
    for door in DOORS:
        door.__dict__.pop("brought", None)
