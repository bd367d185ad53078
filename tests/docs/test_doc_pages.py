"""Pages without a build: links lead somewhere, Python blocks compile, lists are complete."""

import re
import tomllib
from pathlib import Path

import command_pages
import pytest
from tutorial_pages import TUTORIALS

import fcer
from documentation import DOCS, PAGES, README, ROOT, blocks
from fcer.commands import COMMANDS
from fcer.config.checks import METHODS
from fcer.config.fields import fields
from fcer.core.region_sweep import SweepCurve

GENERATED = {
    *("reference/commands.md", "reference/settings.md", "reference/python.md"),
    *("figures/regions.svg", "figures/within.svg"),
    *(f"tutorials/{script.stem}.md" for script in TUTORIALS),
}


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_to_a_file(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith(("https://", "#")):
            continue
        found = (page.parent / target.partition("#")[0]).resolve()
        name = found.relative_to(ROOT).as_posix().removeprefix("docs/")
        assert found.exists() or name in GENERATED, f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(DOCS)) for page in PAGES])
def test_page_has_a_place_in_the_navigation(page: Path) -> None:
    assert str(page.relative_to(DOCS)) in (ROOT / "mkdocs.yml").read_text()


def test_python_blocks_compile() -> None:
    found = list(blocks("python"))
    assert len(found) >= 4
    for block in found:
        compile(block.text, block.page, "exec")


def test_files_that_pages_name_are_there() -> None:
    text = "".join(page.read_text() for page in PAGES)
    named = {*re.findall(r"experiments/\w+\.yaml", text), *re.findall(r"`(\w+/\w+(?:/\w+)*\.py)`", text)}
    assert "experiments/paper.yaml" in named
    for name in named:
        assert (ROOT / name).exists() or (ROOT / "src" / "fcer" / name).exists(), name


def test_stable_page_lists_the_public_names() -> None:
    listed = set(re.findall(r"`fcer\.(\w+)`", (DOCS / "reference" / "stable.md").read_text()))
    assert listed == set(fcer.__all__)


def test_pages_tell_of_every_method_column_and_dependency() -> None:
    """What is added to the code and not to the page that lists it is named here."""
    fcer_page, install, metrics = (
        (DOCS / name).read_text() for name in ("understand/fcer.md", "install.md", "reference/metrics.md")
    )
    assert [name for name in METHODS if f"| `{name}` |" not in fcer_page] == []
    columns = [name for name in SweepCurve._fields if not name.startswith("radius")]
    assert [name for name in columns if f"`{name}`" not in metrics] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [re.split(r"[>=<\[]", text)[0] for text in project["dependencies"]]
    assert [name for name in needed if name not in install] == []
    assert [name for name in project["optional-dependencies"] if f"| `{name}` |" not in install] == []


def test_reference_has_every_command_and_setting() -> None:
    commands, settings = command_pages.commands_page(), command_pages.settings_page()
    for name, command in COMMANDS.items():
        section = commands.split(f"\n## fcer {name}\n")[1].split("\n## ")[0]
        assert command.example in section
        for key in command.options:
            assert f"| `--{key.replace('_', '-')}`" in section, f"{name} {key}"
    for key in fields():
        assert settings.count(f"\n| `{key}` |") == 1
