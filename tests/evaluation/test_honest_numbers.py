"""What a careless table would hide: other images, other levels, saturated maps, borrowed probabilities."""

import re

import numpy as np
import pytest

from fcer.errors import FcerWarning, PredictionsError
from fcer.evaluation import evaluate
from fcer.maps.predicted_maps import PredictedMaps
from shard_cases import fire_arrays

ENGINES = ("exact", "shards")
OPTIONS = {"bootstrap": 0, "radii": []}


def evaluated(stacks, **options):
    return evaluate(PredictedMaps.from_arrays(stacks, year=2018), **{**OPTIONS, **options})


@pytest.mark.parametrize("engine", ENGINES)
def test_a_control_has_nothing_that_its_borrowed_probability_would_give(engine):
    stacks = fire_arrays()
    stacks |= {"random_prob": stacks["student_prob"], "random_unc": np.random.default_rng(0).random(stacks["y"].shape)}
    found = evaluated(stacks, engine=engine, bootstrap=20)
    assert found.settings.controls == ("random", "probability")
    assert found.settings.methods == ("student", "ensemble", "random", "probability")
    for table, columns in {
        "segmentation": ["ap", "precision", "recall", "asd_m", "asd_images", "asd_common_m", "missed"],
        "sweep": ["brier", "nll", "brier_skill", "nll_skill", "ece"],
        "anchor": ["brier", "nll", "brier_skill", "nll_skill", "ece_mass", "miscalibration"],
    }.items():
        rows = getattr(found, table)
        is_control = rows["method"].isin(found.settings.controls)
        assert rows.loc[is_control, columns].isna().all(axis=None) and is_control.any()
        assert rows.loc[~is_control, columns].notna().all(axis=None)
    for table in ("own_errors", "reliability", "corp"):
        assert set(getattr(found, table)["method"]) == {"student", "ensemble"}
    own = found.sweep.set_index(["method", "radius_px"])["auroc"]
    assert own["probability"].notna().all()


@pytest.mark.filterwarnings("ignore::fcer.errors.UndefinedMetricWarning")
@pytest.mark.parametrize("engine", ENGINES)
def test_the_probability_is_ranked_as_any_uncertainty(engine):
    stacks = fire_arrays()
    twin = {"twin_prob": stacks["student_prob"], "twin_unc": stacks["student_prob"]}
    found = evaluated(stacks | twin, engine=engine).sweep.set_index("method")
    for metric in ("auroc", "auprc", "auroc_within", "aurc"):
        assert found.loc["probability", metric].tolist() == found.loc["twin", metric].tolist()


@pytest.mark.filterwarnings("ignore::fcer.errors.UndefinedMetricWarning")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("scale, what", [(0.1, "no fire at all"), (None, "nothing but fire")])
def test_a_reference_whose_errors_are_all_of_one_kind_is_refused(engine, scale, what):
    stacks = fire_arrays()
    stacks["student_prob"] = 0.9 + stacks["student_prob"] / 20 if scale is None else stacks["student_prob"] * scale
    with pytest.raises(PredictionsError) as refused:
        evaluated(stacks, engine=engine)
    kind = "missed fire" if scale else "a false alarm"
    assert str(refused.value) == (
        f"predicted maps: student predicts {what} within 4 px of fire at the threshold 0.5, so that every error is "
        f"{kind}; give another --threshold or --reference"
    )
    assert evaluated(stacks, engine=engine, reference="ensemble").settings.reference == "ensemble"
    found = evaluated(stacks, engine=engine, threshold=0.05 if scale else 0.925)
    assert found.settings.threshold == (0.05 if scale else 0.925)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_threshold_decides_what_is_an_error_and_an_edge(engine):
    stacks = fire_arrays()
    found = evaluated(stacks, engine=engine, threshold=0.3)
    wrong = ((stacks["student_prob"] > 0.3) != stacks["y"])[stacks["y"].any(axis=(1, 2))]
    assert found.sweep.query("radius_px == inf")["n_errors"].unique().tolist() == [wrong.sum()]
    hits = (stacks["student_prob"] > 0.3) & (stacks["y"] == 1)
    (row,) = found.segmentation.query("method == 'student'").to_dict("records")
    assert row["recall"] == pytest.approx(hits.sum() / stacks["y"].sum())


