"""Torch's optimisers without its compiler, which each of them imports as it is made: two seconds of every process."""

import inspect
from typing import TypeVar

import torch

__all__ = ["SGD", "AdamW"]

_WRAPPED = ("add_param_group", "load_state_dict", "state_dict", "zero_grad")
"""Methods that torch keeps from being compiled, for which it asks the compiler."""

Kind = TypeVar("Kind", bound=type[torch.optim.Optimizer])


def _never_compiled(kind: Kind) -> Kind:
    methods = {name: inspect.unwrap(getattr(kind, name)) for name in _WRAPPED}
    methods["step"] = torch.no_grad()(inspect.unwrap(kind.step))
    return type(kind.__name__, (kind,), methods)  # type: ignore[return-value]


SGD = _never_compiled(torch.optim.SGD)
AdamW = _never_compiled(torch.optim.AdamW)
