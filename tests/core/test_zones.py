"""Zones: nested, exact in ties, and within their guarantee on fires that could change places."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from fcer.core.risk_control import control_risk
from fcer.core.zones import FAMILIES, ZoneCounts, ZoneFamily, ZoneRule, draw_zone
from simulated_fires import mean_of_days, simulate_fires

SHAPE = (7, 9)
# few distinct values, so that ties are common; saturated ones among them
maps = npst.arrays(np.float32, SHAPE, elements=st.sampled_from([0.0, 1e-6, 0.1, 0.25, 0.5, 0.75, 1.0]))
masks = npst.arrays(bool, SHAPE)
families = st.one_of(
    st.sampled_from([ZoneFamily("threshold"), ZoneFamily("margin")]),
    st.builds(lambda kappa: ZoneFamily("widened", kappa), st.floats(0, 8)),
)


@given(families, maps, maps, masks)
def test_counts_are_those_of_the_zones_drawn(family: ZoneFamily, prob: np.ndarray, unc: np.ndarray, fire: np.ndarray):
    score, levels = family.score(prob, unc), family.levels
    counts = ZoneCounts.of(score, fire, levels)
    for k in [*range(0, levels.size, 61), levels.size - 1]:
        mask = draw_zone(score, levels[k]).mask
        assert counts.inside[k] == mask.sum()
        assert counts.burnt[k] == (mask & fire).sum()
        if fire.any():
            assert counts.miss[k] == (fire & ~mask).sum() / fire.sum()
    assert (np.diff(counts.inside) >= 0).all() and counts.inside[-1] == prob.size
    assert np.isnan(counts.miss).all() if not fire.any() else counts.miss[-1] == 0


@given(families, maps, maps, st.integers(0, 2000), st.integers(0, 2000))
def test_zones_are_nested(family: ZoneFamily, prob: np.ndarray, unc: np.ndarray, i: int, j: int):
    score, levels = family.score(prob, unc), family.levels
    small, large = (draw_zone(score, levels[k]).mask for k in sorted((i % levels.size, j % levels.size)))
    assert not (small & ~large).any()


@given(maps)
def test_a_tie_at_the_level_is_inside_and_reported(prob: np.ndarray):
    level = float(np.median(prob))
    zone = draw_zone(prob.astype(float), level)
    assert zone.mask[prob == np.float32(level)].all()
    ties = (prob == prob[zone.mask].min()).sum()
    assert zone.tie_share == pytest.approx(ties / zone.mask.sum())


def test_margins_are_metres_on_the_ground():
    prob = np.zeros((1, 5))
    prob[0, 0] = 0.9
    family = ZoneFamily("margin")
    np.testing.assert_array_equal(family.score(prob, prob), [[0, -375, -750, -1125, -1500]])
    np.testing.assert_array_equal(family.score(prob, prob, (300.0, 200.0)), [[0, -200, -400, -600, -800]])


def test_margins_of_a_fire_that_is_hardly_seen_start_at_its_most_probable_pixels():
    prob = np.array([[0.1, 0.3, 0.3, 0.1]])
    np.testing.assert_array_equal(ZoneFamily("margin").score(prob, prob), [[-375, 0, 0, -375]])


def test_nothing_is_in_a_zone_where_nothing_is_known():
    prob = np.array([[0.9, np.nan, 0.2]])
    for family in (ZoneFamily("threshold"), ZoneFamily("margin"), ZoneFamily("widened", 1.0)):
        score = family.score(prob, np.zeros_like(prob))
        assert draw_zone(score, -np.inf).mask.tolist() == [[True, False, True]]
        nothing = family.score(np.full((2, 2), np.nan), np.zeros((2, 2)))
        assert draw_zone(nothing, -np.inf).mask.sum() == 0


RULE = ZoneRule(ZoneFamily("widened", 0.5), 0.02, 0.1, 0.09, 23, 1, 40.0, 31.0)


@pytest.mark.parametrize("level", [0.02, -math.inf])
def test_a_rule_is_read_as_it_was_written(level: float):
    rule = ZoneRule(RULE.family, level, *(getattr(RULE, n) for n in list(RULE.__dataclass_fields__)[2:]))
    for one in (rule, replace(rule, cross_bound=0.4)):
        assert ZoneRule.from_dict(json.loads(json.dumps(one.to_dict(), allow_nan=False))) == one


@pytest.mark.parametrize(
    "change",
    [
        {"family": {"name": "circle", "kappa": 0.0}},
        {"family": {"name": "threshold", "kappa": 1.0}},
        {"family": {"name": "widened", "kappa": -1.0}},
        {"family": {"name": "widened"}},
        {"family": "widened"},
        {"bound": 0.2},
        {"miss": 0.0},
        {"n_fires": 1},
        {"n_fires": 23.5},
        {"reserved": 0},
        {"level": "low"},
        {"level": float("nan")},
        {"area_km2": True},
        {"area_2n_km2": 50.0},
        {"cross_bound": 0.05},
        {"cross_bound": "all"},
        {"more": 1},
    ],
)
def test_a_rule_from_elsewhere_is_checked(change: dict):
    with pytest.raises(ValueError, match=r"famil|kappa|rule|bound|fires|km2"):
        ZoneRule.from_dict(RULE.to_dict() | change)


@pytest.fixture(scope="module")
def pool() -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Of each family on many fires: losses of fires, losses of images, whose each image is."""
    fires = simulate_fires(1500, np.random.default_rng(1))
    found = {}
    for name in FAMILIES:
        family = ZoneFamily(name, 0.5 if name == "widened" else 0.0)
        levels = family.levels
        maps = zip(fires.prob, fires.unc, fires.y, strict=True)
        images = np.stack([ZoneCounts.of(family.score(p, u), y, levels).miss for p, u, y in maps])
        found[name] = mean_of_days(images, fires.fire), images, fires.fire
    return found


def realised_risk(losses: np.ndarray, images: np.ndarray, owner: np.ndarray, n: int, miss: float, *, by_image: bool):
    """Mean loss of 100 new fires for each of 200 calibrations on n, all drawn from one pool without replacement."""
    rng = np.random.default_rng(2)
    burnt = np.flatnonzero(~np.isnan(losses[:, -1]))
    risks = []
    for _ in range(200):
        drawn = rng.permutation(burnt)[: n + 100]
        calibration = images[np.isin(owner, drawn[:n])] if by_image else losses[drawn[:n]]
        risks.append(losses[drawn[n:], control_risk(calibration, miss).place].mean())
    return np.mean(risks), np.std(risks) / np.sqrt(len(risks))


@pytest.mark.slow
def test_the_promise_is_kept_by_fire_and_broken_by_image(pool, capsys: pytest.CaptureFixture[str]):
    miss, lines = 0.15, ["family     fires  promised  one loss a fire    one loss an image"]
    for name, sample in pool.items():
        for n in (10, 30, 100):
            (fire, fire_error), (image, image_error) = (
                realised_risk(*sample, n, miss, by_image=by_image) for by_image in (False, True)
            )
            found = f"{fire:.3f} ± {fire_error:.3f}     {image:.3f} ± {image_error:.3f}"
            lines.append(f"{name:10} {n:5}  {miss:8.2f}  {found}")
            assert fire <= miss + 2 * fire_error, lines[-1]
            assert image > miss + 3 * image_error, lines[-1]
    with capsys.disabled():
        print("", *lines, sep="\n")
