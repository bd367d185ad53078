"""Which fires calibrate a student: half of its validation fires where there are many, its members' too where few."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fcer import Study
from fcer.core.risk_control import ENOUGH_FIRES, smallest_miss
from fcer.data.calibration_split import calibrating, choosing, enough_to_part
from fcer.data.channels import ACTIVE_FIRE
from fcer.data.synthetic.fires import Recipe, synthesize
from fcer.errors import InputError
from fcer.models.calibration_files import calibration_file, calibration_table_file, load_calibration
from fcer.models.checkpoints import read_info
from fcer.models.student_files import load_student, read_fire_scores
from fcer.pipeline.calibration import calibrate_student
from fcer.pipeline.calibration_log import region_curves
from fcer.pipeline.members import plan_members
from fcer.pipeline.run_log import NO_LOG
from fcer.pipeline.students import distil_student
from fcer.pipeline.study_data import StudyData
from fcer.pipeline.validation_maps import members_beside, members_here, validation_maps
from study_settings import tiny

RECIPE = Recipe((2018, 2019, 2020, 2021), fires_per_year=2, image_size=(34, 36), fire_days=(3, 3), seed=3)


class Named(NamedTuple):
    """A fire that is nothing but its name."""

    name: str


@settings(max_examples=30)
@given(st.lists(st.text(min_size=1, max_size=8), unique=True, max_size=30), st.data())
def test_every_fire_is_in_one_half_whatever_others_there_are(names: list[str], data: st.DataObject):
    fires: list[Any] = [Named(name) for name in names]
    chosen, calibrated = choosing(fires), calibrating(fires)
    assert [fire for fire in fires if fire in chosen] == list(chosen)
    assert len(chosen) + len(calibrated) == len(fires) and not [fire for fire in chosen if fire in calibrated]
    some = data.draw(st.lists(st.sampled_from(fires), unique=True)) if fires else []
    assert set(choosing(some)) == set(chosen) & set(some)


def test_halves_are_parted_where_each_has_enough():
    many: list[Any] = [Named(f"fire_{k}") for k in range(1000)]
    assert 450 < len(choosing(many)) < 550
    some = [*choosing(many)[:ENOUGH_FIRES], *calibrating(many)[:ENOUGH_FIRES]]
    assert enough_to_part(some) and not enough_to_part(some[1:]) and not enough_to_part(some[:-1])
    assert smallest_miss(ENOUGH_FIRES) == 0.05 / 2


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Two fires a year."""
    root = tmp_path_factory.mktemp("few")
    synthesize(RECIPE, root / "fires", workers=1)
    how: dict[str, Any] = {"year": 2021, "members": 3, "leading": 1, "miss": (0.15, 0.4)}
    study = Study(tiny(root / "fires", root / "work", **how), say=lambda _: None)
    study.student(2021)
    return study


def test_few_fires_are_joined_by_those_of_the_members_beside(few: Study):
    student, members = load_student(few.student(2021).folder), few.ensemble(2021).members
    beside = members_beside(student, members)
    years = [student.head.val_years, *(member.fold.validation for member in beside)]
    assert sorted(years) == [(2018,), (2019,), (2020,)], "each year once, and never the test year"
    assert all(not set(member.fold.validation) & set(member.fold.train) for member in beside)
    assert [one.digest for one in members_here(few.setup, student)] == [one.digest for one in members]
    calibration = load_calibration(student.folder, student.head.key)
    assert calibration is not None and calibration.chose_epoch and len(calibration.fires) == 2
    by_family = {name: calibration.rules_of(name) for name in ("threshold", "margin", "widened")}
    for name in ("threshold", "margin"):
        assert [(rule.miss, rule.n_fires) for rule in by_family[name]] == [(0.15, 6), (0.4, 6)]
        assert all(rule.bound <= rule.miss < rule.cross_bound for rule in by_family[name])
    assert [(rule.miss, rule.n_fires, rule.cross_bound) for rule in by_family["widened"]] == [(0.4, 2, None)]


def test_the_table_of_regions_stands_beside_the_calibration(few: Study):
    student = load_student(few.student(2021).folder)
    table = pd.read_csv(calibration_table_file(student.folder))
    assert set(table["around"]) == {"fire", "forecast"} and set(table["fitted"]) == {"held_out"}
    assert sorted(table["radius_px"].unique()) == [*range(11), np.inf]
    with validation_maps(few.setup, student) as maps:
        everything = slice(0, maps.shape[0])
        fire, prob = maps.fire(everything), maps.prob("student", everything).astype(float)
    whole = table.set_index(["around", "radius_px"]).loc[("forecast", np.inf)]
    assert whole["brier"] == pytest.approx(np.mean((prob - fire) ** 2)) and whole["n_pixels"] == fire.size
    near = table.set_index(["around", "radius_px"]).loc[("fire", 0)]
    assert near["brier"] == pytest.approx(np.mean((1 - prob[fire]) ** 2)) and near["prevalence"] == 1
    curves = {(name, step): value for name, value, step in region_curves(table)}
    assert curves["uncalibrated_forecast/brier", -1] == whole["brier"]
    assert curves["calibrated_forecast/nll", -1] == whole["nll_calibrated"]


