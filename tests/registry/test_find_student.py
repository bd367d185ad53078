"""Students found in MLflow: by every name that one has, and nothing else of the model is fetched or run."""

from collections.abc import Callable
from pathlib import Path

import mlflow
import pytest
import yaml

from fcer.errors import CheckpointError, ConfigError, FcerError
from fcer.models.student_files import backbone_file, head_file
from fcer.registry.find_student import CHAMPION_URI, champion_for, find_student
from fcer.registry.promotion import find_challenger
from fcer.tracking.student_model import CHAMPION, FIRE_CHAMPION, REGISTERED, log_student
from mlflow_stores import fresh_store
from vegetation_student import write_student, write_vegetation_student


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, str]:
    """A store of its own with one student: its address, the student's folder, the run."""
    folder = tmp_path_factory.mktemp("registry")
    uri = fresh_store(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", uri)
        patch.chdir(folder)
        assert champion_for({22}) is None
        client = mlflow.MlflowClient(uri, uri)
        run_id = client.create_run(client.create_experiment("students")).info.run_id
        log_student(run_id, write_vegetation_student(folder / "made", "key of it"), {"val_auroc": 0.7})
    return uri, folder / "made", run_id


@pytest.fixture
def find(
    registry: tuple[str, Path, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[str], tuple[Path, dict[str, str]]]:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", registry[0])
    monkeypatch.chdir(tmp_path)
    return lambda model: find_student(model, tmp_path)


NAMES = [CHAMPION_URI, f"models:/{REGISTERED}/1", "runs:/RUN", "runs:/RUN/student", "RUN"]


@pytest.mark.parametrize("model", NAMES)
def test_every_name_leads_to_the_same_weights(model: str, registry: tuple[str, Path, str], find, tmp_path: Path):
    _, made, run_id = registry
    named = model.replace("RUN", run_id)
    folder, identity = find(named)
    for file in (head_file, backbone_file):
        assert file(folder).read_bytes() == file(made).read_bytes()
    known = {"uri": named, "name": REGISTERED, "version": "1", "run_id": run_id}
    assert identity == {**known, "student_key": "key of it", "code_version": "0.0.7"}
    fetched = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert fetched == {"MLmodel", "student/head.safetensors", "student/backbone.safetensors"}, "no code, nothing else"


def test_a_run_whose_student_was_registered_before_leads_to_that(
    registry: tuple[str, Path, str], find, monkeypatch: pytest.MonkeyPatch
):
    uri, made, first = registry
    client = mlflow.MlflowClient(uri, uri)
    again = client.create_run(client.get_experiment_by_name("students").experiment_id).info.run_id
    log_student(again, made, {"val_auroc": 0.7})
    assert find(again)[1]["version"] == "1" and find_challenger(again) == find_challenger(first)


def test_a_folder_is_taken_as_it_is(registry: tuple[str, Path, str], find, tmp_path: Path):
    made = registry[1]
    folder, identity = find(str(made))
    assert folder == made and not list(tmp_path.iterdir())
    assert identity == {"uri": str(made), "student_key": "key of it", "code_version": "0.0.7"}


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (f"models:/{REGISTERED}/7", f"has no models:/{REGISTERED}/7; fcer distill registers one"),
        (f"models:/{REGISTERED}@tester", f"has no models:/{REGISTERED}@tester; "),
        ("models:/other@champion", "has no models:/other@champion; "),
        ("0" * 32, f"has no {'0' * 32}; "),
        ("runs:/RUN/code", "students are logged as runs:/RUN/student, not runs:/RUN/code; give runs:/RUN"),
        ("fcer-student", "'fcer-student' is neither a folder nor a model's address; give models:/"),
        ("models:/fcer-student/99999999999999999999", "is neither a folder nor a model's address"),
        ("models:/fcer-student/../1", "is neither a folder nor a model's address"),
    ],
)
def test_what_is_not_there_is_one_sentence(model: str, sentence: str, registry: tuple[str, Path, str], find):
    run_id = registry[2]
    with pytest.raises(ConfigError) as error:
        find(model.replace("RUN", run_id))
    assert sentence.replace("RUN", run_id) in str(error.value)


