import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from backbone_cases import days_of_fire, golden_outputs, golden_shapes, golden_weights, small_backbone
from fcer.errors import ConfigError
from fcer.models.backbones import ARCHITECTURES, BackboneSpec, architecture, build
from fcer.models.weight_shapes import candidates, state_shapes
from golden_formulas import backbone_input

ARCHS = list(ARCHITECTURES)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("arch", ARCHS)
def test_golden_logits_and_features(arch, dtype):
    """float64 leaves rounding out of it: what remains is the arithmetic."""
    backbone = build(arch).eval()
    backbone.load_state_dict(golden_weights(arch), strict=True)
    backbone.to(dtype)
    caught = []
    backbone.decoder.register_forward_hook(lambda _module, _inputs, output: caught.append(output))
    with torch.inference_mode():
        logits = backbone(torch.from_numpy(backbone_input(days=backbone.days)).to(dtype))
    expected_logits, expected_features = golden_outputs(arch)
    torch.testing.assert_close(logits.float(), expected_logits, rtol=0, atol=1e-4)
    torch.testing.assert_close(caught[0][..., ::4, ::4].float(), expected_features, rtol=0, atol=1e-4)


@pytest.mark.parametrize("arch", ARCHS)
def test_state_dict_has_the_released_keys_and_shapes(arch):
    released = {key: tuple(shape) for key, shape in golden_shapes(arch).items() if key != "loss.pos_weight"}
    assert state_shapes(BackboneSpec(arch)) == released


@pytest.mark.parametrize("width", [0.01, 0.0625, 0.125, 0.25, 0.3, 0.5, 1.5])
@pytest.mark.parametrize("arch", ARCHS)
def test_every_width_runs_and_is_read_off_the_weights(arch, width):
    backbone = build(arch, channels=4, width=width).eval()
    with torch.inference_mode():
        features = backbone.features(days_of_fire(backbone, batch=1))
        logits = backbone(days_of_fire(backbone, batch=1))
    assert features.shape == (1, backbone.feature_channels, 32, 32)
    assert logits.shape == (1, 1, 32, 32)
    assert torch.isfinite(logits).all()
    assert logits.std() > 0  # too few channels per norm group would flatten the map
    shapes = {key: tuple(value.shape) for key, value in backbone.state_dict().items()}
    assert backbone.spec in candidates(shapes)


@settings(deadline=None, max_examples=15)
@given(
    arch=st.sampled_from(ARCHS),
    channels=st.integers(1, 40),
    width=st.floats(0.001, 2, allow_nan=False),
)
def test_candidates_invert_state_shapes(arch, channels, width):
    with torch.device("meta"):
        spec = build(arch, channels, width).spec
    shapes = state_shapes(spec)
    found = candidates(shapes)
    assert spec in found
    assert all(state_shapes(other) == shapes for other in found)


def test_stacked_days_and_many_channels_cannot_be_told_apart():
    assert candidates(state_shapes(BackboneSpec("unet_t5", 7))) == [
        BackboneSpec("unet_t5", 7),
        BackboneSpec("unet_t1", 35),
    ]


@pytest.mark.parametrize("shapes", [{}, {"weight": (2, 2)}, {"model.encoder.conv1.weight": (64, 7)}])
def test_no_candidate_for_other_weights(shapes):
    assert candidates(shapes) == []


@settings(deadline=None, max_examples=10)
@given(arch=st.sampled_from(ARCHS), seed=st.integers(0, 99), batch=st.integers(2, 4))
def test_a_sample_does_not_depend_on_its_batch(arch, seed, batch):
    backbone = small_backbone(arch)
    x = days_of_fire(backbone, batch, seed=seed)
    order = torch.randperm(batch, generator=torch.Generator().manual_seed(seed))
    with torch.inference_mode():
        together = backbone(x)
        torch.testing.assert_close(backbone(x[:1]), together[:1], rtol=0, atol=1e-4)
        torch.testing.assert_close(backbone(x[order]), together[order], rtol=0, atol=1e-4)


@pytest.mark.parametrize("arch", ["utae_t5", "unet_t5"])
def test_the_order_of_days_matters(arch):
    backbone = small_backbone(arch)
    x = days_of_fire(backbone)
    with torch.inference_mode():
        assert (backbone(x) - backbone(x.flip(1))).abs().max() > 1e-2


def test_unet_t5_stacks_day_by_day():
    """Without the first four days' weights it is the one-day backbone on the last day."""
    five, one = small_backbone("unet_t5"), small_backbone("unet_t1")
    weights = dict(one.state_dict())
    first = torch.zeros_like(five.model.encoder.conv1.weight)
    first[:, -3:] = weights["model.encoder.conv1.weight"]
    five.load_state_dict({**weights, "model.encoder.conv1.weight": first})
    x = days_of_fire(five)
    with torch.inference_mode():
        torch.testing.assert_close(five(x), one(x[:, -1:]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("arch", ARCHS)
def test_every_weight_learns(arch):
    torch.manual_seed(0)
    backbone = build(arch, channels=2, width=0.125)
    x = days_of_fire(backbone, batch=3, height=64, width=64)
    torch.nn.functional.softplus(backbone(x)).mean().backward()
    still = [name for name, weight in backbone.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert still == []


def test_fresh_weights_follow_the_seed():
    first, second, third = (_fresh(seed) for seed in (1, 1, 2))
    assert torch.equal(first, second)
    assert not torch.equal(first, third)


def _fresh(seed):
    torch.manual_seed(seed)
    backbone = build("utae_t5", width=0.125)
    return torch.cat([weight.detach().flatten() for weight in backbone.parameters()])


@pytest.mark.parametrize("shape", [(1, 4, 3, 32, 32), (1, 5, 2, 32, 32), (1, 5, 3, 33, 32), (1, 5, 3, 32, 40)])
def test_wrong_inputs_are_named(shape):
    with pytest.raises(ValueError, match=r"utae_t5 takes \(batch, 5 days, 3 channels"):
        small_backbone("utae_t5")(torch.zeros(shape))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("resnet", 7, 1.0), "arch: there is no backbone 'resnet'; choose one of utae_t5, unet_t5, unet_t1"),
        (("utae_t5", 0, 1.0), "channels: a day has at least one channel, not 0"),
        (("utae_t5", 7, 0.0), "width: 0.0 is no factor"),
        (("utae_t5", 7, float("nan")), "width: nan is no factor"),
        (("utae_t5", 7, float("inf")), "width: inf is no factor"),
    ],
)
def test_impossible_backbones_are_refused(arguments, sentence):
    with pytest.raises(ConfigError, match=sentence):
        build(*arguments)


def test_facts_of_the_released_architectures():
    assert [(f.days, f.released_folder) for f in map(architecture, ARCHS)] == [
        (5, "Res18UTAE_T5"),
        (5, "Res18Unet_T5"),
        (1, "Res18Unet_T1"),
    ]
