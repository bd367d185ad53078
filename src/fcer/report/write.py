"""The report's files: tables, tests, the numbers behind the figures, the figures, and the page."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from fcer.evaluation.anchor_words import within_anchor
from fcer.evaluation.results import Results
from fcer.report.cases import read_cases
from fcer.report.corp import corp
from fcer.report.costs import cost_figure
from fcer.report.curves import ablation as ablation_figure
from fcer.report.curves import reliability, risk_coverage, sensitivity, thresholds
from fcer.report.formats import latex, markdown
from fcer.report.headline import first_figure
from fcer.report.map_figure import map_figure
from fcer.report.markup import csv_text
from fcer.report.page import Contents, render_page
from fcer.report.static import write_static
from fcer.report.style import Figure, looks
from fcer.report.sweeps import calibration_sweep, mean_sweep, year_sweeps
from fcer.report.table1 import beside_paper, table1
from fcer.report.zones import zone_figure
from fcer.runtime.files import write_text

__all__ = ["make_figures", "write_report"]


def write_report(
    results: Results,
    out: Path,
    *,
    maps: Sequence[Path] = (),
    ablation: Mapping[str, Results] | None = None,
    zones: pd.DataFrame | None = None,
    costs: pd.DataFrame | None = None,
    paper: bool = False,
    title: str = "Wildfire uncertainty near the fire's edge",
    provenance: Mapping[str, str] | None = None,
) -> list[Path]:
    """Write the report on some results to a folder; each file whole or not at all.

    Parameters
    ----------
    results:
        Of one evaluation, or several joined with `join`.
    out:
        The folder: `report.html`, `table1.csv`, `.md` and `.tex`, `tests.csv`, and in `figures` the numbers
        behind each figure and, where kaleido and a browser are there, the figures themselves.
    maps:
        Predicted-maps files that were evaluated, for maps of a small and a large fire.
    ablation:
        Further results by name, such as those of other backbones, to set side by side.
    zones:
        Guaranteed zones on the years of the results, as `zones.csv` has them.
    costs:
        What each method costs, as `costs.csv` has it.
    paper:
        Whether this is the paper's experiment; the paper's Table 1 then stands beside ours.
    title:
        Of the page.
    provenance:
        What to say of where the numbers come from, beyond the settings of the evaluation.

    Returns
    -------
    The files written, the page last.
    """
    figures, notes = make_figures(results, maps=maps, ablation=ablation or {})
    if costs is not None:
        figures.append(cost_figure(costs, results, zones, looks(results.settings.methods)))
    zone_part = None
    if zones is not None:
        # zones may be of methods that were not evaluated
        zone_part = zones, zone_figure(zones, looks(list(dict.fromkeys([*results.settings.methods, *zones["method"]]))))
    all_figures = [*figures, *(zone_part[1:] if zone_part else ())]
    table = table1(results)
    texts = {
        "table1.csv": csv_text(table),
        "table1.md": markdown(table),
        "table1.tex": latex(table, within_anchor(results.settings)),
        "tests.csv": csv_text(results.tests),
        **({"paper_comparison.csv": csv_text(beside_paper(table))} if paper else {}),
        **{f"figures/{figure.name}.csv": csv_text(figure.data, figure.digits) for figure in all_figures},
    }
    written = [write_text(out / name, text) for name, text in texts.items()]
    drawn, left_out = write_static(all_figures, out / "figures")
    notes += [left_out] if left_out else []
    contents = Contents(title, figures, paper, provenance or {}, notes, zone_part)
    return [*written, *drawn, write_text(out / "report.html", render_page(results, contents))]


def make_figures(
    results: Results, *, maps: Sequence[Path] = (), ablation: Mapping[str, Results] | None = None
) -> tuple[list[Figure], list[str]]:
    """Every figure that the results have the numbers for, and a sentence for each that they have not."""
    sets = ablation or {}
    methods = results.settings.methods
    # methods of other result sets alone come after ours, so that ours look the same in every report
    others = [method for part in sets.values() for method in part.settings.methods]
    style = looks(methods)
    notes = []
    figures = [first_figure(results, style), mean_sweep(results, style)]
    if len(results.settings.years) > 1:
        figures.append(year_sweeps(results, style))
    figures += [calibration_sweep(results, style), reliability(results, style), corp(results, style)]
    figures.append(risk_coverage(results, style))
    if len(results.sensitivity):
        figures.append(sensitivity(results, style))
    figures.append(thresholds(results, style))
    if sets:
        figures.append(
            ablation_figure({"this study": results, **sets}, looks(list(dict.fromkeys([*methods, *others]))))
        )
    if maps:
        cases = read_cases(results, maps)
        if cases:
            figures.append(map_figure(cases, results))
        else:
            notes.append("maps are left out, since no image has both errors and right pixels at the anchor")
    else:
        notes.append("maps are left out, since no predicted maps lie beside the results")
    return figures, notes
