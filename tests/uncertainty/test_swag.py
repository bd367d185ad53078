"""SWAG's Gaussian against the formulas of its paper."""

import numpy as np
import torch

from fcer.uncertainty.swag import spread_of


def test_mean_and_covariance_are_the_papers():
    points = torch.from_numpy(np.random.default_rng(0).normal(size=(6, 4)) @ np.diag([1.0, 2.0, 0.1, 3.0])).float()
    spread = spread_of(list(points))
    exact = points.double().numpy()
    mean, variance = exact.mean(0), (exact**2).mean(0) - exact.mean(0) ** 2
    np.testing.assert_allclose(spread.mean_D, mean, atol=1e-6)
    np.testing.assert_allclose(spread.variance_D, variance, atol=1e-6)
    low_rank = spread.deviation_ED.T.double() @ spread.deviation_ED.double() / 5
    np.testing.assert_allclose(low_rank, np.cov(exact.T), atol=1e-5)

    rng = torch.Generator().manual_seed(1)
    drawn = torch.stack([spread.draw(rng) for _ in range(20_000)]).double().numpy()
    expected = 0.5 * np.diag(variance) + 0.5 * np.cov(exact.T)
    np.testing.assert_allclose(drawn.mean(0), mean, atol=0.1)
    np.testing.assert_allclose(np.cov(drawn.T), expected, atol=0.05 * np.abs(expected).max())


def test_weights_that_never_moved_have_no_spread():
    spread = spread_of([torch.tensor([1.0, -2.0])] * 3)
    assert torch.equal(spread.draw(torch.Generator().manual_seed(0)), torch.tensor([1.0, -2.0]))
