"""A study of seconds: a few small fires, small members of one epoch."""

from pathlib import Path
from typing import Any

from fcer import configure
from fcer.config import Resolved
from fcer.data.synthetic.fires import Recipe

RECIPE = Recipe((2018, 2019, 2020, 2021), fires_per_year=2, image_size=(34, 40), fire_days=(8, 8), seed=3)
TINY: dict[str, Any] = {
    "members": 2,
    "arch": "unet_t1",
    "width": 0.0625,
    "crop": 32,
    "member_epochs": 1,
    "member_batch_size": 4,
    "head_epochs": 2,
    "bootstrap": 0,
    "methods": ("student", "ensemble"),
    "workers": 1,
}


def tiny(fires: Path, work: Path, **settings: Any) -> Resolved:
    """The study of the fires in a folder."""
    return configure(data=fires, work=work, **{**TINY, **settings})
