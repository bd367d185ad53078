"""bf16 where the processor has it: refused elsewhere, and never what a score is computed with."""

import dataclasses
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from fcer.errors import ConfigError
from fcer.models.checkpoints import CheckpointInfo
from fcer.models.precision import BF16, FP32, check_precision, computing, has_bf16
from fcer.models.raw_days import predict_days
from fcer.models.student_files import load_student
from vegetation_student import write_vegetation_student

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("capabilities", "has"),
    [({"avx512_f": True}, False), ({"avx512_bf16": False}, False), ({"avx512_bf16": True}, True), ({"bf16": 1}, True)],
)
def test_it_is_refused_where_the_processor_would_imitate_it(monkeypatch, capabilities: dict, has: bool):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    assert has_bf16(CPU) is has
    check_precision(FP32, CPU)
    if has:
        check_precision(BF16, CPU)
    else:
        with pytest.raises(ConfigError, match=r"^precision: this processor has no bf16 .* slower than fp32; leave it"):
            check_precision(BF16, CPU)


def test_torch_tells_what_this_processor_has():
    """The names that we look for are torch's own."""
    told = torch.cpu.get_capabilities()
    names = {"x86_64": {"avx512_bf16", "amx_bf16"}, "arm64": {"bf16", "sve_bf16"}}
    assert names.get(told["architecture"], set()) & told.keys() or told["architecture"] not in names


@pytest.mark.parametrize(("precision", "kind"), [(FP32, torch.float32), (BF16, torch.bfloat16)])
def test_layers_within_the_block_compute_with_it(precision: str, kind: torch.dtype):
    layer, x = torch.nn.Conv2d(2, 3, 3), torch.zeros(1, 2, 8, 8)
    with computing(precision, CPU):
        assert layer(x).dtype == kind
    assert layer(x).dtype == torch.float32


@pytest.mark.parametrize("arch", ["utae_t5", "unet_t1"])
def test_a_forecast_in_bf16_is_near_the_one_in_fp32(tmp_path: Path, rng: np.random.Generator, arch: str):
    folder = write_vegetation_student(tmp_path / "student", arch=arch)
    exact, half = load_student(folder), load_student(folder, BF16)
    raw = rng.random((1, exact.student.backbone.days, 23, 40, 36)).astype(np.float32)
    for ours, theirs in zip(predict_days(half, raw), predict_days(exact, raw), strict=True):
        assert ours.dtype == torch.float32
        assert 0 < float((ours - theirs).abs().max()) < 0.05
    assert pickle.loads(pickle.dumps(half)).precision == BF16, "in other processes, too"


def test_a_header_says_nothing_else():
    info = dict.fromkeys(field.name for field in dataclasses.fields(CheckpointInfo))
    usual = {"arch": "unet_t1", "channels": 1, "width": 1.0, "features": (0,), "mean": (0.0,), "std": (1.0,)}
    with pytest.raises(ValueError, match="precision 'fp8' is neither fp32 nor bf16"):
        CheckpointInfo(**{**info, **usual, "margin": 0, "precision": "fp8"})