@pytest.mark.filterwarnings("ignore:.*too few fires to guarantee a miss of 0.15 of widened zones")
@pytest.mark.filterwarnings("ignore::fcer.errors.UndefinedMetricWarning")
def test_a_zone_table_has_what_is_served(few: Study):
    zones = few.evaluation().zones
    assert zones is not None
    student = load_student(few.student(2021).folder)
    calibration = load_calibration(student.folder, student.head.key)
    assert calibration is not None
    rows = zones[(zones["method"] == "student") & (zones["fitted"] == "validation")]
    for rule in calibration.rules_of("threshold"):
        row = rows[(rows["family"] == "threshold") & np.isclose(rows["nominal_miss"], rule.miss)].iloc[0]
        assert row["level"] == pytest.approx(rule.level) and row["n_calibration_fires"] == rule.n_fires
        assert row["bound"] == pytest.approx(rule.cross_bound)


def _spoilt(few: Study, folder: Path, how: str) -> StudyData:
    """The same fires, but of the student's validation year one alone, or none that burns."""
    [year] = few.student(2021).info.val_years
    shutil.copytree(few.setup.root, folder)
    one, *others = sorted((folder / str(year)).glob("*.hdf5"))
    if how == "one":
        for other in others:
            other.unlink()
    else:
        for path in (one, *others):
            with h5py.File(path, "r+") as file:
                file["data"][:, ACTIVE_FIRE] = 0
    return StudyData(replace(few.config, data=folder, work=folder.parent / "work"), lambda _: None)


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("one", r"there is 1 fire with burnt pixels; give validation maps of two fires at least"),
        ("cold", r"no validation fire of \d+ burns on a day that is predicted; give data of days with fire"),
        ("few", r"a miss of 0.01 cannot be guaranteed by 2 calibration fires: the smallest possible is .*0.3334; ask"),
    ],
)
def test_what_cannot_be_calibrated_is_refused_and_what_was_stored_stays(few: Study, tmp_path: Path, how, sentence):
    folder = tmp_path / "student"
    shutil.copytree(few.student(2021).folder, folder)
    stored = calibration_file(folder).read_bytes()
    data = few.setup if how == "few" else _spoilt(few, tmp_path / "fires", how)
    with pytest.raises(InputError, match=sentence):
        calibrate_student(data, folder, (0.01,), print, anew=True)
    assert calibration_file(folder).read_bytes() == stored
    if how == "one":  # in a study it is said, and the study goes on
        calibration_file(folder).unlink()
        lines: list[str] = []
        assert calibrate_student(data, folder, (0.2,), lines.append) is None
        assert len(lines) == 1 and "not calibrated, since" in lines[0]


def test_many_fires_choose_or_calibrate(tmp_path: Path):
    """A validation year of many fires: half choose the member's and the head's epoch, the others calibrate alone."""
    fires = tmp_path / "fires"
    synthesize(RECIPE, fires, workers=1)
    first = min((fires / "2020").glob("*.hdf5"))
    names: list[Any] = [Named(f"fire_{k}") for k in range(100, 250)]
    for name in (*choosing(names)[:ENOUGH_FIRES], *calibrating(names)[:ENOUGH_FIRES]):
        shutil.copyfile(first, first.with_name(f"{name.name}.hdf5"))
    how: dict[str, Any] = {"year": 2021, "leading": 1, "select_by": "val_ap", "member_batch_size": 64}
    lines: list[str] = []
    study = Study(tiny(fires, tmp_path / "work", **how), say=lines.append)
    ensemble = study.ensembles([2021], compare=False)[0]
    many, few = ensemble.members
    assert (many.fold.validation, few.fold.validation) == ((2020,), (2019,))
    assert read_info(many.path).apart and not read_info(few.path).apart
    distilled = distil_student(study.setup, replace(ensemble, backbone=many), NO_LOG, lines.append, nested=False)
    student = load_student(distilled.folder)
    kept = {fire.name for fire in calibrating(study.setup.open([2020]).fires([2020]))}
    calibration = load_calibration(student.folder, student.head.key)
    assert calibration is not None and not calibration.chose_epoch and len(kept) >= ENOUGH_FIRES
    assert set(calibration.fires) == kept and not kept & set(read_fire_scores(student.folder) or ())
    assert all(rule.cross_bound is None for rule in calibration.rules), "they are enough alone"
    assert any(f"its {len(kept)} validation fires chose no epoch" in line for line in lines)
    same = Study(tiny(fires, tmp_path / "work", **how, member_apart=False), say=lines.append)
    homes = [{one.path.parent for one in plan_members(a.setup, a.setup.member_folds(2021))} for a in (study, same)]
    assert homes[0] != homes[1], "never taken for one another"
