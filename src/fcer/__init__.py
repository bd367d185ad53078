"""fcer: boundary-aware uncertainty for wildfire-spread models.

The public functions are imported when first used, so that `import fcer` costs next to nothing.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fcer.config.resolve import configure
    from fcer.core import sweep
    from fcer.evaluation.evaluate import evaluate, evaluate_files
    from fcer.evaluation.results import Results
    from fcer.maps.predicted_maps import PredictedMaps, open_maps, write_maps
    from fcer.pipeline.study import Study

__all__ = [
    "PredictedMaps",
    "Results",
    "Study",
    "__version__",
    "configure",
    "evaluate",
    "evaluate_files",
    "open_maps",
    "sweep",
    "write_maps",
]

__version__ = "0.2.0"

_HOMES = {
    "Study": "fcer.pipeline.study",
    "configure": "fcer.config.resolve",
    "sweep": "fcer.core",
    "PredictedMaps": "fcer.maps.predicted_maps",
    "open_maps": "fcer.maps.predicted_maps",
    "write_maps": "fcer.maps.predicted_maps",
    "Results": "fcer.evaluation",
    "evaluate": "fcer.evaluation",
    "evaluate_files": "fcer.evaluation",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fcer' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
