"""Flow matching on a toy whose distribution is known: two kinds of map, and a chance that the condition names."""

import numpy as np
import pytest
import torch

import backbone_cases  # noqa: F401  (one thread for torch)
from fcer.uncertainty.diffusion import MapFlow, draw_maps, flow_loss

SIDE = 4


def toy(chance_B: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """With this chance the left half burns, else the right one; the condition says the chance."""
    left_B = torch.rand(len(chance_B)) < chance_B
    halves = torch.zeros(2, SIDE, SIDE)
    halves[1, :, : SIDE // 2] = 1
    halves[0, :, SIDE // 2 :] = 1
    place = torch.arange(SIDE).expand(len(chance_B), SIDE, SIDE) / SIDE
    return halves[left_B.long()], torch.stack([chance_B[:, None, None].expand_as(place), place], dim=1)


@pytest.fixture(scope="module")
def flow() -> MapFlow:
    torch.manual_seed(0)
    flow = MapFlow(2, width=16)
    steps = 450
    optimizer = torch.optim.Adam(flow.parameters(), 1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        fire, told = toy(torch.tensor([0.3, 0.7]).repeat(48))
        optimizer.zero_grad()
        flow_loss(flow, fire, told).backward()
        optimizer.step()
        schedule.step()
    return flow.eval()


@pytest.mark.parametrize("chance", [0.3, 0.7])
def test_marginals_are_the_true_ones_and_both_modes_are_found(flow: MapFlow, chance: float):
    _, told = toy(torch.full((50,), chance))
    drawn = draw_maps(flow, told, 50, torch.Generator().manual_seed(1), steps=16).reshape(-1, SIDE, SIDE)
    left, right = drawn[..., : SIDE // 2], drawn[..., SIDE // 2 :]
    np.testing.assert_allclose(left.mean((0, 1, 2)), chance, atol=0.03)
    np.testing.assert_allclose(right.mean((0, 1, 2)), 1 - chance, atol=0.03)
    whole = (left.all((1, 2)) & ~right.any((1, 2))) | (right.all((1, 2)) & ~left.any((1, 2)))
    assert whole.mean() > 0.9, "a map is one half or the other, not some of both"


def test_the_same_seed_draws_the_same(flow: MapFlow):
    _, told = toy(torch.full((2,), 0.3))
    one, same, other = (draw_maps(flow, told, 2, torch.Generator().manual_seed(seed)) for seed in (5, 5, 6))
    assert np.array_equal(one, same) and not np.array_equal(one, other)
