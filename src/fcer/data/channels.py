"""The 23 channels of a WildfireSpreadTS day and the 40 that a model may see."""

from collections.abc import Sequence

from fcer.errors import ConfigError

__all__ = [
    "ACTIVE_FIRE",
    "ANGLES",
    "CHANNELS",
    "FEATURES",
    "FEATURE_SETS",
    "FIRE_MASK",
    "LAND_COVER",
    "LAND_COVER_CLASSES",
    "feature_indices",
    "fire_channel",
    "raw_channel",
    "reads_land_cover",
]

CHANNELS = (
    "VIIRS M11",
    "VIIRS I2",
    "VIIRS I1",
    "NDVI",
    "EVI2",
    "total precipitation",
    "wind speed",
    "wind direction",
    "minimum temperature",
    "maximum temperature",
    "energy release component",
    "specific humidity",
    "slope",
    "aspect",
    "elevation",
    "PDSI",
    "land cover",
    "forecast total precipitation",
    "forecast wind speed",
    "forecast wind direction",
    "forecast temperature",
    "forecast specific humidity",
    "active fire",
)
"""Raw channels, as every day on disk holds them. Active fire is the hour of detection, 0 where none."""

ANGLES = (7, 13, 19)
"""Raw channels in degrees clockwise from north: models see their sine, augmentation turns them along."""

LAND_COVER = 16
LAND_COVER_CLASSES = 17
ACTIVE_FIRE = 22

FEATURES = (
    *CHANNELS[:LAND_COVER],
    *(f"land cover {k}" for k in range(1, LAND_COVER_CLASSES + 1)),
    *CHANNELS[LAND_COVER + 1 :],
    "fire mask",
)
"""Channels after preprocessing: land cover one-hot in its place, the binary fire mask appended."""

FIRE_MASK = len(FEATURES) - 1

FEATURE_SETS = {
    "vegetation": (0, 1, 2, 3, 4, 38, 39),
    # All but energy release component, PDSI and the forecasts, as the released `Multi` weights use it
    "multi": (*range(10), *range(11, 15), *range(16, 33), 38, 39),
    "all": tuple(range(len(FEATURES))),
    "fire": (FIRE_MASK - 1, FIRE_MASK),
}


def feature_indices(features: str | Sequence[int]) -> tuple[int, ...]:
    """The indices behind a named set or a list of indices."""
    if isinstance(features, str):
        if features not in FEATURE_SETS:
            known = ", ".join(FEATURE_SETS)
            raise ConfigError(f"features: unknown set {features!r}; use {known} or a list of indices 0 to {FIRE_MASK}")
        return FEATURE_SETS[features]
    indices = tuple(features)
    wrong = [i for i in indices if not 0 <= i <= FIRE_MASK]
    if not indices or wrong or len(set(indices)) < len(indices):
        found = f"{wrong[0]} is no index" if wrong else "one is named twice" if indices else "the list is empty"
        raise ConfigError(f"features: {found}; give each index from 0 to {FIRE_MASK} at most once")
    return indices


def fire_channel(features: Sequence[int]) -> int | None:
    """The place of the binary fire mask among the channels that a model sees, where it is."""
    return list(features).index(FIRE_MASK) if FIRE_MASK in features else None


def reads_land_cover(features: Sequence[int]) -> bool:
    """Whether land cover is among the preprocessed channels."""
    return any(raw_channel(feature) == LAND_COVER for feature in features)


def raw_channel(feature: int) -> int:
    """The raw channel that a preprocessed one is made from."""
    if feature == FIRE_MASK:
        return ACTIVE_FIRE
    if feature < LAND_COVER:
        return feature
    return max(LAND_COVER, feature - LAND_COVER_CLASSES + 1)
