"""Shards give the numbers that sorting every pixel gives: all of them in half precision, else within a bound."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fcer.errors import ConfigError, UndefinedMetricWarning
from fcer.evaluation import Results, engines, evaluate, shards
from fcer.evaluation.engines import choose_engine
from fcer.maps.predicted_maps import PredictedMaps
from plain_fcer import METHODS
from shard_cases import IMAGES, TABLES, assert_close, fire_arrays, fire_maps


def by_both(maps: PredictedMaps | list[PredictedMaps], **options) -> tuple[Results, Results]:
    """Shard by shard, and exactly."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "_IMAGES", IMAGES)
        return evaluate(maps, engine="shards", **options), evaluate(maps, engine="exact", **options)


@pytest.fixture(scope="module")
def half() -> tuple[Results, Results]:
    years = [fire_maps(2018, dtype=np.float16), fire_maps(2019, dtype=np.float16, padding=True)]
    return by_both(years, bootstrap=100)


@pytest.mark.parametrize("name", [name for name in TABLES if name != "intervals"])
def test_half_precision_gives_the_exact_tables(half, name):
    ours, theirs = (getattr(results, name) for results in half)
    assert len(ours) > 0
    assert_close(ours, theirs)
    if name in ("per_image", "tests"):  # of each image's uncertainties themselves, in any precision
        pd.testing.assert_frame_equal(ours, theirs, check_exact=True)


def test_draws_of_fires_are_the_same_for_both(half):
    ours, theirs = (results.intervals for results in half)
    assert_close(ours, theirs)
    assert (ours["ci_low"] < ours["ci_high"]).all()


def test_half_precision_is_said_to_be_exact(half):
    ours, theirs = half
    assert (ours.settings.engine, ours.settings.auroc_bound, ours.settings.auprc_bound) == ("shards", 0, 0)
    assert ours.settings == replace(theirs.settings, engine="shards")
    line = "ranked by 16-bit codes, shard by shard: exact, as in half precision every value has a code of its own"
    said, rest = ours.summary().splitlines(), theirs.summary().splitlines()
    assert [other for other in said if other != line] == rest
    assert line in said


def test_what_is_known_of_ranks_is_written_and_read(half, tmp_path):
    half[0].write(tmp_path)
    assert Results.read(tmp_path).settings == half[0].settings
    assert Results.read(tmp_path).summary() == half[0].summary()


