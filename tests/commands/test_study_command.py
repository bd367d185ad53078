"""`fcer evaluate` and `fcer main` on synthetic fires: members, students, maps, evaluation and report under one run."""

import re
import shutil
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest

from fcer.config.resolve import resolve
from fcer.maps.predicted_maps import open_maps
from fcer.pipeline.reporting import is_the_papers
from study_cases import HEAD, TINY, fcer

QUICK = [*TINY, *HEAD, "--arch", "unet_t1", "--member-epochs", "1", "--bootstrap", "10", "--members", "2"]
DEFAULT = (
    *("student", "ensemble", "entropy", "ensemble_entropy", "ensemble_mi"),
    *("random", "boundary_distance", "probability"),
)


METHODS = ("student", "ensemble", "entropy")
SHOWN = {*METHODS, "probability"}
"""And the control that stands beside any of them."""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("study")
    done = fcer(folder, "main", *QUICK, "--year", "all", "--methods", *METHODS)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def runs_of(folder: Path) -> list[mlflow.entities.Run]:
    client = mlflow.MlflowClient(f"sqlite:///{folder}/mlflow.db")
    return client.search_runs([client.get_experiment_by_name("fcer").experiment_id], max_results=500)


def test_everything_is_nested_under_one_run(study: tuple[Path, str]):
    runs = {run.info.run_id: run for run in runs_of(study[0])}
    names = [run.info.run_name for run in runs.values()]
    (top,) = [run for run in runs.values() if "mlflow.parentRunId" not in run.data.tags]
    assert top.info.run_name == "main 2018-2021" and {run.info.status for run in runs.values()} == {"FINISHED"}
    assert names.count("evaluate 2018-2021") == names.count("report work/study") == 1
    assert sum(name.startswith("member fold") for name in names) == 8
    for year in (2018, 2019, 2020, 2021):
        assert names.count(f"distill {year}") == 1
        assert {f"{method} {year}" for method in SHOWN} <= set(names)
    assert set(names) >= SHOWN, "and the mean of each method over the years"
    (evaluation,) = [run for run in runs.values() if run.info.run_name == "evaluate 2018-2021"]
    (report,) = [run for run in runs.values() if run.info.run_name == "report work/study"]
    assert report.data.tags["fcer.from.evaluation"] == evaluation.info.run_id
    for year in (2018, 2021):
        student = runs[evaluation.data.tags[f"fcer.from.student{year}"]]
        assert student.info.run_name == f"distill {year}"
    passes = {
        run.data.params["method"]: run.data.params["passes"] for run in runs.values() if "passes" in run.data.params
    }
    assert passes["ensemble"] == "2" and passes["student"] == "1"


def test_the_study_is_on_disk(study: tuple[Path, str]):
    folder, out = study
    results = folder / "work" / "study"
    table = pd.read_csv(results / "report" / "table1.csv")
    assert set(table["year"]) == {"2018", "2019", "2020", "2021", "mean"}
    assert set(table["method"]) == {*SHOWN, "climatology"}
    assert (results / "report" / "report.html").exists()
    assert "report: work/study/report/report.html" in out
    with open_maps(results / "predictions_2020.npz") as maps:
        assert maps.methods == METHODS
        assert maps.fire_id is not None and all(name.startswith("fire_synthetic_2020") for name in maps.fire_id)


def test_the_second_time_nothing_is_done_again(study: tuple[Path, str]):
    folder, first = study
    written = {path: path.stat().st_mtime_ns for path in folder.glob("work/*/**/*.safetensors")}
    maps = {path: path.stat().st_mtime_ns for path in folder.glob("work/study/*.npz")}
    again = fcer(folder, "evaluate", *QUICK, "--year", "all", "--methods", *METHODS, "--out", "work/study")
    assert again.returncode == 0, again.stderr
    assert again.stdout.count("trained before") == 8 and again.stdout.count("distilled before") == 4
    assert again.stdout.count("predicted before") == 4
    assert {path: path.stat().st_mtime_ns for path in {**written, **maps}} == {**written, **maps}
    tables = [text[text.index("FCER within") : text.index("written to")] for text in (first, again.stdout)]
    assert tables[0] == tables[1]


