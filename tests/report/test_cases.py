"""The fires shown as maps are the usual ones, and are shown as they are."""

import numpy as np
import pandas as pd
import pytest

from fcer.core import fire_region
from fcer.errors import PredictionsError
from fcer.evaluation import evaluate, evaluate_files
from fcer.maps.predicted_maps import PredictedMaps, write_maps
from fcer.report.cases import case_table, choose_cases, compared_methods, read_cases, shown_methods
from fcer.report.map_figure import map_figure, scale_bar, uncertainty_limit, window_around
from report_cases import some_arrays, some_maps, write_years


@pytest.fixture(scope="module")
def cases(results, map_files):
    return read_cases(results, map_files)


def test_the_case_is_closest_to_the_mean_of_its_size(results, cases):
    scores = results.per_image.pivot(index=["year", "index"], columns="method", values="auroc")
    pixels = {(y, i): int(n) for y in (2018, 2019, 2020) for i, n in enumerate(some_arrays(y)["y"].sum(axis=(1, 2)))}
    images = pd.DataFrame(
        {"delta": scores["student"] - scores["ensemble"], "pixels": [pixels[key] for key in scores.index]}
    ).dropna()
    small = images["pixels"] <= images["pixels"].median()
    assert [case.size for case in cases] == ["small", "large"]
    for case, pool in zip(cases, (images[small], images[~small]), strict=True):
        distance = (pool["delta"] - pool["delta"].mean()).abs()
        assert distance[case.year, case.index] == distance.min()
        assert case.score == pool["delta"][case.year, case.index]
        assert case.pool_mean == pytest.approx(pool["delta"].mean())
        assert case.fire_pixels == pixels[case.year, case.index]


def test_a_case_holds_its_own_maps(results, cases):
    for case in cases:
        arrays = some_arrays(case.year)
        fire = arrays["y"][case.index] > 0
        np.testing.assert_array_equal(case.fire, fire)
        np.testing.assert_array_equal(case.region, fire_region(fire, 4))
        np.testing.assert_array_equal(case.error, (arrays["student_prob"][case.index] > 0.5) != fire)
        np.testing.assert_array_equal(case.unc["ensemble"], arrays["ensemble_unc"][case.index])
        assert case.fire_id == arrays["fire_id"][case.index]


def test_padding_is_not_shown(results, cases, tmp_path):
    paths = []
    for year in (2018, 2019, 2020):
        arrays = some_arrays(year)
        grown = {
            name: np.pad(a, ((0, 0), (0, 6), (0, 11)), constant_values=0 if name == "y" else 1) if a.ndim == 3 else a
            for name, a in arrays.items()
        }
        paths.append(tmp_path / f"predictions_{year}.npz")
        write_maps(paths[-1], PredictedMaps.from_arrays(grown | {"size": np.full((12, 2), 32)}, year=year))
    again = read_cases(results, paths)
    pd.testing.assert_frame_equal(case_table(again), case_table(cases))
    assert map_figure(again, results).whole() == map_figure(cases, results).whole()


def test_the_numbers_behind_the_maps(cases):
    table = case_table(cases)
    assert len(table) == 2 * 32 * 32
    row = table.iloc[32 * 32 + 5 * 32 + 7]
    assert (row["size"], row["row"], row["column"]) == ("large", 5, 7)
    assert row["student_prob"] == cases[1].prob["student"][5, 7]


def test_one_scale_for_all_uncertainties(results, cases):
    figure = map_figure(cases, results).whole()
    maps = [trace for trace in figure.data if trace.type == "heatmap"]
    assert len(maps) == 2 * 2 * 3
    assert sum(trace.coloraxis == "coloraxis2" for trace in maps) == 4
    limit = figure.layout.coloraxis2.cmax
    shown = [window_around(case.region).cut(unc) for case in cases for unc in case.unc.values()]
    assert limit == max(map(np.max, shown)) == uncertainty_limit(cases)
    contours = [trace for trace in figure.data if trace.type == "contour"]
    assert len(contours) == 2 * (2 * 2 + 1) * 2
    assert "10 km" not in [note.text for note in figure.layout.annotations]


