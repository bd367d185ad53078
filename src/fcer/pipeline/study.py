"""A study as Python calls it: from data to an evaluation, each step once, and found again by content."""

import copy
from collections.abc import Sequence
from pathlib import Path

from fcer.config import Config, Resolved
from fcer.config.fields import fields
from fcer.data.dataset import Dataset
from fcer.data.folds import Fold
from fcer.errors import DataError, warn
from fcer.evaluation import Results
from fcer.evaluation.guarantees import Guarantees
from fcer.models.student_files import load_student
from fcer.pipeline.calibration import student_guarantees
from fcer.pipeline.costs import write_costs
from fcer.pipeline.ensembles import YearEnsemble, open_ensemble
from fcer.pipeline.families import train_families
from fcer.pipeline.members import train_members
from fcer.pipeline.reporting import is_the_papers, report_results
from fcer.pipeline.run_log import NO_LOG, RunLog
from fcer.pipeline.scoring import score_maps
from fcer.pipeline.students import distil_student
from fcer.pipeline.study_data import Say, StudyData
from fcer.pipeline.year_maps import YearMaps, plan_year, predict_years
from fcer.training import Distilled

__all__ = ["Study"]


class Study:
    """The study of one configuration.

    A step that another needs is done first; what is on disk, of the same inputs, is not done again.

    Parameters
    ----------
    config:
        All settings; `fcer.configure(...)` makes and checks them.
    log:
        Where the study tells of itself; by default nowhere. The command line hands over a run of MLflow.
    say:
        Called with each line that a person may want to read; by default `print`.

    Examples
    --------
    >>> import tempfile
    >>> from fcer import Study, configure
    >>> tiny = configure(
    ...     year=2021, members=2, arch="unet_t1", width=0.0625, crop=32, image_size=(34, 40), fire_days=(8, 8),
    ...     fires_per_year=3, member_epochs=1, member_batch_size=4, head_epochs=2, bootstrap=0, miss=(0.5,),
    ...     methods=("student", "ensemble"), work=tempfile.mkdtemp(), workers=1, seed=3,
    ... )
    >>> study = Study(tiny, say=lambda line: None)
    >>> results = study.evaluation()  # doctest: +ELLIPSIS
    feature cache: ...
    >>> results.settings.own_methods
    ('student', 'ensemble')
    >>> study.student(2021).info.anchor_px
    4.0
    """

    def __init__(self, config: Config | Resolved, *, log: RunLog = NO_LOG, say: Say = print) -> None:
        resolved = config if isinstance(config, Resolved) else _as_given(config)
        self.config = resolved.config
        self.log = log
        self._say = say
        self._origins = resolved.origins
        self.setup = StudyData(self.config, say)
        """Its years, folds and samples."""
        self._ensembles: dict[int, YearEnsemble] = {}
        self._students: dict[int, Distilled] = {}

    def under(self, log: RunLog) -> "Study":
        """The same study, with all that it has found so far, logging to another run."""
        other = copy.copy(self)
        other.log = log
        return other

    def data(self, years: Sequence[int] | None = None) -> Dataset:
        """The fires of some years; by default those of every fold that tests on the study's."""
        asked = years or [year for fold in self.setup.folds for year in (*fold.train, *fold.validation, *fold.test)]
        return self.setup.open(asked)

    def train(self, ensembles: Sequence[Sequence[Fold]] | None = None) -> None:
        """Train whatever member of these ensembles is not there yet; by default of all that the study tests."""
        if ensembles is None:
            ensembles = [self.setup.member_folds(year) for year in self.setup.ensemble_years]
        train_members(self.setup, ensembles, self.log, self._say)

    def ensembles(self, years: Sequence[int], *, compare: bool = True) -> list[YearEnsemble]:
        """The ensemble of each test year, from `checkpoints` or with all missing members trained first.

        With `compare`, members that were trained here are scored on the test year; without, no file of it is read.
        """
        missing = [year for year in years if year not in self._ensembles]
        if missing and self.config.checkpoints is None:
            self.train([self.setup.member_folds(year) for year in missing])
        for year in missing:
            self._ensembles[year] = open_ensemble(self.setup, year, self.log, self._say, compare=compare)
        return [self._ensembles[year] for year in years]

    def ensemble(self, year: int) -> YearEnsemble:
        """The ensemble of one test year."""
        return self.ensembles([year])[0]

    def student(self, year: int, *, nested: bool = False) -> Distilled:
        """The student of one test year; with `nested` logged to a run of its own, unless one of it is known."""
        if year not in self._students:
            ensemble = self.ensemble(year)
            self._students[year] = distil_student(self.setup, ensemble, self.log, self._say, nested=nested)
        return self._students[year]

    def maps(self, out: Path | None = None) -> YearMaps:
        """The predicted maps of every test year, as `predictions_YEAR.npz` in `out`."""
        years = self.setup.test_years
        ensembles = self.ensembles(years)
        methods = self._methods_with_students(years)
        planned = []
        for ensemble in ensembles:
            student = load_student(self.student(ensemble.year).folder) if "student" in methods else None
            families = train_families(self.setup, ensemble, methods, self._say)
            planned.append(plan_year(self.setup, ensemble, student, methods, self._out(out), self.log, families))
        return predict_years(planned, self._say)

    def evaluation(self, out: Path | None = None) -> Results:
        """FCER on the predicted maps of every test year; results in `out`, the maps beside them."""
        where, maps = self._out(out), self.maps(out)
        results = score_maps(
            self.config,
            maps.files,
            where,
            self.log,
            passes=maps.passes,
            anchors=maps.anchors,
            threshold=maps.threshold,
            synthetic=self.setup.is_synthetic,
            of_students=lambda results: self._guarantees(maps, results),
        )
        write_costs(maps.planned, where, self.log)
        return results

    def report(self, out: Path | None = None, *, provenance: dict[str, str] | None = None) -> Path:
        """The page on the evaluation in `out`, in its folder `report`; the evaluation is made where it is not there."""
        folder = self._out(out)
        if not (folder / "evaluation.json").exists():
            self.evaluation(folder)
        years = self.setup.test_years
        data = {
            "data": "synthetic fires" if self.setup.is_synthetic else str(self.setup.root),
            "fingerprint of data": self.setup.open(years, whole=self.config.test_image == "full").fingerprint(years),
        }
        where = folder / "report"
        paper = is_the_papers(self.config)
        return report_results(
            self.config, [folder], where, self.log, paper=paper, provenance={**data, **(provenance or {})}
        )[-1]

    def _guarantees(self, maps: YearMaps, results: Results) -> Guarantees | None:
        """What students that hold a calibration promise, held to the test years."""
        if "student" not in maps.passes:
            return None
        students = [(self.student(year).folder, self.ensemble(year).members) for year in self.setup.test_years]
        return student_guarantees(self.setup, students, maps.files, results)

    def _out(self, out: Path | None) -> Path:
        return out or self.config.out or self.setup.work.study

    def _methods_with_students(self, years: Sequence[int]) -> list[str]:
        """The methods of all years alike.

        Data that holds the test years alone is enough to evaluate an ensemble: unless the student was asked for by
        name, it is then left out, of every year and before anything is predicted, and that is said.
        """
        methods = list(self.config.methods)
        if "student" in methods:
            try:
                for year in years:
                    self.student(year, nested=True)
            except DataError as error:
                if self._origins["methods"] != "default":
                    raise
                warn(f"student {year}: left out, of all years, since it cannot be distilled ({error})")
                methods.remove("student")
        return methods


def _as_given(config: Config) -> Resolved:
    """Whatever differs from its default was chosen."""
    defaults = {name: field.default for name, field in fields().items()}
    origins = {name: "default" if getattr(config, name) == value else "given" for name, value in defaults.items()}
    return Resolved(config, origins)
