"""A head that learns its backbone's errors: scored on fires that it has not seen, kept with what all of them taught."""

import dataclasses

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from fcer.errors import ConfigError, DataError
from fcer.training.epochs import EpochRecord
from fcer.training.error_head import PARTS, MemberErrors, fit_error_head
from fcer.training.head_settings import HeadSettings
from fcer.training.validation_region import gather_region
from split_cases import InMemory
from training_cases import untimed

SETTINGS = HeadSettings(target="error", loss="bce", epochs=5, patience=5, lr=0.5, batch_size=1)
AROUND = dataclasses.replace(SETTINGS, decoder=False, logit=True, context=True, fire=True, hidden=(8,), lr=0.2)
FIRES = np.repeat(np.arange(7), 2)


@pytest.fixture(scope="module")
def split() -> InMemory:
    """Seven fires of two samples; the third feature is larger where the backbone errs."""
    return InMemory(14, seed=3)


def errors_of(split: InMemory, fires: np.ndarray = FIRES) -> MemberErrors:
    return MemberErrors.of(split, fires, 4.0, 0.5)


def fitted(split: InMemory, settings: HeadSettings = SETTINGS, fires: np.ndarray = FIRES, **how):
    return fit_error_head([errors_of(split, fires)], settings, threshold=0.5, **how)


def test_it_finds_errors_on_fires_that_it_has_not_seen(split: InMemory):
    found = fitted(split)
    near = found.near_fire
    assert found.records[found.best_epoch - 1].score == max(record.score for record in found.records)
    expected = roc_auc_score(near.error_P, near.uncertainty_P)
    assert found.records[found.best_epoch - 1].score == pytest.approx(expected, abs=1e-6)
    assert expected > 0.7


def test_what_ranks_a_fire_has_not_seen_it(split: InMemory):
    """Another truth on one fire changes the heads of the others, and nothing that is said of its own part."""
    settings = dataclasses.replace(SETTINGS, epochs=1)
    before = fitted(split, settings)
    errors = errors_of(split)
    region, wider = errors.region, errors.wider
    other = FIRES[wider.sample_P] == 2  # the third fire, whose part it shares with nobody
    changed = wider._replace(error_P=np.where(other, ~wider.error_P, wider.error_P))
    after = fit_error_head([errors._replace(wider=changed)], settings, threshold=0.5)
    own = FIRES[region.sample_P] == 2
    assert np.array_equal(before.near_fire.uncertainty_P[own], after.near_fire.uncertainty_P[own])
    others = FIRES[region.sample_P] == 3
    assert not np.array_equal(before.near_fire.uncertainty_P[others], after.near_fire.uncertainty_P[others])


def test_the_head_that_is_kept_ranks_as_it_did_on_standardised_numbers(split: InMemory):
    """It saw all fires, so that it is no worse on them than heads that did not; its inputs are those of predicting."""
    found = fitted(split)
    region = gather_region(split, 4.0)
    assert region.auroc(found.head) > found.records[found.best_epoch - 1].score - 0.02


def test_without_decoder_features_every_member_teaches_and_none_is_ranked_by_its_own_head(split: InMemory):
    other = InMemory(14, seed=9)
    two = fit_error_head([errors_of(split), errors_of(other)], AROUND, threshold=0.5)
    assert two.head.spec.rows == list(range(4, 4 + 1 + 4 + 5))
    assert len(two.near_fire.error_P) == len(gather_region(split, 4.0).error_P)
    # what ranks the first member learnt from the second alone: another first one changes nothing but what is ranked
    third = errors_of(split)
    flipped = third._replace(wider=third.wider._replace(error_P=~third.wider.error_P))
    settings = dataclasses.replace(AROUND, epochs=1)
    one, same = (
        fit_error_head([first, errors_of(other)], settings, threshold=0.5).near_fire.uncertainty_P
        for first in (third, flipped)
    )
    assert np.array_equal(one, same)


def test_a_head_of_surroundings_says_the_same_of_pixels_and_of_images(split: InMemory):
    head = fitted(split, AROUND).head
    block = next(split.blocks())
    logits, today = (maps.view(-1, 16, 16) for maps in (block.logits_BP, block.today_BP))
    features = block.features_BFP.float().view(len(logits), 4, 16, 16)
    with torch.no_grad():
        whole = head(features, logits, today).flatten(1)[:, ::17]
        torch.testing.assert_close(whole, head.of_pixels(split.thinned()[: len(logits)]))
    with pytest.raises(ValueError, match="reads today's fire"):
        head(features, logits)


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


def test_a_head_that_sees_nothing_is_refused():
    with pytest.raises(ConfigError, match=r"^head_decoder: false leaves the head nothing to see"):
        HeadSettings(decoder=False)