def test_panels_show_what_the_whole_figure_does(results, cases):
    """A page has one panel for each method, which it can leave out; papers have all in one."""
    figure = map_figure(cases, results)
    assert list(figure.panels) == [f"{size}_{column}" for size in ("small", "large") for column in range(3)]
    assert [panel.layout.meta for panel in figure.panels.values()] == [None, ("student",), ("ensemble",)] * 2
    drawn = [trace for panel in figure.panels.values() for trace in panel.data if trace.type == "heatmap"]
    whole = [trace for trace in figure.whole().data if trace.type == "heatmap"]
    assert sorted(trace.z.tobytes() for trace in drawn) == sorted(trace.z.tobytes() for trace in whole)


def test_a_scale_bar_is_as_long_as_it_says(results, cases):
    figure = map_figure(cases, results).whole()
    bar = next(shape for shape in figure.layout.shapes if shape.type == "line" and shape.xref == "x")
    length = scale_bar(32)
    assert bar.x1 - bar.x0 == pytest.approx(length * 1000 / 375)
    assert f"{length:g} km" in [note.text for note in figure.layout.annotations]


def test_the_window_holds_the_region_and_stays_in_the_image():
    region = np.zeros((40, 60), dtype=bool)
    region[0:3, 50:60] = True
    window = window_around(region)
    assert window.cut(region).sum() == region.sum()
    assert window == (0, 24, 36, 60)
    assert window_around(np.ones((5, 7), dtype=bool)) == (0, 5, 0, 7)


def test_which_methods_are_compared():
    assert compared_methods(("ensemble", "x", "student")) == ("student", "ensemble")
    assert compared_methods(("b", "a", "student")) == ("b", "a")
    assert compared_methods(("b",)) == ("b",)


def test_fires_of_one_size_are_all_small(results):
    index = pd.MultiIndex.from_frame(results.per_image[["year", "index"]].drop_duplicates())
    assert choose_cases(results, pd.Series(9, index=index))["size"].tolist() == ["small"]


def test_a_method_alone_is_shown_by_its_auroc(tmp_path):
    paths = write_years(tmp_path, (2018,), methods=("mine",))
    found = evaluate(some_maps(2018, methods=("mine",)), bootstrap=0, progress=None)
    for case in read_cases(found, paths):
        mine = found.per_image[found.per_image["method"] == "mine"].set_index("index")
        assert case.score == mine.loc[case.index, "auroc"]


def test_maps_that_were_not_evaluated_are_refused(results, tmp_path):
    arrays = some_arrays(2018)
    arrays["y"][4] = 0
    path = tmp_path / "predictions_2018.npz"
    write_maps(path, PredictedMaps.from_arrays(arrays, year=2018))
    sentence = "not the predicted maps that were evaluated for 2018; give those, or evaluate these"
    with pytest.raises(PredictionsError) as refused:
        read_cases(results, [path])
    assert str(refused.value) == f"{path}: {sentence}"
    with pytest.raises(PredictionsError, match="evaluated for 2021"):
        read_cases(results, write_years(tmp_path, (2021,)))


def test_two_files_of_one_year_are_refused(results, map_files):
    with pytest.raises(PredictionsError, match="both hold the year 2018; give one file for each year"):
        read_cases(results, [map_files[0], map_files[0]])


def test_maps_of_many_methods_fit_the_page(tmp_path):
    methods = ("a", "b", "c", "d", "student", "ensemble")
    paths = write_years(tmp_path, (2018,), methods=methods)
    found = evaluate_files(paths, bootstrap=0, reference="d", progress=None)
    shown = shown_methods(found.settings)
    assert set(shown) == {"a", "d", "student", "ensemble"}, "the compared ones and the reference, then the first"
    cases = read_cases(found, paths)
    assert all(tuple(case.prob) == tuple(case.unc) == shown for case in cases)
    figure = map_figure(cases, found)
    assert figure.columns == 5 and len(figure.panels) == 2 * 5
    assert figure.caption.endswith("For want of room there are no maps of b, c.")
