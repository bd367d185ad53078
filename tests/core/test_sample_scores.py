"""Scores of drawn maps against their definitions, pair by pair."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fcer.core.sample_scores import crps_of_samples, energy_loss, sample_scores


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 6), st.integers(0, 99))
def test_against_the_definitions(count: int, seed: int):
    rng = np.random.default_rng(seed)
    drawn, truth = rng.random((count, 5, 4)) < 0.4, rng.random((5, 4)) < 0.4
    pairs = [(a, b) for i, a in enumerate(drawn) for b in drawn[i + 1 :]]
    found = sample_scores(drawn.astype(np.float32), truth)
    areas = drawn.sum((1, 2)) * 0.375**2
    to_truth, between = np.abs(areas - truth.sum() * 0.375**2).mean(), [np.abs(a.sum() - b.sum()) for a, b in pairs]
    assert found.crps_km2 == pytest.approx(to_truth - np.mean(between) * 0.375**2 / 2, abs=1e-9)
    apart = [np.sqrt((a ^ b).sum()) for a, b in pairs]
    expected = np.mean([np.sqrt((one ^ truth).sum()) for one in drawn]) - np.mean(apart) / 2
    assert found.energy == pytest.approx(expected, abs=1e-6)
    unlike = [(a ^ b).sum() / max((a | b).sum(), 1) for a, b in pairs]
    assert found.diversity == pytest.approx(np.mean(unlike), abs=1e-9)


def test_a_sure_truth_costs_nothing_and_honest_doubt_beats_a_sure_error():
    truth = np.zeros((3, 3))
    truth[1] = 1
    assert energy_loss(np.stack([truth, truth]), truth) == 0
    assert crps_of_samples(np.array([1.0, 9.0]), 5.0) < crps_of_samples(np.array([9.0, 9.0]), 5.0)
