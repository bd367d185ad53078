"""The anchor of an evaluation, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fcer.core.regions import PIXEL_METRES

if TYPE_CHECKING:
    from fcer.evaluation.results import Settings

__all__ = ["anchor_by_year", "within_anchor"]


def within_anchor(settings: Settings) -> str:
    """The region: `within 4 px (1.50 km) of fire`; where years have anchors of their own, from which to which."""
    low, high = min(settings.anchors or (settings.anchor_px,)), max(settings.anchors or (settings.anchor_px,))
    if low == high:
        return f"within {low:.3g} px ({low * PIXEL_METRES / 1000:.2f} km) of fire"
    kilometres = f"{low * PIXEL_METRES / 1000:.2f} to {high * PIXEL_METRES / 1000:.2f} km"
    return f"within each year's anchor ({low:.3g} to {high:.3g} px, {kilometres}) of fire"


def anchor_by_year(settings: Settings) -> str:
    """`4 px`, or each year's."""
    if not settings.anchors:
        return f"{settings.anchor_px:.6g} px"
    return ", ".join(f"{year}: {px:.6g} px" for year, px in zip(settings.years, settings.anchors, strict=True))
