"""A student's card: what whoever finds the model in the registry should know before using it."""

from collections.abc import Mapping

from fcer.models.calibration_files import Calibration
from fcer.models.student_files import LoadedStudent

__all__ = ["model_card"]


def model_card(
    loaded: LoadedStudent,
    metrics: Mapping[str, float],
    data: Mapping[str, str],
    parent: str,
    calibration: Calibration | None = None,
) -> str:
    """The card as Markdown.

    Parameters
    ----------
    metrics
        What the validation years say of the student.
    data
        The name of the data by what it was used for, as `train`.
    parent
        The run that registers it.
    calibration
        What lies beside it, where something does.
    """
    head, backbone = loaded.head, loaded.backbone
    named = ", ".join(f"{context}: {name}" for context, name in data.items()) or "not recorded"
    apart = "frozen" if head.frozen else "trained along"
    precision = "unknown" if backbone.val_ap is None else f"{backbone.val_ap:.3f}"
    return "\n".join(
        [
            "Next-day fire probability and its uncertainty in one pass, for pixels of 375 m.",
            "",
            "| | |",
            "|---|---|",
            f"| Data | {named}; fingerprint `{head.dataset_fingerprint}` |",
            f"| Years | trained on {_years(backbone.train_years)}, validated on {_years(backbone.val_years)}, "
            f"for tests on {_years(backbone.test_years)} |",
            f"| Backbone | {backbone.arch}, width {backbone.width:g}, {apart}, validation AP {precision} |",
            f"| Taught by | {len(head.teachers)} members, by their {head.target} |",
            f"| Skill | {_skill(metrics, head.anchor_px)} |",
            f"| Calibration | {_calibrated(calibration)} |",
            "| Limits | fires unlike those of its years, other sensors and pixel sizes are not covered; the "
            "uncertainty ranks pixels by how likely the prediction is wrong there, it is no probability |",
            "| Licence | that of the code it was made with (MIT), and of the data it was trained on |",
            f"| Made by | run `{parent}`, fcer {head.code_version}, key `{head.key}` |",
        ]
    )


def _calibrated(calibration: Calibration | None) -> str:
    if calibration is None:
        return "none: the probability is the backbone's as trained, unless `fcer calibrate` was run since"
    misses = ", ".join(f"{rule.miss:g}" for rule in calibration.rules_of("threshold"))
    return (
        f"{calibration.recalibration.kind}, on {len(calibration.fires)} fires within {calibration.radius_px:.3g} px of "
        f"fire; zones with a guaranteed miss of {misses or 'no share, for want of fires'}"
    )


def _years(years: tuple[int, ...]) -> str:
    return ", ".join(map(str, years)) or "none"


def _skill(metrics: Mapping[str, float], anchor_px: float) -> str:
    """Validation AUROC with its interval: the test years belong to an evaluation."""
    value, low, high = (metrics.get(f"val_auroc{end}") for end in ("", "_low", "_high"))
    if value is None:
        return "not recorded"
    drawn = f" (95 %: {low:.3f} to {high:.3f} over draws of fires)" if low is not None and high is not None else ""
    said = f"validation AUROC {value:.3f}{drawn} of errors within {anchor_px:g} px of fire"
    if "cv_ap" not in metrics:
        return said
    return (
        f"cross-validated, since nothing was held out to test on: AP {metrics['cv_ap']:.3f} as mean of its teachers, "
        f"each on the years that this one was not trained on; {said}"
    )
