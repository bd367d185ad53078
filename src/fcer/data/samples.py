"""Samples: some days of a fire, standardised, and the fire of the day after."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fcer.data.augmentation import angle_positions, draw_view, turn
from fcer.data.channels import ACTIVE_FIRE, ANGLES, FIRE_MASK, LAND_COVER, LAND_COVER_CLASSES, raw_channel
from fcer.data.fire import Fire
from fcer.data.normalization import Normalization
from fcer.errors import DataError

__all__ = ["Sample", "Samples", "central_crop", "preprocess", "too_small"]

TEST_LEADING_DAYS = 5
"""Test samples of every backbone start so that the label is the sixth day or later: t=1 and t=5 see the same."""


class Sample(NamedTuple):
    """What a model sees, (days, features, rows, columns) float32, and the next day's fire, (rows, columns) 0/1."""

    x: NDArray[np.float32]
    y: NDArray[np.uint8]


class Samples(Sequence[Sample]):
    """The samples of some fires, read from disk one at a time; a map-style dataset for any loader.

    Days `d .. d+days-1` of a fire are labelled by day `d+days`. Validation and test samples are the central
    crop, always the same. With `augment`, a sample is a random view that depends on nothing but the seed,
    the epoch (`set_epoch`) and the sample's index.
    """

    def __init__(
        self,
        fires: Sequence[Fire],
        *,
        days: int,
        features: Sequence[int],
        normalization: Normalization | None = None,
        crop: int | None = 128,
        leading: int | None = None,
        augment: bool = False,
        seed: int = 0,
    ) -> None:
        """`leading`: days that must precede a label even where fewer are read; `crop` None: whole images.

        Without `normalization` only `raw` can be read, for those who standardise in several ways.
        """
        self.fires = tuple(fires)
        self.days = days
        self.features = tuple(features)
        self.normalization = normalization
        self.crop = crop
        self.augment = augment
        self.seed = seed
        self.epoch = 0
        if augment and crop is None:
            raise ValueError("augmentation turns squares: it needs a crop")
        for fire in self.fires:
            if crop is not None and (problem := too_small(fire, crop)):
                raise DataError(problem)
        skip = max(0, (leading or days) - days)
        located = [(k, first + skip) for k, fire in enumerate(self.fires) for first in fire.first_days(days + skip)]
        self._located = np.array(located, np.int64).reshape(-1, 2)
        self.channels = sorted({raw_channel(feature) for feature in self.features} | {ACTIVE_FIRE})

    def __len__(self) -> int:
        return len(self._located)

    def locate(self, index: int) -> tuple[Fire, int]:
        """The fire of a sample and the first day that it reads."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"sample {index} of {len(self)}")
        fire, day = self._located[index]
        return self.fires[fire], int(day)

    def set_epoch(self, epoch: int) -> None:
        """Draw other views from here on."""
        self.epoch = epoch

    def __getitem__(self, index: int) -> Sample:  # type: ignore[override]
        if self.normalization is None:
            raise ValueError("samples without normalization can only be read raw")
        raw, y = self.raw(index)
        return Sample(preprocess(raw, self.channels, self.features, self.normalization), y)

    def raw(self, index: int) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
        """A sample's raw days (days, self.channels, rows, columns) and its label, for standardising elsewhere."""
        fire, first = self.locate(index)
        label_day = first + self.days
        if self.augment:
            rng = np.random.default_rng((self.seed, self.epoch, index % len(self)))
            raw, label = self._random_view(fire, first, rng)
        else:
            rows, columns = _window(fire, self.crop)
            raw = fire.read(slice(first, label_day), self.channels, rows, columns)
            label = fire.read(slice(label_day, label_day + 1), (ACTIVE_FIRE,), rows, columns)[0, 0] > 0
        return raw, label.astype(np.uint8)

    def _random_view(
        self, fire: Fire, first: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Where fire is decides the crop, so that one channel is read whole and the others only inside it."""
        assert self.crop is not None
        active = fire.read(slice(first, first + self.days + 1), (ACTIVE_FIRE,))[:, 0] > 0
        view = draw_view(rng, active[-1], active[:-1], self.crop)
        rows, columns = slice(view.top, view.top + self.crop), slice(view.left, view.left + self.crop)
        raw = fire.read(slice(first, first + self.days), self.channels, rows, columns)
        label = turn(active[-1, rows, columns].astype(np.float32), view) > 0
        return turn(raw, view, angle_positions(self.channels)), label


def central_crop(size: int, crop: int) -> slice:
    """Where the central `crop` px of `size` start; halves are rounded to even, as released pipelines do."""
    start = round((size - crop) / 2)
    return slice(start, start + crop)


def too_small(fire: Fire, crop: int) -> str | None:
    """The sentence for a fire whose image does not hold the crop."""
    if min(fire.height, fire.width) >= crop:
        return None
    return (
        f"{fire.path}: the image is {fire.height} x {fire.width} px, smaller than the crop of {crop}; "
        "choose a smaller --crop"
    )


def preprocess(
    raw: NDArray[np.float32], channels: Sequence[int], features: Sequence[int], normalization: Normalization
) -> NDArray[np.float32]:
    """Raw (days, channels, rows, columns) to what a model sees: only `features`, in their order.

    Sine of angles, then standardised, then NaN to 0 (the mean); land cover one-hot and the fire mask are of
    the raw values.
    """
    place = {channel: k for k, channel in enumerate(channels)}
    mean, std = normalization.arrays(range(ACTIVE_FIRE + 1))
    x = np.empty((len(raw), len(features), *raw.shape[2:]), np.float32)
    for k, feature in enumerate(features):
        channel = raw_channel(feature)
        values = raw[:, place[channel]]
        if feature == FIRE_MASK:
            x[:, k] = values > 0
        elif channel == LAND_COVER:
            x[:, k] = _land_cover(values) == feature - LAND_COVER + 1
        else:
            values = np.sin(np.deg2rad(values)) if channel in ANGLES else values
            np.divide(values - mean[channel], std[channel], out=x[:, k])
    x[~np.isfinite(x)] = 0
    return x


def _land_cover(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Classes from 1 to 17; any other value counts as the last, water.

    The published loader looks a class up at its number less 1, and so 0 and NaN at -1, the last one. Released weights
    on these channels have learnt it so.
    """
    classes = np.trunc(values)
    known = (classes >= 1) & (classes <= LAND_COVER_CLASSES)
    return np.where(known, classes, np.float32(LAND_COVER_CLASSES))


def _window(fire: Fire, crop: int | None) -> tuple[slice, slice]:
    if crop is None:
        return slice(0, fire.height), slice(0, fire.width)
    return central_crop(fire.height, crop), central_crop(fire.width, crop)
