"""The ensemble: its members' predictions in one pass over the data, and the backbone among them.

Shape suffixes: K members, B samples, H height, W width, F features of the decoder's last map.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

from fcer.core.segmentation import average_precision_score
from fcer.data.normalization import Normalization
from fcer.data.samples import Samples, preprocess
from fcer.errors import ConfigError
from fcer.models.inference import predict
from fcer.models.members import Member
from fcer.models.persistence_baseline import persistence_ap

__all__ = [
    "BATCH",
    "Batch",
    "average_precisions",
    "batches_of",
    "choose_backbone",
    "pass_through",
    "sample_labels",
    "sample_sizes",
    "selection_aps",
    "standardise",
]

RawSample = tuple[NDArray[np.float32], NDArray[np.uint8]]
"""As `Samples.raw` gives it: raw days and label."""

BATCH = 4
"""Samples that go through the members together: more would not be faster on a CPU."""


class Batch(NamedTuple):
    """Some samples: what each member and the backbone's decoder made of them, and their labels."""

    logits_KBHW: NDArray[np.float32]
    """K members."""
    features_BFHW: NDArray[np.float32] | None
    """The decoder's last map of the member that was asked for."""
    y_BHW: NDArray[np.uint8]

    @property
    def probabilities_KBHW(self) -> NDArray[np.float32]:
        """Of each member."""
        return torch.from_numpy(self.logits_KBHW).sigmoid().numpy()


def choose_backbone(members: Sequence[Member], aps: Sequence[float]) -> Member:
    """The member with the median AP, or lift; the lower of the two middle ones where their number is even."""
    ranked = sorted(range(len(members)), key=lambda k: aps[k])
    return members[ranked[(len(ranked) - 1) // 2]]


def selection_aps(members: Sequence[Member], select_by: str, validation: Callable[[Member], Samples]) -> list[float]:
    """What each member is ranked by.

    Parameters
    ----------
    members
        Of one ensemble: each has other validation years.
    select_by
        `val_lift`: AP on the validation years over persistence's AP on the same images, since years differ in how hard
        they are; `val_ap`: that AP alone; `file_ap`: the test AP in a released file's name, as in the paper.
    validation
        Gives the samples of a member's validation years.
    """
    if select_by == "file_ap":
        for member in members:
            if member.file_ap is None:
                raise ConfigError(
                    f"select_by: {member.path} carries no AP in its name, as released files do; use select_by val_lift"
                )
        return [member.file_ap for member in members if member.file_ap is not None]
    aps = []
    for member in members:
        ap = member.val_ap
        if ap is None:
            ap = average_precisions([member], validation(member), label="validate")[0]
        aps.append(ap / persistence_ap(validation(member)) if select_by == "val_lift" else ap)
    return aps


def average_precisions(members: Sequence[Member], samples: Samples, *, label: str = "predict") -> list[float]:
    """AP over all pixels of the samples: of each member, then of their mean."""
    batches = []
    with tqdm(total=len(samples), desc=label, unit="sample", disable=None, leave=False) as bar:
        for where in batches_of(samples):
            read = [samples.raw(k) for k in range(where.start, where.stop)]
            batches.append(pass_through(members, samples, read))
            bar.update(len(read))
    fire = np.concatenate([batch.y_BHW.ravel() for batch in batches])
    scores = np.concatenate([batch.probabilities_KBHW.reshape(len(members), -1) for batch in batches], axis=1)
    return [average_precision_score(fire, score) for score in (*scores, scores.mean(0))]


def pass_through(
    members: Sequence[Member],
    samples: Samples,
    read: Sequence[RawSample],
    *,
    shared: Normalization | None = None,
    keep: Member | None = None,
) -> Batch:
    """Samples shown to every member once, standardised with its own statistics or `shared` ones.

    The decoder's features of the member `keep` come with its logits: they cost no pass of their own.
    """
    inputs: dict[Normalization, Tensor] = {}
    logits, features = [], None
    for member in members:
        normalization = shared or member.normalization
        if normalization not in inputs:
            inputs[normalization] = standardise(read, samples, normalization)
        predicted = predict(member.backbone, inputs[normalization])
        logits.append(predicted.logits_B1HW[:, 0].cpu().numpy())
        if member is keep:
            features = predicted.features_BFHW.cpu().numpy()
    return Batch(np.stack(logits), features, np.stack([y for _, y in read]))


def standardise(read: Sequence[RawSample], samples: Samples, normalization: Normalization) -> Tensor:
    """Raw samples of one size as a model sees them (B, T, C, H, W)."""
    x = [preprocess(raw, samples.channels, samples.features, normalization) for raw, _ in read]
    return torch.from_numpy(np.stack(x))


def batches_of(samples: Samples) -> Iterator[slice]:
    """Every sample, from first to last, in batches of one image size."""
    sizes = sample_sizes(samples)
    changes = 1 + np.flatnonzero((np.diff(sizes, axis=0) != 0).any(axis=1))
    for first, last in pairwise([0, *changes.tolist(), len(sizes)]):
        for start in range(first, last, BATCH):
            yield slice(start, min(start + BATCH, last))


def sample_sizes(samples: Samples) -> NDArray[np.int64]:
    """Rows and columns of each sample's image (N, 2): the crop's, or those of its fire."""
    if samples.crop is not None:
        return np.full((len(samples), 2), samples.crop, np.int64)
    fires = (samples.locate(k)[0] for k in range(len(samples)))
    return np.array([(fire.height, fire.width) for fire in fires], np.int64).reshape(-1, 2)


def sample_labels(samples: Samples) -> dict[str, NDArray[np.str_]]:
    """Which fire and which day each sample's label is of."""
    located = [samples.locate(k) for k in range(len(samples))]
    dates = [
        fire.dates[first + samples.days].isoformat() if fire.dates else f"day {first + samples.days}"
        for fire, first in located
    ]
    return {"fire_id": np.array([fire.name for fire, _ in located]), "date": np.array(dates)}
