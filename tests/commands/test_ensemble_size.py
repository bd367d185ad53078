"""Ensembles of any size, and the folds of WSTS+: trained, found again, and refused where they cannot be."""

import io
import re
import shutil
from contextlib import redirect_stdout
from pathlib import Path

import mlflow
import pytest
import torch

from backbone_cases import small_backbone
from fcer.cli import main
from fcer.config.settings import Config
from fcer.data.folds import WSTS_PLUS
from fcer.models import read_info
from fcer.models.members import fold_file
from fcer.pipeline.study_data import StudyData, recipe_of
from fcer.training import MemberSettings
from study_cases import HEAD, TINY

QUICK = [*TINY, "--arch", "unet_t1", "--member-epochs", "1"]
PLUS = ["--split", "wsts_plus", "--year", "2022", "--members", "2"]


class Home:
    """A folder where commands run, and the store that they log to."""

    def __init__(self, folder: Path, store: str) -> None:
        self.folder, self.store = folder, store

    def fcer(self, command: str, *options: str) -> str:
        """What the command says."""
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as said:
            patch.chdir(self.folder)
            patch.setenv("MLFLOW_TRACKING_URI", self.store)
            assert main([command, *QUICK, *options]) == 0
        return said.getvalue()


def members_of(work: Path) -> dict[str, Path]:
    return {path.stem: path for path in work.glob("checkpoints/*/*.safetensors")}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, shared_store: str) -> Home:
    return Home(tmp_path_factory.mktemp("sizes"), shared_store)


@pytest.fixture(scope="module")
def four(home: Home) -> tuple[Path, str]:
    """Where four members of 2021 were trained, and what was said."""
    said = home.fcer("train", "--members", "4", "--work", "four")
    return home.folder / "four", said


@pytest.fixture(scope="module")
def pair(home: Home) -> tuple[Path, str]:
    """Where two members of the test pair 2022 and 2023 were trained, and what was said."""
    said = home.fcer("train", *PLUS, "--work", "pair")
    return home.folder / "pair", said


def test_the_fourth_member_is_the_first_fold_with_another_seed(four: tuple[Path, str], home: Home):
    work, said = four
    members = members_of(work)
    assert set(members) == {"fold0", "fold2", "fold6", "fold0-1"}
    assert members["fold0"].read_bytes() != members["fold0-1"].read_bytes()
    first, second = (read_info(members[name]) for name in ("fold0", "fold0-1"))
    assert (first.fold, first.train_years) == (second.fold, second.train_years)
    assert first.training_key != second.training_key
    assert re.search(r"^test AP 2021: fold 0 \S+, fold 2 \S+, fold 6 \S+, fold 0-1 \S+, ensemble ", said, re.M)
    client = mlflow.MlflowClient(home.store)
    runs = client.search_runs([client.get_experiment_by_name("fcer").experiment_id])
    of_four = {run.info.run_name: run for run in runs if run.data.params.get("members") == "4"}
    assert {f"member fold {label}" for label in ("0", "2", "6", "0-1")} <= set(of_four)
    run = of_four["member fold 0-1"]
    assert (run.data.params["fold"], run.data.params["round"]) == ("0", "1")
    assert run.data.params["seed"] == str(MemberSettings.of(Config(), 1).seed)
    (checkpoint,) = client.list_artifacts(run.info.run_id, "checkpoint")
    assert checkpoint.path == "checkpoint/fold0-1.safetensors"


def test_a_larger_ensemble_holds_the_smaller_one_bit_by_bit(four: tuple[Path, str], home: Home):
    two = home.fcer("train", "--members", "2", "--work", "two")
    assert set(members_of(home.folder / "two")) == {"fold0", "fold2"}
    assert re.search(r"^test AP 2021: fold 0 \S+, fold 2 \S+, ensemble ", two, re.M)
    three = home.fcer("train", "--work", "two")
    assert three.count("trained before") == 2 and "fold 6: validation AP" in three
    smaller, larger = members_of(home.folder / "two"), members_of(four[0])
    assert set(smaller) == {"fold0", "fold2", "fold6"}
    for name, path in smaller.items():
        assert path.read_bytes() == larger[name].read_bytes()
        assert path.parent.name == larger[name].parent.name


def test_the_backbone_is_the_median_of_all_members(four: tuple[Path, str], home: Home):
    options = ["--members", "4", "--work", "four", "--methods", "ensemble", "--bootstrap", "0", "--threshold", "0.3"]
    said = home.fcer("evaluate", *options, "--select-by", "val_ap")
    ranked = sorted(members_of(four[0]).values(), key=lambda path: read_info(path).val_ap)
    assert f"2021: 4 members, backbone {ranked[1].name} (median val_ap)\n" in said
    assert said.count("trained before") == 4


def test_members_of_a_pair_are_seeds_of_its_fold(pair: tuple[Path, str]):
    work, said = pair
    members = members_of(work)
    assert set(members) == {"fold0", "fold0-1"}
    for path in members.values():
        info = read_info(path)
        assert (info.train_years, info.val_years, info.test_years) == WSTS_PLUS[0][1:]
    assert sorted(path.name for path in next(work.glob("synthetic-*")).iterdir() if path.is_dir()) == [
        str(year) for year in range(2016, 2024)
    ]
    assert [line[:12] for line in said.splitlines() if line.startswith("test AP")] == ["test AP 2022", "test AP 2023"]