def test_maps_are_made_anew_where_something_else_is_asked_for_or_they_were_changed(study: tuple[Path, str], tmp_path):
    folder, _ = study
    shutil.copytree(folder / "work", tmp_path / "work")
    shutil.copy(folder / "mlflow.db", tmp_path)
    one = [*QUICK, "--out", "work/study", "--bootstrap", "0"]
    other = fcer(tmp_path, "evaluate", *one, "--methods", "student", "tta")
    assert other.returncode == 0, other.stderr
    assert "predicted before" not in other.stdout and "distilled before" in other.stdout
    with open_maps(tmp_path / "work" / "study" / "predictions_2021.npz") as maps:
        assert maps.methods == ("student", "tta")
        y = maps.fire(slice(None)).astype(np.uint8)
    np.savez(tmp_path / "work/study/predictions_2021.npz", y=y, a_prob=y * 0.5, a_unc=y * 0.5)
    again = fcer(tmp_path, "evaluate", *one, "--methods", "student", "tta")
    assert again.returncode == 0 and "predicted before" not in again.stdout


def test_bare_evaluate_takes_the_test_year_alone_where_nothing_can_be_distilled(
    study: tuple[Path, str], tmp_path: Path
):
    folder, _ = study
    (data,) = folder.glob("work/synthetic-*")
    shutil.copytree(data / "2021", tmp_path / "data" / "2021")
    checkpoints = max(folder.glob("work/checkpoints/*"), key=lambda path: (path / "fold0.safetensors").exists())
    given = [
        *("--data", tmp_path / "data", "--checkpoints", checkpoints, "--year", "2021", "--arch", "unet_t1"),
        *("--crop", "32", "--bootstrap", "0", "--members", "2", "--work", tmp_path / "work", "--out", tmp_path / "out"),
    ]
    done = fcer(tmp_path, "evaluate", *given)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "fcer: select_by: val_lift needs the validation years of fold" in done.stderr and "val_ap" in done.stderr
    given += ["--select-by", "val_ap"]
    done = fcer(tmp_path, "evaluate", *given)
    assert done.returncode == 0, done.stderr
    assert "fcer: warning: student 2021: left out, of all years, since it cannot be distilled" in done.stderr
    with open_maps(tmp_path / "out" / "predictions_2021.npz") as maps:
        assert maps.methods == DEFAULT[1:]
    asked = fcer(tmp_path, "evaluate", *given, "--methods", "student", "ensemble")
    assert asked.returncode == 2 and asked.stderr.count("\n") == 1


def test_the_anchor_is_measured_on_validation_years(study: tuple[Path, str], tmp_path: Path):
    shutil.copytree(study[0] / "work", tmp_path / "work")
    shutil.copy(study[0] / "mlflow.db", tmp_path)
    done = fcer(tmp_path, "evaluate", *QUICK, "--anchor", "auto", "--out", "auto", "--methods", "student")
    assert done.returncode == 0, done.stderr
    chosen = re.search(r"student 2021: validation AUROC \S+ within (\S+) px", done.stdout)
    scored = re.search(r"FCER within (\S+) px .* of fire, its ensemble's mean ASD on its own", done.stdout)
    assert chosen and scored and chosen[1] == scored[1]


def test_years_may_share_a_folder_and_another_store_gets_the_student_too(study: tuple[Path, str], tmp_path: Path):
    shutil.copytree(study[0] / "work", tmp_path / "work", ignore=shutil.ignore_patterns("features"))
    for year in ("2020", "2021"):
        done = fcer(tmp_path, "evaluate", *QUICK, "--year", year, "--methods", "student", "ensemble")
        assert done.returncode == 0, done.stderr
        assert "distilled before" in done.stdout and "feature cache" not in done.stdout
    names = {run.info.run_name for run in runs_of(tmp_path)}
    assert {"distill 2020", "distill 2021"} <= names, "the store is new and knew of no student"
    report = fcer(tmp_path, "report", "--out", "report")
    assert report.returncode == 0, report.stderr
    assert set(pd.read_csv(tmp_path / "report" / "table1.csv", dtype=str)["year"]) <= {"2021", "mean"}
    other = fcer(tmp_path, "report", "--year", "2020")
    assert other.returncode == 2 and "year: work/results/2021 holds an evaluation already" in other.stderr


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),
        ({"year": "all", "workers": "3", "seed": "5"}, True),
        ({"head_loss": "bce"}, False),
        ({"freeze": "false"}, False),
        ({"features": "all"}, False),
        ({"members": "2"}, False),
        ({"arch": "unet_t1"}, False),
        ({"reference": "student"}, True),
        ({"reference": "ensemble"}, False),
        ({"methods": ["ensemble", "entropy"]}, False),
    ],
)
def test_the_papers_table_stands_beside_the_papers_experiment_only(options: dict[str, str], expected: bool):
    paper = Path(__file__).parents[2] / "experiments" / "paper.yaml"
    assert is_the_papers(resolve(paper, {"data": "data/wsts", **options}).config) is expected
    assert not is_the_papers(resolve(paper, options).config), "synthetic fires never are"
