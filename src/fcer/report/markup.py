"""Pieces of HTML, with every text escaped; what is called markup is HTML already."""

import base64
import html
import re
from collections.abc import Sequence

import pandas as pd

from fcer.runtime.csv_cells import table_text

__all__ = ["contents", "csv_text", "download", "downloads", "note", "section", "table", "table_row", "with_spread"]


def section(title: str, *markup: str) -> str:
    """A part of the page under a heading, which the list of contents finds by."""
    anchor = "part-" + "-".join(re.findall("[a-z0-9]+", title.lower()))
    return f'<section id="{anchor}">\n<h2>{html.escape(title)}</h2>\n' + "\n".join(markup) + "\n</section>"


def contents(sections: Sequence[str]) -> str:
    """A list of links to the parts of a page that `section` made."""
    parts = re.findall('<section id="([^"]*)">\n<h2>(.*?)</h2>', "\n".join(sections))
    items = "\n".join(f'<li><a href="#{anchor}">{title}</a></li>' for anchor, title in parts)
    return f'<nav id="contents" aria-label="Contents">\n<ol>\n{items}\n</ol>\n</nav>'


def note(text: str) -> str:
    """A small remark."""
    return f'<p class="note">{html.escape(text)}</p>'


def table(heads: Sequence[str], groups: Sequence[Sequence[str]]) -> str:
    """A table of groups of rows, such as one for each year, with a line between groups."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in heads)
    bodies = "\n".join("<tbody>\n" + "\n".join(rows) + "\n</tbody>" for rows in groups)
    return f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n{bodies}\n</table></div>'


def table_row(labels: Sequence[str], markup: Sequence[str]) -> str:
    """A row of labels and of cells that are markup."""
    cells = [*(html.escape(label) for label in labels), *markup]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def with_spread(value: str, spread: str, *, best: bool = False) -> str:
    """A cell: a number, its spread where it has one, bold where it is the best."""
    shown = html.escape(value) + (f" <small>± {html.escape(spread)}</small>" if spread else "")
    return f"<strong>{shown}</strong>" if best else shown


def downloads(*links: str) -> str:
    """A line of links from `download`."""
    return f'<p class="save">{"".join(links)}</p>'


def download(name: str, content: str, kind: str = "text/csv") -> str:
    """A link that holds a file and saves it under a name."""
    encoded = base64.b64encode(content.encode()).decode()
    return (
        f'<a download="{html.escape(name)}" href="data:{kind};charset=utf-8;base64,{encoded}">{html.escape(name)}</a>'
    )


def csv_text(frame: pd.DataFrame, digits: int | None = None) -> str:
    """A table as CSV: to the last digit, or to some digits where there are thousands of pixels."""
    return table_text(frame, float_format=None if digits is None else f"%.{digits}g")
