"""Whether a fire ever burnt: forecasts of synthetic ones say so in every file."""

from fcer.data.fire import SYNTHETIC, SYNTHETIC_MANIFEST, Fire

__all__ = ["SYNTHETIC", "never_burnt"]


def never_burnt(fire: Fire) -> bool:
    """Whether the fire is synthetic: its name says so, or whoever made its dataset left a note there."""
    return SYNTHETIC in fire.name or any(
        (folder / SYNTHETIC_MANIFEST).exists() for folder in list(fire.path.parents)[:2]
    )
