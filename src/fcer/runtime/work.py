"""The work folder: where everything lies that a command makes and was not told where to put."""

from pathlib import Path

__all__ = ["Work"]


class Work:
    """One place for each kind of thing."""

    def __init__(self, root: Path) -> None:
        self.surveys = root / "cache"
        """Holds what one pass over each fire found, in a folder of that name."""
        self.features = root / "cache" / "features"
        """Cached features of backbones, a folder each."""
        self.checkpoints = root / "checkpoints"
        """Members, a folder for each way to train them."""
        self.students = root / "students"
        """Students, a folder each."""
        self.families = root / "families"
        """Weights of methods that take a training of their own, a file each."""
        self.calibrations = root / "calibrations"
        """Maps of the fires that calibrated students, a folder each."""
        self.runs = root / "runs"
        """Journals of what was logged, a folder for each command."""
        self.searches = root / "studies"
        """What came of each Optuna study, a folder each."""
        self.trials = root / "studies.db"
        """Optuna's own database, where no storage is named."""
        self.predictions = root / "predictions"
        """Maps that `predict` made."""
        self.exported = root / "student.onnx"
        """The student that `export` wrote."""
        self.verification = root / "verification"
        """The record of forecasts."""
        self.rehearsals = root / "rehearsals"
        """Seasons that were replayed, a folder each."""
        self.results = root / "results"
        """Evaluations, a folder for the years of each."""
        self.report = root / "report"
        """The latest report."""
        self.study = root / "study"
        """Evaluation and report of a whole study."""
