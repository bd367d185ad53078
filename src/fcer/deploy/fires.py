"""Many fires, each to files of its own; what is odd about one never keeps the others from being predicted."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from fcer.data.catalog import Catalog
from fcer.data.fire import SYNTHETIC, Fire
from fcer.deploy.map_files import MapFiles
from fcer.errors import ConfigError, DataError
from fcer.runtime.csv_cells import rows_text

__all__ = ["map_targets", "predict_fires", "rows_as_csv"]


def map_targets(catalog: Catalog, out: Path, problems: list[str]) -> list[tuple[Fire, Path]]:
    """Where each fire's map is to lie: the one file that was named, or a file of the fire's name in a folder.

    Of several fires whose maps would have one name, the first is predicted, and the others are problems.
    """
    found = len(catalog.fires) + len(catalog.problems)
    if out.suffix.lower() in (".tif", ".tiff"):
        if found > 1:
            raise ConfigError(f"out: {out} is one file, but {catalog.root} holds {found} fires; give --out a folder")
        return [(fire, out) for fire in catalog.fires]
    named = Counter(fire.name for fire in catalog.fires)
    names = [
        (f"{SYNTHETIC}_" if fire.never_burnt and SYNTHETIC not in fire.name else "")
        + (fire.name if named[fire.name] == 1 else f"{fire.year}_{fire.name}")
        for fire in catalog.fires
    ]
    targets: dict[str, Fire] = {}
    for fire, name in zip(catalog.fires, names, strict=True):
        if targets.setdefault(name, fire) is not fire:
            problems.append(f"{fire.path}: its map would be {name}.tif, as that of {targets[name].path}; rename one")
    return [(fire, out / f"{name}.tif") for name, fire in targets.items()]


def predict_fires(files: MapFiles, targets: Sequence[tuple[Fire, Path]], problems: list[str]) -> list[dict[str, Any]]:
    """A row for each fire that was predicted; those that cannot be become problems."""
    rows = []
    for fire, path in tqdm(targets, desc="predict", unit="fire", disable=None, leave=False):
        try:
            rows.append(files.write(fire, path))
        except DataError as error:
            problems.append(str(error))
        except Exception as error:  # whatever is odd about one file, the other fires are to be predicted
            problems.append(f"{fire.path}: {type(error).__name__}: {error}")
    return rows


def rows_as_csv(rows: Sequence[dict[str, Any]]) -> str:
    """The table of predictions."""
    return rows_text(rows, list(rows[0]))
