"""The tables of the page: results by year, the paper's beside ours, tests, and each method's own errors."""

import html
import math

import pandas as pd

from fcer.evaluation.anchor_words import within_anchor
from fcer.evaluation.results import Results
from fcer.report.formats import latex, markdown
from fcer.report.markup import csv_text, download, downloads, note, section, table, table_row, with_spread
from fcer.report.style import METRIC_NAMES
from fcer.report.table1 import ALL_COLUMNS, COLUMNS, MEAN, beside_paper, best_cells, format_cell, table1
from fcer.report.wording import number, p_value, sentences_of_tests

__all__ = ["own_errors_section", "paper_section", "table1_section", "tests_section"]


def table1_section(results: Results) -> str:
    """The paper's Table 1 of these results."""
    rows = table1(results)
    best = best_cells(rows)
    groups = []
    for year, group in rows.groupby("year", sort=False):
        lines = []
        for index, row in group.iterrows():
            cells = [with_spread(*format_cell(row, c), best=(index, c.key) in best) for c in ALL_COLUMNS]
            lines.append(table_row([_year_name(year), row["method"]], cells))
        groups.append(lines)
    heads = ["Year", "Method", *(f"{column.name} {'↑' if column.higher_better else '↓'}" for column in ALL_COLUMNS)]
    remark = (
        f"Segmentation (AP, ASD) over all pixels; calibration (Brier, NLL; skill against the region's "
        f"base rate) and ranking (AUROC, within the predicted class, AUPRC) "
        f"{within_anchor(results.settings)}; the errors to find are those of {results.settings.reference}. Bold: best "
        "of the year but for controls, climatology (the share of pixels that burnt there, forecast everywhere) and "
        "probabilities that are another method's. Common: over the images where every method has a boundary; missed: "
        "images with fire where a method predicts none. ±: population standard deviation over years."
    )
    links = downloads(
        download("table1.csv", csv_text(rows)),
        download("table1.md", markdown(rows), "text/markdown"),
        download("table1.tex", latex(rows, within_anchor(results.settings)), "text/x-tex"),
    )
    return section("Results by year", table(heads, groups), note(remark), links)


def paper_section(results: Results) -> str:
    """The paper's own Table 1 beside ours, with the differences."""
    title = "Beside the paper"
    rows = beside_paper(table1(results))
    if rows.empty:
        return section(title, note("None of the paper's years and methods is among these results."))
    digits = {column.key: column.digits for column in COLUMNS}
    groups = []
    for year, group in rows.groupby("year", sort=False):
        lines = []
        for method, metrics in group.groupby("method", sort=False):
            cells = []
            for row in metrics.to_dict("records"):
                shown = digits[row["metric"]]
                ours, paper = (number(row[whose], shown) for whose in ("ours", "paper"))
                cells.append(f"{ours}<br><small>{paper}, {number(row['difference'], shown, signed=True)}</small>")
            lines.append(table_row([_year_name(year), str(method)], cells))
        groups.append(lines)
    remark = "Ours, then in grey the paper's Table 1 and the difference, ours less the paper's."
    heads = ["Year", "Method", *(column.name for column in COLUMNS)]
    links = downloads(download("paper_comparison.csv", csv_text(rows)))
    return section(title, table(heads, groups), note(remark), links)


def tests_section(results: Results) -> str:
    """The first two methods in sentences, the first against each other and controls in a table, other pairs folded."""
    ranking = results.tests["metric"].isin(list(METRIC_NAMES))
    pooled = results.tests[ranking & (results.tests["scope"] == "pooled")]
    if pooled.empty:
        return section("Tests", note("A single method has nothing to be compared with."))
    alone = pooled["b"].isin(results.settings.controls).all()
    items = "\n".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences_of_tests(results))
    leads = pooled["a"] == pooled["a"].iloc[0]
    parts = [note("A single method has nothing to be compared with but controls.")] if alone else []
    parts.append(f"<ul>\n{items}\n</ul>")
    if pooled[leads]["b"].nunique() > 1:
        parts.append(_tests_table(pooled[leads]))
    if not leads.all():
        others = f"{len(pooled[~leads])} tests of other pairs"
        parts.append(f"<details><summary>{others}</summary>{_tests_table(pooled[~leads])}</details>")
    remark = (
        "Wilcoxon's signed-rank test of paired scores at the anchor, all years pooled, one-sided. Days of one fire are "
        "not independent: the tests by fire, where fires are known, and the intervals, which draw fires, allow for it. "
        "Holm's correction is over all tests of one method by one unit, those against controls apart."
    )
    return section("Tests", *parts, note(remark), downloads(download("tests.csv", csv_text(results.tests))))


def _tests_table(tests: pd.DataFrame) -> str:
    groups = []
    for (a, b), pair in tests.groupby(["a", "b"], sort=False):
        lines = []
        for row in pair.to_dict("records"):
            difference = number(row["median_delta"], signed=True)
            if not math.isnan(row["ci_low"]):
                low, high = (number(row[end], signed=True) for end in ("ci_low", "ci_high"))
                difference += f" <small>{low} to {high}</small>"
            numbers = [
                f"{row['n']:.0f}",
                difference,
                number(row["rank_biserial"], 2, signed=True),
                html.escape(p_value(row["p"])),
                html.escape(p_value(row["p_holm"])),
            ]
            lines.append(table_row([f"{a} > {b}", f"{METRIC_NAMES[row['metric']]} by {row['unit']}"], numbers))
        groups.append(lines)
    return table(["Better", "Score", "n", "median difference, 95%", "r", "p", "p (Holm)"], groups)


def own_errors_section(results: Results) -> str:
    """How each method ranks the errors of its own probability."""
    rows = results.own_errors
    scores = ("auroc", "auprc", "prevalence")
    groups = []
    for year, group in rows.groupby("year", sort=False):
        lines = []
        for row in group.to_dict("records"):
            cells = [*(number(row[score]) for score in scores), f"{row['n_errors']:,}", f"{row['n_pixels']:,}"]
            lines.append(table_row([_year_name(year), row["method"]], cells))
        groups.append(lines)
    if len(results.settings.years) > 1:
        groups.append([])
        for row in results.over_years("own_errors").to_dict("records"):
            values = [(row[score], row[f"{score}_std"]) for score in scores]
            cells = [with_spread(number(v), "" if math.isnan(std) else number(std)) for v, std in values]
            groups[-1].append(table_row([_year_name(MEAN), row["method"]], [*cells, "", ""]))
    remark = (
        f"Here each method is to find the errors of its own probability, {within_anchor(results.settings)}. Methods "
        "that make other errors have other pixels to find: the shares of errors, which are the AUPRC of a random "
        "ranking, differ."
    )
    heads = ["Year", "Method", "AUROC ↑", "AUPRC ↑", "share of errors", "errors", "pixels"]
    links = downloads(download("own_errors.csv", csv_text(rows)))
    return section("Each method against its own errors", table(heads, groups), note(remark), links)


def _year_name(year: object) -> str:
    return "Mean" if year == MEAN else str(year)
