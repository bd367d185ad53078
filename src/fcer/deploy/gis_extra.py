"""The packages that files for a GIS need besides rasterio: asked for before anything is predicted."""

from typing import Any

from fcer.errors import ConfigError

__all__ = ["import_pyogrio", "import_pystac"]


def import_pyogrio(option: str = "gis") -> Any:
    """pyogrio's raw functions; a ConfigError says how to get them."""
    try:
        from pyogrio import raw
    except ImportError:
        raise ConfigError(f"{option}: needs the package pyogrio; get it with pip install 'fcer[gis]'") from None
    return raw


def import_pystac() -> Any:
    """The package pystac; a ConfigError says how to get it."""
    try:
        import pystac
    except ImportError:
        raise ConfigError("gis: needs the package pystac; get it with pip install 'fcer[gis]'") from None
    return pystac
