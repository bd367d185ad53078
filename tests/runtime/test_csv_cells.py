from hypothesis import example, given
from hypothesis import strategies as st

from fcer.runtime.csv_cells import guarded, unguarded


@given(st.one_of(st.text(), st.text("'=+-@\t\r 1a", max_size=4)))
@example("'=1")
@example("''")
def test_no_cell_is_a_formula_and_each_comes_back(text: str):
    cell = guarded(text)
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert unguarded(cell) == text
