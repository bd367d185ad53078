"""Table 1 says what the results say, in every format."""

import io
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

from fcer.evaluation import evaluate
from fcer.report.formats import latex, latex_text, markdown
from fcer.report.markup import csv_text
from fcer.report.table1 import ALL_COLUMNS, COLUMNS, beside_paper, best_cells, borrowed, paper_table1, table1
from report_cases import some_maps

METRICS = [column.key for column in ALL_COLUMNS]
PAPERS = [column.key for column in COLUMNS]


def test_the_csv_has_the_results_to_the_digit(results):
    table = pd.read_csv(io.StringIO(csv_text(table1(results))), dtype={"year": "str"})
    for row in results.segmentation.merge(results.anchor, on=["year", "method"]).to_dict("records"):
        mine = table[(table["year"] == str(row["year"])) & (table["method"] == row["method"])].iloc[0]
        for metric in METRICS:
            in_metres = metric.replace("_km", "_m")
            np.testing.assert_equal(mine[metric], row[in_metres] / (1000 if in_metres != metric else 1))
        is_control = row["method"] == "probability"
        assert mine[["ap", "asd_km", "brier", "brier_skill", "nll"]].isna().all() == is_control
    for method in results.settings.methods:
        mine = table[(table["year"] == "mean") & (table["method"] == method)].iloc[0]
        values = results.anchor[results.anchor["method"] == method]["auroc"]
        assert mine["auroc"] == pytest.approx(values.mean(), rel=1e-14)
        assert mine["auroc_std"] == pytest.approx(np.std(values), rel=1e-12)
    assert table["year"].tolist() == [y for y in ("2018", "2019", "2020", "mean") for _ in range(4)]
    assert table["method"].tolist() == [*results.settings.methods, "climatology"] * 4


def test_climatology_is_the_base_rate_everywhere(results):
    """Whoever has its Brier score has no skill."""
    table = table1(results).set_index(["year", "method"])
    for year in ("2018", "2019", "2020"):
        base, student = (table.loc[(year, method)] for method in ("climatology", "student"))
        assert 1 - student["brier"] / base["brier"] == pytest.approx(student["brier_skill"], rel=1e-12)
        (rate,) = results.anchor[results.anchor["year"] == int(year)]["base_rate"].dropna().unique()
        nll = log_loss([0, 1], [rate, rate], sample_weight=[1 - rate, rate])
        assert (base["brier"], base["nll"]) == pytest.approx((rate * (1 - rate), nll))
        assert base["brier_skill"] == 0 and np.isnan([base[name] for name in ("ap", "auroc", "missed")]).all()
    assert not [cell for cell in best_cells(table.reset_index()) if table.index[cell[0]][1] == "climatology"]


def test_one_year_has_no_mean():
    table = table1(evaluate(some_maps(2018), bootstrap=0, progress=None))
    assert table["year"].tolist() == ["2018"] * 4
    assert table["auroc_std"].isna().all()
    assert "±" not in markdown(table)


def a_table(**metrics) -> pd.DataFrame:
    """One year of as many methods as there are values."""
    n = len(next(iter(metrics.values())))
    columns = {name: 0.5 for metric in METRICS for name in (metric, f"{metric}_std")}
    return pd.DataFrame({"year": ["2018"] * n, "method": list("abcd"[:n]), **columns, **metrics})


def test_the_best_is_bold_up_to_what_is_shown():
    assert best_cells(a_table(auroc=[0.7, 0.8], asd_km=[1.2, 1.3])) == {(1, "auroc"), (0, "asd_km")}
    assert best_cells(a_table(auroc=[0.8001, 0.8004, 0.7])) == {(0, "auroc"), (1, "auroc")}
    assert best_cells(a_table(auroc=[0.8001, 0.8004])) == set()
    assert best_cells(a_table(auroc=[np.nan, 0.6, 0.5])) == {(1, "auroc")}
    assert best_cells(a_table(auroc=[0.9])) == set()
    with_control = a_table(auroc=[0.7, 0.6, 0.9]).assign(method=["a", "b", "probability"])
    assert best_cells(with_control) == {(0, "auroc")}
    assert best_cells(with_control.iloc[[0, 2]]) == set()


