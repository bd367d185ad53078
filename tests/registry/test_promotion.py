"""Promotion in a real registry: who is found, what moves, what the version says of it, and two at once."""

import json
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import mlflow
import pytest
from mlflow.data.meta_dataset import MetaDataset
from mlflow.data.sources import LocalArtifactDatasetSource
from mlflow.entities import DatasetInput, InputTag

from fcer.errors import ConfigError, FcerError
from fcer.registry.promotion import find_challenger, promote
from fcer.registry.standing import ALREADY, KEPT, PROMOTED, Standing
from fcer.tracking.student_model import BY_FIRE, CHAMPION, CHANNELS_READ, FIRE_CHAMPION, REGISTERED
from mlflow_stores import fresh_store

TAGS = {"val_auroc": "0.7", "val_auroc_low": "0.6", "val_auroc_high": "0.8", "val_fires": "9.0", "anchor_px": "4.0"}

Register = Callable[..., str]


@pytest.fixture(scope="module")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("registry")
    uri = fresh_store(folder)
    mlflow.MlflowClient(uri, uri).create_experiment("students")
    return folder / "mlflow.db"


@pytest.fixture
def client(empty_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> mlflow.MlflowClient:
    """Of a registry of the test's own."""
    shutil.copy(empty_store, tmp_path)
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    return mlflow.MlflowClient(uri, uri)


@pytest.fixture
def register(client: mlflow.MlflowClient) -> Register:
    """A run with a version of these tags; its id."""
    experiment = client.get_experiment_by_name("students").experiment_id

    def make(tags: Mapping[str, str] = TAGS, data: str = "d", parent: str | None = None) -> str:
        filed = {"fcer.val_years": "2020"} | ({"mlflow.parentRunId": parent} if parent else {})
        run_id = client.create_run(experiment, tags=filed).info.run_id
        for digest, context in (("t", "train"), (data, "validation")):
            dataset = MetaDataset(source=LocalArtifactDatasetSource("fires"), name="fires", digest=digest)
            tag = InputTag("mlflow.data.context", context)
            client.log_inputs(run_id, [DatasetInput(dataset._to_mlflow_entity(), [tag])])
        if not client.search_registered_models(f"name = '{REGISTERED}'"):
            client.create_registered_model(REGISTERED)
        client.create_model_version(REGISTERED, f"runs:/{run_id}/student", run_id, dict(tags))
        return run_id

    return make


def champion_of(client: mlflow.MlflowClient) -> str:
    return str(client.get_registered_model(REGISTERED).aliases[CHAMPION])


def test_what_is_registered_is_found_by_its_run_or_as_the_newest(client: mlflow.MlflowClient, register: Register):
    first, second = register(), register({**TAGS, "val_auroc": "0.75"}, data="e")
    assert find_challenger(first) == Standing("1", first, 0.7, 0.6, 0.8, 4.0, 9, "2020", "d")
    assert find_challenger(second) == Standing("2", second, 0.75, 0.6, 0.8, 4.0, 9, "2020", "e")
    client.set_model_version_tag(REGISTERED, "1", "touched", "later")
    assert find_challenger(None) == find_challenger(second), "the newest, not the last that was changed"


def test_the_alias_moves_and_the_version_says_from_whom(client: mlflow.MlflowClient, register: Register):
    first, second = register(), register()
    assert promote(find_challenger(first), "p1").decision.outcome == PROMOTED
    assert champion_of(client) == "1"
    promotion = promote(find_challenger(second), "p2")
    assert promotion.decision.outcome == PROMOTED and promotion.champion == find_challenger(first)
    assert champion_of(client) == "2"
    said = [client.get_model_version(REGISTERED, version).tags for version in ("1", "2")]
    assert [(tags["promoted_by"], tags["promoted_from"]) for tags in said] == [("p1", "none"), ("p2", "1")]
    assert promote(find_challenger(second), "p3").decision.outcome == ALREADY
    assert client.get_model_version(REGISTERED, "2").tags["promoted_by"] == "p2"


def test_a_champion_that_stays_is_left_as_it_was(client: mlflow.MlflowClient, register: Register):
    register({**TAGS, "val_auroc": "0.9"})
    client.set_registered_model_alias(REGISTERED, CHAMPION, "1")
    before = client.get_model_version(REGISTERED, "1").tags
    for tags in (TAGS, {**TAGS, "anchor_px": "3.0"}, {"val_auroc": "0.95", "anchor_px": "4.0"}):
        assert promote(find_challenger(register(tags)), "p").decision.outcome == KEPT
    assert champion_of(client) == "1"
    assert client.get_model_version(REGISTERED, "1").tags == before
    assert not any("promoted_by" in version.tags for version in client.search_model_versions(f"name='{REGISTERED}'"))


def test_a_champion_of_an_older_version_can_be_beaten(client: mlflow.MlflowClient, register: Register):
    register({"val_auroc": "0.78", "anchor_px": "4.0"})
    client.set_registered_model_alias(REGISTERED, CHAMPION, "1")
    assert promote(find_challenger(register()), "p").decision.outcome == PROMOTED


def test_ten_challengers_do_not_take_the_champion_down(client: mlflow.MlflowClient, register: Register):
    for k in range(11):
        auroc = 0.9 - 0.015 * k
        tags = {
            **TAGS,
            "val_auroc": f"{auroc}",
            "val_auroc_low": f"{auroc - 0.03}",
            "val_auroc_high": f"{auroc + 0.03}",
        }
        promote(find_challenger(register(tags)), "p")
    tags = client.get_model_version(REGISTERED, champion_of(client)).tags
    assert float(tags["val_auroc"]) == pytest.approx(0.87)
    better = register({**TAGS, "val_auroc": "0.91", "val_auroc_high": "0.94"})
    assert promote(find_challenger(better), "p").decision.outcome == PROMOTED


def test_scores_by_fire_are_read_off_the_version(register: Register):
    scores = {f"fire_{k}": {"auroc": 0.8, "nll": None} for k in range(8)}
    promote(find_challenger(register({**TAGS, BY_FIRE: json.dumps(scores)})), "p")
    lower = {fire: {"auroc": 0.79 - k / 1000} for k, fire in enumerate(scores)}
    decision = promote(find_challenger(register({**TAGS, BY_FIRE: json.dumps(lower)})), "p").decision
    assert decision.outcome == KEPT and "on the same fires its AUROC is lower" in decision.reason


@pytest.mark.parametrize("text", ["{", "[1]", '{"a": 1}', '{"a": {"auroc": "high"}}'])
def test_scores_by_fire_that_were_edited_by_hand_are_one_sentence(text: str, register: Register):
    register({**TAGS, BY_FIRE: text})
    with pytest.raises(ConfigError, match="version 1 of fcer-student: its tag val_by_fire is not "):
        find_challenger(None)


def test_other_data_is_warned_of(register: Register):
    promote(find_challenger(register()), "p")
    same, other = (promote(find_challenger(register(data=data)), "p").decision for data in "de")
    assert same.warning is None and "were not validated on the same fires" in (other.warning or "")


def test_a_version_whose_run_is_gone_is_compared_with_a_warning(client: mlflow.MlflowClient, register: Register):
    register()
    client.create_model_version(REGISTERED, "elsewhere", tags=TAGS)
    standing = find_challenger(None)
    assert (standing.run_id, standing.years, standing.data) == (None, None, None)
    promote(find_challenger(register()), "p")
    assert "version 2 on unknown years" in (promote(standing, "p").decision.warning or "")


@pytest.mark.parametrize("run", ["0" * 32, "no such run", "it's", "../.."])
def test_no_such_run(run: str, register: Register):
    register()
    with pytest.raises(ConfigError, match=r"^run: there is no run .* give the id of a run of fcer distill$"):
        find_challenger(run)


def test_nothing_registered(client: mlflow.MlflowClient):
    with pytest.raises(ConfigError, match=r"^run: no student is registered at sqlite:.*; fcer distill registers one$"):
        find_challenger(None)


def test_a_run_without_a_student_names_those_below_it(client: mlflow.MlflowClient, register: Register):
    experiment = client.get_experiment_by_name("students").experiment_id
    alone, above = (client.create_run(experiment).info.run_id for _ in range(2))
    without = "has no registered student;"
    below = register(parent=above)
    with pytest.raises(ConfigError, match=f"{alone} {without} give the id of a run of fcer distill"):
        find_challenger(alone)
    with pytest.raises(ConfigError, match=f"{above} {without} runs below it have: give one of {below}"):
        find_challenger(above)


@pytest.mark.parametrize("value", ["good", "nan", "", "inf"])
def test_a_tag_that_was_edited_by_hand_is_one_sentence(value: str, register: Register):
    register({**TAGS, "val_auroc": value})
    with pytest.raises(ConfigError, match=f"version 1 of fcer-student: its tag val_auroc is '{value}', but should be"):
        find_challenger(None)


def test_a_store_that_fails_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(FcerError, match=r"^MLflow at http://127.0.0.1:9 failed \(.*\); check MLFLOW_TRACKING_URI, and"):
        find_challenger(None)


def test_two_at_once_leave_one_of_them_champion(client: mlflow.MlflowClient, register: Register):
    register({**TAGS, "val_auroc": "0.5"})
    client.set_registered_model_alias(REGISTERED, CHAMPION, "1")
    rivals = [find_challenger(register()) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda rival: promote(rival, f"p{rival.version}"), rivals))
    assert {promotion.decision.outcome for promotion in done} == {PROMOTED}
    assert champion_of(client) in {rival.version for rival in rivals}
    assert all(promotion.champion is not None for promotion in done), "there was one at any time"


