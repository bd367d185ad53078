"""The citation says the package's version and what the format asks for."""

import tomllib
from pathlib import Path

import yaml

from fcer import __version__

ROOT = Path(__file__).parents[2]


def test_citation_is_whole_and_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert str(citation["version"]) == __version__ == project["version"]
    assert citation["license"] == project["license"]
    for work in (citation["preferred-citation"], *citation["references"]):
        assert {"type", "title", "authors"} <= work.keys()
