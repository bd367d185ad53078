"""A study called from Python, without MLflow, through to an evaluation; each step once."""

import subprocess
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import yaml

import fcer.pipeline.study_data as study_data_module
from documentation import blocks
from fcer import Study, configure
from fcer.config import Resolved
from fcer.data.synthetic.fires import synthesize
from fcer.errors import ConfigError, DataError, FcerWarning
from fcer.maps.predicted_maps import open_maps
from fcer.pipeline.run_log import NO_LOG, RunLog
from fcer.pipeline.students import epoch_rows
from fcer.training.epochs import EpochRecord
from study_settings import RECIPE, TINY, tiny

YEARS = RECIPE.years


@pytest.fixture(scope="module")
def fires(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("study_fires")
    synthesize(RECIPE, root, workers=1)
    return root


@pytest.fixture(scope="module")
def members(fires: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Settings of a study of all years whose members are trained already."""
    folder = tmp_path_factory.mktemp("members")
    settings = {"year": "all", "checkpoints": folder / "members", "select_by": "val_ap"}
    Study(tiny(fires, folder, **settings), say=lambda _: None).train()
    return settings


def test_a_study_runs_from_a_notebook_without_mlflow(fires: Path, tmp_path: Path):
    """The README's lines as pasted, on smaller fires, in a process of its own: what is imported here says nothing."""
    (tmp_path / "experiments").mkdir()
    settings = {**TINY, "methods": list(TINY["methods"]), "data": str(fires), "work": "work"}
    (tmp_path / "experiments" / "demo.yaml").write_text(yaml.safe_dump(settings))
    (pasted,) = [block.text for block in blocks("python") if block.page == "README.md"]
    checks = """
import sys
assert results.settings.own_methods == ("student", "ensemble") and results.settings.controls == ("probability",)
assert set(results.anchor["method"]) == set(results.settings.methods)
assert page.name == "report.html" and page.stat().st_size > 100_000
assert not {"mlflow", "optuna"} & set(sys.modules), "the library works without them"
"""
    done = subprocess.run([sys.executable, "-c", pasted + checks], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "ensemble" in done.stdout and "AUROC" in done.stdout


def test_each_step_is_done_once_and_found_again(fires: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    opened = []
    real = study_data_module.open_dataset

    def counted(root: Path, years: list[int], **how: Any) -> Any:
        opened.extend(years)
        return real(root, years, **how)

    monkeypatch.setattr(study_data_module, "open_dataset", counted)
    lines: list[str] = []
    study = Study(tiny(fires, tmp_path, year=2021), say=lines.append)
    first = study.evaluation()
    assert sorted(opened) == list(YEARS), "a year's files are opened once, however many steps read them"
    assert study.ensemble(2021) is study.ensemble(2021)
    assert study.student(2021) is study.student(2021)

    again: list[str] = []
    second = Study(tiny(fires, tmp_path, year=2021), say=again.append).evaluation()
    assert [line for line in again if "before" in line] and not [line for line in again if "best epoch" in line]
    assert second.sweep.equals(first.sweep)


def test_a_broken_fire_is_told_of_once(fires: Path, tmp_path: Path):
    data = tmp_path / "data"
    synthesize(RECIPE, data, workers=1)
    broken = next((data / "2019").glob("*.hdf5"))
    broken.write_bytes(broken.read_bytes()[:2000])
    study = Study(configure(data=data, work=tmp_path / "work", **TINY), say=lambda _: None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FcerWarning)
        study.student(2021)
        study.data(YEARS)
    assert len([one for one in caught if str(broken) in str(one.message)]) == 1


def test_one_year_without_a_student_leaves_it_out_of_all_before_predicting(members: dict[str, Any], tmp_path: Path):
    """A student that validates on one burning pixel cannot be chosen; the others' years must not fail for it."""
    data = tmp_path / "data"
    synthesize(RECIPE, data, workers=1)
    _leave_one_pixel(data / "2020")
    config = tiny(data, tmp_path / "work", **members, anchor=0.0)
    by_default = Resolved(config.config, {**config.origins, "methods": "default"})
    with pytest.warns(FcerWarning, match=r"student 20\d\d: left out, of all years, since it cannot be distilled"):
        maps = Study(by_default, say=lambda _: None).maps()
    assert len(maps.files) == 4 and maps.anchors == {}
    assert {open_maps(path).methods for path in maps.files} == {("ensemble",)}
    with pytest.raises(DataError, match=r"the backbone makes (no error|errors only) within 0 px of fire"):
        Study(config, say=lambda _: None).maps()


class _Told(RunLog):
    """Remembers tags."""

    def __init__(self) -> None:
        self.told: dict[str, str] = {}

    def tags(self, values: Mapping[str, str]) -> None:
        self.told |= values


@pytest.mark.filterwarnings("ignore::fcer.errors.FcerWarning")  # so few fires and epochs leave much undefined
def test_auto_is_an_anchor_for_each_test_year_and_fires_are_called_synthetic(
    fires: Path, members: dict[str, Any], tmp_path: Path
):
    study = Study(tiny(fires, tmp_path, **members, anchor="auto", miss=(0.5,)), say=lambda _: None)
    results = study.evaluation()
    own = {year: study.student(year).info.anchor_px for year in YEARS}
    assert results.settings.anchors == tuple(own.values()) and len(set(own.values())) == 4
    assert results.anchor.groupby("year")["radius_px"].first().to_dict() == own
    assert results.settings.anchor_from == "its ensemble's mean ASD on its own validation years"
    assert results.settings.synthetic and results.summary().startswith("SYNTHETIC")


def test_balanced_undoes_the_weight_of_the_backbones_own_training(fires: Path, tmp_path: Path):
    """Whatever the configuration says of it now; where the student is fitted, and where its maps are scored."""
    trained = {"year": 2021, "checkpoints": tmp_path / "members", "select_by": "val_ap", "pos_weight": 3.0}
    Study(tiny(fires, tmp_path, **trained), say=lambda _: None).train()
    log = _Told()
    asked = {**trained, "threshold": "balanced", "pos_weight": 5.0}
    study = Study(tiny(fires, tmp_path, **asked), log=log, say=lambda _: None)
    assert study.student(2021).info.threshold == 0.75
    assert study.maps().threshold == 0.75
    seen = log.told["fcer.validation_in_sample"]
    assert seen.startswith("1 of 2 teachers were trained on ") and "val/auroc, which is of" in seen


def test_an_epoch_of_a_backbone_that_is_trained_along_has_its_ap():
    alone = EpochRecord(3, 0.4, 0.5, 0.7, 0.1, 1.0)
    assert epoch_rows(alone._replace(val_ap=0.25)) == [*epoch_rows(alone), ("val/ap", 0.25, 3)]


def _leave_one_pixel(folder: Path) -> None:
    for path in folder.glob("*.hdf5"):
        with h5py.File(path, "r+") as file:
            file["data"][:, 22] = 0
    with h5py.File(path, "r+") as file:
        file["data"][6, 22, 17, 17] = 12


def test_unknown_settings_are_refused_with_what_was_meant():
    with pytest.raises(ConfigError, match=r"unknown key `widht`; did you mean `width`\?"):
        configure(widht=1)
    with pytest.raises(ConfigError, match=r"configure: width is 7\.0, but should be at most 1"):
        configure(width=7.0)


def test_the_null_log_takes_everything_and_keeps_nothing(tmp_path: Path):
    with NO_LOG.child("below", {"a": 1}) as below:
        below.metrics({"a": np.nan})
        below.file(tmp_path / "absent")
    assert not NO_LOG.knows("tag", "value")
