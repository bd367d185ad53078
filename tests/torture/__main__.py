"""`make torture`: malformed inputs, kills and other faults, seeded; tried and held by class, and what did not hold.

python -m tests.torture --seed 1 --cases 100 --kills 10 --faults 10 --only npz "kill evaluate" "flipped bit"
python -m tests.torture --only yaml --case 17      one case again, with its traceback
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from .cases import Case
from .corpus import CLASSES, Outcome, make, run_class, run_one
from .faults import FAULTS, needs, run_fault
from .kills import KILLS, run_kill
from .sound import make_sound
from .warm import prepare

_TELL_EVERY = 20.0
ALL = [*CLASSES, *KILLS, *FAULTS]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=60, help="of each class of malformed inputs")
    parser.add_argument("--kills", type=int, default=8, help="of each command that is killed")
    parser.add_argument("--faults", type=int, default=4, help="of each other fault; five times as many flipped bits")
    parser.add_argument("--only", nargs="+", choices=ALL, default=ALL, metavar="CLASS", help=", ".join(ALL))
    parser.add_argument("--case", type=int, help="this case alone; a malformed input in this process")
    return parser.parse_args()


def _one(options: argparse.Namespace, sound: Path, folder: Path) -> int:
    """A single case, to look at."""
    name = options.only[0]
    if name not in CLASSES:
        prepare()
        print((run_kill if name in KILLS else run_fault)(name, options.seed, options.case, folder))
        return 0
    case = make(name, options.seed, options.case, sound, folder)
    print(case.what, "\n", " ".join(case.arguments))
    if case.ask is not None:
        print(case.ask())
        return 0
    return run_one(Case(case.what, (*case.arguments, "--debug"), case.environment), folder)


def _count(name: str, options: argparse.Namespace) -> int:
    if name in CLASSES:
        return int(options.cases)
    return int(options.kills if name in KILLS else options.faults * (5 if name == "flipped bit" else 1))


def _outcomes(name: str, options: argparse.Namespace, sound: Path, folder: Path) -> Iterator[Outcome]:
    numbers = range(_count(name, options))
    if name in CLASSES:
        return run_class(name, options.seed, numbers, sound, folder)
    run = run_kill if name in KILLS else run_fault
    return (run(name, options.seed, number, folder) for number in numbers)


def _run(name: str, options: argparse.Namespace, sound: Path, folder: Path) -> int:
    """Try a whole class, and say how it goes; how many did not hold."""
    started = told = time.monotonic()
    done: list[Outcome] = []
    failed = 0
    for outcome in _outcomes(name, options, sound, folder):
        done.append(outcome)
        if outcome.failure:
            failed += 1
            print(f"{name} {outcome.number} ({outcome.what[:80]}): {outcome.failure}", flush=True)
        if time.monotonic() > told + _TELL_EVERY:
            told = time.monotonic()
            print(f"  {name}: {len(done)} of {_count(name, options)} tried, {len(done) - failed} held", flush=True)
    accepted = sum(outcome.code == 0 and not outcome.failure for outcome in done)
    shown = f"{accepted:>10}" if name in CLASSES else " " * 10
    seconds = time.monotonic() - started
    print(f"{name:<18}{len(done):>7}{len(done) - failed:>7}{shown}{seconds:>7.0f}", flush=True)
    return failed


def main() -> int:
    """0 where everything held."""
    options = _options()
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    failures = 0
    with tempfile.TemporaryDirectory(prefix="torture-", ignore_cleanup_errors=True) as temporary:
        sound, folder = Path(temporary) / "sound", Path(temporary) / "case"
        sound.mkdir()
        with redirect_stdout(None):
            make_sound(sound)
        if options.case is not None:
            return _one(options, sound, folder)
        prepare()
        print(f"{'seed ' + str(options.seed):<18}{'tried':>7}{'held':>7}{'accepted':>10}{'s':>7}", flush=True)
        for name in options.only:
            if name in FAULTS and (missing := needs(name)):
                print(f"{name:<18}not tried: {missing}", flush=True)
                continue
            failures += _run(name, options, sound, folder)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
