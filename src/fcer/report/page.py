"""The report as one HTML page that needs nothing but itself: data, plots and plotly.js are all inside."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from string import Template

import pandas as pd
from plotly.offline import get_plotlyjs

from fcer.evaluation.anchor_words import anchor_by_year
from fcer.evaluation.results import Results
from fcer.report.markup import csv_text, download, downloads, note, section
from fcer.report.style import Figure
from fcer.report.table_sections import own_errors_section, paper_section, table1_section, tests_section
from fcer.report.wording import anchor_words, headline
from fcer.report.zones import zones_section

__all__ = ["Contents", "render_page"]

_WHAT = (
    "This report says how well the uncertainty maps of {methods} point at errors of next-day wildfire prediction, "
    "where it matters: near the edge of the fire. Every score is computed within a Fire-Centered Evaluation Region "
    "(FCER), all pixels up to some distance from fire; tables and tests are at the anchor, {anchor}."
)


_IN_SAMPLE = (
    "with fair folds some of a student's teachers are trained on the years that the student is validated on: its "
    "validation loss, its fidelity to the teacher and an anchor auto are partly in-sample, its validation AUROC, which "
    "is of the backbone's errors, is not; no number above is of validation years"
)


@dataclass(frozen=True)
class Contents:
    """All that the page shows besides the results themselves."""

    title: str
    figures: Sequence[Figure]
    paper: bool
    provenance: Mapping[str, str]
    notes: Sequence[str]
    zones: tuple[pd.DataFrame, Figure] | None = None
    """Guaranteed zones on the test years, and their figure."""


def render_page(results: Results, contents: Contents) -> str:
    """The whole page."""
    sections = [
        _opening(results, contents.title),
        table1_section(results),
        *([paper_section(results)] if contents.paper else []),
        tests_section(results),
        *(section(figure.title, _figure_markup(figure)) for figure in contents.figures),
        *([zones_section(contents.zones[0], _figure_markup(contents.zones[1]))] if contents.zones else []),
        own_errors_section(results),
        _settings_section(results, contents),
    ]
    template = Template((files("fcer.report") / "page.html").read_text(encoding="utf-8"))
    return template.substitute(title=html.escape(contents.title), body="\n".join(sections), plotly=get_plotlyjs())


def _opening(results: Results, title: str) -> str:
    methods = results.settings.own_methods
    listed = f"{', '.join(methods[:-1])} and {methods[-1]}" if len(methods) > 1 else methods[0]
    what = _WHAT.format(methods=listed, anchor=anchor_words(results))
    said = "\n".join(f"<li>{html.escape(sentence)}</li>" for sentence in headline(results))
    return f'<h1>{html.escape(title)}</h1>\n<p>{html.escape(what)}</p>\n<ul class="headline">\n{said}\n</ul>'


def _figure_markup(figure: Figure) -> str:
    width = f' style="min-width:{figure.min_width}px"' if figure.min_width else ""
    panels = []
    for name, plot in figure.panels.items():
        # "<" would let a name end the script
        content = plot.to_json().replace("<", "\\u003c")
        label = html.escape(f"{figure.title}: {name}")
        panels.append(
            f'<div><div class="plot" id="{figure.file_name(name)}" role="img" aria-label="{label}"{width}></div>'
            f'<script type="application/json">{content}</script></div>'
        )
    body = f'<div class="{"scroll" if figure.min_width else "panels"}">{"".join(panels)}</div>'
    caption = f"<figcaption>{html.escape(figure.caption)}</figcaption>"
    links = downloads(download(f"{figure.name}.csv", csv_text(figure.data, figure.digits)))
    return f"<figure>{body}\n{caption}</figure>\n{links}"


def _engine(results: Results) -> str:
    settings = results.settings
    if settings.engine == "exact":
        return "exact: every pixel sorted"
    return f"shards: AUROC within {settings.auroc_bound:.1e}, AUPRC and AP within {settings.auprc_bound:.1e} of exact"


def _settings_section(results: Results, contents: Contents) -> str:
    settings = results.settings
    entries = {
        "years": ", ".join(map(str, settings.years)),
        "methods": ", ".join(settings.methods),
        "errors of": settings.reference,
        "anchor": f"{anchor_by_year(settings)}; {settings.anchor_from}",
        "threshold": f"{settings.threshold:g}",
        "controls": ", ".join(settings.controls) or "none",
        "engine": _engine(results),
        "draws of fires": str(settings.bootstrap),
        "seed": str(settings.seed),
        **contents.provenance,
    }
    items = "\n".join(f"<dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd>" for k, v in entries.items())
    said = [*contents.notes, *([_IN_SAMPLE] if {"student", "ensemble"} <= set(settings.methods) else [])]
    notes = [note(f"{text[0].upper()}{text[1:]}.") for text in said]
    return section("Settings and provenance", f"<dl>\n{items}\n</dl>", *notes)