def test_markdown_is_a_table_with_the_best_in_bold(results):
    lines = markdown(table1(results)).splitlines()
    assert len({line.count("|") for line in lines}) == 1
    found = "AP ↑ | ASD [km] ↓ | ASD common [km] ↓ | missed ↓"
    names = "Brier ↓ | Brier skill ↑ | NLL ↓ | AUROC ↑ | AUROC within ↑ | AUPRC ↑"
    assert lines[0] == f"| Year | Method | {found} | {names} |"
    own = results.anchor[results.anchor["method"] != "probability"]
    winner = own[own["year"] == 2018].sort_values("auroc").iloc[-1]
    line = next(line for line in lines if line.startswith(f"| 2018 | {winner['method']} |"))
    assert f"**{winner['auroc']:.3f}**" in line
    assert re.search(r"\| Mean \| student \|.* \**\d\.\d{3} ± \d\.\d{3}", lines[-4])
    assert re.fullmatch(r"\| Mean \| probability \|( – \|){7}( \d\.\d{3} ± \d\.\d{3} \|){3}", lines[-2])


def test_latex_has_the_papers_structure(results):
    text = latex(table1(results), "within 4 px (1.50 km) of fire")
    body = text[text.index(r"\begin{tabular}{ll cccc ccc ccc}") : text.index(r"\end{tabular}")]
    assert [body.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule", r"\addlinespace")] == [1, 2, 1, 2]
    rows = [line for line in body.splitlines() if line.startswith("      &")]
    assert len(rows) == 16
    assert all(row.count("&") == 11 and row.endswith(r" \\") for row in rows)
    assert re.findall(r"\\multirow\{4\}\{\*\}\{(\w+)\}", body) == ["2018", "2019", "2020", "Mean"]
    assert all("_{\\pm" in row for row in rows[-2:])
    assert text.count("{") == text.count("}")
    assert text.count(r"\begin") == text.count(r"\end") == 2
    assert r"\textbf{" in body


def test_latex_shows_any_name():
    table = a_table(auroc=[0.7, np.nan]).assign(method=["<b>x_1 & 50%", "a\\b{c}"])
    text = latex(table, "anywhere")
    assert r"\textless{}b\textgreater{}x\_1 \& 50\%" in text
    assert r"a\textbackslash{}b\{c\}" in text
    assert "nan" not in text
    assert latex_text("~^#$") == r"\textasciitilde{}\textasciicircum{}\#\$"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles(results, tmp_path):
    table = table1(results).replace({"method": {"ensemble": "<b>x_1 & 50% ~^#${}\\"}})
    preamble = "\\documentclass{article}\n\\usepackage{booktabs}\n\\usepackage{multirow}\n"
    document = f"{preamble}\\begin{{document}}\n{latex(table, 'within 4 px')}\\end{{document}}\n"
    (tmp_path / "table.tex").write_text(document)
    call = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]


def test_the_papers_means_are_those_of_its_years():
    # a slip in copying would show: means of rounded values are right to a unit of the last digit
    paper = paper_table1()
    assert len(paper) == 10
    for method, rows in paper.groupby("method"):
        years, mean = rows[rows["year"] != "mean"], rows[rows["year"] == "mean"].iloc[0]
        assert len(years) == 4
        for column in COLUMNS:
            unit = 10.0**-column.digits
            assert mean[column.key] == pytest.approx(years[column.key].mean(), abs=unit), (method, column)
            assert mean[f"{column.key}_std"] == pytest.approx(np.std(years[column.key]), abs=unit), (method, column)


def test_the_paper_beside_ours(results):
    table = table1(results)
    beside = beside_paper(table)
    # three of its four years, and so no mean to compare
    assert len(beside) == 3 * 2 * len(PAPERS)
    row = beside[(beside["year"] == "2019") & (beside["method"] == "student") & (beside["metric"] == "auroc")].iloc[0]
    ours = table[(table["year"] == "2019") & (table["method"] == "student")]["auroc"].item()
    assert (row["ours"], row["paper"]) == (ours, 0.619)
    assert row["difference"] == ours - 0.619
    perfect = beside_paper(paper_table1())
    assert len(perfect) == 10 * len(PAPERS)
    assert (perfect["difference"] == 0).all()


def test_what_is_borrowed_is_never_bold():
    """`c` has the probabilities of `a`: all that is good about them is `a`'s, but its ranking is its own."""
    table = a_table(ap=[0.6, 0.5, 0.6], auroc=[0.6, 0.7, 0.8], brier=[0.1, 0.2, 0.1])
    assert borrowed(table) == {"c"}
    assert best_cells(table) == {(0, "ap"), (0, "brier"), (2, "auroc")}
