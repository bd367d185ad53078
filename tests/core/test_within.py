"""Ranking within the predicted class: what a map knows beyond the class itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fcer.core.ranking import auroc_score, auroc_within_score
from fcer.errors import UndefinedMetricWarning


@st.composite
def predictions(draw):
    """What was wrong, what was predicted and an uncertainty; at least one class has both right and wrong pixels."""
    n = draw(st.integers(2, 60))
    wrong, predicted = draw(arrays(bool, n)), draw(arrays(bool, n))
    wrong[:2], predicted[:2] = (True, False), draw(st.booleans())
    return wrong, predicted, draw(arrays(np.int8, n, elements=st.integers(0, 12))) / 12


def won(wrong, unc, positive, negative) -> float:
    """Pairs of two kinds of pixels that the first wins, ties half, one by one."""
    ours, theirs = unc[positive & wrong][:, None], unc[negative & ~wrong]
    return float(np.sum((ours > theirs) + 0.5 * (ours == theirs)))


@given(predictions())
def test_pairs_that_were_predicted_alike_one_by_one(case):
    wrong, predicted, unc = case
    kinds = [(mask, mask) for mask in (predicted, ~predicted)]
    pairs = sum(np.sum(wrong & mask) * np.sum(~wrong & mask) for mask, _ in kinds)
    expected = sum(won(wrong, unc, *kind) for kind in kinds) / pairs
    assert auroc_within_score(wrong, unc, predicted) == pytest.approx(expected, abs=1e-12)


@given(predictions())
def test_auroc_is_the_mixture_of_its_kinds_of_pairs(case):
    wrong, predicted, unc = case
    mixture = weight = 0.0
    for positive in (predicted, ~predicted):
        for negative in (predicted, ~predicted):
            some = (positive & wrong) | (negative & ~wrong)
            pairs = float(np.sum(positive & wrong) * np.sum(negative & ~wrong))
            if pairs:
                mixture += pairs * auroc_score(wrong[some], unc[some])
                weight += pairs
    assert auroc_score(wrong, unc) == pytest.approx(mixture / weight, abs=1e-12)


@given(predictions(), st.floats(0, 1), st.floats(0, 1))
def test_a_map_of_the_predicted_class_alone_knows_nothing_within(case, on_fire, elsewhere):
    wrong, predicted, _ = case
    assert auroc_within_score(wrong, np.where(predicted, on_fire, elsewhere), predicted) == 0.5


@given(predictions())
def test_a_rising_transform_within_each_class_changes_nothing(case):
    wrong, predicted, unc = case
    moved = np.where(predicted, np.exp(3 * unc) + 5, unc**3 - 2)
    assert auroc_within_score(wrong, moved, predicted) == auroc_within_score(wrong, unc, predicted)


def test_the_predicted_class_may_rank_well_and_know_nothing():
    wrong, predicted = np.array([1, 1, 1, 0, 0, 0, 0, 1], bool), np.array([1, 1, 1, 1, 0, 0, 0, 0], bool)
    assert auroc_score(wrong, predicted) == 0.75
    assert auroc_within_score(wrong, predicted, predicted) == 0.5


def test_no_class_with_both_is_undefined():
    with pytest.warns(UndefinedMetricWarning, match="no class has both wrong and right pixels"):
        assert np.isnan(auroc_within_score([1, 0], [0.3, 0.2], predicted=[1, 0]))
