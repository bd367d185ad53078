"""The first two sentences say what the paired tests say in plain words; the first figure has the numbers."""

from dataclasses import replace

import numpy as np
import pytest

from fcer.evaluation import evaluate
from fcer.evaluation.verdict import standing
from fcer.maps.predicted_maps import PredictedMaps
from fcer.report.headline import _compared, first_figure, first_sentences
from fcer.report.style import looks
from report_cases import some_arrays, some_maps


def test_the_best_and_what_it_is_not_better_than(results):
    score, *_ = sorted(results.over_years("anchor").query("method != 'probability'")["auroc"], reverse=True)
    first, second = first_sentences(results)
    found = standing(results, "auroc")
    assert first == (
        f"Of a wrong and a right pixel of the forecast within 1.5 km of fire, the uncertainty of {found.leading[0]} "
        f"points at the wrong one {100 * score:.0f} times in 100; guessing would 50 times."
    )
    assert second.startswith(f"On {found.n} fires ")


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"leading": ("a", "b"), "equal_controls": ("probability",)}, "not clearly better than b or the fire prob"),
        ({"leading": ("a",), "equal_controls": (), "is_clear": True}, "clearly better than any other method, controls"),
        ({"leading": ("a",), "equal_controls": (), "is_clear": False}, "cannot be told from the other methods"),
        ({"methods": ("a",), "controls": (), "leading": ("a",), "equal_controls": ()}, "no other method beside it"),
    ],
)
def test_every_outcome_has_its_words(results, changed, sentence):
    found = replace(standing(results, "auroc"), n=27, **changed)
    said = _compared(found)
    assert said.startswith("On 27 fires") and sentence in said


def test_nothing_to_judge_is_said(results):
    arrays = some_arrays(1)
    for method in ("student", "ensemble"):
        arrays[f"{method}_prob"] = arrays["y"].astype(np.float32)
    with pytest.warns(UserWarning):
        found = evaluate(PredictedMaps.from_arrays(arrays, year=2018), bootstrap=0, progress=None)
    assert first_sentences(found) == [
        "Near the fire the forecast's pixels are all right, or all wrong: no uncertainty can be judged by them."
    ]
    assert len(first_figure(found, looks(found.settings.methods)).panels) == 1


def test_the_figure_has_the_means_and_their_intervals(results):
    figure = first_figure(results, looks(results.settings.methods))
    means = results.over_years("anchor").set_index("method")
    rows = figure.data.set_index(["method", "metric"])
    drawn = [trace for trace in figure.panels["headline"].data if trace.name == "student"]
    for trace, metric in zip(drawn, ("auroc", "auroc_within"), strict=True):
        assert trace.x[0] == pytest.approx(100 * means.loc["student", metric])
        row = rows.loc["student", metric]
        assert trace.x[0] + trace.error_x.array[0] == pytest.approx(100 * row["ci_high"])
        assert row["ci_low"] < row["value"] < row["ci_high"]


def test_one_year_without_draws_has_marks_alone():
    found = evaluate(some_maps(2018), bootstrap=0, progress=None)
    figure = first_figure(found, looks(found.settings.methods))
    assert all(trace.error_x.array is None for trace in figure.panels["headline"].data)
