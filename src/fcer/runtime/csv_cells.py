"""Text in CSV files that a spreadsheet does not run, and that is read back as it was: a fire may be called
`=HYPERLINK(...)`."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

__all__ = ["guarded", "rows_text", "table_text", "unguarded"]

_BLANK = r"[\s\x00-\x1f\ufeff\u200b]"
_RUN = re.compile(rf"'*(?:{_BLANK}*[=+\-@＝＋－＠]|[\t\r\n])")
"""Programs drop blanks before they look whether a formula follows, and some read the signs of full width alike."""


def guarded(text: str) -> str:
    """The text as a cell: an apostrophe before what a spreadsheet would take for a formula.

    >>> guarded("=1+1"), guarded(" =1+1"), guarded("fire_7")
    ("'=1+1", "' =1+1", 'fire_7')
    """
    return f"'{text}" if _RUN.match(text) else text


def unguarded(cell: str) -> str:
    """The text that became the cell."""
    return cell[1:] if cell.startswith("'") and _RUN.match(cell) else cell


def rows_text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Rows as CSV."""
    cells = [{name: _cell(value) for name, value in row.items()} for row in rows]
    text = io.StringIO(newline="")
    quoting = _quoting([*columns, *(value for row in cells for value in row.values())])
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n", quoting=quoting)
    writer.writeheader()
    writer.writerows(cells)
    return text.getvalue()


def table_text(table: pd.DataFrame, **how: Any) -> str:
    """A table as CSV, otherwise written as pandas is told."""
    words = {str(name): table[name].map(_cell) for name in table if not is_numeric_dtype(table[name])}
    quoting = _quoting([*map(str, table), *(value for column in words.values() for value in column)])
    return str(table.assign(**words).to_csv(index=False, lineterminator="\n", quoting=quoting, **how))


def _cell(value: Any) -> Any:
    return guarded(value) if isinstance(value, str) else value


def _quoting(values: Iterable[Any]) -> Any:
    """A carriage return ends a line, and Python's csv does not put one alone into quotes unless it is told to."""
    returns = any(isinstance(value, str) and "\r" in value for value in values)
    return csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
