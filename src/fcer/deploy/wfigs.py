"""Attributes of polygons under the names that US agencies know them by, after the WFIGS interagency perimeters."""

from collections.abc import Mapping
from typing import Any

from fcer.deploy.outlines import Feature

__all__ = ["LAYERS", "wfigs_feature"]

LAYERS = {"perimeter": "perimeter", "zone": "zones", "contour": "contours"}
"""The layer of each kind of polygon."""
_CATEGORIES = {
    "perimeter": "Predicted Fire Perimeter",
    "zone": "Predicted Fire Zone",
    "contour": "Predicted Fire Probability Contour",
}
_ACRES = 247.105381
"""In a square kilometre."""
_OWN = {
    "expected_miss_at_most": "ExpectedMiss",
    "probability_at_least": "Probability",
    "mean_probability": "MeanProbability",
    "mean_uncertainty": "MeanUncertainty",
    "area_km2": "AreaKm2",
    "guarantee": "Guarantee",
    "threshold": "Threshold",
    "calibration": "Calibration",
    "input_dates": "InputDates",
    "model_name": "ModelName",
    "model_version": "ModelVersion",
    "model_student_key": "ModelKey",
    "fcer_version": "FcerVersion",
}
"""What WFIGS has no name for."""


def wfigs_feature(feature: Feature) -> Feature:
    """The polygon with WFIGS' names for what it has names for; `poly_MapMethod` says that it is a model's."""
    about: Mapping[str, Any] = feature["properties"]
    synthetic = "synthetic" in about
    day = about["predicted_date"]
    named = {
        "poly_IncidentName": about["fire"],
        "poly_FeatureCategory": ("SYNTHETIC " if synthetic else "") + _CATEGORIES[about["kind"]],
        "poly_MapMethod": "Modeled",
        "poly_GISAcres": round(about["area_km2"] * _ACRES, 2),
        "poly_CreateDate": about["created"],
        "poly_PolygonDateTime": None if day == "unknown" else f"{day}T00:00:00Z",
        "poly_Source": "fcer: a forecast, not an observed perimeter",
        "poly_Comments": about.get("synthetic", about.get("guarantee", "")),
        "Synthetic": int(synthetic),
    }
    own = {name: about[key] for key, name in _OWN.items() if key in about}
    return {**feature, "properties": {**named, **own}}