def crowded(stacks: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Uncertainties that differ, but by so little that few codes are left to tell them apart."""
    return stacks | {f"{method}_unc": 0.7 + stacks[f"{method}_unc"] * np.float32(0.01) for method in METHODS}


def whole_on_fire(stacks: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Uncertainties whose codes round everywhere but where fire burnt: not in the smallest region."""
    sure = {name: (1 + np.round(stacks[name], 2).astype(np.float16)) / 2 for name in ("student_unc", "ensemble_unc")}
    return stacks | {name: np.where(stacks["y"], unc, stacks[name] / 4) for name, unc in sure.items()}


ROUNDED = {
    "single": lambda year: fire_arrays(year, padding=year == 2019),
    "double": lambda year: fire_arrays(year, np.float64),
    "crowded": lambda year: crowded(fire_arrays(year)),
    "whole on fire": lambda year: whole_on_fire(fire_arrays(year)),
    "half in single": lambda year: {
        name: stack.astype(np.float32) if name.endswith("unc") else stack
        for name, stack in fire_arrays(year, np.float16).items()
    },
}


@pytest.mark.parametrize("case", ROUNDED)
def test_other_precisions_lie_within_the_bound(case):
    maps = [PredictedMaps.from_arrays(ROUNDED[case](year), year=year) for year in (2018, 2019)]
    ours, theirs = by_both(maps, bootstrap=0, radii=[0, 10])
    auroc, auprc = ours.settings.auroc_bound, ours.settings.auprc_bound
    within, aurc = ours.settings.within_bound + 1e-12, ours.settings.aurc_bound + 1e-12
    ranks = {"auroc": auroc + 1e-12, "auprc": auprc + 1e-12, "auroc_within": within}
    others = {"auroc_alarms": within, "auroc_missed": within, "fpr95": ours.settings.fpr95_bound + 1e-12}
    others |= {"aurc": aurc, "e_aurc": aurc, "augrc": auroc / 4 + 1e-12}
    coded = dict.fromkeys(("ece_mass", "miscalibration", "discrimination"), 1e-3)
    off = {}
    for name in ("sweep", "anchor", "own_errors"):
        mine, exact = getattr(ours, name), getattr(theirs, name)
        assert_close(mine, exact, **ranks, **others, **coded)
        off[name] = max((mine[metric] - exact[metric]).abs().max() for metric in ("auroc", "auprc"))
    assert_close(ours.segmentation, theirs.segmentation, ap=auprc + 1e-12)
    scores = ours.sensitivity["metric"].map(ranks)
    for column in ("a_score", "b_score"):
        gap = (ours.sensitivity[column] - theirs.sensitivity[column]).abs()
        assert (gap[gap.notna()] <= scores[gap.notna()]).all()
    for name in ("per_image", "tests"):
        pd.testing.assert_frame_equal(getattr(ours, name), getattr(theirs, name), check_exact=True)
    widths, exact = (results.reliability.query("binning == 'width'") for results in (ours, theirs))
    assert_close(widths.reset_index(), exact.reset_index())
    if case == "half in single":
        assert (auroc, auprc) == (0, 0)
    else:
        assert min(off.values()) > 1e-9, "else this tests nothing"
        assert 0 < auroc < (0.2 if case == "crowded" else 1e-3)


@pytest.mark.filterwarnings("ignore::fcer.errors.UndefinedMetricWarning")
def test_a_methods_own_errors_lie_within_the_bound():
    stacks = fire_arrays()
    stacks["student_prob"] = stacks["y"].astype(np.float32)  # without errors, nothing else is ranked
    ours, theirs = by_both(PredictedMaps.from_arrays(stacks, year=2018), bootstrap=0, radii=[])
    own = [results.own_errors.set_index("method").loc["ensemble"] for results in (ours, theirs)]
    off = abs(own[0] - own[1])
    assert 1e-9 < off["auroc"] <= ours.settings.auroc_bound
    assert 1e-9 < off["auprc"] <= ours.settings.auprc_bound


@settings(max_examples=25)
@given(*[st.one_of(st.just(0.0), st.floats(1e-15, 0.5))] * 2)
def test_the_printed_bound_is_none_too_narrow(half, auroc, auprc):
    bounded = replace(half[0].settings, auroc_bound=auroc, auprc_bound=auprc)
    (line,) = [line for line in replace(half[0], settings=bounded).summary().splitlines() if "16-bit codes" in line]
    if not auroc and not auprc:
        assert "within" not in line
        return
    found = re.search(r"codes, shard by shard: AUROC within (\S+), AUPRC and AP within (\S+) of exact ranks", line)
    for printed, bound in zip(found.groups(), (auroc, auprc), strict=True):
        assert bound * (1 - 1e-12) <= float(printed) <= 1.2 * bound


def without(stacks: dict[str, np.ndarray], *names: str) -> dict[str, np.ndarray]:
    return {name: stack for name, stack in stacks.items() if name not in names}


def fire_only(stacks: dict[str, np.ndarray], image: int) -> dict[str, np.ndarray]:
    fire = np.zeros_like(stacks["y"])
    fire[image] = stacks["y"][image]
    return stacks | {"y": fire}


HALF = fire_arrays(dtype=np.float16)
CASES = {
    "no fire_id": (without(HALF, "fire_id"), {}),
    "fire in one image only": (fire_only(HALF, 12), {}),
    "a single image": ({name: stack[:1] for name, stack in HALF.items()}, {}),
    "one method": (without(HALF, "student_prob", "student_unc"), {}),
    "no draws": (HALF, {"bootstrap": 0, "anchor": 0}),
    "the ensemble's ASD": (HALF, {"radii": ["full", "750m"], "anchor": "auto", "reference": "ensemble"}),
    "a method that misses every fire": (HALF | {"ensemble_prob": HALF["ensemble_prob"] / 3}, {}),
    "no errors": (HALF | {"student_prob": HALF["y"].astype(np.float16)}, {}),
    "nothing but fire": (HALF | {"y": np.ones_like(HALF["y"])}, {}),
}


@pytest.mark.filterwarnings("error", "ignore::fcer.errors.FcerWarning")
@pytest.mark.parametrize("case", CASES)
def test_odd_maps_in_half_precision(case):
    stacks, options = CASES[case]
    ours, theirs = by_both(PredictedMaps.from_arrays(stacks, year=2018), **{"bootstrap": 20, "radii": [], **options})
    for name in TABLES:
        assert_close(getattr(ours, name), getattr(theirs, name))


@st.composite
def small_maps(draw) -> dict[str, np.ndarray]:
    """Half precision in any of its types: whatever its type, no value shares a code with another."""
    shape = draw(st.integers(1, 7)), draw(st.integers(1, 6)), draw(st.integers(2, 6))
    values = arrays(np.float16, shape, elements=st.floats(0, 1, width=16))
    dtype = draw(st.sampled_from([np.float16, np.float32, np.float64]))
    fire = draw(arrays(bool, shape))
    image = draw(st.integers(0, shape[0] - 1))
    fire[image, 0, :2] = True
    stacks = {f"{method}_{kind}": draw(values).astype(dtype) for method in METHODS for kind in ("prob", "unc")}
    stacks["student_prob"][image, 0, :2] = 0.75, 0.25  # else every error is of one kind
    return {"y": fire, **stacks, "fire_id": np.arange(shape[0]) // 2}


@pytest.mark.filterwarnings("ignore::fcer.errors.FcerWarning")
@settings(max_examples=8)
@given(small_maps())
def test_any_maps_in_half_precision(stacks):
    ours, theirs = by_both(PredictedMaps.from_arrays(stacks, year=2018), bootstrap=0, radii=[0, 2.5], anchor=1.5)
    assert (ours.settings.auroc_bound, ours.settings.auprc_bound) == (0, 0)
    for name in TABLES:
        assert_close(getattr(ours, name), getattr(theirs, name))


def test_a_region_without_errors_is_named_as_by_the_exact_engine():
    maps = PredictedMaps.from_arrays(CASES["no errors"][0], year=2018)
    said = []
    for engine in ("shards", "exact"):
        with pytest.warns(UndefinedMetricWarning) as caught:
            evaluate(maps, engine=engine, bootstrap=0)
        said.append([str(warning.message) for warning in caught])
    assert said[0] == said[1]


def test_auto_chooses_by_the_pixels_of_the_largest_year(monkeypatch):
    years = [fire_maps(2018), fire_maps(2019, n_images=12)]
    largest = int(np.prod(years[0].shape))
    assert choose_engine("auto", years) == "exact"
    for limit, engine in ((largest, "exact"), (largest - 1, "shards")):
        monkeypatch.setattr(engines, "_EXACT_PIXELS", limit)
        assert choose_engine("auto", years) == engine
        assert choose_engine("exact", years) == "exact"
        assert choose_engine("shards", years) == "shards"
    assert evaluate(years, bootstrap=0, radii=[]).settings.engine == "shards"


def test_an_engine_that_is_none():
    with pytest.raises(ConfigError) as refused:
        evaluate(fire_maps(), engine="steam")
    assert str(refused.value) == "engine: there is no 'steam'; choose one of auto, exact, shards"


def test_each_image_moves_the_bar_as_often_as_it_is_read(monkeypatch):
    monkeypatch.setattr(shards, "_IMAGES", IMAGES)

    class Counted:
        def __init__(self, n_images: int) -> None:
            self.left = n_images
            bars.append(self)

        def update(self, n_images: int) -> None:
            self.left -= n_images

        def close(self) -> None:
            pass

    bars: list[Counted] = []
    evaluate([fire_maps(2018), fire_maps(2019)], engine="shards", bootstrap=0, radii=[], progress=Counted)
    assert [bar.left for bar in bars] == [0]
