"""What grows with the data, and how: fires (convert, inspect), samples (cache, train), trials (search).

Each size is measured in a process of its own, with its peak of memory. Detections and maps have their own modules.
"""

import sys
import tempfile
from pathlib import Path

from tests.benchmarks.rows import grows
from tests.benchmarks.timing import apart, print_cost

sys.path.append(str(Path(__file__).parents[1] / "helpers"))  # which import one another by their bare names

FIRES, SAMPLED, TRIALS = (8, 16, 32), (8, 16, 32), (8, 16, 32)
YEARS = (2018, 2019, 2020, 2021)


def main() -> None:
    """Print the rows."""
    for what, call, unit, sizes in (
        ("convert", "converted", "fires", FIRES),
        ("inspect", "inspected", "fires", FIRES),
        ("caching features", "cached", "fires", SAMPLED),
        ("an epoch of training", "trained", "fires", SAMPLED),
        ("search", "searched", "trials", TRIALS),
    ):
        grows(what, unit, [(size, *measured(call, size)) for size in sizes], limit=1.2)


def measured(call: str, size: int) -> list[float]:
    """Seconds and MB."""
    with tempfile.TemporaryDirectory() as folder:
        return apart("growth", f"{call}({folder!r}, {size})")


def made(folder: str, fires: int, side: int = 96, geotiff: bool = False) -> Path:
    """Fires over the years of the dataset, as many in each."""
    from fcer.data.synthetic.fires import Recipe, synthesize

    recipe = Recipe(YEARS, fires // len(YEARS), (side, side), (8, 8), 3)
    synthesize(recipe, Path(folder) / "fires", geotiff=geotiff, workers=1)
    return Path(folder) / "fires"


def converted(folder: str, fires: int) -> None:
    """From GeoTIFF."""
    from fcer.data.conversion import convert

    source = made(folder, fires, geotiff=True)
    for file in source.glob("*/*.hdf5"):
        file.unlink()
    print_cost(lambda: convert(source, Path(folder) / "out", workers=1))


def inspected(folder: str, fires: int) -> None:
    """With every fire surveyed."""
    from fcer.data.inspection import inspect

    source = made(folder, fires)
    print_cost(lambda: inspect(source, features=(3, 38, 39), crop=32, cache=Path(folder) / "cache", workers=1))


def cached(folder: str, fires: int) -> None:
    """Features and targets of three narrow members."""
    from fcer.training.feature_cache import cache_features
    from teaching_cases import make_teaching, save_members
    from training_cases import tiny_data

    dataset = tiny_data(made(folder, fires))
    teaching = make_teaching(dataset, save_members(Path(folder) / "members", dataset), crop=96)
    print_cost(lambda: cache_features(teaching, Path(folder) / "features"))


def trained(folder: str, fires: int) -> None:
    """One narrow member, one epoch with its validation, from files to its checkpoint."""
    from dataclasses import replace

    from fcer.training import train_member
    from training_cases import FOLD, QUICK, tiny_data

    dataset = tiny_data(made(folder, fires))
    settings = replace(QUICK, epochs=1, batch_size=4, crop=96)
    print_cost(lambda: train_member(dataset, FOLD, settings, Path(folder) / "fold0.safetensors"))


def searched(folder: str, trials: int) -> None:
    """A study of small heads in one worker: what a trial costs besides its fit is the study's."""
    from fcer.search.crew import run_crew
    from fcer.search.storage import open_storage, parse_store
    from fcer.search.study import open_study
    from search_cases import make_job, small_space, write_cache

    root = Path(folder)
    space, store = small_space(root), parse_store(f"sqlite:///{folder}/studies.db", root)
    open_study(open_storage(store), store, "small", objective="auroc", space=space.text())
    job = make_job(store, space, write_cache(root / "cache"), trials=trials, sampler="tpe")
    print_cost(lambda: run_crew(job, 1, lambda worker: [worker.ended() for _ in worker.begun()]))
