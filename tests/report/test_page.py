"""The page as a browser shows it: offline, whole, and with names that are only names."""

import base64
import html
import re

import pytest

from fcer.evaluation import evaluate_files
from fcer.report import write_report
from headless import needs_browser, open_page
from report_cases import write_years

EVIL = "<b>x"
TITLE = "A </title><script>document.body.dataset.evil = 1</script> report"
PROVENANCE = {"code <i>": 'a"b & <img src=x onerror="document.body.dataset.evil = 1">'}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    maps = write_years(folder / "maps", (2018, 2019), methods=("student", EVIL))
    results = evaluate_files(maps, bootstrap=20, progress=None)
    sets = {"utae_t5": results, "</script><u>": results}
    write_report(results, folder, maps=maps, ablation=sets, paper=True, title=TITLE, provenance=PROVENANCE)
    return folder / "report.html"


@pytest.fixture(scope="module")
def text(page):
    """Without the library, which is not ours to check."""
    return re.sub(r"<script>/\*\*.*?</script>", "", page.read_text(), flags=re.DOTALL)


@needs_browser
def test_every_plot_is_drawn_without_a_complaint_or_a_request(page, tmp_path):
    dom, console = open_page(page, tmp_path)
    # the page forbids itself every request, so that one would stand on the console
    assert console == []
    plots = dom.split('<div class="plot js-plotly-plot"')[1:]
    assert len(plots) == page.read_text().count('<div class="plot"') == 3 + 6 + 2 + 1 + 2 + 1 + 3 + 2 + 3 + 1
    assert all("main-svg" in plot for plot in plots)
    assert re.search(r"<body [^>]*data-plots=\"24\"", dom)
    assert "data-evil" not in dom.replace(html.escape(TITLE), "")
    assert re.search(r'class="legendtext"[^>]*>&lt;b&gt;x<', dom)
    # among plotly's own buttons is one that sends the plot to its makers
    shown = dom[dom.index("<main>") : dom.index("</main>")]
    buttons = set(re.findall(r'class="modebar-btn"[^>]*data-title="([^"]*)"', shown))
    assert buttons == {"Download plot as a PNG", "Reset axes"}


@needs_browser
def test_a_request_or_an_error_would_be_seen(page, tmp_path):
    broken = tmp_path / "broken.html"
    bad = '<img src="https://fcer.invalid/x.png"><script>nowhere()</script>'
    broken.write_text(re.sub(r"<main>.*</main>.*</body>", f"{bad}</body>", page.read_text(), flags=re.DOTALL))
    console = "\n".join(open_page(broken, tmp_path / "profile")[1])
    assert "fcer.invalid" in console
    assert "nowhere is not defined" in console


def test_names_are_only_names(text):
    assert EVIL not in text
    assert "<td>&lt;b&gt;x</td>" in text
    assert f"<title>{html.escape(TITLE)}</title>" in text
    assert "<img" not in text
    assert html.escape(PROVENANCE["code <i>"]) in text
    assert text.count("<script") == text.count("</script>")


def test_the_page_needs_nothing_but_itself(page, text):
    whole = page.read_text()
    assert whole.count("* plotly.js v") == 1
    assert not re.search(r"""(src|href)=["'](?!data:)""", text)
    assert "@import" not in text
    assert "url(" not in text
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', whole)[1]
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy


def test_the_numbers_behind_each_figure_can_be_saved(page, text):
    links = dict(re.findall(r'<a download="([^"]+)" href="data:[^,]*;base64,([^"]*)"', text))
    figures = sorted(page.parent.glob("figures/*.csv"))
    assert len(figures) == 10
    for path in [*figures, *(page.parent / name for name in ("table1.csv", "table1.md", "table1.tex", "tests.csv"))]:
        assert base64.b64decode(links[path.name]).decode() == path.read_text(), path.name
    assert {"own_errors.csv", "paper_comparison.csv"} <= set(links)


def test_every_figure_says_how_to_read_it(text):
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", text, flags=re.DOTALL)
    assert len(captions) == text.count("<figure>") == 10
    assert all(len(caption) > 60 for caption in captions)
