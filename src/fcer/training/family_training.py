"""Methods that take a training of their own: each trained once, found again by all that decides it."""

import time
from pathlib import Path

from fcer.models.precision import check_precision
from fcer.runtime.checksums import is_intact
from fcer.runtime.steps import Step
from fcer.training.feature_cache import cache_features, cache_key
from fcer.training.flow_training import CONDITIONS, fit_flow
from fcer.training.packed_training import fit_packed, packed_spec
from fcer.training.settings import MemberSettings
from fcer.training.swag_training import fit_swag
from fcer.training.teaching import Teaching
from fcer.uncertainty.diffusion import MapFlow
from fcer.uncertainty.families import save_family

__all__ = ["TRAINED_FAMILIES", "train_family"]

TRAINED_FAMILIES = ("swag", "packed", "diffusion")

_SCHEMA = 2
"""Part of every key: raise it when the same inputs would give other weights."""


def train_family(name: str, teaching: Teaching, settings: MemberSettings, cache: Path, folder: Path) -> Path:
    """The file with a family's weights; one whose training was killed goes on after its last complete epoch.

    Parameters
    ----------
    name
        One of `TRAINED_FAMILIES`.
    teaching
        The backbone and the years that it learns from.
    settings
        How members are trained, which packed and swag follow.
    cache
        Folder of feature caches.
    folder
        Where families lie.
    """
    step = Step(_SCHEMA, {"family": name, "cache": cache_key(teaching), "settings": settings.deciding()})
    path = step.home(folder, name).with_suffix(".safetensors")
    if is_intact(path):
        return path
    check_precision(settings.precision)
    started, resume = time.perf_counter(), (path.with_suffix(".resume"), step.key)
    facts = {}
    if name == "swag":
        weights = fit_swag(teaching, settings, resume)
    elif name == "packed":
        members = len(teaching.teachers)
        spec = packed_spec(settings, members)
        weights = fit_packed(teaching, settings, spec, resume)
        facts = {"arch": spec.arch, "channels": spec.channels, "width": spec.width, "members": members}
    else:
        split = cache_features(teaching, cache).training
        weights = fit_flow(split, settings.seed, resume, epochs=settings.epochs)
        facts = {"conditions": split.features + CONDITIONS, "width": MapFlow(1).width}
    seconds = round(time.perf_counter() - started, 1)
    save_family(path, weights, {key: str(value) for key, value in {**facts, "seconds": seconds}.items()})
    resume[0].unlink(missing_ok=True)
    return path
