"""A head that learns where its backbone errs (DEUP, Lahlou et al. 2023), on fires that the backbone did not learn from.

Those are the validation years' alone. A head that reads nothing of the decoder learns from every member, each on its
own validation years, so that all fires but the test's serve. So that no head is scored on what it has seen, one is
fitted for each member without it (with one member alone: for each part of its fires), and what these say of what they
have not seen chooses the epoch. One more head learns from all, and is the one that is kept.

Shape suffixes: N samples, R numbers of a pixel, I those that a head reads, P pixels, Q some of them.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn, optim
from tqdm import tqdm

from fcer.core.arrays import IntArray
from fcer.core.ranking import auroc, rank_counts
from fcer.errors import DataError
from fcer.models.student import UncertaintyHead
from fcer.models.thresholds import threshold_logit
from fcer.training.epoch_loop import run_epochs, set_learning_rate
from fcer.training.epochs import EpochRecord, OnEpoch, best_epoch, check_finite
from fcer.training.feature_shards import THIN, CachedSplit
from fcer.training.head import FittedHead, make_head
from fcer.training.head_losses import LOSSES
from fcer.training.head_settings import HeadSettings
from fcer.training.schedules import head_learning_rate
from fcer.training.validation_region import ValidationRegion, gather_region

__all__ = ["PARTS", "MemberErrors", "fit_error_head"]

PARTS = 5
"""That the fires of a single member are dealt into, or as many as there are fires."""

_PIXELS = 256
"""Of each of a batch's samples."""

_WIDER = 1.5
"""Of the anchor: what lies at its rim is learnt from both sides. On real fires' validation groups heads that learnt
from 6 px ranked within 4 px better by fire than those that learnt from 4 (AUROC within the class +0.025, +0.013 over
the entropy)."""


class MemberErrors(NamedTuple):
    """A member's validation years: where it errs on fires that it did not learn from."""

    split: CachedSplit
    region: ValidationRegion
    """Within the anchor of fire, where heads are scored."""
    fire_N: Sequence[Any]
    """Which fire each sample is of."""
    wider: ValidationRegion
    """A little more, where they learn."""

    @classmethod
    def of(cls, split: CachedSplit, fire_N: Sequence[Any], anchor_px: float, threshold: float) -> "MemberErrors":
        """Of a member's cached validation years."""
        wider = gather_region(split, _WIDER * anchor_px, threshold)
        return cls(split, gather_region(split, anchor_px, threshold), fire_N, wider)


class _Pixels(NamedTuple):
    """Pixels of all members, one after the other."""

    input_PI: Tensor
    """Standardised."""
    error_P: Tensor
    part_P: IntArray


