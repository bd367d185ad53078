"""What hangs on the anchor and on the threshold: one anchor for each year, and errors at other thresholds."""

import dataclasses

import numpy as np
import pytest

from fcer.errors import ConfigError
from fcer.evaluation import Results, evaluate
from fcer.evaluation.anchor_words import anchor_by_year, within_anchor
from fcer.maps.predicted_maps import PredictedMaps
from fcer.report.join import join
from report_cases import some_maps

OPTIONS = {"bootstrap": 0, "progress": None, "radii": [1]}
ANCHORS = {2018: 2.0, 2019: 3.5}


@pytest.fixture(scope="module")
def by_year() -> Results:
    return evaluate([some_maps(year) for year in ANCHORS], anchor=ANCHORS, **OPTIONS)


def test_each_year_is_scored_at_its_own_anchor(by_year: Results):
    """Everything of a year is what an evaluation of that year alone says at its anchor."""
    assert (by_year.settings.anchors, by_year.settings.anchor_px) == ((2.0, 3.5), 2.75)
    for year, anchor in ANCHORS.items():
        alone = evaluate(some_maps(year), anchor=anchor, **OPTIONS)
        for table in ("anchor", "per_image", "reliability", "corp", "own_errors", "risk_coverage", "thresholds"):
            both = getattr(by_year, table)
            mine = both[both["year"] == year].reset_index(drop=True)
            assert mine.equals(getattr(alone, table)), table
        ours = by_year.tests[by_year.tests["scope"] == str(year)].drop(columns=["p_holm"]).reset_index(drop=True)
        theirs = alone.tests[alone.tests["scope"] == str(year)].drop(columns=["p_holm"]).reset_index(drop=True)
        assert ours.equals(theirs)


def test_means_are_over_years_at_their_own_anchors(by_year: Results):
    means = by_year.over_years("anchor").set_index("method")
    for method in by_year.settings.methods:
        rows = by_year.anchor[by_year.anchor["method"] == method]
        assert means.loc[method, "auroc"] == pytest.approx(rows["auroc"].mean(), rel=1e-14)
    assert means["radius_px"].tolist() == [2.75] * 3
    twice = by_year.sensitivity.query("anchor == '2 x anchor' and metric == 'auroc'").iloc[0]
    assert twice["radius_px"] == 5.5
    alone = [
        evaluate(some_maps(year), anchor=2 * anchor, **OPTIONS).anchor.set_index("method").loc[twice["a"], "auroc"]
        for year, anchor in ANCHORS.items()
    ]
    assert twice["a_score"] == pytest.approx(np.mean(alone), rel=1e-14)


def test_it_is_said_written_and_joined(by_year: Results, tmp_path):
    assert within_anchor(by_year.settings) == "within each year's anchor (2 to 3.5 px, 0.75 to 1.31 km) of fire"
    assert anchor_by_year(by_year.settings) == "2018: 2 px, 2019: 3.5 px"
    assert "FCER within each year's anchor (2 to 3.5 px, 0.75 to 1.31 km) of fire, one for" in by_year.summary()
    folders = []
    for year, anchor in ANCHORS.items():
        folders.append(tmp_path / str(year))
        evaluate(some_maps(year), anchor={year: anchor}, **OPTIONS).write(folders[-1])
    joined = join(folders)
    assert joined.settings == by_year.settings
    assert joined.anchor.equals(by_year.anchor) and joined.tests.equals(by_year.tests)
    shared = by_year.sensitivity[~by_year.sensitivity["anchor"].str.startswith("ASD")]
    columns = ["anchor", "radius_px", "metric", "a", "b", "a_score", "b_score"]
    key = ["anchor", "metric", "a", "b"]
    ours, theirs = (table[columns].sort_values(key, ignore_index=True) for table in (joined.sensitivity, shared))
    assert ours[key].equals(theirs[key])
    numbers = ["radius_px", "a_score", "b_score"]
    np.testing.assert_allclose(ours[numbers], theirs[numbers], rtol=1e-12)


def test_a_year_without_an_anchor_is_named():
    with pytest.raises(ConfigError, match=r"^anchor: there is none for 2019; give one for each year, or one for all$"):
        evaluate([some_maps(2018), some_maps(2019)], anchor={2018: 2.0}, **OPTIONS)


@pytest.mark.filterwarnings("ignore::fcer.errors.UndefinedMetricWarning")
@pytest.mark.parametrize("engine", ["exact", "shards"])
def test_errors_at_other_thresholds_are_ranked_as_by_an_evaluation_there(engine):
    maps = some_maps(2018)
    found = evaluate(maps, threshold=0.45, engine=engine, **OPTIONS).thresholds
    assert found["threshold"].unique().tolist() == [0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9]
    for threshold in (0.3, 0.45, 0.7):
        there = evaluate(maps, threshold=threshold, **OPTIONS).anchor.set_index("method")
        mine = found[found["threshold"] == threshold].set_index("method")
        assert mine["n_errors"].tolist() == there["n_errors"].tolist()
        for metric in ("auroc", "auroc_within", "false_alarm_share"):
            np.testing.assert_allclose(mine[metric], there[metric], atol=2e-3)


def test_fires_that_never_burnt_are_called_synthetic(by_year: Results):
    maps = some_maps(2018)
    assert maps.fire_id is not None and not by_year.settings.synthetic
    named = dataclasses.replace(maps, fire_id=np.char.add("fire_synthetic_", maps.fire_id.astype(str)))
    results = evaluate(named, **OPTIONS)
    assert results.settings.synthetic
    assert results.summary().startswith("SYNTHETIC fires: these numbers say nothing of real ones\n")
    assert isinstance(named, PredictedMaps)
