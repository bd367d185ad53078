"""The interval of a student's validation AUROC: whole fires are drawn, as a plain recomputation draws them."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from fcer.training.validation_region import RankedPixels, auroc_interval
from plain_interval import plain_interval

FIRE_OF_SAMPLE = np.array([3, 3, 7, 8, 8, 8, 9])
"""Four fires; the sample of the last has no pixel near fire."""


def make_ranked(rng: np.random.Generator, samples: int = 6) -> RankedPixels:
    """Some 20 pixels of each sample; scores are few, so that many tie, and rank errors better in later ones."""
    sample = np.sort(rng.integers(0, samples, 20 * samples))
    error = rng.random(sample.size) < 0.3
    score = np.round(rng.random(sample.size) + error * sample / 6, 1).astype(np.float32)
    return ranked_pixels(error, score, sample)


def ranked_pixels(error: np.ndarray, score: np.ndarray, sample: np.ndarray) -> RankedPixels:
    """Whatever was predicted: intervals are of AUROC alone."""
    return RankedPixels(error, score, sample, np.zeros_like(error), np.full(error.shape, -1.0))


@pytest.mark.parametrize("seed", [0, 5])
def test_it_is_what_scikit_learn_says_of_drawn_fires(seed: int, rng: np.random.Generator):
    ranked = make_ranked(rng)
    parts = [ranked.sample_P == k for k in range(7)]
    errors, scores = ([values[some] for some in parts] for values in (ranked.error_P, ranked.uncertainty_P))
    low, high, fires = auroc_interval(ranked, FIRE_OF_SAMPLE, seed)
    assert (low, high) == pytest.approx(plain_interval(errors, scores, FIRE_OF_SAMPLE.tolist(), seed), abs=1e-12)
    assert fires == 3
    assert low < ranked.auroc() < high
    assert ranked.auroc() == pytest.approx(roc_auc_score(ranked.error_P, ranked.uncertainty_P))


def test_days_of_one_fire_do_not_narrow_it(rng: np.random.Generator):
    """Ten copies of every day say no more than the days themselves."""
    ranked = make_ranked(rng)
    copies = RankedPixels(*(np.tile(values, 10) for values in ranked))
    assert auroc_interval(copies, FIRE_OF_SAMPLE, 0) == auroc_interval(ranked, FIRE_OF_SAMPLE, 0)


def test_one_fire_has_no_interval_but_its_own_value(rng: np.random.Generator):
    ranked = make_ranked(rng)
    assert auroc_interval(ranked, np.full(7, 4), 0) == (ranked.auroc(), ranked.auroc(), 1)


def test_draws_with_one_class_only_are_left_out():
    """All errors are of one fire, all else of the other: only draws of both have an AUROC."""
    ranked = ranked_pixels(np.array([True, True, False]), np.array([0.5, 0.1, 0.2]), np.array([0, 0, 1]))
    assert auroc_interval(ranked, np.array([0, 1]), 0) == (0.5, 0.5, 2)