@dataclass(frozen=True)
class _CrossFit:
    """One head for each part, which it has not seen, and last the one that sees all."""

    learnt: _Pixels
    """What heads learn from: everything near fire, and a part of what is not."""
    scored: _Pixels
    """Within the anchor."""
    scale_2I: Tensor
    """Mean and standard deviation of each input."""
    trained: nn.ModuleList
    optimizers: list[optim.SGD]
    settings: HeadSettings

    def state(self) -> dict[str, Any]:
        """Everything that later steps depend on."""
        return {"heads": self.trained.state_dict(), "optimizers": [one.state_dict() for one in self.optimizers]}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""
        self.trained.load_state_dict(state["heads"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)

    def epoch(self, done: int) -> EpochRecord:
        """Train every head once more; losses and AUROC are of parts that a head has not seen."""
        started, lr = time.perf_counter(), head_learning_rate(self.settings, done)
        train_loss = float(np.mean([self._train(part, lr, done + 1) for part in range(len(self.trained))][:-1]))
        logits_P, error_P = self.unseen(), self.scored.error_P
        val_loss = float(self._loss(logits_P, error_P))
        check_finite("head", "head", done + 1, lr, train_loss, val_loss)
        score = float(auroc(rank_counts(error_P.bool().numpy(), logits_P.sigmoid().numpy())))
        return EpochRecord(done + 1, train_loss, val_loss, score, lr, time.perf_counter() - started)

    def _train(self, part: int, lr: float, epoch: int) -> float:
        """One pass of one head over the pixels that it may see, in an order of its own; the mean loss."""
        head, optimizer = self.trained[part], self.optimizers[part]
        set_learning_rate(optimizer, lr)
        seen = np.flatnonzero(self.learnt.part_P != part)
        order = np.random.default_rng((self.settings.seed, epoch)).permutation(seen)
        total = 0.0
        for batch in torch.split(torch.from_numpy(order), self.settings.batch_size * _PIXELS):
            optimizer.zero_grad()
            loss = self._loss(_logits(head, self.learnt.input_PI[batch]), self.learnt.error_P[batch])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            total += float(loss.detach()) * len(batch)
        return total / len(seen)

    def _loss(self, logits_P: Tensor, error_P: Tensor) -> Tensor:
        loss = LOSSES[self.settings.loss]
        return loss.value(logits_P[None], loss.prepare(error_P[None]))

    @torch.no_grad()
    def unseen(self) -> Tensor:
        """Logits of what is scored, by the heads that have not seen it."""
        logits_P = torch.empty(len(self.scored.part_P))
        for part, head in enumerate(self.trained[:-1]):
            own = self.scored.part_P == part
            logits_P[own] = _logits(head, self.scored.input_PI[own])
        return logits_P

    def kept(self) -> UncertaintyHead:
        """The last head, for inputs as they are: standardising moves into its first layer."""
        head, (mean_I, spread_I) = self.trained[-1], self.scale_2I
        assert isinstance(head, UncertaintyHead)
        first = cast(nn.Conv2d, head.layers[0])
        assert first.bias is not None
        with torch.no_grad():
            first.weight /= spread_I[:, None, None]
            first.bias -= (first.weight[..., 0, 0] * mean_I).sum(1)
        return head.eval()


def fit_error_head(
    members: Sequence[MemberErrors],
    settings: HeadSettings,
    *,
    threshold: float,
    resume: tuple[Path, str] | None = None,
    on_epoch: OnEpoch | None = None,
) -> FittedHead:
    """Fit until the last epoch, or until AUROC on what was not seen stalls.

    Scores, and how the first member's pixels rank, are of heads that have not seen the fires in question.

    Parameters
    ----------
    members
        Whose errors are learnt, the student's backbone first; others only by heads that read nothing of the decoder.
    settings
        How heads are fitted.
    threshold
        Probability above which fire is predicted.
    resume
        A file to go on from after a kill, and the key of what is fitted.
    on_epoch
        Called with each epoch's record.
    """
    if len(members) == 1 and len(np.unique(members[0].fire_N)) < 2:
        raise DataError(
            "validation years: head_target error learns from some fires and is tested on others, but there is one "
            "alone; add fires of these years, or choose another --head-target"
        )
    learnt, scored, scale_2I = _gather(members, settings, threshold)
    made = [make_head(members[0].split.features, settings) for _ in range(scored.part_P.max() + 2)]
    heads, optimizers = nn.ModuleList(head for head, _ in made), [sgd for _, sgd in made]
    crossed = _CrossFit(learnt, scored, scale_2I, heads, optimizers, settings)
    with tqdm(total=settings.epochs, desc="fit heads", unit="epoch", disable=None, leave=False) as bar:

        def step(records: list[EpochRecord]) -> EpochRecord:
            bar.update(len(records) + 1 - bar.n)
            return crossed.epoch(len(records))

        records, best = run_epochs(
            crossed, step, epochs=settings.epochs, patience=settings.patience, resume=resume, on_epoch=on_epoch
        )
    crossed.trained.load_state_dict(best)
    region = members[0].region
    uncertainty_P = crossed.unseen()[: len(region.error_P)].sigmoid().numpy()
    return FittedHead(crossed.kept(), records, best_epoch(records), region.ranked_by(uncertainty_P))


def _gather(
    members: Sequence[MemberErrors], settings: HeadSettings, threshold: float
) -> tuple[_Pixels, _Pixels, Tensor]:
    """What is learnt, what is scored, and the mean and spread by which both are standardised."""
    rows = settings.spec(members[0].split.features).rows
    learnt: list[_Pixels] = []
    scored: list[_Pixels] = []
    for place, (split, region, fire_N, wider) in enumerate(members):
        _, fire_of_N = np.unique(fire_N, return_inverse=True)
        part_N = np.full(len(fire_N), place) if len(members) > 1 else fire_of_N % min(PARTS, fire_of_N.max() + 1)
        for pixels, near in ((learnt, wider), (scored, region)):
            errors_P = torch.from_numpy(near.error_P).float()
            pixels.append(_Pixels(near.rows_RP[rows].T, errors_P, part_N[near.sample_P]))
        thinned_NRQ, error_NQ = split.thinned(), _errors(split, threshold)[:, ::THIN].float()
        wanted = min(error_NQ.numel(), round(settings.far * len(wider.error_P)))
        sample, pixel = np.divmod(np.linspace(0, error_NQ.numel() - 1, wanted).astype(np.int64), error_NQ.shape[1])
        learnt.append(_Pixels(thinned_NRQ[sample, :, pixel][:, rows], error_NQ[sample, pixel], part_N[sample]))
    scale_2I = torch.stack(torch.std_mean(torch.cat([pixels.input_PI for pixels in learnt]), 0)[::-1])
    scale_2I[1].clamp_(min=1e-6)
    return _joined(learnt, scale_2I), _joined(scored, scale_2I), scale_2I


def _joined(pixels: Sequence[_Pixels], scale_2I: Tensor) -> _Pixels:
    inputs, errors, parts = zip(*pixels, strict=True)
    return _Pixels((torch.cat(inputs) - scale_2I[0]) / scale_2I[1], torch.cat(errors), np.concatenate(parts))


def _errors(split: CachedSplit, threshold: float) -> Tensor:
    """Where the backbone is wrong (N, P)."""
    above = threshold_logit(threshold)
    return torch.cat([(block.logits_BP > above) != block.y_BP.bool() for block in split.blocks()])


def _logits(head: nn.Module, input_PI: Tensor) -> Tensor:
    return cast(Tensor, cast(UncertaintyHead, head).layers(input_PI.T[None, ..., None]))[0, 0, :, 0]
