"""The FCER engine on numpy and scipy alone: regions, metrics, sweep, statistics, disagreement.

Names are imported when first used, so that who needs one module of the engine does not load all.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fcer.core.bootstrap import (
        bootstrap_median,
        bootstrap_ranking,
        bootstrap_ratio,
        draw_fires,
        percentile_interval,
    )
    from fcer.core.calibration import ReliabilityCurve, brier_loss, ece_loss, nll_loss, reliability_curve
    from fcer.core.disagreement import (
        entropy,
        expected_entropy,
        margin,
        member_variance,
        mutual_information,
        normalized_std,
        predictive_entropy,
    )
    from fcer.core.ranking import (
        augrc_loss,
        auprc_score,
        aurc_loss,
        auroc_score,
        auroc_within_score,
        excess_aurc_loss,
        fpr_at_tpr_loss,
    )
    from fcer.core.region_sweep import SweepCurve, sweep
    from fcer.core.regions import DEFAULT_RADII, PIXEL_METRES, distance_to_fire, fire_region, ring_index
    from fcer.core.segmentation import (
        FIRE_THRESHOLD,
        Confusion,
        average_precision_score,
        confusion,
        f1_score,
        iou_score,
        precision_score,
        recall_score,
    )
    from fcer.core.statistics import WilcoxonResult, holm_correction, wilcoxon_test
    from fcer.core.surface import asd_loss, boundary, hausdorff95_loss

__all__ = [
    "DEFAULT_RADII",
    "FIRE_THRESHOLD",
    "PIXEL_METRES",
    "Confusion",
    "ReliabilityCurve",
    "SweepCurve",
    "WilcoxonResult",
    "asd_loss",
    "augrc_loss",
    "auprc_score",
    "aurc_loss",
    "auroc_score",
    "auroc_within_score",
    "average_precision_score",
    "bootstrap_median",
    "bootstrap_ranking",
    "bootstrap_ratio",
    "boundary",
    "brier_loss",
    "confusion",
    "distance_to_fire",
    "draw_fires",
    "ece_loss",
    "entropy",
    "excess_aurc_loss",
    "expected_entropy",
    "f1_score",
    "fire_region",
    "fpr_at_tpr_loss",
    "hausdorff95_loss",
    "holm_correction",
    "iou_score",
    "margin",
    "member_variance",
    "mutual_information",
    "nll_loss",
    "normalized_std",
    "percentile_interval",
    "precision_score",
    "predictive_entropy",
    "recall_score",
    "reliability_curve",
    "ring_index",
    "sweep",
    "wilcoxon_test",
]

_HOMES = (
    "bootstrap",
    "calibration",
    "disagreement",
    "ranking",
    "region_sweep",
    "regions",
    "segmentation",
    "statistics",
    "surface",
)


def __getattr__(name: str) -> Any:
    if name in __all__:
        for home in _HOMES:
            if hasattr(module := import_module(f"fcer.core.{home}"), name):
                return getattr(module, name)
    raise AttributeError(f"module 'fcer.core' has no attribute {name!r}")
