"""Methods that say how little a prediction is to be trusted, by name."""

from fcer.uncertainty.method_maps import pass_counts, write_method_maps
from fcer.uncertainty.predictors import Predictors, SeenBatch
from fcer.uncertainty.registry import Method, installed_methods, method, method_named

__all__ = [
    "Method",
    "Predictors",
    "SeenBatch",
    "installed_methods",
    "method",
    "method_named",
    "pass_counts",
    "write_method_maps",
]
