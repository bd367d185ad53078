import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from backbone_cases import days_of_fire, golden_outputs, golden_weights, small_backbone
from fcer.models.backbones import ARCHITECTURES, MARGIN, Backbone, BackboneSpec, build
from fcer.models.inference import fast, predict, predict_logits
from golden_formulas import backbone_input

ARCHS = list(ARCHITECTURES)


@pytest.mark.parametrize(("dtype", "rounding"), [(torch.float64, 0), (torch.float32, 2e-5)])
@pytest.mark.parametrize("arch", ARCHS)
def test_fast_golden_logits_and_features(arch, dtype, rounding):
    """In float32 features of up to 20 are sums in an order of the processor's own: some round beyond 1e-4."""
    backbone = build(arch).eval()
    backbone.load_state_dict(golden_weights(arch))
    prediction = predict(fast(backbone.to(dtype)), torch.from_numpy(backbone_input(days=backbone.days)))
    found = prediction.logits_B1HW.float(), prediction.features_BFHW[..., ::4, ::4].float()
    for ours, golden in zip(found, golden_outputs(arch), strict=True):
        torch.testing.assert_close(ours, golden, rtol=rounding, atol=1e-4)


@pytest.mark.parametrize("arch", ARCHS)
def test_fast_differs_by_rounding_alone(arch):
    """In float64, where rounding is out of sight; and in float32, where it must not show in a probability."""
    backbone = build(arch).eval()
    backbone.load_state_dict(golden_weights(arch))
    x = torch.from_numpy(backbone_input(days=backbone.days, batch=1, height=64, width=96))
    plain, folded = predict_logits(backbone, x), predict_logits(fast(backbone), x)
    torch.testing.assert_close(folded.sigmoid(), plain.sigmoid(), rtol=0, atol=1e-4)
    exact = backbone.double()
    for before, after in zip(predict(exact, x), predict(fast(exact), x), strict=True):
        torch.testing.assert_close(after, before, rtol=0, atol=1e-10)


@pytest.mark.parametrize("arch", ARCHS)
def test_fast_is_a_copy_without_batch_norm(arch):
    backbone = small_backbone(arch)
    backbone.train()
    before = {key: value.clone() for key, value in backbone.state_dict().items()}
    copied = fast(backbone)
    assert backbone.training
    assert before.keys() == backbone.state_dict().keys()
    assert all(torch.equal(value, before[key]) for key, value in backbone.state_dict().items())
    norms = (nn.BatchNorm1d, nn.BatchNorm2d)
    assert not any(isinstance(module, norms) for module in copied.modules())
    assert not copied.training
    assert not any(weight.requires_grad for weight in copied.parameters())


@pytest.mark.parametrize("arch", ARCHS)
def test_fast_works_channels_last_throughout(arch):
    copied = fast(small_backbone(arch))
    maps = []
    for module in copied.modules():
        if isinstance(module, nn.Conv2d):
            module.register_forward_hook(lambda _module, _inputs, output: maps.append(output))
    predict(copied, days_of_fire(copied, height=64, width=64))
    assert len(maps) == 31  # 20 in the encoder, 10 in the decoder, 1 in the head
    assert all(output.is_contiguous(memory_format=torch.channels_last) for output in maps)


