"""`fcer convert`: the GeoTIFF release into HDF5."""

import sys

from fcer.commands.launched import launched_run
from fcer.config import Resolved
from fcer.data.conversion import convert
from fcer.errors import DataError
from fcer.pipeline.study_data import StudyData

__all__ = ["run"]


def run(resolved: Resolved) -> None:
    """Convert, name what could not be, and fail only where nothing could."""
    config = resolved.config
    with launched_run("convert", resolved) as log:
        source = config.source or StudyData(config).synthetic(geotiff=True)
        out = config.out or config.work / f"{source.name}-hdf5"
        done = convert(source, out, workers=config.workers)
        for problem in done.problems:
            print(f"left out: {problem}", file=sys.stderr)
        if not done.converted + done.present:
            raise DataError(f"{source}: none of its {len(done.problems)} fires could be converted; see the lines above")
        left_out = f", {len(done.problems)} left out" if done.problems else ""
        said = f"{out}: {done.converted} fires converted, {done.present} already there{left_out}"
        log.note(said)
        print(said)
    print(f"next: fcer inspect --data {out}")
