import io

import pandas as pd
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fcer.runtime.csv_cells import guarded, rows_text, table_text, unguarded

TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])), st.text("'=+-@\t\r\n \u00a0\ufeff1a\",＝", max_size=4)
)


@given(TEXTS)
@example("'=1")
@example("''")
@example("\n=1")
@example(" \t=1")
def test_no_cell_is_a_formula_and_each_comes_back(text: str):
    cell = guarded(text)
    assert not cell.lstrip(" \n\x0b\x00\ufeff\u00a0").startswith(("=", "+", "-", "@", "\t", "\r", "＝"))
    assert unguarded(cell) == text


@settings(max_examples=50)
@given(st.lists(TEXTS.filter(lambda text: "\0" not in text), min_size=1, max_size=4))
@example(["a\rb", "\r\n=1"])
def test_a_table_is_read_back_as_it_was(names: list[str]):
    """A name with a carriage return ended its row."""
    table = pd.DataFrame({"fire": names, "value": range(len(names))})
    for text in (table_text(table), rows_text(table.to_dict("records"), list(table))):
        read = pd.read_csv(io.StringIO(text), dtype={"fire": str}, keep_default_na=False)
        assert read["fire"].map(unguarded).tolist() == names
        assert read["value"].tolist() == list(range(len(names)))
