"""`make bench` ends with what fell short, exit code 1, and all of it as JSON."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

SCRIPT = """
import sys
sys.path[:0] = [{root!r}]
from tests.benchmarks import __main__ as bench, rows
rows.show("quick enough", 1.0, 3.0, 2)
rows.hold("small enough", 0.1, 0.2, aim=0.15)
rows.grows("in proportion", "maps", [(100, 1.0, 50), (400, 4.0, 60)])
{also}
sys.exit(bench.main({names}))
"""


def bench(folder: Path, *names: str, also: str = "") -> tuple[int, str, list[dict]]:
    call = [sys.executable, "-c", SCRIPT.format(root=str(ROOT), names=list(names), also=also)]
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout, json.loads((folder / "work" / "bench.json").read_text())["rows"]


def test_all_as_promised(tmp_path: Path):
    code, said, rows = bench(tmp_path)
    assert code == 0 and "all 3 rows are as promised" in said
    assert [(row["kept"], row["value"]) for row in rows] == [(True, 3.0), (True, 0.1), (True, 1.0)]
    assert rows[2]["points"][1] == {"size": 400, "seconds": 4.0, "mb": 60}


def test_an_aim_that_is_not_reached_is_said_and_fails_nothing(tmp_path: Path):
    aims = (
        'rows.show("kept", 1.0, 3.0, 2, aim=4); rows.hold("held", 1.8, 2.5, aim=1); rows.show("more", 1, 5, 2, aim=4)'
    )
    code, said, rows = bench(tmp_path, also=aims)
    assert code == 0 and "all 6 rows are as promised" in said
    end = said[said.index("2 of them do not reach their aim on this machine:") :]
    assert "  kept " in end and "  held " in end and "more" not in end
    assert [row["reached"] for row in rows] == [True, True, True, False, False, True]
    assert all(row["kept"] for row in rows)


def test_what_falls_short_or_cannot_be_run_is_said_at_the_end(tmp_path: Path):
    code, said, rows = bench(tmp_path, "not_there")
    assert code == 1 and "1 of 4 rows fell short:" in said
    assert said.count("No module named 'tests.benchmarks.not_there'") == 2, "in its place, and at the end"
    assert (rows[-1]["kept"], rows[-1]["value"]) == (False, None)
