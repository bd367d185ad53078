import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcer.runtime.terminal import NowAndThen, one_line

CALL = "from fcer.runtime.terminal import safe_stdout; {}; print('0.8 ± 0.1'); import sys; print('é', file=sys.stderr)"


@pytest.mark.parametrize(("before", "code"), [("safe_stdout()", 0), ("pass", 1)])
def test_a_terminal_in_ascii_ends_nothing(before: str, code: int):
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    call = [sys.executable, "-c", CALL.format(before)]
    done = subprocess.run(call, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, "else this tests nothing"
    if code == 0:
        assert (done.stdout, done.stderr) == ("0.8 ? 0.1\n", "?\n")


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left(text: str):
    line = one_line(text)
    assert line.isprintable() and len(line.split("\n")) == 1


def test_where_there_is_no_terminal_a_line_comes_now_and_then(monkeypatch: pytest.MonkeyPatch):
    clock = iter((0.0, 30.0, 120.0, 130.0))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    progress = NowAndThen(10)
    assert progress.line(1) is None, "too soon"
    assert progress.line(4) == "epoch 4 of 10, 3 min left at most"
    assert progress.line(5) is None
