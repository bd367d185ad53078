import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn import metrics

from fcer.core.segmentation import (
    Confusion,
    average_precision_score,
    confusion,
    f1_score,
    iou_score,
    precision_score,
    recall_score,
)
from fcer.errors import UndefinedMetricWarning

SCORES = [
    (precision_score, metrics.precision_score),
    (recall_score, metrics.recall_score),
    (iou_score, metrics.jaccard_score),
    (f1_score, metrics.f1_score),
]


@pytest.mark.parametrize("ours, theirs", SCORES)
@given(fire=arrays(bool, 30), prob=arrays(np.float32, 30, elements=st.floats(0, 1, width=32)))
def test_scores_are_scikit_learns(ours, theirs, fire, prob):
    fire[0], prob[0] = True, 0.75
    assert ours(confusion(fire, prob)) == pytest.approx(theirs(fire, prob > 0.5))


@pytest.mark.parametrize("score", [ours for ours, _ in SCORES])
def test_nothing_to_count_is_undefined(score):
    with pytest.warns(UndefinedMetricWarning, match="of no pixels is undefined and is NaN"):
        assert np.isnan(score(Confusion(0, 0, 0, 5)))


def test_a_half_is_no_fire():
    assert confusion([1], [0.5]) == Confusion(0, 0, 1, 0)


def test_counts_add_up():
    fire, prob = np.array([1, 0, 1, 0]), np.array([0.9, 0.8, 0.1, 0.2])
    assert confusion(fire[:1], prob[:1]) + confusion(fire[1:], prob[1:]) == confusion(fire, prob)


def test_average_precision_without_fire_is_undefined():
    with pytest.warns(UndefinedMetricWarning):
        assert np.isnan(average_precision_score([0, 0], [0.1, 0.2]))
