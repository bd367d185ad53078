"""A packed network says what its members say separately."""

import pytest
import torch

import backbone_cases  # noqa: F401  (one thread for torch)
from fcer.models.backbones import BackboneSpec, build
from fcer.models.packed import PackedBackbone, pack_states


@pytest.mark.parametrize("arch", ["unet_t1", "utae_t5"])
@pytest.mark.parametrize("training", [False, True])
def test_against_separate_networks_with_the_same_weights(arch: str, training: bool):
    torch.manual_seed(0)
    separate = [build(arch, 2, 1 / 16) for _ in range(3)]
    packed = PackedBackbone(BackboneSpec(arch, 2, 1 / 16), 3)
    packed.load_state_dict(pack_states([backbone.state_dict() for backbone in separate]))
    x = torch.randn(2, separate[0].days, 2, 64, 32)
    networks = [network.train(training) for network in (packed, *separate)]
    for network in networks:  # what is drawn differs in any case
        for module in network.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
    with torch.no_grad():
        together, *alone = (network(x) for network in networks)
    torch.testing.assert_close(together, torch.cat(alone, dim=1), rtol=0, atol=1e-5)
    assert not torch.allclose(together[:, 0], together[:, 1], atol=1e-3)
