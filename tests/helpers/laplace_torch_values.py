"""Made tests/data/laplace_torch.npz with laplace-torch 0.3, which cannot be installed beside our torch's version.

Its requirements name torchvision, which would bring another torch. In an environment of its own:

    pip install --no-deps laplace-torch==0.3 curvlinops-for-pytorch backpack-for-pytorch asdfghjkl==0.1a4 ...
    python tests/helpers/laplace_torch_values.py

The last layer is written as that library knows classifiers: logits (0, z) of two classes, whose cross-entropy is that
of fire's logit z, and the weight of fire pixels as that many copies of each.
"""

from pathlib import Path

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch.nn import functional as F

FEATURES, SIDE, IMAGES, POS_WEIGHT, SEED = 3, 12, 6, 2, 5
OUT = Path(__file__).parents[1] / "data" / "laplace_torch.npz"


class TwoClasses(torch.nn.Module):
    """Logits (0, z) of a pixel's patch."""

    def __init__(self, weights_D: torch.Tensor) -> None:
        super().__init__()
        self.weights_D = torch.nn.Parameter(weights_D.clone())

    def forward(self, patches_PD: torch.Tensor) -> torch.Tensor:
        fire_P = patches_PD @ self.weights_D
        return torch.stack([torch.zeros_like(fire_P), fire_P], 1)


def main() -> None:
    from laplace import Laplace

    torch.set_default_dtype(torch.float64)
    torch.manual_seed(SEED)
    features = torch.randn(IMAGES, FEATURES, SIDE, SIDE)
    weights = torch.randn(9 * FEATURES + 1) * 0.3
    burnt = torch.rand(IMAGES, SIDE, SIDE) < 0.3
    patches = F.pad(F.unfold(features, 3, padding=1), (0, 0, 0, 1), value=1.0).transpose(1, 2).flatten(0, 1)
    y = burnt.flatten().long()
    copies = torch.cat([torch.arange(len(y))] + [torch.nonzero(y)[:, 0]] * (POS_WEIGHT - 1))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(patches[copies], y[copies]), batch_size=97)

    found = Laplace(TwoClasses(weights), "classification", subset_of_weights="all", hessian_structure="full")
    found.fit(loader)
    likeliest = minimize_scalar(
        lambda log_p: -float(found.log_marginal_likelihood(torch.tensor([np.exp(log_p)]))), bounds=(-8, 8)
    )
    found.prior_precision = torch.tensor([np.exp(likeliest.x)])
    _, covariance = found._glm_predictive_distribution(patches)
    np.savez_compressed(
        OUT,
        features=features,
        weights=weights,
        burnt=burnt,
        pos_weight=POS_WEIGHT,
        precision=np.exp(likeliest.x),
        hessian=found.H,
        variance=covariance[:, 1, 1].detach().view(IMAGES, SIDE, SIDE),
    )


if __name__ == "__main__":
    main()
