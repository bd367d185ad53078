from collections.abc import Callable
from pathlib import Path

import pytest

from fcer.cli import main


@pytest.fixture
def sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What `fcer ingest` says of a file that it refuses: one line, exit code 2."""

    def said(path: Path, *options: str) -> str:
        code = main(["ingest", "--detections", str(path), "--work", str(tmp_path / "work"), *options])
        lines = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("fcer: warning: ")]
        assert code == 2 and len(lines) == 1, lines
        return lines[0]

    return said
