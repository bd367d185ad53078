"""The documentation's sources, and the blocks of code in them."""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
README = ROOT / "README.md"

_BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    language: str
    text: str


def blocks(language: str) -> Iterator[Block]:
    """All blocks of a language, in the order of pages."""
    for page in (README, *PAGES):
        for text in blocks_of(page, language):
            yield Block(str(page.relative_to(ROOT)), language, text)


def blocks_of(page: Path, language: str) -> list[str]:
    """The blocks of one page."""
    return [textwrap.dedent(text) for _, found, text in _BLOCK.findall(page.read_text()) if found == language]
