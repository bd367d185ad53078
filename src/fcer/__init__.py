"""fcer: boundary-aware uncertainty for wildfire-spread models."""

__all__ = ["__version__"]

__version__ = "0.1.0"
