import dataclasses
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fcer.training.epochs import EpochRecord, best_epoch, stalled, still_rising
from fcer.training.schedules import member_learning_rate
from training_cases import QUICK

aps = st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.4]), min_size=1, max_size=30)


def epochs(val_aps) -> list[EpochRecord]:
    return [EpochRecord(k, 0.5, 0.5, ap, 1e-3, 1.0) for k, ap in enumerate(val_aps, start=1)]


def optimizer() -> torch.optim.SGD:
    return torch.optim.SGD([torch.zeros(1)], lr=QUICK.lr)


@given(aps)
def test_the_best_epoch_is_the_first_of_the_highest(val_aps):
    assert best_epoch(epochs(val_aps)) == val_aps.index(max(val_aps)) + 1


@pytest.mark.parametrize(
    ("val_aps", "patience", "expected"),
    [
        ([], 1, False),
        ([0.1], 1, False),
        ([0.1, 0.1], 1, True),
        ([0.3, 0.1, 0.2], 3, False),
        ([0.3, 0.1, 0.2, 0.3], 3, True),
        ([0.3, 0.1, 0.2, 0.31], 3, False),
    ],
)
def test_stalled(val_aps, patience, expected):
    assert stalled(epochs(val_aps), patience) is expected


@given(aps, aps)
def test_epochs_may_be_ranked_by_more_than_the_score(scores, others):
    some = [record._replace(val_ap=other) for record, other in zip(epochs(scores), others, strict=False)]
    best = best_epoch(some, lambda record: (record.val_ap, record.score))
    assert some[best - 1].val_ap == max(record.val_ap for record in some)
    assert stalled(some, 1, lambda record: (record.val_ap, record.score)) == (best < len(some))


@pytest.mark.parametrize(
    ("best", "planned", "expected"),
    [(95, 100, False), (96, 100, True), (100, 100, True), (19, 20, False), (20, 20, True), (3, 3, False)],
)
def test_still_rising_in_the_last_twentieth(best, planned, expected):
    assert still_rising(best, planned) is expected


@settings(deadline=None)  # the first optimiser of a process is slow to make
@given(aps, st.integers(1, 9))
def test_plateau_is_what_torch_would_do(val_aps, patience):
    how = dataclasses.replace(QUICK, schedule="plateau", patience=patience)
    sgd = optimizer()
    wait = max(1, patience // 2)
    torch_schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
        sgd, mode="max", factor=0.5, patience=wait - 1, threshold=0, threshold_mode="abs", eps=0
    )
    for k, ap in enumerate(val_aps):
        assert member_learning_rate(how, epochs(val_aps[:k])) == sgd.param_groups[0]["lr"]
        torch_schedule.step(ap)


def test_cosine_is_what_torch_would_do():
    how = dataclasses.replace(QUICK, schedule="cosine", epochs=7)
    sgd = optimizer()
    torch_schedule = torch.optim.lr_scheduler.CosineAnnealingLR(sgd, T_max=7)
    for k in range(7):
        assert math.isclose(member_learning_rate(how, epochs([0.1] * k)), sgd.param_groups[0]["lr"], rel_tol=1e-9)
        sgd.step()
        torch_schedule.step()
