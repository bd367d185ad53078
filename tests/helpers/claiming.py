"""A process that claims trials and ends each after a moment."""

import multiprocessing
import time
from pathlib import Path

import optuna

from fcer.runtime.processes import this_process
from fcer.search.queue import TrialQueue
from fcer.search.samplers import make_sampler
from fcer.search.space import read_space
from fcer.search.storage import TrialStore, open_storage, parse_store
from fcer.search.study import open_study

_FORK = multiprocessing.get_context("fork")  # Optuna is imported once


class Claimer:
    """Such a process, forked: `claimed` holds the numbers of the trials that it began."""

    def __init__(self, store: TrialStore, folder: Path, trials: int, seconds: float, sampler: str = "tpe") -> None:
        self.claimed = _FORK.SimpleQueue()
        arguments = (store.url, folder / "space.yaml", trials, seconds, sampler, self.claimed)
        self.process = _FORK.Process(target=_claim, args=arguments)
        self.process.start()

    def rest(self) -> list[int]:
        """What it claimed since it was last asked, once it has ended."""
        self.process.join()
        numbers = []
        while not self.claimed.empty():
            numbers.append(self.claimed.get())
        return numbers


def _claim(url: str, file: Path, trials: int, seconds: float, sampler: str, claimed) -> None:
    store, space = parse_store(url, Path("unused")), read_space(file)
    storage = open_storage(store)
    open_study(storage, store, "small", objective="auroc", space=space.text())
    seeded = make_sampler(sampler, this_process().pid)
    study = optuna.load_study(study_name="small", storage=storage, sampler=seeded)
    queue = TrialQueue(study, store, space, trials, grid=sampler == "grid")
    while trial := queue.claim(this_process()):
        lr = space.suggest(trial)["head_lr"]
        claimed.put(trial.number)
        time.sleep(seconds)
        study.tell(trial, float(lr))
