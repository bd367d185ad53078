"""Feature density against scipy's Mahalanobis distance and numpy's covariance."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import mahalanobis

from fcer.uncertainty.density import ClassMoments, fit_precisions, squared_distance

FEATURES = 4


def drawn(rng: np.random.Generator, pixels: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Features that differ in place and spread by predicted class."""
    predicted = rng.random(pixels) < share
    mixing = np.eye(FEATURES) + 0.3 * rng.normal(size=(FEATURES, FEATURES))  # well conditioned: the ridge must not show
    features = mixing @ rng.normal(size=(FEATURES, pixels)) + np.where(predicted, 2.0, -1.0)
    return features, predicted


def fitted(features: np.ndarray, predicted: np.ndarray):
    moments = ClassMoments(FEATURES)
    for part, own in zip(np.array_split(features, 3, axis=1), np.array_split(predicted, 3), strict=True):
        moments.add(torch.from_numpy(part), torch.from_numpy(own))
    return fit_precisions(moments)


def test_the_distance_is_to_the_predicted_class(rng: np.random.Generator):
    features, predicted = drawn(rng, 600, 0.3)
    gaussians = fitted(features, predicted)
    asked = rng.normal(size=(1, FEATURES, 2, 3)) * 3
    fire = np.array([[[True, False, True], [False, False, True]]])
    found = squared_distance(torch.from_numpy(asked).float(), torch.from_numpy(fire), gaussians)
    for row in range(2):
        for column in range(3):
            own = features[:, predicted == fire[0, row, column]]
            inverse = np.linalg.inv(np.cov(own, ddof=0))
            expected = mahalanobis(asked[0, :, row, column], own.mean(1), inverse) ** 2
            assert float(found[0, row, column]) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("share", [0.0, 1.0, 0.005])
def test_a_class_with_hardly_a_pixel_takes_the_gaussian_of_all(rng: np.random.Generator, share: float):
    features, predicted = drawn(rng, 400, share)
    rare = int(share < 0.5)
    gaussians = fitted(features, predicted)
    np.testing.assert_allclose(gaussians.mean_CF[rare], features.mean(1), rtol=1e-9)
    np.testing.assert_allclose(gaussians.precision_CFF[rare], np.linalg.inv(np.cov(features, ddof=0)), rtol=1e-3)


def test_a_feature_that_never_varies_is_survived():
    features = np.zeros((FEATURES, 50))
    features[1] = np.arange(50)
    gaussians = fitted(features, np.arange(50) % 2 == 0)
    asked = torch.zeros(1, FEATURES, 1, 1)
    assert torch.isfinite(squared_distance(asked, torch.tensor([[[True]]]), gaussians)).all()
