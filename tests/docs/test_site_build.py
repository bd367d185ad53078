"""The site as `make docs` builds it: strict, whole, and without anything fetched from elsewhere."""

import os
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from documentation import ROOT

pytest.importorskip("mkdocstrings", reason="the documentation's tools are not installed: make docs installs them")
pytest.importorskip("material", reason="the documentation's tools are not installed: make docs installs them")


class _Page(HTMLParser):
    """Where a page leads, what it loads, and the places in it that can be led to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        self.places |= {known[name] for name in ("id", "name") if name in known}
        if tag == "a" and "href" in known:
            self.links.append(known["href"])
        if tag == "link" and known.get("rel") not in ("canonical", "next", "prev"):
            self.loaded.append(known.get("href", ""))
        if "src" in known:
            self.loaded.append(known["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return out


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, _Page]:
    return {path: _Page(path.read_text()) for path in site.rglob("*.html") if path.name != "404.html"}


def _local(page: Path, targets: list[str]) -> Iterator[tuple[str, Path, str]]:
    for target in targets:
        parts = urlsplit(target)
        if not parts.scheme:
            path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            yield target, path / "index.html" if path.is_dir() else path, unquote(parts.fragment)


@pytest.mark.slow
def test_links_lead_to_pages_and_places_in_them(pages: dict[Path, _Page]) -> None:
    assert len(pages) > 25
    for page, content in pages.items():
        for target, path, place in _local(page, content.links + content.loaded):
            assert path.exists(), f"{page.name}: {target}"
            if place and path in pages and not place.startswith("__"):
                assert place in pages[path].places, f"{page.name}: {target}"


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, _Page]) -> None:
    for page, content in pages.items():
        assert not [source for source in content.loaded if urlsplit(source).scheme not in ("", "data")], page
    for sheet in site.rglob("*.css"):
        assert "url(http" not in sheet.read_text()


@pytest.mark.slow
def test_public_names_have_their_entry(pages: dict[Path, _Page], site: Path) -> None:
    places = pages[site / "reference" / "python.html"].places
    assert places >= {
        "fcer.pipeline.study.Study.evaluation",
        "fcer.evaluation.evaluate.evaluate",
        "fcer.core.region_sweep.sweep",
        "fcer.maps.predicted_maps.PredictedMaps.from_arrays",
    }