@settings(deadline=None, max_examples=25)
@given(arch=st.sampled_from(ARCHS), height=st.integers(1, 70), width=st.integers(1, 70), folded=st.booleans())
def test_any_size_is_the_image_with_its_edges_repeated_cropped(arch, height, width, folded):
    backbone = small_backbone(arch)
    x = days_of_fire(backbone, 1, height, width)
    rows = torch.arange(-(-height // 32) * 32).clamp(max=height - 1)
    columns = torch.arange(-(-width // 32) * 32).clamp(max=width - 1)
    padded = x[..., rows, :][..., columns]
    with torch.inference_mode():
        expected_features = backbone.features(padded)[..., :height, :width]
        expected_logits = backbone(padded)[..., :height, :width]
    prediction = predict(fast(backbone) if folded else backbone, x)
    torch.testing.assert_close(prediction.logits_B1HW, expected_logits, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(prediction.features_BFHW, expected_features, rtol=1e-4, atol=1e-4)


def test_a_larger_image_agrees_far_from_the_seam():
    """Padding must not reach further than the network looks: the top left of a cut image stays the same."""
    backbone = fast(small_backbone("unet_t1"))
    x = days_of_fire(backbone, 1, 416, 416)
    whole, cut = predict_logits(backbone, x), predict_logits(backbone, x[..., :401, :401])
    torch.testing.assert_close(cut[..., :32, :32], whole[..., :32, :32], rtol=1e-4, atol=1e-4)
    assert not torch.allclose(cut[..., -8:, -8:], whole[..., 393:401, 393:401], atol=1e-3)


def test_logits_are_the_head_on_the_features():
    backbone = fast(small_backbone("utae_t5"))
    x = days_of_fire(backbone, 2, 32, 64)
    prediction = predict(backbone, x)
    assert prediction.features_BFHW.shape == (2, backbone.feature_channels, 32, 64)
    with torch.inference_mode():
        again = backbone.model.segmentation_head(prediction.features_BFHW)
    torch.testing.assert_close(again, prediction.logits_B1HW)
    assert torch.equal(predict_logits(backbone, x), prediction.logits_B1HW)


def test_a_hook_on_the_fast_decoder_sees_the_features():
    backbone = fast(small_backbone("utae_t5"))
    caught = []
    backbone.decoder.register_forward_hook(lambda _module, _inputs, output: caught.append(output))
    prediction = predict(backbone, days_of_fire(backbone))
    assert torch.equal(caught[0], prediction.features_BFHW)


def test_other_number_types_are_taken():
    backbone = small_backbone("unet_t1")
    x = days_of_fire(backbone)
    torch.testing.assert_close(predict_logits(backbone, x.double()), predict_logits(backbone, x))


def test_training_mode_is_refused():
    backbone = small_backbone("utae_t5").train()
    with pytest.raises(ValueError, match="eval mode"):
        predict(backbone, days_of_fire(backbone))


class NearSighted(Backbone):
    """Convolutions that pad with zeros, as all backbones' do, but see 5 px far and no further."""

    days = 1
    feature_channels = 7

    def __init__(self, margin: int) -> None:
        super().__init__(BackboneSpec("unet_t1", width=0.0625))
        torch.manual_seed(1)
        self.layers = nn.Sequential(*(nn.Conv2d(7, 7, 3, padding=1) for _ in range(5)))
        self.margin = margin
        self.eval()

    def features(self, x_BTCHW: torch.Tensor) -> torch.Tensor:
        return self.layers(x_BTCHW[:, 0])

    def fire_logits(self, features_BFHW: torch.Tensor) -> torch.Tensor:
        return features_BFHW[:, :1]


@pytest.mark.parametrize(("height", "width"), [(64, 64), (40, 70), (1, 1)])
def test_with_a_margin_the_rim_is_not_special(height, width):
    """Where all is alike, one pixel is as another: what is said of the rim alone comes from padding."""
    x = torch.full((1, 1, 7, height, width), 0.3)
    bare, grown = (predict_logits(NearSighted(margin), x) for margin in (0, MARGIN))
    anywhere = predict_logits(NearSighted(0), torch.full((1, 1, 7, 64, 64), 0.3))[..., 32, 32]
    assert (bare - anywhere).abs().max() > 0.01
    assert grown.shape == bare.shape
    torch.testing.assert_close(grown, anywhere.expand_as(grown[..., 0, 0])[..., None, None].expand_as(grown))


def test_a_margin_leaves_what_lies_further_inside_as_it_is():
    x = torch.rand((2, 1, 7, 40, 50), generator=torch.manual_seed(0))
    bare, grown = (predict(NearSighted(margin), x) for margin in (0, MARGIN))
    for one, other in zip(bare, grown, strict=True):
        torch.testing.assert_close(other[..., 5:-5, 5:-5], one[..., 5:-5, 5:-5])
        assert not torch.allclose(other[..., 0, :], one[..., 0, :], atol=1e-3)
