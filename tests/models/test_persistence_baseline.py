import math

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from fcer.data.catalog import open_catalog
from fcer.data.fire import EVERYWHERE, Fire
from fcer.data.samples import Samples
from fcer.errors import UndefinedMetricWarning
from fcer.models.persistence_baseline import persistence_ap

FEATURES = (3, 38, 39)


class DrawnFire(Fire):
    """A fire given as its days' masks (days, rows, columns)."""

    def __init__(self, *days):
        self.masks = np.array(days, np.float32)
        super().__init__("drawn", 2018, "drawn", *self.masks.shape, dates=None)

    def read(self, days, channels, rows=EVERYWHERE, columns=EVERYWHERE):
        window = self.masks[days, None, rows, columns] * 12  # the hour of detection
        return np.repeat(window, len(channels), axis=1)

    def files(self):
        return []


def samples(*fires, days=1, **options) -> Samples:
    return Samples(fires, days=days, features=FEATURES, crop=None, **options)


@pytest.mark.parametrize("days", [1, 5])
def test_it_is_the_average_precision_of_the_last_day_over_all_pixels(small_fires, days):
    some = Samples(open_catalog(small_fires, [2018]).fires, days=days, features=FEATURES, crop=32, leading=5)
    today, tomorrow = [], []
    for index in range(len(some)):
        fire, first = some.locate(index)
        window = [slice(round((side - 32) / 2), round((side - 32) / 2) + 32) for side in (fire.height, fire.width)]
        both = fire.read(slice(first + days - 1, first + days + 1), [22], *window)[:, 0] > 0
        today.append(both[0].ravel())
        tomorrow.append(both[1].ravel())
    expected = average_precision_score(np.concatenate(tomorrow), np.concatenate(today))
    assert persistence_ap(some) == pytest.approx(expected, abs=1e-12)
    assert 0 < expected < 1


def test_a_fire_that_stands_still_is_predicted_perfectly():
    day = np.eye(6)
    assert persistence_ap(samples(DrawnFire(day, day, day))) == 1


def test_a_fire_that_jumps_away_scores_below_chance():
    """Two of 16 px burn elsewhere each day: every positive ranks last, at a precision of one in eight."""
    left, right = np.zeros((2, 4, 4))
    left[:2, 0] = right[:2, 3] = 1
    assert persistence_ap(samples(DrawnFire(left, right))) == pytest.approx(2 / 16)


def test_images_of_different_sizes_are_pooled():
    still, spread = np.eye(4), np.ones((2, 3))
    pooled = persistence_ap(samples(DrawnFire(still, still), DrawnFire(np.zeros((2, 3)), spread)))
    # of 10 positives 4 are seen at a precision of 1, the others come with all 22 px
    assert pooled == pytest.approx(0.4 + 0.6 * 10 / 22)


@pytest.mark.parametrize("fires", [[], [DrawnFire(np.eye(4), np.zeros((4, 4)))]])
def test_no_fire_on_the_day_after_is_undefined(fires):
    with pytest.warns(UndefinedMetricWarning):
        assert math.isnan(persistence_ap(samples(*fires)))


def test_the_samples_stay_as_they_are(small_fires):
    some = Samples(open_catalog(small_fires, [2018]).fires, days=1, features=FEATURES, crop=32)
    channels = list(some.channels)
    persistence_ap(some)
    assert some.channels == channels
    assert len(channels) > 1
