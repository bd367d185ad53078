"""What an agency needs of a study: a student that holds nothing out, and zones that say what they promise."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from fcer import Study
from fcer.data.folds import NO_YEAR
from fcer.data.synthetic.fires import synthesize
from fcer.errors import ConfigError, FcerWarning
from fcer.models.calibration_files import load_calibration
from study_settings import RECIPE, tiny

FIRES = replace(RECIPE, fires_per_year=4, image_size=(40, 48))


@pytest.fixture(scope="module")
def fires(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("operations")
    synthesize(FIRES, root, workers=1)
    return root


def test_a_student_for_operations_holds_nothing_out(fires: Path, tmp_path: Path):
    study = Study(tiny(fires, tmp_path, year="none"), say=lambda _: None)
    distilled = study.student(NO_YEAR)
    backbone = study.ensemble(NO_YEAR).backbone
    assert distilled.folder.name.startswith("unet_t1-all-")
    assert set(backbone.fold.train) | set(backbone.fold.validation) == set(RECIPE.years) and backbone.fold.test == ()
    seen = [set(member.fold.validation) for member in study.ensemble(NO_YEAR).members]
    assert all(not one & other for k, one in enumerate(seen) for other in seen[:k]), "validation rotates"
    with pytest.raises(ConfigError, match="year: none holds no year out, so that there is nothing to test on"):
        study.evaluation()


def test_a_student_is_calibrated_and_its_zones_are_held_to_the_test_year(fires: Path, tmp_path: Path):
    lines: list[str] = []
    shown = ("student", "ensemble", "entropy")
    config = tiny(fires, tmp_path, year=2021, miss=(0.1, 0.4), leading=1, methods=shown)
    study = Study(config, say=lines.append)
    with pytest.warns(FcerWarning, match=r"too few fires to guarantee a miss of 0\.1"):
        study.evaluation()
    distilled = study.student(2021)
    calibration = load_calibration(distilled.folder, distilled.info.key)
    assert calibration is not None and calibration.recalibration.kind in ("none", "prior", "platt")
    assert [rule.miss for rule in calibration.rules_of("threshold")] == [0.4], (
        "four fires guarantee no less than a fifth"
    )
    assert any("fires cannot guarantee 0.1" in line for line in lines)
    zones = pd.read_csv(tmp_path / "study" / "zones.csv")
    assert set(zones["method"]) == {"student", "entropy"} and set(zones["nominal_miss"]) == {0.1, 0.4}
    held = zones[zones["nominal_miss"] == 0.4]
    assert held["realised_miss"].between(0, 1).all() and zones[zones["nominal_miss"] == 0.1]["area_km2"].isna().all()
