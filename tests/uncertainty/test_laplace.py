"""Last-layer Laplace against laplace-torch, autograd's Hessian, marginal likelihood on a grid, and sampled weights."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from backbone_cases import small_backbone
from fcer.uncertainty.laplace import add_to_hessian, fit_posterior, last_layer, logit_variance

FEATURES, SIDE, POS_WEIGHT = 3, 6, 4.0


@pytest.fixture(scope="module")
def images() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Features of some images, the last layer's weights, and what burnt."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(5, FEATURES, SIDE, SIDE, generator=generator, dtype=torch.float64)
    weights = torch.randn(9 * FEATURES + 1, generator=generator, dtype=torch.float64) * 0.3
    return features, weights, (torch.rand(5, SIDE, SIDE, generator=generator) < 0.3).double()


def logits_of(features: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    return F.conv2d(features, weights[:-1].view(1, FEATURES, 3, 3), weights[-1:], padding=1)[:, 0]


@pytest.fixture(scope="module")
def hessian(images) -> torch.Tensor:
    features, weights, y = images
    found = torch.zeros(len(weights), len(weights), dtype=torch.float64)
    for image, logits, burnt in zip(features, logits_of(features, weights), y, strict=True):
        add_to_hessian(found, image, logits.flatten(), burnt.flatten(), POS_WEIGHT)
    return found


def test_the_hessian_is_what_autograd_finds(images, hessian: torch.Tensor):
    features, weights, y = images

    def loss(w: torch.Tensor) -> torch.Tensor:
        logits = logits_of(features, w)
        weight = torch.tensor(POS_WEIGHT, dtype=torch.float64)
        return F.binary_cross_entropy_with_logits(logits, y, pos_weight=weight, reduction="sum")

    torch.testing.assert_close(hessian, torch.autograd.functional.hessian(loss, weights), rtol=1e-9, atol=1e-9)


def test_the_prior_is_the_one_of_the_highest_evidence(images, hessian: torch.Tensor):
    _, weights, _ = images
    grid = np.exp(np.linspace(-8, 8, 3201))
    evidence = [
        0.5 * (len(weights) * np.log(p) - p * float(weights @ weights))
        - 0.5 * np.linalg.slogdet(hessian.numpy() + p * np.eye(len(weights)))[1]
        for p in grid
    ]
    posterior = fit_posterior(hessian, weights)
    assert posterior.prior_precision == pytest.approx(grid[int(np.argmax(evidence))], rel=0.01)
    expected = np.linalg.inv(hessian.numpy() + posterior.prior_precision * np.eye(len(weights)))
    np.testing.assert_allclose(posterior.covariance_DD, expected, rtol=1e-6, atol=1e-12)


def test_the_variance_is_that_of_logits_under_drawn_weights(images, hessian: torch.Tensor):
    features, weights, _ = images
    covariance = fit_posterior(hessian, weights).covariance_DD
    found = logit_variance(features.float(), covariance)
    torch.manual_seed(0)
    drawn = torch.distributions.MultivariateNormal(weights, covariance).sample((4000,))
    sampled = torch.stack([logits_of(features, w) for w in drawn]).var(0)
    np.testing.assert_allclose(found, sampled, rtol=0.15)
    row = F.unfold(features[:1], 3, padding=1)[0, :, 7]
    patch = torch.cat([row, torch.ones(1, dtype=torch.float64)])
    assert float(found[0].flatten()[7]) == pytest.approx(float(patch @ covariance @ patch), rel=1e-5)


def test_the_last_layer_is_the_one_that_makes_the_logits():
    backbone = small_backbone("unet_t1")
    features = torch.randn(2, backbone.feature_channels, 8, 8)
    weights = last_layer(backbone).float()
    by_hand = F.conv2d(features, weights[:-1].view(1, -1, 3, 3), weights[-1:], padding=1)
    torch.testing.assert_close(backbone.fire_logits(features), by_hand)


def test_laplace_torch_finds_the_same():
    """Values of another implementation; tests/helpers/laplace_torch_values.py made them."""
    with np.load(Path(__file__).parents[1] / "data" / "laplace_torch.npz") as made:
        features, weights, burnt = (torch.from_numpy(made[name]) for name in ("features", "weights", "burnt"))
        pos_weight, precision = float(made["pos_weight"]), float(made["precision"])
        hessian, variance = made["hessian"], made["variance"]
    found = torch.zeros(len(weights), len(weights), dtype=torch.float64)
    for image, logits, y in zip(features, logits_of(features, weights), burnt, strict=True):
        add_to_hessian(found, image, logits.flatten(), y.flatten().double(), pos_weight)
    np.testing.assert_allclose(found, hessian, rtol=1e-9, atol=1e-9)
    posterior = fit_posterior(found, weights)
    assert posterior.prior_precision == pytest.approx(precision, rel=1e-4)
    np.testing.assert_allclose(logit_variance(features.float(), posterior.covariance_DD), variance, rtol=1e-4)