def test_a_folder_without_a_student_is_said(find, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match=r"head\.safetensors"):
        find("empty")


def test_a_run_without_a_student_is_said(registry: tuple[str, Path, str], find):
    client = mlflow.MlflowClient(registry[0], registry[0])
    other = client.create_run(client.get_experiment_by_name("students").experiment_id).info.run_id
    with pytest.raises(ConfigError, match=f"the run {other} has registered no student"):
        find(other)


def test_a_run_with_several_students_asks_which(registry: tuple[str, Path, str], find, tmp_path: Path):
    client = mlflow.MlflowClient(registry[0], registry[0])
    run_id = client.create_run(client.get_experiment_by_name("students").experiment_id).info.run_id
    for key in ("first", "second"):
        log_student(run_id, write_vegetation_student(tmp_path / key, key), {"val_auroc": 0.7})
    with pytest.raises(ConfigError, match=f"several students; give one of models:/{REGISTERED}/2, models:/"):
        find(run_id)
    assert champion_for(set(range(23))) == CHAMPION_URI
    assert str(client.get_model_version_by_alias(REGISTERED, CHAMPION).version) == "1"


def test_a_model_that_points_out_of_itself_is_refused(registry: tuple[str, Path, str], find, tmp_path: Path):
    """Whoever can write to the registry must not choose files of whoever reads it."""
    secret = write_vegetation_student(tmp_path / "secret")
    client = mlflow.MlflowClient(registry[0], registry[0])
    for path, sentence in (
        (str(secret), "lie outside of it"),
        ("../../secret", "lie outside of it"),
        (None, "is no student of fcer"),
    ):
        model = tmp_path / "model"
        model.mkdir(exist_ok=True)
        artifacts = {"student": {"path": path}} if path else {}
        (model / "MLmodel").write_text(yaml.safe_dump({"flavors": {"python_function": {"artifacts": artifacts}}}))
        if not any(each.name == "crafted" for each in client.search_registered_models()):
            client.create_registered_model("crafted")
        version = client.create_model_version("crafted", model.as_uri()).version
        with pytest.raises(ConfigError, match=sentence):
            find(f"models:/crafted/{version}")
    assert not (tmp_path / "student").exists()


def test_a_server_that_is_away_is_one_sentence(find, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    for call in (lambda: champion_for({22}), lambda: find(CHAMPION_URI)):
        with pytest.raises(FcerError, match=r"^MLflow at http://127\.0\.0\.1:9 failed \("):
            call()


def test_fires_have_the_champion_that_can_read_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    uri = fresh_store(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    monkeypatch.chdir(tmp_path)
    client = mlflow.MlflowClient(uri, uri)
    run_id = client.create_run(client.create_experiment("students")).info.run_id
    fire, layers, all_of_them = {22}, {12, 13, 14, 22}, set(range(23))
    log_student(run_id, write_vegetation_student(tmp_path / "vegetation", "1"), {"val_auroc": 0.7})
    assert [champion_for(known) for known in (fire, layers, all_of_them)] == [CHAMPION_URI] * 3, "the one there is"
    log_student(run_id, write_student(tmp_path / "fire", "2", features="fire", arch="unet_t1"), {"val_auroc": 0.7})
    of_fires = f"models:/{REGISTERED}@{FIRE_CHAMPION}"
    assert [champion_for(known) for known in (fire, layers, all_of_them)] == [of_fires, of_fires, CHAMPION_URI]
    assert find_student(of_fires, tmp_path).identity["version"] == "2"


def test_the_first_student_is_champion_whatever_it_reads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    uri = fresh_store(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    client = mlflow.MlflowClient(uri, uri)
    run_id = client.create_run(client.create_experiment("students")).info.run_id
    log_student(run_id, write_student(tmp_path / "fire", "1", features="fire", arch="unet_t1"), {"val_auroc": 0.7})
    log_student(run_id, write_vegetation_student(tmp_path / "vegetation", "2"), {"val_auroc": 0.7})
    assert client.get_registered_model(REGISTERED).aliases == {CHAMPION: 1, FIRE_CHAMPION: 1}
