"""`make torture`: malformed inputs and kills, seeded; tried and held by class, and what did not hold.

python -m tests.torture --seed 1 --cases 100 --kills 10 --only npz "kill evaluate"
python -m tests.torture --only yaml --case 17      one case again, with its traceback
"""

import argparse
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import redirect_stdout
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from .cases import Case
from .corpus import CLASSES, Outcome, make, run_class, run_one
from .kills import KILLS, run_kill
from .sound import make_sound
from .warm import prepare


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=90, help="of each class of malformed inputs")
    parser.add_argument("--kills", type=int, default=8, help="of each command that is killed")
    parser.add_argument("--only", nargs="+", choices=[*CLASSES, *KILLS], default=[*CLASSES, *KILLS])
    parser.add_argument("--case", type=int, help="this case alone, in this process")
    return parser.parse_args()


def main() -> int:
    """0 where everything held."""
    options = _options()
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    failures: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="torture-") as temporary:
        sound, folder = Path(temporary) / "sound", Path(temporary) / "case"
        sound.mkdir()
        with redirect_stdout(None):
            make_sound(sound)
        if options.case is not None:
            case = make(options.only[0], options.seed, options.case, sound, folder)
            print(case.what, "\n", " ".join(case.arguments))
            if case.ask is not None:
                print(case.ask())
                return 0
            return run_one(Case(case.what, (*case.arguments, "--debug"), case.environment), folder)
        prepare()
        print(f"{'seed ' + str(options.seed):<18}{'tried':>7}{'held':>7}{'accepted':>10}{'s':>7}", flush=True)
        for name in options.only:
            outcomes: Iterable[Outcome]
            if name in CLASSES:
                outcomes = run_class(name, options.seed, range(options.cases), sound, folder)
            else:
                outcomes = (run_kill(name, options.seed, number, folder) for number in range(options.kills))
            started = time.monotonic()
            done = list(outcomes)
            held = [outcome for outcome in done if not outcome.failure]
            accepted = sum(outcome.code == 0 for outcome in held)
            seconds = time.monotonic() - started
            print(f"{name:<18}{len(done):>7}{len(held):>7}{accepted:>10}{seconds:>7.0f}", flush=True)
            for outcome in done:
                if outcome.failure:
                    failures[name, outcome.failure].append(outcome)
    for (name, failure), several in failures.items():
        print(f"{name}: {failure}\n    {len(several)} times, such as case {several[0].number} ({several[0].what[:80]})")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
