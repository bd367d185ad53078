"""The page says what zones promised, what they kept, and what area that took."""

import io

import numpy as np
import pandas as pd
import pytest

from fcer.evaluation.zone_table import zone_tables
from fcer.report import write_report
from fcer.report.markup import csv_text
from fcer.report.style import looks
from fcer.report.zones import read_zones, zone_figure, zones_section, zones_verdict
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
    assert sum(len(trace.y) for trace in figure.panels["zone_area"].data) == len(zones) / 2 - 1


def test_zones_of_several_folders_are_read_as_one_table(zones, tmp_path):
    assert read_zones([tmp_path]) is None
    unknown = zones.astype({"exceeds": object})
    unknown.loc[[0, 1], "exceeds"] = [None, True]
    unknown.loc[2, "method"] = "NA"
    for year, part in unknown.groupby("year"):
        (tmp_path / str(year)).mkdir()
        part.to_csv(tmp_path / str(year) / "zones.csv", index=False)
    read = read_zones([tmp_path / "2018", tmp_path / "nowhere", tmp_path / "2019"])
    assert read["method"].tolist() == unknown["method"].tolist()
    assert zones_verdict(read) == zones_verdict(unknown)
    assert zones_verdict(read).startswith(f"{1 + zones['exceeds'][2:].sum()} of ")


def test_a_line_for_each_method_and_family(zones):
    figure = zone_figure(zones, STYLE)
    families = zones["family"].unique()
    drawn = {trace.name: trace for trace in figure.panels["zone_area"].data}
    assert list(drawn) == [f"{method}, {family}" for method in STYLE for family in families]
    for (method, family), rows in zones.groupby(["method", "family"]):
        means = rows.groupby("nominal_miss")["area_km2"].mean()
        np.testing.assert_allclose(drawn[f"{method}, {family}"].y, means)
        assert drawn[f"{method}, {family}"].line.color == STYLE[method].colour
    assert len({(trace.line.color, trace.line.dash) for trace in drawn.values()}) == len(drawn)


def test_zones_are_a_part_of_the_page_where_there_are_any(results, zones, tmp_path):
    written = write_report(results, tmp_path / "with", zones=zones)
    assert tmp_path / "with" / "figures" / "zone_area.csv" in written
    assert "<h2>Guaranteed zones</h2>" in written[-1].read_text()
    assert "<h2>Guaranteed zones</h2>" not in write_report(results, tmp_path / "without")[-1].read_text()
