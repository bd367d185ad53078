"""A process that claims trials and ends each after a moment: `python claiming.py URL SPACE TRIALS SAMPLER SECONDS`."""

import sys
import time
from pathlib import Path

import optuna

from fcer.runtime.processes import this_process
from fcer.search.queue import TrialQueue
from fcer.search.samplers import make_sampler
from fcer.search.space import read_space
from fcer.search.storage import open_storage, parse_store
from fcer.search.study import open_study


def main() -> None:
    url, file, trials, sampler, seconds = sys.argv[1:]
    store, space = parse_store(url, Path("unused")), read_space(Path(file))
    storage = open_storage(store)
    open_study(storage, store, "small", objective="auroc", space=space.text())
    seeded = make_sampler(sampler, this_process().pid)
    study = optuna.load_study(study_name="small", storage=storage, sampler=seeded)
    queue = TrialQueue(study, store, space, int(trials), grid=sampler == "grid")
    while trial := queue.claim(this_process()):
        lr = space.suggest(trial)["head_lr"]
        print(trial.number, flush=True)
        time.sleep(float(seconds))
        study.tell(trial, float(lr))


if __name__ == "__main__":
    main()
