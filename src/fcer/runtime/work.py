"""The work folder: where everything lies that a command makes and was not told where to put."""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["Work"]


@dataclass(frozen=True)
class Work:
    """One place for each kind of thing."""

    root: Path

    @property
    def surveys(self) -> Path:
        """Holds what one pass over each fire found, in a folder of that name."""
        return self.root / "cache"

    @property
    def features(self) -> Path:
        """Cached features of backbones, a folder each."""
        return self.root / "cache" / "features"

    @property
    def checkpoints(self) -> Path:
        """Members, a folder for each way to train them."""
        return self.root / "checkpoints"

    @property
    def students(self) -> Path:
        """Students, a folder each."""
        return self.root / "students"

    @property
    def families(self) -> Path:
        """Weights of methods that take a training of their own, a file each."""
        return self.root / "families"

    @property
    def calibrations(self) -> Path:
        """Maps of the fires that calibrated students, a folder each."""
        return self.root / "calibrations"

    @property
    def runs(self) -> Path:
        """Journals of what was logged, a folder for each command."""
        return self.root / "runs"

    @property
    def searches(self) -> Path:
        """What came of each Optuna study, a folder each."""
        return self.root / "studies"

    @property
    def trials(self) -> Path:
        """Optuna's own database, where no storage is named."""
        return self.root / "studies.db"

    @property
    def predictions(self) -> Path:
        """Maps that `predict` made."""
        return self.root / "predictions"

    @property
    def exported(self) -> Path:
        """The student that `export` wrote."""
        return self.root / "student.onnx"

    @property
    def verification(self) -> Path:
        """The record of forecasts."""
        return self.root / "verification"

    @property
    def rehearsals(self) -> Path:
        """Seasons that were replayed, a folder each."""
        return self.root / "rehearsals"

    @property
    def results(self) -> Path:
        """Evaluations, a folder for the years of each."""
        return self.root / "results"

    @property
    def report(self) -> Path:
        """The latest report."""
        return self.root / "report"

    @property
    def study(self) -> Path:
        """Evaluation and report of a whole study."""
        return self.root / "study"
