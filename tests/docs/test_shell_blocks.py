"""Every shell block of the documentation is made of commands that exist, with options and values that they take."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from itertools import pairwise

import pytest
import yaml

from documentation import README, ROOT, blocks, blocks_of
from fcer.cli import parse, resolved_of

# What is not ours: known by name, and not looked into
FOREIGN = {"source", "python3.11", "pip", ".venv/bin/pip", "dask", "docker", "cd", "cp", "printf", "curl"}


def _lines() -> Iterator[tuple[str, str]]:
    for block in blocks("sh"):
        joined = re.sub(r"(\\\n|\|\n)\s*", " ", block.text)
        for line in joined.splitlines():
            if line.strip() and not line.startswith("#"):
                yield block.page, line


LINES = list(_lines())


def _check_fcer(words: list[str]) -> None:
    options = parse(words)
    if str(options.config).startswith("work/"):
        options.config = None  # what another command writes first
    resolved_of(options)


def _check_mlflow(words: list[str]) -> None:
    if words[0] != "run":
        assert words[0] in ("models", "ui")
        return
    entry_points = yaml.safe_load((ROOT / "mlproject").read_text())["entry_points"]
    entry = words[words.index("-e") + 1]
    assert entry in entry_points
    given = [value.split("=", 1) for flag, value in pairwise(words) if flag == "-P"]
    _check_fcer([entry, *(word for key, value in given for word in (f"--{key.replace('_', '-')}", value))])


@pytest.mark.parametrize(("page", "line"), LINES, ids=[f"{page}: {line}" for page, line in LINES])
def test_line_is_a_command_that_exists(page: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    command, *words = shlex.split(line)
    if command == "fcer":
        _check_fcer(words)
    elif command == "mlflow":
        _check_mlflow(words)
    elif command == "make":
        assert re.search(rf"^{words[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    elif command == "docker" and words[:4] == ["compose", "run", "--rm", "worker"]:
        _check_fcer(words[4:])
    else:
        assert command in FOREIGN, f"{page}: {command} is neither ours nor known"


@pytest.mark.parametrize("block", blocks_of(README, "sh"))
def test_a_block_of_the_readme_says_what_it_needs_or_needs_nothing(block: str) -> None:
    """What needs nothing are targets of make: that it knows them is asked here, what they run is tested elsewhere."""
    if block.startswith("# needs a download"):
        return
    targets = [line.split("#")[0].split() for line in block.splitlines()]
    assert {command for command, _ in targets} == {"make"}
    for command, target in targets:
        subprocess.run([command, "--dry-run", target], cwd=ROOT, check=True, capture_output=True)


def test_a_wrong_option_would_be_found() -> None:
    with pytest.raises(Exception, match="unknown option --yaer"):
        _check_fcer(["train", "--yaer", "2021"])


def test_there_are_commands() -> None:
    used = {line.split()[1] for _, line in LINES if line.startswith("fcer ")}
    assert used >= {"main", "distill", "evaluate", "predict", "search", "ingest", "report", "promote"}