def test_both_years_of_a_pair_are_predicted_with_one_student(pair: tuple[Path, str], home: Home):
    options = [*HEAD, *PLUS, "--year", "2023", "--work", "pair", "--bootstrap", "0"]
    said = home.fcer("evaluate", *options, "--methods", "student", "ensemble")
    assert said.count("trained before") == 2 and "best epoch" in said, "both years have the same two"
    assert "student 2022: " in said and said.count("distilled before") == 1
    (student,) = (pair[0] / "students").iterdir()
    assert student.name.startswith("unet_t1-2022-2023-")
    assert {path.name for path in (pair[0] / "results" / "2022-2023").glob("*.npz")} == {
        "predictions_2022.npz",
        "predictions_2023.npz",
    }


@pytest.mark.parametrize(
    ("settings", "predicted", "distilled"),
    [
        ({}, [2021], [2021]),
        ({"year": "all"}, [2018, 2019, 2020, 2021], [2018, 2019, 2020, 2021]),
        ({"split": "wsts_plus"}, [2020, 2021], [2020]),
        ({"split": "wsts_plus", "year": 2023}, [2022, 2023], [2022]),
        ({"split": "wsts_plus", "year": "all"}, list(range(2016, 2024)), [2016, 2018, 2020, 2022]),
    ],
)
def test_years_of_a_split(settings, predicted, distilled):
    config = Config(**settings)
    assert (StudyData(config).test_years, StudyData(config).ensemble_years) == (predicted, distilled)


@pytest.mark.parametrize("split", ["wsts", "wsts_plus"])
@pytest.mark.parametrize("members", [2, 3, 6, 7])
def test_no_member_sees_its_test_year_and_folds_take_turns(split, members):
    config = Config(split=split, members=members, year="all")
    for year in StudyData(config).test_years:
        folds = StudyData(config).member_folds(year)
        assert len(folds) == members
        assert all(year in fold.test and year not in (*fold.train, *fold.validation) for fold in folds)
        counts = [folds.count(fold) for fold in dict.fromkeys(folds)]
        assert max(counts) - min(counts) <= 1 and counts == sorted(counts, reverse=True)


def test_the_first_round_has_the_seed_of_the_configuration():
    config = Config(seed=5)
    seeds = [MemberSettings.of(config, round).seed for round in range(5)]
    assert seeds[0] == 5 and len(set(seeds)) == 5
    assert {MemberSettings.of(Config(seed=6), round).seed for round in range(5)}.isdisjoint(seeds)


def test_synthetic_years_follow_the_split_unless_they_are_named():
    assert recipe_of(Config()).years == (2018, 2019, 2020, 2021)
    assert recipe_of(Config(split="wsts_plus")).years == tuple(range(2016, 2024))
    assert recipe_of(Config(split="wsts_plus", years=(2020,))).years == (2020,)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--members", "1"], "--members: members is 1, but should be at least 2"),
        (["--split", "wsts+"], "--split: split is 'wsts+', but should be one of wsts, wsts_plus"),
        (["--year", "2022"], "year: no fold tests on 2022; choose one of 2018, 2019, 2020, 2021"),
        (["--split", "wsts_plus", "--year", "2015"], "year: no fold tests on 2015; choose one of 2016, 2017, 2018"),
        (["--split", "wsts_plus", "--fold", "4"], "fold: wsts_plus has no fold 4; choose one from 0 to 3"),
        (["--split", "wsts_plus", "--fold", "0", "--year", "2016"], "fold: fold 0 tests on 2022, 2023, not on 2016"),
        (["--fold", "0", "--members", "4"], "fold: with --fold one member is trained; leave --members out, or --fold"),
    ],
)
def test_what_cannot_be_trained_is_one_line(options: list[str], sentence: str, fcer_main):
    code, _, err = fcer_main("train", *options)
    assert code == 2 and err.count("\n") == 1 and sentence in err


def test_members_that_are_not_there_or_of_another_year_are_refused(four: tuple[Path, str], tmp_path: Path, fcer_main):
    folder = tmp_path / "members"
    shutil.copytree(next(four[0].glob("checkpoints/*")), folder)
    given = ["evaluate", *QUICK, "--checkpoints", str(folder), "--data", str(tmp_path)]
    code, _, err = fcer_main(*given, "--members", "5")
    command = f"fcer train --checkpoints {folder} --year 2021 --members 5"
    assert code == 2 and err.endswith(f"fold2-1.safetensors: no checkpoint of fold 2-1; run {command}\n")
    code, _, err = fcer_main(*given, *PLUS, "--members", "3")
    command = f"fcer train --checkpoints {folder} --split wsts_plus --year 2022 --members 3"
    assert code == 2 and err.endswith(f"no checkpoint of fold 0-2; run {command}\n")
    code, _, err = fcer_main(*given, *PLUS)
    sentence = "fold0.safetensors: a member for the test year 2021, not 2022, 2023; name the --split and --year"
    assert code == 2 and err.count("\n") == 1 and sentence in err
    for label in ("0", "0-1"):
        shutil.copy(fold_file(folder, label), fold_file(folder, label.replace("0", "3", 1)))
    code, _, err = fcer_main(*given, "--split", "wsts_plus", "--year", "2021", "--members", "2")
    assert code == 2 and "fold3.safetensors: it has seen the test year 2020 in training; train it again" in err


def test_released_checkpoints_make_one_member_a_fold(tmp_path: Path, fcer_main):
    for fold in (0, 2, 6):
        weights = small_backbone("unet_t1", channels=7).state_dict()
        torch.save(weights, tmp_path / f"fold{fold}_testAP0.5.pth")
    given = ["evaluate", *QUICK, "--checkpoints", str(tmp_path)]
    code, _, err = fcer_main(*given, "--members", "4")
    assert code == 2 and err.count("\n") == 1
    assert "one file a fold, 3 for this test year, fewer than --members 4; give --members 3, or leave" in err
    code, _, err = fcer_main(*given, *PLUS)
    assert code == 2 and "one file a fold, 1 for this test year, fewer than --members 2; choose --split wsts" in err
