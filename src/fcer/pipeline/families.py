"""Methods that take a training of their own, trained for a test year where they are not there yet."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fcer.pipeline.ensembles import YearEnsemble, teaching_of
from fcer.pipeline.study_data import Say, StudyData
from fcer.training import TRAINED_FAMILIES, MemberSettings, train_family
from fcer.training.teaching import ENSEMBLE

__all__ = ["train_families"]


def train_families(data: StudyData, ensemble: YearEnsemble, methods: Sequence[str], say: Say) -> dict[str, Path]:
    """The weights of those among the methods that have some, by name."""
    found = {}
    for name in TRAINED_FAMILIES:
        if name in methods:
            settings = MemberSettings.of(data.config)
            teaching = replace(teaching_of(data, ensemble), teacher=ENSEMBLE)  # whoever teaches the student
            found[name] = train_family(name, teaching, settings, data.work.features, data.work.families)
            say(f"{name} {ensemble.year}: {found[name]}")
    return found