@pytest.mark.parametrize("engine", ENGINES)
def test_asd_over_the_images_where_every_method_has_a_boundary(engine):
    stacks = fire_arrays()
    burning = np.flatnonzero(stacks["y"].any(axis=(1, 2)))
    stacks["ensemble_prob"][burning[0]] = 0.1  # finds nothing
    stacks["ensemble_prob"][burning[1]] = 0.9  # fills the image
    found = evaluated(stacks, engine=engine, bootstrap=50)
    student, ensemble = (found.segmentation.set_index("method").loc[name] for name in ("student", "ensemble"))
    assert (student["asd_images"], student["missed"]) == (burning.size, 0)
    assert (ensemble["asd_images"], ensemble["missed"]) == (burning.size - 2, 2)
    assert ensemble["asd_common_m"] == ensemble["asd_m"]
    assert student["asd_common_m"] != student["asd_m"]
    gaps = found.intervals.query("scope == '2018' and a == 'student' and b == 'ensemble'").set_index("metric")
    common = student["asd_common_m"] - ensemble["asd_common_m"]
    assert gaps.loc["asd_m", "value"] == pytest.approx(common)
    assert gaps.loc["asd_common_m", "value"] == pytest.approx(common)
    assert gaps.loc["asd_m", "ci_low"] < common < gaps.loc["asd_m", "ci_high"]


@pytest.mark.filterwarnings("ignore::fcer.errors.UndefinedMetricWarning")
@pytest.mark.parametrize("engine", ENGINES)
def test_the_interval_of_ap_where_probabilities_are_tiny(engine):
    stacks = fire_arrays(n_images=30)
    stacks["ensemble_prob"] = (stacks["ensemble_prob"] * 5e-4).astype(np.float32)
    found = evaluated(stacks, engine=engine, bootstrap=200)
    tiny = found.intervals.query("scope == '2018' and metric == 'ap' and a == 'ensemble' and b == ''").iloc[0]
    stacks["ensemble_prob"] = stacks["ensemble_prob"] / np.float32(5e-4)
    plain = evaluated(stacks, engine=engine, bootstrap=200)
    large = plain.intervals.query("scope == '2018' and metric == 'ap' and a == 'ensemble' and b == ''").iloc[0]
    assert tiny["ci_low"] < tiny["value"] < tiny["ci_high"]
    for column in ("value", "ci_low", "ci_high"):
        assert tiny[column] == pytest.approx(large[column], abs=5e-3)


@pytest.mark.parametrize("engine", ENGINES)
def test_probabilities_that_tie_in_half_precision_are_told(engine):
    stacks = fire_arrays()
    stacks["student_prob"] = np.where(stacks["student_prob"] < 0.1, 1e-9, stacks["student_prob"]).astype(np.float16)
    share = f"{100 * (stacks['student_prob'] == 0).mean():.2g} %"
    said = rf"student_prob is in half precision, in which {re.escape(share)} of its pixels tie at 0 and 0 % at 1"
    with pytest.warns(FcerWarning, match=said):
        evaluated(stacks, engine=engine)


@pytest.mark.filterwarnings("ignore::fcer.errors.UndefinedMetricWarning")
def test_a_year_without_a_value_is_left_out_of_every_mean():
    quiet = fire_arrays(1)
    burning = quiet["y"].any(axis=(1, 2))
    quiet["ensemble_prob"][burning] = 0.1
    years = [
        PredictedMaps.from_arrays(fire_arrays(0), year=2018),
        PredictedMaps.from_arrays(quiet, year=2019),
    ]
    found = evaluate(years, bootstrap=50, radii=[])
    row = found.intervals.query("scope == 'mean' and metric == 'asd_m' and a == 'ensemble' and b == ''").iloc[0]
    mean = found.over_years("segmentation").set_index("method").loc["ensemble", "asd_m"]
    assert row["value"] == pytest.approx(mean) and not np.isnan(mean)
    assert row["ci_low"] < row["value"] < row["ci_high"]
