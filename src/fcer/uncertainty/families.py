"""Weights of methods that take a training of their own: a safetensors file for each, named by all that decides it."""

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from fcer.config.bounded import parse_json
from fcer.errors import CheckpointError, ConfigError
from fcer.models.headers import HEADER, check_bytes, opened, save_sealed
from fcer.uncertainty.predictors import Predictors

__all__ = ["check_family", "family_facts", "read_family", "save_family"]


def save_family(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, str]) -> None:
    """Write the tensors, and what is to be known of them as text."""
    save_sealed(path, {name: value.detach().cpu().contiguous() for name, value in tensors.items()}, facts)


def read_family(path: Path) -> dict[str, Tensor]:
    """The tensors by name."""
    check_bytes(path)
    with opened(path) as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    if not all(bool(value.isfinite().all()) for value in tensors.values()):
        raise CheckpointError(f"{path}: its weights are not finite; remove it, and it is trained again")
    return tensors


def family_facts(path: Path) -> dict[str, str]:
    """What is written with the tensors."""
    with opened(path) as file:
        return dict(parse_json((file.metadata() or {}).get(HEADER, "{}")))


def check_family(name: str, predictors: Predictors) -> None:
    """Refuse a method whose weights are not there."""
    if name not in predictors.families:
        raise ConfigError(
            f"methods: {name} needs a training of its own on the backbone's training years, which released "
            "checkpoints alone do not allow; leave it out, or train members here"
        )
