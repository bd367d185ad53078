"""The page says what zones promised, what they kept, and what area that took."""

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fcer.evaluation.zone_table import zone_tables
from fcer.evaluation.zone_verdict import zones_verdict
from fcer.report import write_report
from fcer.report.markup import csv_text
from fcer.report.style import looks
from fcer.report.wording import headline
from fcer.report.zones import zone_figure, zones_section
from report_cases import some_maps

STYLE = looks(("student", "ensemble"))


@pytest.fixture(scope="module")
def zones():
    made = [
        zone_tables([some_maps(2017, n_images=60)], some_maps(year), list(STYLE), misses=(0.1, 0.2), n_draws=50)
        for year in (2018, 2019)
    ]
    table = pd.concat([one.table for one in made], ignore_index=True)
    return pd.read_csv(io.StringIO(csv_text(table)))


def test_every_zone_has_its_line(zones):
    page = zones_section(zones, "<figure></figure>")
    assert page.count("<tr>") == 1 + len(zones)
    row = zones.iloc[0]
    expected = f"<td>{row['realised_miss']:.3f} ({row['miss_low']:.3f} to {row['miss_high']:.3f})</td>"
    assert expected in page.replace("<strong>", "").replace("</strong>", "")
    assert f"<td>{row['area_km2']:,.1f}</td><td>{row['times_burnt']:.2f}</td><td>{row['fires']:.0f}</td>" in page


def test_a_broken_promise_is_said_before_the_table(zones):
    kept = zones.assign(exceeds=False)
    assert zones_verdict(kept) == "No zone missed more of the fire than its nominal miss beyond chance."
    broken = kept.assign(exceeds=[True] + [False] * (len(zones) - 1))
    page = zones_section(broken, "")
    said = f"1 of {len(zones)} zones missed more of the fire than their nominal miss beyond chance: student, threshold"
    assert page.index(said) < page.index("<table>")
    assert page.count("<strong>") == 1


def test_what_could_not_be_guaranteed_has_no_numbers(zones):
    numbers = ["realised_miss", "area_km2", "fires", "miss_low", "miss_high", "times_burnt"]
    some = zones.astype({"exceeds": object, "fires": float}).copy()
    some.loc[0, [*numbers, "exceeds"]] = np.nan
    page = zones_section(some, "")
    assert page.count("<td>–</td>") == 4
    assert "nan" not in page
    assert "undefined" not in page
    figure = zone_figure(some[some["year"] == 2018], STYLE)
    assert sum(len(trace.y) for plot in figure.panels.values() for trace in plot.data) == len(zones) / 2 - 1


def test_a_panel_for_each_family_and_a_line_for_each_method(zones):
    figure = zone_figure(zones, STYLE)
    assert list(figure.panels) == [f"zone_area_{family}" for family in zones["family"].unique()]
    for family, of_family in zones.groupby("family"):
        drawn = {trace.name: trace for trace in figure.panels[f"zone_area_{family}"].data}
        assert list(drawn) == list(STYLE)
        for method, rows in of_family.groupby("method"):
            np.testing.assert_allclose(drawn[method].y, rows.groupby("nominal_miss")["area_km2"].mean())
            assert drawn[method].line.color == STYLE[method].colour


def test_a_broken_promise_is_the_first_sentence_of_the_page(results, zones):
    kept = replace(results, zones=zones.assign(exceeds=0.0))
    broken = replace(results, zones=zones.assign(exceeds=[1.0] + [0.0] * (len(zones) - 1)))
    assert "missed more of the fire than their nominal miss beyond chance" in headline(broken)[0]
    assert headline(broken)[1:] == headline(kept) == headline(results)


def test_the_smaller_zone_is_told_by_its_paired_test(zones):
    row = {"metric": "zone_area/widened", "scope": "pooled", "a": "student", "b": "ensemble", "n": 27, "p": 0.001}
    row |= {"median_delta": 12.5, "p_holm": 0.003, "ci_low": 3.0, "ci_high": 20.0}
    page = zones_section(zones, "", pd.DataFrame([row]))
    assert "Smallest widened zone at 10 % miss: in the median over 27 fires that of student is 12.5 km² below" in page
    assert "that it is smaller is shown" in page


def test_zones_are_a_part_of_the_page_where_there_are_any(results, zones, plain_report, tmp_path):
    written = write_report(results, tmp_path / "with", zones=zones)
    assert tmp_path / "with" / "figures" / "zone_area.csv" in written
    assert "<h2>Guaranteed zones</h2>" in written[-1].read_text()
    assert "<h2>Guaranteed zones</h2>" not in plain_report[-1].read_text()
