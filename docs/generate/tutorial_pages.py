"""Tutorials: scripts that the build runs, shown as pages with what they print and draw.

A script's docstring opens the page. Comments that begin a line with `# %%` end a block of code; the comment lines that
follow are text. `![caption](name.png)` in the text shows a picture that the script wrote.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["TUTORIALS", "run_tutorial", "tutorial_page"]

TUTORIALS = sorted((Path(__file__).parents[1] / "tutorials").glob("*.py"))
_DOCSTRING = re.compile(r'\A"""(.*?)"""\n', re.DOTALL)


def run_tutorial(script: Path) -> tuple[str, dict[str, bytes]]:
    """Run a script in an empty folder: what it printed, and the pictures it wrote there."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, str(script)],
            cwd=folder,
            env={**os.environ, "MPLBACKEND": "Agg", "OMP_WAIT_POLICY": "PASSIVE"},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"{script.name} failed:\n{done.stderr}")
        pictures = {path.name: path.read_bytes() for path in Path(folder).glob("*.png")}
    return done.stdout, pictures


def tutorial_page(script: Path, output: str) -> str:
    """The script as Markdown, and what it printed at the end."""
    source = script.read_text()
    opening = _DOCSTRING.match(source)
    if opening is None:
        raise ValueError(f"{script}: a tutorial begins with a docstring")
    title, _, text = opening[1].partition("\n")
    parts = [f"# {title.rstrip('.')}", text.strip()]
    for block in source[opening.end() :].split("\n# %%"):
        parts += _text_and_code(block)
    where = f"The whole script is `docs/tutorials/{script.name}`; the build of these pages ran it."
    printed = ["## What it prints", f"```text\n{output.rstrip()}\n```"] if output.strip() else []
    return "\n\n".join(part for part in [*parts, *printed, where] if part) + "\n"


def _text_and_code(block: str) -> list[str]:
    lines = block.split("\n")
    n_text = next((i for i, line in enumerate(lines) if i and not line.startswith("#")), len(lines))
    text = "\n".join(line.removeprefix("#").removeprefix(" ") for line in lines[:n_text])
    code = "\n".join(lines[n_text:]).strip()
    return [text.strip(), f"```python\n{code}\n```" if code else ""]