def test_students_of_the_fire_alone_have_a_champion_of_their_own(client: mlflow.MlflowClient, register: Register):
    def promoted(tags: Mapping[str, str]) -> dict[str, int]:
        assert promote(find_challenger(register(tags)), "by").decision.outcome == PROMOTED
        return {alias: int(version) for alias, version in client.get_registered_model(REGISTERED).aliases.items()}

    fire = TAGS | {CHANNELS_READ: "22"}
    assert promoted(TAGS) == {CHAMPION: 1}
    assert promoted(fire | {"val_auroc_high": "0.65", "val_auroc": "0.61"}) == {CHAMPION: 1, FIRE_CHAMPION: 2}
    assert promoted(fire) == {CHAMPION: 1, FIRE_CHAMPION: 3}
    assert promoted(TAGS | {"val_auroc": "0.75"}) == {CHAMPION: 4, FIRE_CHAMPION: 3}


def test_a_champion_that_reads_the_fire_alone_gives_up_both_aliases(client: mlflow.MlflowClient, register: Register):
    fire = TAGS | {CHANNELS_READ: "22"}
    for version in (1, 2):
        promote(find_challenger(register(fire)), "by")
        aliases = client.get_registered_model(REGISTERED).aliases
        assert {alias: int(at) for alias, at in aliases.items()} == {CHAMPION: version, FIRE_CHAMPION: version}
