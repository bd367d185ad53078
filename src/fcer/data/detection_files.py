"""Which files hold detections, told by their names: nothing heavy is imported for it."""

from pathlib import Path

__all__ = ["is_detections"]

_ENDINGS = (".csv", ".json", ".csv.gz", ".json.gz", ".zip")


def is_detections(path: Path) -> bool:
    """Whether a file is one of detections, as NASA FIRMS offers them.

    >>> is_detections(Path("viirs.csv.gz")), is_detections(Path("fire_1.hdf5"))
    (True, False)
    """
    return path.name.lower().endswith(_ENDINGS)
