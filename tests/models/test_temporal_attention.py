import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from fcer.models.temporal_attention import HEADS, TemporalAttention, merge_days, position_code


def plain_merge(x_BTCHW, weight_BTKhw):
    """The definition: one channel after the other, each weighed by its head's upsampled attention."""
    B, T, C, H, W = x_BTCHW.shape
    weight = F.interpolate(weight_BTKhw.flatten(0, 1), (H, W), mode="bilinear", align_corners=False)
    weight = weight.view(B, T, HEADS, H, W)
    channels = [(x_BTCHW[:, :, c] * weight[:, :, c // (C // HEADS)]).sum(1) for c in range(C)]
    return torch.stack(channels, dim=1)


def attention_weights(batch, days, height, width, dtype=torch.float32):
    return torch.randn(batch, days, HEADS, height, width, dtype=dtype).softmax(1)


@settings(deadline=None, max_examples=30)
@given(
    batch=st.integers(1, 3),
    days=st.integers(1, 6),
    per_head=st.integers(1, 3),
    height=st.integers(1, 3),
    width=st.integers(1, 3),
    scale=st.sampled_from([1, 2, 8]),
    channels_last=st.booleans(),
)
def test_merging_days_is_its_definition(batch, days, per_head, height, width, scale, channels_last):
    torch.manual_seed(0)
    x = torch.randn(batch * days, HEADS * per_head, height * scale, width * scale)
    x = x.contiguous(memory_format=torch.channels_last if channels_last else torch.contiguous_format)
    x = x.unflatten(0, (batch, days))
    weight = attention_weights(batch, days, height, width)
    torch.testing.assert_close(merge_days(x, weight), plain_merge(x, weight), rtol=1e-5, atol=1e-5)


def test_merging_keeps_the_memory_layout():
    x = torch.randn(10, 32, 8, 8).contiguous(memory_format=torch.channels_last).unflatten(0, (2, 5))
    merged = merge_days(x, attention_weights(2, 5, 2, 2))
    assert merged.is_contiguous(memory_format=torch.channels_last)
    assert merge_days(x.contiguous(), attention_weights(2, 5, 2, 2)).is_contiguous()


def test_days_that_are_alike_merge_into_themselves():
    day = torch.randn(2, 1, 32, 8, 8)
    merged = merge_days(day.expand(-1, 5, -1, -1, -1), attention_weights(2, 5, 2, 2))
    torch.testing.assert_close(merged, day[:, 0])


def test_merging_has_the_right_gradient():
    torch.manual_seed(0)
    x = torch.randn(1, 3, HEADS, 4, 4, dtype=torch.float64, requires_grad=True)
    weight = attention_weights(1, 3, 2, 2, torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(merge_days, (x, weight))


@pytest.mark.parametrize("size", [1, 2, 5, 16])
def test_position_code_by_hand(size):
    code = position_code(4, size)
    for day in range(4):
        for i in range(size):
            angle = day / 1000 ** (2 * (i // 2) / size)
            assert code[day, i].item() == pytest.approx((math.cos if i % 2 else math.sin)(angle), abs=1e-6)


def test_attention_pixel_by_pixel():
    """The module against loops over samples, pixels and heads."""
    torch.manual_seed(0)
    module = TemporalAttention(channels=64, features=32).double().eval()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    linear, norm, _ = module.mlp
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2)
    x = torch.randn(2, 5, 64, 3, 2, dtype=torch.float64)
    merged, weight = module(x)
    code = position_code(5, 2).double()
    for b in range(2):
        for i in range(3):
            for j in range(2):
                grouped = x[b, :, :, i, j].reshape(5, 16, 4)  # days, groups, channels of a group
                mean, var = grouped.mean((0, 2), keepdim=True), grouped.var((0, 2), keepdim=True, correction=0)
                days = ((grouped - mean) / (var + 1e-5).sqrt()).reshape(5, 64)
                days = days * module.in_norm.weight + module.in_norm.bias
                days = days @ module.inconv.weight[..., 0].T + module.inconv.bias + code.repeat(1, HEADS)
                keys = days @ module.attention_heads.fc1_k.weight.T + module.attention_heads.fc1_k.bias
                heads = []
                for k in range(HEADS):
                    attention = (keys[:, 4 * k : 4 * k + 4] @ module.attention_heads.Q[k] / 2).softmax(0)
                    torch.testing.assert_close(weight[b, :, k, i, j], attention)
                    heads.append(attention @ days[:, 2 * k : 2 * k + 2])
                y = linear(torch.cat(heads)[None])
                y = (y - norm.running_mean) / (norm.running_var + 1e-5).sqrt() * norm.weight + norm.bias
                y = F.group_norm(y.relu(), 16, module.out_norm.weight, module.out_norm.bias)
                torch.testing.assert_close(merged[b, :, i, j], y[0])


def test_dropout_works_in_training_only():
    torch.manual_seed(0)
    module = TemporalAttention(channels=64, features=32)
    x = torch.randn(2, 5, 64, 2, 2)
    assert (module(x)[1] == 0).any()
    weight = module.eval()(x)[1]
    torch.testing.assert_close(weight.sum(1), torch.ones(2, HEADS, 2, 2))
