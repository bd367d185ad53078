"""A head that learns the backbone's errors: scored on fires that it has not seen, kept with what all of them taught."""

import dataclasses

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from fcer.errors import DataError
from fcer.training.epochs import EpochRecord
from fcer.training.error_head import PARTS, fit_error_head
from fcer.training.head import HeadTask, fit_head, make_head
from fcer.training.head_settings import HeadSettings
from fcer.training.validation_region import gather_region
from split_cases import InMemory
from training_cases import untimed

SETTINGS = HeadSettings(target="error", loss="bce", epochs=5, patience=5, lr=0.5)
FIRES = np.repeat(np.arange(7), 2)


@pytest.fixture(scope="module")
def split() -> InMemory:
    """Seven fires of two samples; the third feature is larger where the backbone errs."""
    return InMemory(14, seed=3)


def fitted(split: InMemory, settings: HeadSettings = SETTINGS, fires: np.ndarray = FIRES, **how):
    return fit_error_head(split, gather_region(split, 4.0), fires, settings, threshold=0.5, **how)


def test_it_finds_errors_on_fires_that_it_has_not_seen(split: InMemory):
    found = fitted(split)
    near = found.near_fire
    assert found.records[found.best_epoch - 1].score == max(record.score for record in found.records)
    expected = roc_auc_score(near.error_P, near.uncertainty_P)
    assert found.records[found.best_epoch - 1].score == pytest.approx(expected, abs=1e-9)
    assert expected > 0.7


def test_what_ranks_a_fire_has_not_seen_it(split: InMemory):
    """Another truth on one fire changes the heads of the others, and nothing that is said of its own part."""
    before = fitted(split, dataclasses.replace(SETTINGS, epochs=1))
    changed = InMemory(14, seed=3)
    for k in (4, 5):  # the third fire, whose part it shares with nobody
        block = changed._blocks[0]
        block.y_BP[k] = 1 - block.y_BP[k]
    region = gather_region(split, 4.0)  # the same pixels, so that both can be compared
    after = fit_error_head(changed, region, FIRES, dataclasses.replace(SETTINGS, epochs=1), threshold=0.5)
    own = FIRES[region.sample_P] == 2
    assert np.array_equal(before.near_fire.uncertainty_P[own], after.near_fire.uncertainty_P[own])
    others = FIRES[region.sample_P] == 3
    assert not np.array_equal(before.near_fire.uncertainty_P[others], after.near_fire.uncertainty_P[others])


def test_the_head_that_is_kept_learns_from_all_fires(split: InMemory):
    """As if all errors were a teacher's targets."""
    settings = dataclasses.replace(SETTINGS, epochs=1)
    error = torch.cat([(block.logits_BP > 0) != block.y_BP.bool() for block in split.blocks()]).float()
    task = HeadTask(split.widened(), error, gather_region(split, 4.0), split.thinned(), error[:, ::17].contiguous())
    alone = fit_head(task, settings).head
    for ours, theirs in zip(fitted(split, settings).head.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)
    first, _ = make_head(split.features, settings)
    assert not torch.equal(next(first.parameters()), next(alone.parameters()))


@pytest.mark.parametrize("killed_after", [1, 3])
def test_killed_and_started_again_it_is_the_same(split: InMemory, tmp_path, killed_after: int):
    def kill(record: EpochRecord) -> None:
        if record.epoch == killed_after:
            raise KeyboardInterrupt

    resume = (tmp_path / "fit.resume", "key")
    with pytest.raises(KeyboardInterrupt):
        fitted(split, resume=resume, on_epoch=kill)
    again, whole = fitted(split, resume=resume), fitted(split)
    assert untimed(again.records) == untimed(whole.records)
    for ours, theirs in zip(again.head.parameters(), whole.head.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert np.array_equal(again.near_fire.uncertainty_P, whole.near_fire.uncertainty_P)


def test_few_fires_make_few_parts_and_one_is_refused(split: InMemory):
    assert len(np.unique(FIRES)) > PARTS
    two = fitted(split, dataclasses.replace(SETTINGS, epochs=1), fires=(FIRES > 3).astype(np.int64))
    assert np.isfinite(two.records[0].score)
    with pytest.raises(DataError, match=r"^validation years: head_target error learns from some .* --head-target$"):
        fitted(split, fires=np.zeros(14, np.int64))
