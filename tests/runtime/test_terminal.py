import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcer.runtime.terminal import one_line

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
