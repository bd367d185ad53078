"""The report as one HTML page that needs nothing but itself: data, plots and plotly.js are all inside."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from string import Template

import pandas as pd
from plotly.offline import get_plotlyjs

from fcer.evaluation.anchor_words import anchor_by_year, within_anchor
from fcer.evaluation.results import Results
from fcer.report.filtering import tag_methods
from fcer.report.headline import first_sentences
from fcer.report.markup import contents as links_to
from fcer.report.markup import csv_text, download, downloads, note, section
from fcer.report.style import Figure, looks
from fcer.report.table_sections import own_errors_section, paper_section, table1_section, tests_section
from fcer.report.wording import SYNTHETIC, headline
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
    """The first of them stands beside the headline."""
    paper: bool
    provenance: Mapping[str, str]
    notes: Sequence[str]
    zones: tuple[pd.DataFrame, Figure] | None = None
    """Guaranteed zones on the test years, and their figure."""


def render_page(results: Results, contents: Contents) -> str:
    """The whole page."""
    first, *figures = contents.figures
    methods = _all_methods(results, contents)
    sections = [
        _verdict_section(results),
        table1_section(results),
        *([paper_section(results)] if contents.paper else []),
        tests_section(results),
        *(section(figure.title, _figure_markup(figure, methods)) for figure in figures),
        *(
            [zones_section(contents.zones[0], _figure_markup(contents.zones[1], methods), results.tests)]
            if contents.zones
            else []
        ),
        own_errors_section(results),
        _settings_section(results, contents),
    ]
    opening = [_bar(methods), _opening(results, contents.title), _figure_markup(first, methods)]
    return Template(_resource("page.html")).substitute(
        title=html.escape(contents.title),
        style=_resource("page.css"),
        body="\n".join([*opening, links_to(sections), *sections]),
        plotly=get_plotlyjs(),
        script=_resource("page.js"),
    )


def _resource(name: str) -> str:
    return (files("fcer.report") / name).read_text(encoding="utf-8").rstrip("\n")


def _all_methods(results: Results, contents: Contents) -> list[str]:
    """Of all figures: those of the results first, then those of zones or of other result sets."""
    tables = [*(figure.data for figure in contents.figures), *([contents.zones[0]] if contents.zones else [])]
    others = (method for data in tables if "method" in data for method in data["method"])
    return list(dict.fromkeys([*results.settings.methods, *others]))


def _bar(methods: Sequence[str]) -> str:
    """What stays in sight: the way to the contents, which methods are shown, and light or dark."""
    boxes = "\n".join(
        f'<label><input type="checkbox" value="{html.escape(method)}" checked> '
        f'<span style="background:{look.colour}"></span>{html.escape(method)}</label>'
        for method, look in looks(methods).items()
    )
    return (
        '<div class="bar"><a href="#contents">Contents</a>\n'
        f"<details><summary>Methods shown</summary><fieldset>\n{boxes}\n</fieldset></details>\n"
        '<button type="button">light or dark</button></div>'
    )


def _opening(results: Results, title: str) -> str:
    """What somebody reads who reads no more."""
    synthetic = f'<p class="synthetic">{html.escape(SYNTHETIC)}</p>\n' if results.settings.synthetic else ""
    said = "\n".join(f"<p>{html.escape(sentence)}</p>" for sentence in first_sentences(results))
    return f'<h1>{html.escape(title)}</h1>\n{synthetic}<div class="headline">\n{said}\n</div>'


def _verdict_section(results: Results) -> str:
    """What is reported here, and all that the tests allow to say of it."""
    methods = results.settings.own_methods
    listed = f"{', '.join(methods[:-1])} and {methods[-1]}" if len(methods) > 1 else methods[0]
    what = _WHAT.format(methods=listed, anchor=within_anchor(results.settings))
    said = "\n".join(f"<li>{html.escape(sentence)}</li>" for sentence in headline(results))
    return section("What the tests say", f"<p>{html.escape(what)}</p>\n<ul>\n{said}\n</ul>")


def _figure_markup(figure: Figure, methods: Sequence[str]) -> str:
    panels = []
    for place, (name, plot) in enumerate(figure.panels.items()):
        tag_methods(plot, methods)
        # "<" would let a name end the script
        content = plot.to_json().replace("<", "\\u003c")
        label = html.escape(f"{figure.title}: {name}")
        starts_row = ' class="first"' if figure.columns and place % figure.columns == 0 else ""
        panels.append(
            f'<div{starts_row}><div class="plot" id="{figure.file_name(name)}" role="img" aria-label="{label}"></div>'
            f'<script type="application/json">{content}</script></div>'
        )
    kind = f'class="maps" style="--columns:{figure.columns}"' if figure.columns else 'class="panels"'
    body = f"<div {kind}>{''.join(panels)}</div>"
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
