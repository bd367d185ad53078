"""Conformal risk control by fire keeps its promise; by image it does not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcer.core.risk_control import check_miss, control_risk, smallest_miss, zone_as_if
from fcer.errors import InputError


@st.composite
def losses_of_fires(draw):
    n, zones = draw(st.integers(2, 12)), draw(st.integers(2, 8))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    losses = -np.sort(-rng.integers(0, 5, (n, zones)) / 4, axis=1)
    losses[:, -1] = 0
    return losses


@given(losses_of_fires(), st.floats(0.01, 0.99))
def test_it_is_the_smallest_zone_that_is_allowed(losses: np.ndarray, miss: float):
    n = len(losses)
    if miss < 1 / (n + 1) - 1e-12:
        with pytest.raises(InputError, match="the smallest possible is"):
            control_risk(losses, miss)
        return
    found = control_risk(losses, miss)
    allowed = [k for k in range(losses.shape[1]) if losses[:, k].sum() + 1 <= miss * (n + 1) * (1 + 1e-12)]
    assert found.place == allowed[0]
    assert found.bound <= miss * (1 + 1e-9) and found.n_fires == n and found.reserved == 1


@given(losses_of_fires(), st.floats(0.5, 0.98))
def test_more_fires_never_choose_a_larger_zone(losses: np.ndarray, miss: float):
    places = [zone_as_if(losses, miss, times) for times in (1, 2, 4, np.inf)]
    assert places[0] == control_risk(losses, miss).place
    assert places == sorted(places, reverse=True)
    twice = np.concatenate([losses, losses])
    assert places[1] == control_risk(twice, miss).place


def test_fires_without_a_loss_do_not_count():
    assert control_risk([[1.0, 0.0], [0.25, 0.0], [np.nan, np.nan]], 0.5).n_fires == 2


@pytest.mark.parametrize(
    ("miss", "sentence"),
    [
        (0.0, "a miss of 0 cannot be asked for; give a share between 0 and 1"),
        (1.0, "a miss of 1 cannot be asked for"),
        (-0.1, "a miss of -0.1 cannot be asked for"),
        (float("nan"), "a miss of nan cannot be asked for"),
        (0.05, r"by 10 calibration fires: the smallest possible is 1/\(10 \+ 1\) = 0.091; .* calibrate on 19 fires"),
    ],
)
def test_what_cannot_be_guaranteed_is_refused(miss: float, sentence: str):
    with pytest.raises(InputError, match=sentence):
        control_risk(np.zeros((10, 3)), miss)


@given(st.integers(2, 500))
def test_the_smallest_miss_itself_can_be_guaranteed(n: int):
    losses = np.zeros((n, 3))
    losses[:, 0] = 1
    assert control_risk(losses, smallest_miss(n)).place == 1
    check_miss(smallest_miss(n), n)


def test_too_few_fires_and_losses_that_are_none():
    with pytest.raises(InputError, match="one calibration fire guarantees nothing of another"):
        control_risk([[0.5, 0.0]], 0.6)
    with pytest.raises(InputError, match="no calibration fire has burnt pixels"):
        control_risk(np.full((4, 2), np.nan), 0.3)
    with pytest.raises(InputError, match="two groups of fires at least"):
        control_risk(np.zeros((4, 2)), 0.6, group=["a"] * 4)
    for wrong in ([[0.2, 0.5, 0.0]] * 3, [[2.0, 0.0]] * 3, [[0.5, 0.1]] * 3):
        with pytest.raises(ValueError, match="never rise along the row"):
            control_risk(wrong, 0.5)


def test_groups_have_their_price():
    losses = np.zeros((12, 2))
    losses[:, 0] = 1
    groups = np.arange(12) % 4
    assert control_risk(losses, 3 / 15, groups).reserved == 3
    with pytest.raises(InputError, match=r"in groups of up to 3: .* 3/\(12 \+ 3\) = 0.2;"):
        control_risk(losses, 0.19, groups)
    assert control_risk(losses, 1 / 13, np.arange(12)).place == control_risk(losses, 1 / 13).place


@pytest.mark.parametrize("n_groups", [4, 12])
def test_cross_fitting_keeps_its_promise(rng: np.random.Generator, n_groups: int):
    """A model is the mean of its fires; a zone is an interval around it; a fire loses what it sticks out."""
    n, miss, levels = 12, 0.3, np.linspace(0, 8, 400)
    realised = []
    for _ in range(400):
        fires = rng.standard_t(3, n + 1)
        group = rng.permutation(n) % n_groups
        models = np.array([fires[:n][group != k].mean() for k in range(n_groups)])
        losses = np.clip(np.abs(fires[:n] - models[group])[:, None] - levels, 0, 1)
        losses[:, -1] = 0
        found = control_risk(losses, miss, group)
        realised.append(np.clip(np.abs(fires[n] - models).min() - levels[found.place], 0, 1))
    assert np.mean(realised) <= miss + 3 * np.std(realised) / np.sqrt(len(realised))
