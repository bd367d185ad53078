"""Single years joined are what an evaluation of all years at once says."""

import numpy as np
import pandas as pd
import pytest

from fcer.errors import PredictionsError
from fcer.evaluation import evaluate, evaluate_files
from fcer.report import join
from report_cases import some_maps

SAME = ["sweep", "segmentation", "per_image", "anchor", "tests", "reliability", "own_errors", "risk_coverage"]


@pytest.fixture(scope="module")
def folders(map_files, tmp_path_factory):
    root = tmp_path_factory.mktemp("years")
    for path in map_files:
        evaluate_files([path], bootstrap=50, progress=None).write(root / path.stem)
    return [root / path.stem for path in map_files]


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
def test_joined_years_equal_one_evaluation_of_all(folders, results, order):
    joined = join([folders[i] for i in order])
    assert joined.settings == results.settings
    for table in SAME:
        pd.testing.assert_frame_equal(getattr(joined, table), getattr(results, table), check_exact=True)


def test_folders_of_several_years_join_too(folders, map_files, results, tmp_path):
    evaluate_files([map_files[0], map_files[2]], bootstrap=50, progress=None).write(tmp_path)
    joined = join([folders[1], tmp_path])
    assert joined.settings.years == results.settings.years
    for table in SAME:
        pd.testing.assert_frame_equal(getattr(joined, table), getattr(results, table), check_exact=True)
    shared = joined.sensitivity["a_score"].to_numpy()
    np.testing.assert_allclose(shared, results.sensitivity["a_score"].to_numpy()[: len(shared)], rtol=1e-12)


def test_what_folders_cannot_tell_is_left_out_not_made_up(folders, results):
    joined = join(folders)
    assert set(joined.intervals["scope"]) == {"2018", "2019", "2020"}
    years = results.intervals[results.intervals["scope"] != "mean"].reset_index(drop=True)
    pd.testing.assert_frame_equal(joined.intervals, years, check_exact=True)
    # the anchors that every year shares; each year's own ASD is another radius
    both = joined.sensitivity.merge(results.sensitivity, on=["anchor", "metric", "a", "b"], suffixes=("", "_all"))
    assert len(both) == len(joined.sensitivity) == 18
    np.testing.assert_allclose(both["a_score"], both["a_score_all"], rtol=1e-12)
    np.testing.assert_allclose(both["b_score"], both["b_score_all"], rtol=1e-12)
    at_anchor = both["anchor"] == "anchor"
    assert (both["p"] == both["p_all"])[at_anchor].all()
    assert both["p"].isna()[~at_anchor].all()
    assert list(joined.sensitivity) == list(results.sensitivity)


def test_one_folder_is_taken_as_it_is(results, tmp_path):
    results.write(tmp_path)
    joined = join([tmp_path])
    for table in (*SAME, "intervals", "sensitivity"):
        pd.testing.assert_frame_equal(getattr(joined, table), getattr(results, table), check_exact=True)


def test_a_joined_result_can_be_written_and_read(folders, tmp_path):
    joined = join(folders)
    joined.write(tmp_path)
    pd.testing.assert_frame_equal(join([tmp_path]).sensitivity, joined.sensitivity, check_exact=True)


def test_a_method_alone_joins(tmp_path):
    for year in (2018, 2019):
        evaluate(some_maps(year, methods=("mine",)), bootstrap=0, progress=None).write(tmp_path / str(year))
    joined = join([tmp_path / "2018", tmp_path / "2019"])
    assert set(joined.tests["b"]) == {"probability"}
    assert joined.sensitivity.empty


BAD = {
    "reference": ({"reference": "ensemble"}, "reference ensemble", "student"),
    "anchor": ({"anchor": 3}, "anchor 3.0 px", "4.0 px"),
    "radii": ({"radii": [0, 4]}, "radii 0, 4, inf", "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, inf"),
}


@pytest.mark.parametrize("case", BAD)
def test_folders_that_disagree_are_refused(folders, tmp_path, case):
    options, theirs, ours = BAD[case]
    evaluate(some_maps(2021), bootstrap=0, progress=None, **options).write(tmp_path)
    with pytest.raises(PredictionsError) as refused:
        join([folders[0], tmp_path])
    assert str(refused.value) == (
        f"{tmp_path} was evaluated with the {theirs}, {folders[0]} with {ours}; evaluate them alike"
    )


def test_other_methods_are_refused(folders, tmp_path):
    evaluate(some_maps(2021, methods=("student", "other")), bootstrap=0, progress=None).write(tmp_path)
    with pytest.raises(
        PredictionsError,
        match=r"with the methods other, probability, student, .* with ensemble, p.*, student; evaluate",
    ):
        join([folders[0], tmp_path])


def test_a_year_twice_is_refused(folders):
    with pytest.raises(PredictionsError) as refused:
        join([folders[0], folders[1], folders[0]])
    assert str(refused.value) == f"{folders[0]} and {folders[0]} both hold the year 2018; give each year once"


def test_no_folders_are_refused(tmp_path):
    with pytest.raises(PredictionsError, match="no result folders to join; give the folders that fcer evaluate wrote"):
        join([])
    with pytest.raises(PredictionsError, match="no finished evaluation there"):
        join([tmp_path])
