"""`fcer promote` on students that differ in quality: the champion that is served, and what pipelines and the UI see."""

import shutil
from collections.abc import Callable
from pathlib import Path

import mlflow
import numpy as np
import pytest

from fcer.data.catalog import open_catalog
from fcer.models.raw_days import predict_days
from fcer.models.student_files import load_student, read_head_info
from study_cases import TINY, fcer

WEAK = ["--head-hidden", "5", "--head-epochs", "1", "--head-lr", "1e-9"]
STRONG = ["--head-logit", "true", "--head-epochs", "20", "--head-patience", "20", "--head-lr", "0.5"]

Promote = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def distilled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two students: a head that stays as it was drawn, which is champion, and one that has learnt."""
    folder = tmp_path_factory.mktemp("students")
    for head in (WEAK, STRONG):
        done = fcer(folder, "distill", *TINY, *head)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def store(distilled: Path, tmp_path: Path, fcer_main: Promote, monkeypatch: pytest.MonkeyPatch) -> mlflow.MlflowClient:
    """A copy of the store, which commands of this process use."""
    shutil.copy(distilled / "mlflow.db", tmp_path)
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    return mlflow.MlflowClient(uri, uri)


def run_of(store: mlflow.MlflowClient, version: int) -> str:
    return str(store.get_model_version("fcer-student", str(version)).run_id)


def champion(store: mlflow.MlflowClient) -> str:
    return str(store.get_model_version_by_alias("fcer-student", "champion").version)


def promotions(store: mlflow.MlflowClient) -> list[mlflow.entities.Run]:
    experiment = store.get_experiment_by_name("fcer").experiment_id
    return list(store.search_runs([experiment], "tags.`fcer.command` = 'promote'"))


def test_a_better_student_is_promoted_and_served(distilled: Path, store: mlflow.MlflowClient, fcer_main: Promote):
    assert champion(store) == "1"
    code, out, err = fcer_main("promote", "--run", run_of(store, 2))
    assert (code, err) == (0, "") and out.startswith("version 2 is champion now: validation AUROC ")
    assert champion(store) == "2"

    infos = {read_head_info(folder).key: folder for folder in (distilled / "work" / "students").glob("*")}
    key = store.get_model_version("fcer-student", "2").tags["key"]
    fire = open_catalog(next((distilled / "work").glob("synthetic-*")), [2021]).fires[0]
    days = fire.read(slice(0, 5), range(23))[None]
    served = mlflow.pyfunc.load_model("models:/fcer-student@champion").predict(days)["uncertainty"]
    for known, folder in infos.items():
        same = np.array_equal(served, predict_days(load_student(folder), days).uncertainty_BHW.numpy())
        assert same == (known == key)


def test_the_run_and_the_version_say_why(store: mlflow.MlflowClient, fcer_main: Promote):
    code, _, err = fcer_main("promote")
    run = store.get_model_version("fcer-student", "2").run_id
    assert code == 2 and f"the newest student is version 2, of run {run}: --run {run}" in err, "nobody can be asked"
    assert not promotions(store)
    _, out, _ = fcer_main("promote", "--run", run)
    (run,) = promotions(store)
    before, after = (store.get_model_version("fcer-student", version) for version in "12")
    assert run.info.status == "FINISHED"
    assert run.data.params == {"run": after.run_id, "challenger_version": "2", "champion_version": "1"}
    expected = {
        "challenger/val_auroc": after.tags["val_auroc"],
        "challenger/val_auroc_low": after.tags["val_auroc_low"],
        "challenger/val_auroc_high": after.tags["val_auroc_high"],
        "champion/val_auroc": before.tags["val_auroc"],
    }
    logged = {name: str(value) for name, value in run.data.metrics.items() if not name.startswith("system/")}
    assert logged == expected
    assert run.data.tags["fcer.promotion"] == "promoted"
    assert run.data.tags["fcer.promotion_reason"] == out.splitlines()[0]
    assert run.data.tags["fcer.from.challenger"] == after.run_id
    assert run.data.tags["fcer.from.champion"] == before.run_id
    assert (after.tags["promoted_by"], after.tags["promoted_from"]) == (run.info.run_id, "1")


def test_a_worse_student_is_refused(store: mlflow.MlflowClient, fcer_main: Promote):
    store.set_registered_model_alias("fcer-student", "champion", "2")
    code, out, err = fcer_main("promote", "--run", run_of(store, 1))
    assert (code, out) == (1, "") and err.count("\n") == 1
    assert err.startswith("fcer: version 2 stays champion: version 1 has validation AUROC ")
    assert champion(store) == "2"
    (run,) = promotions(store)
    assert (run.info.status, run.data.tags["fcer.promotion"]) == ("FAILED", "kept")
    assert f"fcer: {run.data.tags['fcer.promotion_reason']}\n" == err


def test_the_champion_is_champion_already(store: mlflow.MlflowClient, fcer_main: Promote):
    code, out, err = fcer_main("promote", "--run", run_of(store, 1))
    assert (code, out.splitlines()[0], err) == (0, "version 1 is champion already", "")
    (run,) = promotions(store)
    assert run.data.tags["fcer.promotion"] == "already champion"


def test_students_of_other_fires_are_compared_with_a_warning(store: mlflow.MlflowClient, fcer_main: Promote):
    store.set_tag(run_of(store, 2), "fcer.val_years", "2019")
    other = store.create_run(store.get_experiment_by_name("fcer").experiment_id).info.run_id
    tags = store.get_model_version("fcer-student", "1").tags
    store.create_model_version("fcer-student", "elsewhere", other, tags)
    store.set_registered_model_alias("fcer-student", "champion", "3")
    code, out, err = fcer_main("promote", "--run", run_of(store, 2))
    assert code == 0 and out.startswith("version 2 is champion now")
    assert err.startswith("fcer: warning: version 2 on 2019 and version 3 on unknown years were not validated on the")


def test_runs_that_cannot_be_promoted_are_one_line(store: mlflow.MlflowClient, fcer_main: Promote):
    experiment = store.get_experiment_by_name("fcer").experiment_id
    (member, *_) = store.search_runs([experiment], "attributes.run_name = 'member fold 0'")
    for run, sentence in (
        (member.info.run_id, "has no registered student; give the id of a run of fcer distill"),
        ("f" * 32, f"there is no run '{'f' * 32}' at sqlite:"),
    ):
        code, out, err = fcer_main("promote", "--run", run)
        assert (code, out) == (2, "") and err.count("\n") == 1
        assert err.startswith("fcer: run: ") and sentence in err
    assert not promotions(store), "nothing was decided"
