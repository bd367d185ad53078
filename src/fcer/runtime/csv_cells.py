"""Text in CSV files that a spreadsheet does not run: a fire may be called `=HYPERLINK(...)`."""

import re

__all__ = ["guarded", "unguarded"]

_RUN = re.compile(r"'*[=+\-@\t\r]")


def guarded(text: str) -> str:
    """The text as a cell: an apostrophe before what a spreadsheet would take for a formula.

    >>> guarded("=1+1"), guarded("fire_7")
    ("'=1+1", 'fire_7')
    """
    return f"'{text}" if _RUN.match(text) else text


def unguarded(cell: str) -> str:
    """The text that became the cell."""
    return cell[1:] if cell.startswith("'") and _RUN.match(cell) else cell
