"""The student that `fcer serve` serves: the same answers, another champion without a restart, and bounded requests."""

import asyncio
import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import mlflow
import numpy as np
import pytest
import uvicorn

from fcer.commands.serve import _listening
from fcer.deploy.client import ask
from fcer.errors import FcerError, InputError
from fcer.models.raw_days import predict_days
from fcer.models.student_files import head_file, load_student
from fcer.registry.champion import Champion
from fcer.registry.find_student import CHAMPION_URI
from fcer.registry.serving import ServedApp
from fcer.tracking.student_model import log_student
from student_cases import write_student

TOKEN = "a token of some letters"
DAYS = np.random.default_rng(0).random((1, 5, 2, 24, 20)).astype(np.float32)


class Served(NamedTuple):
    client: mlflow.MlflowClient
    champion: Champion
    app: ServedApp
    port: int
    folder: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Two students in a store, the first of them champion, served in a thread."""
    folder = tmp_path_factory.mktemp("served")
    uri = f"sqlite:///{folder}/mlflow.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", uri)
        patch.delenv("FCER_TOKEN", raising=False)
        patch.chdir(folder)
        client = mlflow.MlflowClient(uri, uri)
        experiment = client.create_experiment("students")
        for key in ("first", "second"):
            log_student(client.create_run(experiment).info.run_id, write_student(folder / key, key), {})
        champion = Champion(CHAMPION_URI, folder / "work", poll=60)
        app = ServedApp(champion, TOKEN)
        with _listening("127.0.0.1", 0) as listener:
            server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
            thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
            thread.start()
            yield Served(client, champion, app, listener.getsockname()[1], folder)
            server.should_exit = True
            thread.join()


def request(served: Served, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    usual = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    connection.request(method, path, body, {**usual, **named})
    with connection.getresponse() as answer:
        content = answer.read()
        return answer.status, json.loads(content) if content.strip() else None


def test_it_answers_as_the_student_does(served: Served):
    expected = predict_days(load_student(served.folder / "first"), DAYS)
    maps = ask(served.url, DAYS, token=TOKEN)
    assert np.array_equal(maps.probability, expected.probability_BHW.numpy())
    status, answer = request(served, "POST", "/invocations", json.dumps({"inputs": DAYS.tolist()}).encode())
    assert status == 200
    assert np.array_equal(np.array(answer["predictions"]["uncertainty"], np.float32), expected.uncertainty_BHW.numpy())
    assert [request(served, "GET", path, Authorization="")[0] for path in ("/ping", "/health")] == [200, 200]


def test_another_champion_is_taken_without_a_restart(served: Served):
    status, said = request(served, "GET", "/version")
    assert (status, said["version"], said["student_key"], said["reload_error"]) == (200, "1", "first", None)
    begun = served.champion.answers  # as a request that is under way holds it
    served.client.set_registered_model_alias("fcer-student", "champion", "2")
    served.champion.look()
    assert request(served, "GET", "/version")[1]["student_key"] == "second"
    assert served.champion.answers is not begun and begun.loaded.head.key == "first"
    assert begun.answer(DAYS, None)["probability"].shape == (1, 24, 20)

    # a version whose files are gone: the old one stays, and says why
    logged = (served.folder / "mlruns").rglob("head.safetensors")
    path = next(path for path in logged if load_student(path.parent).head.key == "first")
    path.rename(path.with_name("gone"))
    served.client.set_registered_model_alias("fcer-student", "champion", "1")
    served.champion.look()
    said = request(served, "GET", "/version")[1]
    assert said["student_key"] == "second" and said["reload_error"]
    assert ask(served.url, DAYS, token=TOKEN).probability.shape == (1, 24, 20)
    path.with_name("gone").rename(path)
    served.champion.look()
    assert request(served, "GET", "/version")[1]["student_key"] == "first"


def test_the_alias_is_looked_after_in_a_thread(served: Served):
    champion = Champion(CHAMPION_URI, served.folder / "work", poll=0.05)
    champion.follow()
    try:
        other = {"1": "2", "2": "1"}[champion.version["version"]]
        served.client.set_registered_model_alias("fcer-student", "champion", other)
        for _ in range(2000):
            if champion.version["version"] == other:
                break
            threading.Event().wait(0.05)
        assert champion.version["version"] == other
    finally:
        champion.stop()
        served.client.set_registered_model_alias("fcer-student", "champion", "1")
        served.champion.look()


@pytest.mark.parametrize("given", ["", "Bearer wrong", TOKEN])
def test_a_token_is_asked_for_before_the_body_is_read(served: Served, given: str):
    read = []

    async def receive() -> dict[str, Any]:
        read.append(1)
        return {"type": "http.request", "body": b"{}"}

    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [(b"authorization", given.encode()), (b"content-length", b"2")]
    scope = {"type": "http", "method": "POST", "path": "/invocations", "headers": headers}
    asyncio.run(served.app(scope, receive, send))
    assert sent[0]["status"] == 401 and not read
    with pytest.raises(InputError, match="give the token"):
        ask(served.url, DAYS, token="none that is known")


SECRET = "nobody is to see this again"


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        (b"[" * 100_000, 400, "nested too deeply"),
        (f'{{"inputs": "{SECRET}"}}'.encode(), 400, "not numbers of one shape"),
        (f'{{"{SECRET}": 1}}'.encode(), 400, 'the request is not {"inputs"'),
        (SECRET.encode(), 400, "no JSON"),
        (b'{"inputs": [[[[[]]]]], "params": {"npy": 3}}', 400, "npy alone"),
        (b'{"inputs": [1, [2]]}', 400, "not numbers of one shape"),
        (b'{"inputs": [[[[[1.0]]]]]}', 400, "does not fit"),
        (b'{"inputs": []}', 400, "it is empty"),
        (b"\xff", 400, "no JSON"),
    ],
)
def test_what_is_no_request_is_answered_with_a_sentence(served: Served, body: bytes, status: int, sentence: str):
    found, answer = request(served, "POST", "/invocations", body)
    assert found == status and sentence in answer["message"]
    assert SECRET not in answer["message"]


def test_bodies_are_bounded_by_what_they_say_and_by_what_they_are(served: Served, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ServedApp, "most_bytes", 1000)
    assert request(served, "POST", "/invocations", b"", Content_Length="1001")[0] == 413
    chunks = iter([b"x" * 600, b"x" * 600])
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    connection.request("POST", "/invocations", chunks, {"Authorization": f"Bearer {TOKEN}"}, encode_chunked=True)
    with connection.getresponse() as answer:
        assert answer.status == 413 and "may have 1000 bytes" in json.load(answer)["message"]


def test_other_forms_and_places_are_refused(served: Served):
    assert request(served, "POST", "/invocations", b"a,b", Content_Type="text/csv")[0] == 415
    assert request(served, "GET", "/secrets")[0] == 404


def test_a_port_in_use_is_said(served: Served):
    with pytest.raises(FcerError, match="choose another --port"):
        _listening("127.0.0.1", served.port)


def test_the_files_that_are_served_may_go(served: Served):
    assert not list((served.folder / "work").glob("*"))
    assert head_file(served.folder / "first").exists()
