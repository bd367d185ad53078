"""The figures as PNG, PDF and SVG files, where the optional package kaleido and a browser are there."""

import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import plotly.io

from fcer.report.style import Figure
from fcer.runtime.files import atomic_path

__all__ = ["SUFFIXES", "write_static"]

SUFFIXES = (".png", ".pdf", ".svg")
_WIDTH = 640


def write_static(figures: Sequence[Figure], out: Path) -> tuple[list[Path], str]:
    """Write each panel in each format, as FIGURE_PANEL.SUFFIX.

    The files written; or none and, in one line, why and how to get them.
    """
    if find_spec("kaleido") is None:
        return [], "static figures are left out without kaleido; get it with pip install 'fcer[figures]'"
    panels = {
        figure.file_name(name): panel
        for figure in figures
        for name, panel in ({figure.name: figure.whole()} if figure.whole else figure.panels).items()
    }
    widths = [panel.layout.width or _WIDTH for panel in panels.values()]
    heights = [panel.layout.height for panel in panels.values()]
    written = []
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".static-", dir=out) as folder:
        for suffix in SUFFIXES:
            files = [Path(folder) / f"{name}{suffix}" for name in panels]
            try:
                plotly.io.write_images(list(panels.values()), files, width=widths, height=heights, scale=2)
            except RuntimeError as error:  # what plotly makes of a browser that is not there
                reason = " ".join(str(error).split()).partition(".")[0]
                return [], f"static figures are left out ({reason}); get one with plotly_get_chrome"
            for file in files:
                with atomic_path(out / file.name) as beside:
                    beside.write_bytes(file.read_bytes())
                written.append(out / file.name)
    return written, ""
