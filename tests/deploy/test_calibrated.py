"""A map under its calibration: probability, zones that hold each other, and their promise in words."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from fcer.core.recalibration import NONE, Recalibration
from fcer.core.zones import ZoneFamily, ZoneRule
from fcer.deploy.calibrated import CONTOURS, calibrate_map, contours, guarantee
from fcer.errors import InputError
from fcer.evaluation.zones import fit_family, fit_rules, measure_zones
from fcer.maps.predicted_maps import PredictedMaps
from fcer.models.calibration_files import Calibration
from simulated_fires import simulate_fires

MISSES = (0.05, 0.1, 0.2)
PRIOR = Recalibration("prior", weight=10.0)


@pytest.fixture(scope="module")
def maps() -> PredictedMaps:
    return PredictedMaps.from_arrays(simulate_fires(40, np.random.default_rng(0)).arrays(), year=2020)


@pytest.fixture(scope="module")
def calibration(maps: PredictedMaps) -> Calibration:
    families = [fit_family([maps], "student", name, PRIOR) for name in ("threshold", "margin", "widened")]
    rules = tuple(rule for family in families for rule in fit_rules(family, MISSES))
    platt = Recalibration("platt", scale=0.7, shift=-2.0)
    return Calibration("key", platt, PRIOR, rules, 4.0, ("fire_00001",), False, "0.1.0")


@pytest.fixture
def predicted(maps: PredictedMaps) -> tuple[np.ndarray, np.ndarray]:
    last = slice(maps.shape[0] - 1, maps.shape[0])
    probability, uncertainty = maps.prob("student", last)[0].copy(), maps.unc("student", last)[0].copy()
    probability[:2, :3] = uncertainty[:2, :3] = np.nan
    return probability, uncertainty


@pytest.mark.parametrize("family", ["threshold", "margin", "widened"])
def test_zones_hold_each_other_and_leave_out_what_is_unknown(predicted, calibration: Calibration, family):
    found = calibrate_map(*predicted, calibration, family=family)
    assert [zone.rule.miss for zone in found.zones] == list(MISSES)
    masks = [zone.mask for zone in found.zones]
    for larger, smaller in pairwise(masks):
        assert not (smaller & ~larger).any() and larger.sum() > smaller.sum()
    unknown = np.isnan(predicted[0])
    assert not any(mask[unknown].any() for mask in masks)
    np.testing.assert_array_equal(np.isnan(found.probability), unknown)
    assert found.probability.dtype == np.float32
    expected = calibration.recalibration.apply(predicted[0])[~unknown]
    np.testing.assert_allclose(found.probability[~unknown], expected, rtol=1e-6)


@pytest.mark.parametrize("family", ["threshold", "margin", "widened"])
def test_a_zone_on_the_map_is_the_zone_that_was_calibrated(maps: PredictedMaps, calibration: Calibration, family):
    """Pixel for pixel: what `predict` draws has the area and the miss that stand behind the guarantee."""
    rule = calibration.rules_of(family)[1]
    measured = measure_zones(maps, "student", rule.family, PRIOR)
    place = int(np.flatnonzero(measured.family.levels == rule.level)[0])
    days = np.flatnonzero(maps.fire_id == measured.fire_id[5])
    everything = slice(0, maps.shape[0])
    prob, unc = maps.prob("student", everything), maps.unc("student", everything)
    areas = [calibrate_map(prob[k], unc[k], calibration, family=family).zones[1].area_km2 for k in days]
    assert np.mean(areas) == pytest.approx(measured.area_km2[5, place])


def test_a_threshold_says_its_calibrated_probability(predicted, calibration: Calibration):
    found = calibrate_map(*predicted, calibration, misses=[0.1])
    [zone] = found.zones
    inside = found.probability[zone.mask]
    outside = found.probability[~zone.mask & ~np.isnan(predicted[0])]
    assert inside.min() >= zone.calibrated_level * (1 - 1e-5) and outside.max() < zone.calibrated_level * (1 + 1e-5)
    assert zone.properties["calibrated_level"] == round(zone.calibrated_level, 6)
    [margin] = calibrate_map(*predicted, calibration, family="margin", misses=[0.1]).zones
    assert margin.calibrated_level is None and "calibrated_level" not in margin.properties


def test_ties_are_reported(calibration: Calibration):
    saturated = np.full((10, 10), 1e-9, np.float32)
    saturated[:4] = 1.0
    zone = calibrate_map(saturated, saturated, calibration).zones[-1]
    assert zone.mask.sum() == 40 and zone.tie_share == 1.0 == zone.properties["tie_share"]


def test_the_pixel_size_is_that_of_the_ground(predicted, calibration: Calibration):
    coarse, fine = (
        calibrate_map(*predicted, calibration, family="margin", misses=[0.2], pixel_m=(side, side)).zones[0]
        for side in (750.0, 375.0)
    )
    assert coarse.mask.sum() < fine.mask.sum()
    assert coarse.area_km2 == pytest.approx(coarse.mask.sum() * 0.75**2)


def test_a_miss_that_is_not_calibrated_is_refused(predicted, calibration: Calibration):
    sentence = (
        r"no margin zone is calibrated for a miss of 0.01 \(there is: 0.05, 0.1, 0.2\); run `fcer calibrate --miss"
    )
    with pytest.raises(InputError, match=sentence):
        calibrate_map(*predicted, calibration, family="margin", misses=[0.1, 0.01])
    with pytest.raises(InputError, match="there is: none"):
        calibrate_map(*predicted, replace(calibration, rules=()), misses=[0.1])
    assert calibrate_map(*predicted, replace(calibration, rules=())).zones == ()


def test_the_guarantee_says_what_it_stands_on():
    rule = ZoneRule(ZoneFamily("threshold"), 0.02, 0.05, 0.0478, 40, 1, 40.0, 31.0)
    words = guarantee(rule)
    for part in (
        "at most 5 %",
        "bound 4.78 %",
        "40 calibration fires",
        "of the same kind",
        "not for every single fire",
    ):
        assert part in words
    assert "whole image" not in words and "groups" not in words and "epoch" not in words
    assert "groups of up to 2" in guarantee(replace(rule, reserved=2))
    assert "only the whole image" in guarantee(replace(rule, level=-math.inf))
    assert "chose the model's epoch" in guarantee(rule, chose_epoch=True)
    crossed = guarantee(replace(rule, cross_bound=0.414))
    assert "each under a model that was not trained on it" in crossed and "model" not in guarantee(rule)
    assert "and this model like theirs (whatever the models: 41.4 % outside all their zones together)" in crossed


def test_contours_hold_each_other():
    probability = NONE.apply(np.array([[0.05, 0.1, 0.3, 0.95, np.nan]]))
    found = contours(probability)
    assert tuple(found) == CONTOURS
    assert [int(mask.sum()) for mask in found.values()] == [3, 2, 1, 1, 1]
