"""The loop that every training runs in, on a weight that counts its epochs."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from fcer.training.epoch_loop import BestEpoch, ModelLearner, run_epochs, set_learning_rate
from fcer.training.epochs import EpochRecord, best_epoch, stalled

SCORES = [0.3, 0.5, 0.5, 0.2, 0.6, 0.1, 0.1, 0.1, 0.9]


def counter() -> ModelLearner:
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    return ModelLearner("counter", model, torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.5))


def run(scores, patience=3, learner=None, **how) -> BestEpoch:
    learner = learner or counter()

    def step(records: list[EpochRecord]) -> EpochRecord:
        """The weight goes its way with momentum: every step depends on all before it."""
        learner.trained.weight.grad = torch.ones(1, 1)
        learner.optimizer.step()
        return EpochRecord(len(records) + 1, 0.5, 0.5, scores[len(records)], 1.0, 1.0)

    return run_epochs(learner, step, epochs=len(scores), patience=patience, **{"resume": None, **how})


def test_the_best_weights_are_kept_and_a_stall_ends_it():
    weights = []
    learner = counter()
    found = run(SCORES, learner=learner, on_epoch=lambda _: weights.append(learner.trained.weight.item()))
    assert [record.epoch for record in found.records] == [1, 2, 3, 4, 5, 6, 7, 8], "three without a better one"
    assert found.weights["weight"].item() == weights[4]


@given(st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=1, max_size=12), st.integers(1, 5))
def test_it_stops_at_the_first_stall_or_at_the_end(scores, patience):
    records = run(scores, patience).records
    assert len(records) == len(scores) or stalled(records, patience)
    assert not any(stalled(records[:done], patience) for done in range(len(records)))
    assert records[best_epoch(records) - 1].score == max(record.score for record in records)


@pytest.mark.parametrize("killed_after", range(1, 8))
def test_killed_after_any_epoch_it_ends_alike(tmp_path: Path, killed_after: int):
    resume = (tmp_path / "state.resume", "key")
    told = []

    def on_epoch(record: EpochRecord) -> None:
        told.append(record.epoch)
        if len(told) == killed_after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(SCORES, resume=resume, on_epoch=on_epoch)
    again = run(SCORES, resume=resume, on_epoch=on_epoch)
    whole = run(SCORES)
    assert again.records == whole.records
    assert torch.equal(again.weights["weight"], whole.weights["weight"])
    assert told == [*range(1, killed_after + 1), *range(1, 9)], "epochs before the kill are told again"


def test_saves_are_spared_and_left_to_the_main_process(tmp_path: Path):
    resume = (tmp_path / "state.resume", "key")
    run(SCORES, resume=resume, seconds_between_saves=1e6)
    run(SCORES, resume=resume, is_main=False)
    assert not resume[0].exists()


def test_the_learning_rate_of_every_group_is_set():
    optimizer = torch.optim.SGD([{"params": [torch.zeros(1)]}, {"params": [torch.zeros(1)]}], lr=1.0)
    set_learning_rate(optimizer, 0.25)
    assert [group["lr"] for group in optimizer.param_groups] == [0.25, 0.25]
