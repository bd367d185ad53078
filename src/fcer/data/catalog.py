"""A dataset's folder, fire by fire: what can be used, and what cannot and why."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fcer.data.fire import Fire
from fcer.data.geotiff import open_geotiff
from fcer.data.hdf5 import open_hdf5
from fcer.errors import DataError, FcerWarning

__all__ = ["Catalog", "find_years", "open_catalog", "warn_of"]


@dataclass(frozen=True)
class Catalog:
    """The fires of some years in the order of year and name, and a sentence for each that is broken."""

    root: Path
    fires: tuple[Fire, ...]
    problems: tuple[str, ...]

    def of(self, years: Iterable[int]) -> tuple[Fire, ...]:
        """The fires of `years`, which must each have one at least."""
        wanted = tuple(years)
        for year in wanted:
            if not any(fire.year == year for fire in self.fires):
                raise DataError(
                    f"{self.root / str(year)}: no usable fire of {year}; "
                    "`fcer inspect --data` on the folder lists what is there and what is broken"
                )
        return tuple(fire for fire in self.fires if fire.year in wanted)


def open_catalog(root: Path, years: Sequence[int] | None = None) -> Catalog:
    """Open every fire of `years` (all there are) below `root`, in either form; broken ones become problems."""
    there = find_years(root)
    fires: list[Fire] = []
    problems: list[str] = []
    for year in there if years is None else years:
        try:
            entries = _entries(root / str(year))
        except PermissionError:
            problems.append(f"{root / str(year)}: no permission to read it; run chmod +rx on it or ask its owner")
            continue
        for path, open_fire in entries:
            try:
                fires.append(open_fire(path))
            except DataError as error:
                problems.append(str(error))
    return Catalog(root, tuple(fires), tuple(problems))


def find_years(root: Path) -> list[int]:
    """The years that `root` has a folder for; a DataError where it has none."""
    if not root.is_dir():
        raise DataError(f"{root}: no such folder; give --data a folder that holds YEAR/fire_X.hdf5")
    years = sorted(int(p.name) for p in root.iterdir() if p.is_dir() and p.name.isdigit() and len(p.name) == 4)
    if not years:
        raise DataError(f"{root}: no folder named by a year in it; WildfireSpreadTS has YEAR/fire_X.hdf5")
    return years


def warn_of(problems: Sequence[str]) -> None:
    """Say what is left out, so that it is never silent."""
    for problem in problems:
        warnings.warn(f"left out: {problem}", FcerWarning, stacklevel=2)


def _entries(folder: Path) -> list[tuple[Path, Callable[[Path], Fire]]]:
    """The fires of a year's folder by name. A fire that is there in both forms is read from HDF5."""
    if not folder.is_dir():
        return []
    entries: dict[str, tuple[Path, Callable[[Path], Fire]]] = {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.suffix.lower() in (".hdf5", ".h5"):
            entries[path.stem] = (path, open_hdf5)
        elif path.is_dir():
            entries.setdefault(path.name, (path, open_geotiff))
    return [entries[name] for name in sorted(entries)]
