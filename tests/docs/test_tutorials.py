"""Tutorials run as they stand, in an empty folder."""

from pathlib import Path

import pytest
from tutorial_pages import TUTORIALS, run_tutorial, tutorial_page

EXPECTED = {
    "own_maps": ("entropy > class, AUROC per fire", {"own_maps_sweep.png"}),
    "study": ("AUROC of the student within 1.5 km of fire", set()),
    "zones": ("cannot be guaranteed by 9 calibration fires", {"zones_map.png"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("script", TUTORIALS, ids=lambda script: script.stem)
def test_tutorial_runs(script: Path) -> None:
    output, pictures = run_tutorial(script)
    sentence, names = EXPECTED[script.stem]
    assert sentence in output
    assert pictures.keys() == names
    page = tutorial_page(script, output)
    assert sentence in page
    for name in names:
        assert f"]({name})" in page


def test_a_tutorial_that_fails_says_why(tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text('"""Broken."""\n\nraise SystemExit("no such fire")\n')
    with pytest.raises(RuntimeError, match="no such fire"):
        run_tutorial(script)


def test_page_of_a_script(tmp_path: Path) -> None:
    script = tmp_path / "walk.py"
    script.write_text(
        '"""A walk.\n\nFirst words.\n"""\n\nimport math\n\n# %%\n# ## Part\n#\n# Text.\n\nprint(math.pi)\n'
    )
    page = tutorial_page(script, "3.14\n")
    assert page.startswith("# A walk\n\nFirst words.\n\n```python\nimport math\n```\n\n## Part\n\nText.\n\n```python\n")
    assert "```text\n3.14\n```" in page
