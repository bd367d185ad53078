"""kill -9 during `verify` and `rehearse`: the same command, started again, ends with the same record, each day once.

python -m tests.torture.records --seed 1 --kills 10
"""

import argparse
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

_TINY = ("--workers", "1")
COMMANDS = {
    "verify": ("verify", "--maps", "maps", "--against", "fires", "--out", "record"),
    "rehearse": ("rehearse", "--data", "fires", "--model", "student", "--threshold", "0.5", "--out", "record", *_TINY),
}


def make_inputs(folder: Path) -> None:
    """A student that knows nothing, fires, and the forecasts of some of their days."""
    from fcer.data.catalog import open_catalog
    from fcer.data.fire_view import as_of
    from fcer.data.synthetic.fires import Recipe, synthesize
    from fcer.deploy.map_files import MapFiles
    from fcer.models.calibration_files import save_calibration
    from fcer.models.student_files import load_student
    from forecast_cases import calibration_of
    from vegetation_student import write_vegetation_student

    synthesize(Recipe((2021,), fires_per_year=3, image_size=(32, 40), fire_days=(6, 7), seed=4), folder / "fires")
    student = write_vegetation_student(folder / "student", "key", arch="unet_t1")
    save_calibration(student, calibration_of("key"))
    identity = {"uri": "x", "student_key": "key", "code_version": "0"}
    files = MapFiles(load_student(student), identity, calibration_of("key"), 0.5, False, False)
    for fire in open_catalog(folder / "fires", [2021]).fires:
        assert fire.dates is not None
        for day in fire.dates[1:-1]:
            files.write(as_of(fire, day), folder / "maps" / str(day) / f"{fire.name}.tif")


def start(command: str, folder: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db"}
    with (folder / "said.txt").open("wb") as said:
        call = [sys.executable, "-m", "fcer", *COMMANDS[command]]
        return subprocess.Popen(call, cwd=folder, env=environment, start_new_session=True, stdout=said, stderr=said)


def kept(folder: Path) -> dict[str, Any]:
    """The record on disk, and in MLflow: of each run of it its metrics, one row each, and whether it is finished.

    Maps say when they were made, and count by their names.
    """
    found: dict[str, Any] = {
        str(path.relative_to(folder)): b"" if path.suffix == ".tif" else path.read_bytes()
        for path in sorted((folder / "record").rglob("*"))
        if path.is_file()
    }
    with sqlite3.connect(folder / "mlflow.db") as store:
        runs = store.execute("SELECT run_uuid, name, status FROM runs WHERE lifecycle_stage = 'active'").fetchall()
        for run, name, status in sorted(runs, key=lambda row: row[1]):
            if name.split()[0] in ("verify", "rehearse"):
                continue  # the commands themselves: as many as were started
            rows = store.execute("SELECT key, step, timestamp, value FROM metrics WHERE run_uuid = ?", [run]).fetchall()
            found.setdefault(f"run {name}", []).append((status, sorted(rows)))
    return found


def killed(command: str, moment: float, sound: Path, folder: Path) -> str:
    """How the record of a command that was killed once differs; "" where it does not."""
    shutil.copytree(sound, folder)
    first = start(command, folder)
    time.sleep(moment)
    if first.poll() is None:
        os.killpg(first.pid, 9)
    first.wait()
    if start(command, folder).wait() != 0:
        return (folder / "said.txt").read_text().splitlines()[-1]
    ours, theirs = kept(folder), kept(sound.with_name(command))
    odd = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
    return f"{odd[0]} differs" if odd else ""


def main() -> int:
    """0 where everything held."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture.records", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kills", type=int, default=10, help="of each command")
    parser.add_argument("--only", nargs="+", choices=list(COMMANDS), default=list(COMMANDS))
    options = parser.parse_args()
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    failures = 0
    with tempfile.TemporaryDirectory(prefix="records-") as temporary:
        make_inputs(sound := Path(temporary) / "sound")
        for command in options.only:
            whole = shutil.copytree(sound, sound.with_name(command))
            began = time.monotonic()
            if start(command, whole).wait() != 0:
                print((whole / "said.txt").read_text())
                return 1
            seconds = time.monotonic() - began
            rng = np.random.default_rng([options.seed, len(command)])
            for number in range(options.kills):
                moment = float(rng.uniform(0.2, 1.0) * seconds)  # before that it is imports alone
                wrong = killed(command, moment, sound, sound.with_name(f"{command}-{number}"))
                failures += bool(wrong)
                print(f"{command} {number}, after {moment:.1f} s of {seconds:.1f}: {wrong or 'the same'}", flush=True)
    print(f"{len(options.only) * options.kills} killed, {failures} with another record")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
