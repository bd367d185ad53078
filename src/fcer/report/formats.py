"""Table 1 as Markdown and as LaTeX."""

from itertools import groupby

import pandas as pd

from fcer.report.table1 import ALL_COLUMNS, MEAN, best_cells, format_cell

__all__ = ["latex", "latex_text", "markdown", "markdown_text"]

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
_MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|#~"})


def markdown(table: pd.DataFrame) -> str:
    """A pipe table; the best of each year is bold."""
    best = best_cells(table)
    names = [f"{column.name} {'↑' if column.higher_better else '↓'}" for column in ALL_COLUMNS]
    lines = [f"| Year | Method | {' | '.join(names)} |", f"|:---|:---|{'---:|' * len(ALL_COLUMNS)}"]
    for index, row in table.iterrows():
        cells = []
        for column in ALL_COLUMNS:
            value, spread = format_cell(row, column)
            text = f"{value} ± {spread}" if spread else value
            cells.append(f"**{text}**" if (index, column.key) in best else text)
        year = "Mean" if row["year"] == MEAN else row["year"]
        lines.append(f"| {year} | {markdown_text(row['method'])} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def latex(table: pd.DataFrame, anchor: str) -> str:
    r"""The paper's table environment, for booktabs and multirow; `anchor` says in words what the region is."""
    best = best_cells(table)
    arrows = {True: r"$\uparrow$", False: r"$\downarrow$"}
    names = [f"{column.name} {arrows[column.higher_better]}" for column in ALL_COLUMNS]
    lines = [
        r"% needs \usepackage{booktabs} and \usepackage{multirow}",
        r"\begin{table}[ht]",
        r"  \caption{Results by year. Calibration (Brier score, its skill against the base rate, NLL) and uncertainty",
        r"    ranking (AUROC, AUROC within the predicted class, AUPRC) are computed",
        f"    {latex_text(anchor)}. Means are over years, with the population standard deviation.}}",
        r"  \label{tab:fcer}",
        r"  \centering",
        r"  \setlength{\tabcolsep}{3pt}",
        r"  \begin{tabular}{ll cccc ccc ccc}",
        r"    \toprule",
        r"    & & \multicolumn{4}{c}{Segmentation} & \multicolumn{3}{c}{Calibration}",
        r"    & \multicolumn{3}{c}{UQ ranking} \\",
        r"    \cmidrule(r){3-6} \cmidrule(lr){7-9} \cmidrule(l){10-12}",
        f"    Year & Method & {' & '.join(names)} \\\\",
        r"    \midrule",
    ]
    groups = [(year, list(rows)) for year, rows in groupby(table.iterrows(), key=lambda entry: str(entry[1]["year"]))]
    for place, (year, rows) in enumerate(groups):
        if place:
            lines.append(r"    \midrule" if year == MEAN else r"    \addlinespace")
        lines.append(f"    \\multirow{{{len(rows)}}}{{*}}{{{'Mean' if year == MEAN else year}}}")
        for index, row in rows:
            cells = [_latex_cell(*format_cell(row, column), bold=(index, column.key) in best) for column in ALL_COLUMNS]
            lines.append(f"      & {latex_text(row['method'])} & {' & '.join(cells)} \\\\")
    return "\n".join([*lines, r"    \bottomrule", r"  \end{tabular}", r"\end{table}"]) + "\n"


def latex_text(text: str) -> str:
    r"""Any text as LaTeX shows it.

    >>> latex_text("dropout_10 & 50%")
    'dropout\\_10 \\& 50\\%'
    """
    return "".join(_LATEX.get(character, character) for character in text)


def markdown_text(text: str) -> str:
    r"""Any text as Markdown shows it.

    >>> print(markdown_text("dropout_10|x"))
    dropout\_10\|x
    """
    return text.translate(_MARKDOWN)


def _latex_cell(value: str, spread: str, *, bold: bool) -> str:
    if value == "–":
        return "--"
    if spread:
        return f"$\\mathbf{{{value}_{{\\pm{spread}}}}}$" if bold else f"${value}_{{\\pm{spread}}}$"
    return f"\\textbf{{{value}}}" if bold else value
