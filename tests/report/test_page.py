"""The page as a browser shows it: offline, whole, and with names that are only names."""

import base64
import html
import json
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
    assert len(plots) == page.read_text().count('<div class="plot"') == 1 + 3 + 6 + 2 + 1 + 2 + 1 + 3 + 2 + 3 + 6
    assert all("main-svg" in plot for plot in plots)
    assert re.search(r"<body [^>]*data-plots=\"30\"", dom)
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
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", text)
    assert "@import" not in text
    assert "url(" not in text
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', whole)[1]
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy


def test_the_numbers_behind_each_figure_can_be_saved(page, text):
    links = dict(re.findall(r'<a download="([^"]+)" href="data:[^,]*;base64,([^"]*)"', text))
    figures = sorted(page.parent.glob("figures/*.csv"))
    assert len(figures) == 11
    for path in [*figures, *(page.parent / name for name in ("table1.csv", "table1.md", "table1.tex", "tests.csv"))]:
        assert base64.b64decode(links[path.name]).decode() == path.read_text(), path.name
    assert {"own_errors.csv", "paper_comparison.csv"} <= set(links)


def test_every_figure_says_how_to_read_it(text):
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", text, flags=re.DOTALL)
    assert len(captions) == text.count("<figure>") == 11
    assert all(len(caption) > 60 for caption in captions)


def test_contents_link_to_every_part(text):
    titles = re.findall(r'<section id="([^"]+)">\n<h2>(.*?)</h2>', text)
    listed = re.search(r'<nav id="contents".*?</nav>', text, flags=re.DOTALL)[0]
    assert re.findall(r'<a href="#([^"]+)">(.*?)</a>', listed) == titles
    assert len(titles) == len({anchor for anchor, _ in titles}) > 8


def test_two_sentences_and_one_figure_come_first(text):
    opening = text[text.index("<h1>") : text.index('<nav id="contents"')]
    assert opening.count("<figure>") == opening.count('class="plot"') == 1
    said = re.findall(r"<p>(.*?)</p>", opening[opening.index('class="headline"') :])
    assert len(said) == 2
    assert all(len(sentence.split()) < 40 for sentence in said)


STEPS = """
const wait = () => new Promise((done) => setTimeout(done, 300));
(async () => {
  while (!document.body.dataset.plots) await wait();
  const drawn = (id) => document.getElementById(id).querySelectorAll(".legendtext, .ytick text").length;
  const visible = () => [...document.querySelectorAll(".maps > div")].filter((panel) => !panel.hidden).length;
  const colour = () => getComputedStyle(document.querySelector("#reliability .xtick text")).fill;
  const before = { light: colour(), maps: visible() };
  document.querySelector('.bar input[value="student"]').click();
  await wait();
  const names = [...document.querySelectorAll("#sweep_auroc .legendtext")].map((entry) => entry.textContent);
  document.querySelector(".bar button").click();
  await wait();
  const table = document.querySelector("table"), column = 9, firsts = [];
  for (let k = 0; k < 3; k++) {
    table.tHead.rows[0].cells[column].click();
    firsts.push([...table.querySelectorAll("tbody tr")].map((row) => row.cells[column].textContent));
  }
  const kept = { before, names, dark: colour(), maps: visible(), firsts, wide: document.documentElement.scrollWidth };
  document.body.dataset.seen = JSON.stringify(kept);
})();
"""


@needs_browser
def test_methods_themes_and_tables_answer_the_reader(page, tmp_path):
    changed = tmp_path / "steps.html"
    changed.write_text(page.read_text().replace("</body>", f"<script>{STEPS}</script></body>"))
    dom, console = open_page(changed, tmp_path / "profile")
    assert console == []
    seen = json.loads(html.unescape(re.search(r'data-seen="([^"]*)"', dom)[1]))
    assert seen["before"]["maps"] == 6 and seen["maps"] == 4, "a method that is left out has no maps"
    assert seen["names"] and "student" not in seen["names"] and EVIL in seen["names"]
    assert seen["dark"] != seen["before"]["light"]
    up, down, again = seen["firsts"]
    known = [text for text in up if text != "–"]
    numbers = [float(text.split()[0]) for text in known]
    assert numbers == sorted(numbers) and sorted(again) == sorted(up) and again != up
    unknown = ["–"] * (len(up) - len(known))
    assert unknown and (up, down) == ([*known, *unknown], [*known[::-1], *unknown]), "what is unknown comes last"
    assert seen["wide"] <= 1200
