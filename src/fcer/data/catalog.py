"""A dataset's folder, fire by fire: what can be used, and what cannot and why."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fcer.data.fire import Fire
from fcer.data.geotiff import day_files, open_geotiff
from fcer.data.hdf5 import open_hdf5
from fcer.data.readers import read_by_others
from fcer.errors import DataError, warn

__all__ = ["Catalog", "find_years", "open_catalog", "open_fires", "warn_of"]


_HDF5 = (".hdf5", ".h5")
_Entry = tuple[Path, Callable[..., Fire]]
"""Where a fire lies, and what opens it."""


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
    """Open every fire of `years` (all there are) below `root`, in whichever form; broken ones become problems."""
    if (brought := read_by_others(root)) is not None:
        kept = tuple(fire for fire in brought[0] if years is None or fire.year in years)
        return Catalog(root, kept, tuple(brought[1]))
    there = find_years(root)
    fires: list[Fire] = []
    problems: list[str] = []
    for year in there if years is None else years:
        try:
            entries = _entries(root / str(year))
        except PermissionError:
            problems.append(f"{root / str(year)}: no permission to read it; run chmod +rx on it or ask its owner")
            continue
        _open(entries, fires, problems)
    return Catalog(root, tuple(fires), tuple(problems))


def open_fires(path: Path) -> Catalog:
    """The fire that `path` is, or the fires in it and in its folders named by years; they may lie anywhere.

    Broken ones become problems; a DataError where there is none at all.
    """
    if path.name in ("", ".."):
        path = path.resolve()  # a fire is called as its folder is
    if (brought := read_by_others(path)) is not None:
        return Catalog(path, tuple(brought[0]), tuple(brought[1]))
    entries = [(found, partial(open_fire, any_folder=True)) for found, open_fire in _fires_at(path)]
    if not entries:
        raise DataError(f"{path}: no fire in it; give a fire_X.hdf5, a folder of DATE.tif, or a folder of such fires")
    fires: list[Fire] = []
    problems: list[str] = []
    _open(entries, fires, problems)
    return Catalog(path, tuple(fires), tuple(problems))


def _open(entries: Sequence[_Entry], fires: list[Fire], problems: list[str]) -> None:
    """Add each fire, or the sentence that says why it cannot be used."""
    for path, open_fire in entries:
        try:
            fires.append(open_fire(path))
        except DataError as error:
            problems.append(str(error))


def _fires_at(path: Path) -> list[_Entry]:
    if path.suffix.lower() in _HDF5 and path.is_file():
        return [(path, open_hdf5)]
    if not path.is_dir():
        reason = "is no HDF5 file" if path.is_file() else "no such file or folder"
        raise DataError(f"{path}: {reason}; give --input a fire_X.hdf5, a folder of DATE.tif, or a folder of fires")
    if day_files(path):
        return [(path, open_geotiff)]
    try:
        years = [folder for folder in sorted(path.iterdir()) if _is_year(folder) and not day_files(folder)]
        direct = [entry for entry in _entries(path) if entry[0] not in years]
        return [*direct, *(entry for year in years for entry in _entries(year))]
    except PermissionError as error:
        raise DataError(f"{error.filename}: no permission to read it; run chmod +rx on it or ask its owner") from None


def find_years(root: Path) -> list[int]:
    """The years that `root` has a folder for; a DataError where it has none."""
    if not root.is_dir():
        raise DataError(f"{root}: no such folder; give --data a folder that holds YEAR/fire_X.hdf5")
    years = sorted(int(p.name) for p in root.iterdir() if _is_year(p))
    if not years:
        raise DataError(f"{root}: no folder named by a year in it; WildfireSpreadTS has YEAR/fire_X.hdf5")
    return years


_MOST_SAID = 10
_said: set[str] = set()


def warn_of(problems: Sequence[str]) -> None:
    """Say what is left out, so that it is never silent: each problem once a process, however often data is opened."""
    new = [problem for problem in problems if problem not in _said]
    _said.update(new)
    for problem in new[:_MOST_SAID]:
        warn(f"left out: {problem}")
    if len(new) > _MOST_SAID:
        rest = f"{len(new) - _MOST_SAID} more fires, {len(problems)} in all"
        warn(f"left out: {rest}; `fcer inspect --data` lists them")


def _is_year(path: Path) -> bool:
    return path.is_dir() and path.name.isdigit() and len(path.name) == 4


def _entries(folder: Path) -> list[_Entry]:
    """The fires of a folder by name. A fire that is there in both forms is read from HDF5."""
    if not folder.is_dir():
        return []
    entries: dict[str, _Entry] = {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.suffix.lower() in _HDF5:
            entries[path.stem] = (path, open_hdf5)
        elif path.is_dir():
            entries.setdefault(path.name, (path, open_geotiff))
    return [entries[name] for name in sorted(entries)]
