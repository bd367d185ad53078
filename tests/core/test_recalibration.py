"""Calibrated probabilities: fitted well, chosen by fires, and never out of order."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.metrics import average_precision_score, roc_auc_score

from fcer.core.calibration import nll_loss
from fcer.core.fire_counts import FireCounts
from fcer.core.recalibration import NONE, Recalibration
from fcer.core.recalibration_fits import choose_recalibration, fit_recalibration
from fcer.errors import InputError


def counts_of(prob: np.ndarray, burnt: np.ndarray, fire: np.ndarray) -> FireCounts:
    counts = FireCounts.empty(fire.max() + 1)
    for k in range(fire.max() + 1):
        counts.add(k, prob[fire == k], burnt[fire == k])
    return counts


def sample(rng: np.random.Generator, distort, n_fires: int = 20, n: int = 20_000):
    """Pixels whose true probability a model reports as `distort` makes of it; each fire has a level of its own."""
    fire = rng.integers(n_fires, size=n)
    true = expit(rng.normal(-1.5, 1.5, n) + rng.normal(0, 0.2, n_fires)[fire])
    return distort(true).astype(np.float32), rng.random(n) < true, fire


def weighted(true: np.ndarray) -> np.ndarray:
    """What a model says that was trained with fire pixels of weight 8."""
    return 8 * true / (8 * true + 1 - true)


recalibrations = st.one_of(
    st.builds(lambda w: Recalibration("prior", weight=w), st.floats(0.1, 20)),
    st.builds(lambda a, b: Recalibration("platt", scale=a, shift=b), st.floats(0.2, 2), st.floats(-3, 3)),
)


@given(recalibrations, st.integers(0, 99))
def test_prior_and_platt_change_no_rank(recalibration: Recalibration, seed: int):
    rng = np.random.default_rng(seed)
    prob = np.append(rng.random(200), [0, 1, 1 - 2**-24, 1e-30]).astype(np.float32)
    prob[:50] = prob[50:100]  # ties stay ties
    fire = rng.random(prob.size) < prob
    fire[:2] = True, False
    after = recalibration.apply(prob)
    np.testing.assert_array_equal(np.unique(prob, return_inverse=True)[1], np.unique(after, return_inverse=True)[1])
    assert roc_auc_score(fire, after) == roc_auc_score(fire, prob)
    assert average_precision_score(fire, after) == average_precision_score(fire, prob)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60), st.sampled_from(["platt", "isotonic"])
)
def test_whatever_is_fitted_rises_and_stays_between_0_and_1(pixels: list[tuple[float, bool]], kind):
    prob, burnt = (np.array(column) for column in zip(*pixels, strict=True))
    fitted = fit_recalibration(kind, counts_of(prob, burnt, np.zeros(len(prob), int)))
    after = fitted.apply(np.linspace(0, 1, 999))
    assert (np.diff(after) >= 0).all() and after[0] >= 0 and after[-1] <= 1
    assert Recalibration.from_dict(json.loads(json.dumps(fitted.to_dict()))) == fitted


def test_prior_undoes_the_weight_exactly(rng: np.random.Generator):
    true = rng.random(1000)
    np.testing.assert_allclose(Recalibration("prior", weight=8.0).apply(weighted(true)), true, rtol=1e-12)


def test_platt_is_the_minimum_of_nll(rng: np.random.Generator):
    prob, burnt, fire = sample(rng, lambda p: expit(2 * logit(p) + 1))
    fitted = fit_recalibration("platt", counts_of(prob, burnt, fire))

    def nll(weights: np.ndarray) -> float:
        return nll_loss(burnt, expit(weights[0] * logit(prob.astype(float)) + weights[1]))

    best = minimize(nll, [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-12})
    assert [fitted.scale, fitted.shift] == pytest.approx(best.x, abs=2e-3)
    assert [fitted.scale, fitted.shift] == pytest.approx([0.5, -0.5], abs=0.1)
    assert nll_loss(burnt, fitted.apply(prob)) <= best.fun + 1e-6


def test_probabilities_that_rank_backwards_are_flattened_not_turned_around(rng: np.random.Generator):
    prob, burnt, fire = sample(rng, lambda p: 1 - p)
    fitted = fit_recalibration("platt", counts_of(prob, burnt, fire))
    assert 0 < fitted.scale < 0.01
    assert fitted.apply(prob).mean() == pytest.approx(burnt.mean(), abs=1e-3)


def test_a_handful_of_pixels_does_not_decide_the_ends_of_isotonic(rng: np.random.Generator):
    prob, burnt, fire = sample(rng, lambda p: p * 0.5)
    prob[:3], burnt[:3] = 0.9, True
    fitted = fit_recalibration("isotonic", counts_of(prob, burnt, fire))
    assert fitted.apply(1.0) < 0.99
    assert np.abs(fitted.apply(prob[3:]) - np.minimum(2 * prob[3:], 1)).mean() < 0.03


@pytest.mark.parametrize(
    ("distort", "weight", "expected"),
    [
        (lambda p: p, 8.0, "none"),
        (weighted, 8.0, "prior"),
        (weighted, None, "platt"),
        (lambda p: expit(2 * logit(p) + 1), 8.0, "platt"),
        (lambda p: np.where(p < 0.3, p / 6, 0.6 + 0.4 * p), 8.0, "isotonic"),
    ],
)
def test_the_simplest_that_is_good_enough_is_chosen(rng, distort, weight, expected: str):
    prob, burnt, fire = sample(rng, distort)
    choice = choose_recalibration(counts_of(prob, burnt, fire), weight)
    assert choice.recalibration.kind == expected
    assert choice.n_fires == 20 and ("prior" in choice.nll) == (weight is not None)
    assert nll_loss(burnt, choice.recalibration.apply(prob)) <= nll_loss(burnt, prob) + 1e-4


def test_the_choice_is_judged_on_fires_that_fitted_nothing(rng: np.random.Generator):
    """Each fire distorts in its own way: what follows the pixels seen is no better on fires that were not."""
    prob, burnt, fire = sample(rng, lambda p: p, n_fires=4)
    prob = expit(logit(prob.astype(float)) + np.array([-3.0, 3.0, -3.0, 3.0])[fire])
    choice = choose_recalibration(counts_of(prob, burnt, fire))
    inside = fit_recalibration("isotonic", counts_of(prob, burnt, fire))
    assert choice.nll["isotonic"] > counts_of(prob, burnt, fire).nll(inside).sum() / len(prob)


def test_each_fire_has_the_choice_as_it_is_fitted_without_it(rng: np.random.Generator):
    prob, burnt, fire = sample(rng, lambda p: expit(2 * logit(p) + 1), n_fires=4)
    counts = FireCounts.join([counts_of(prob, burnt, fire), FireCounts.empty(1)])
    choice = choose_recalibration(counts)
    for k in range(4):
        others = fire != k
        rest = fit_recalibration("platt", counts_of(prob[others], burnt[others], fire[others]))
        assert choice.held_out[k] == rest != choice.recalibration
    assert choice.held_out[4] == choice.recalibration, "a fire without pixels"


def test_nan_stays_nan_and_none_is_a_copy():
    prob = np.array([0.2, np.nan])
    kinds = [NONE, Recalibration("prior", weight=2.0), Recalibration("platt", scale=2.0)]
    for recalibration in [*kinds, Recalibration("isotonic", knots=((0.0, 0.1), (1.0, 0.9)))]:
        assert np.isnan(recalibration.apply(prob)).tolist() == [False, True]
    assert NONE.apply(prob) is not prob


@pytest.mark.parametrize("n_fires", [0, 1])
def test_too_few_fires_are_a_sentence(n_fires: int):
    counts = FireCounts.empty(3)
    for fire in range(n_fires):
        counts.add(fire, np.array([0.2, 0.8]), np.array([False, True]))
    with pytest.raises(InputError, match=r"cross-validation over whole fires, .*give validation maps of two fires"):
        choose_recalibration(counts)


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"kind": "magic"},
        {"kind": "prior"},
        {"kind": "prior", "weight": "5"},
        {"kind": "prior", "weight": True},
        {"kind": "prior", "weight": -1.0},
        {"kind": "prior", "weight": 5.0, "scale": 1.0},
        {"kind": "platt", "scale": 0.0, "shift": 0.0},
        {"kind": "platt", "scale": 1.0, "shift": float("nan")},
        {"kind": "isotonic", "knots": []},
        {"kind": "isotonic", "knots": [[0.0, 0.5], [1.0, 0.4]]},
        {"kind": "isotonic", "knots": [[0.0, 0.5], [1.0, 1.4]]},
        {"kind": "isotonic", "knots": [[0.0, 0.5, 0.7]]},
        {"kind": "isotonic", "knots": 3},
    ],
)
def test_a_stored_recalibration_is_checked(stored: dict):
    with pytest.raises(ValueError, match=r"recalibration|knots|weight"):
        Recalibration.from_dict(stored)
