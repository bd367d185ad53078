"""A served student: the same answers in every encoding, to one client or several, and a sentence for a bad request."""

import base64
import io
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any, NamedTuple

import mlflow
import numpy as np
import pytest
from mlflow.exceptions import MlflowException

from fcer.core.recalibration import NONE, Recalibration
from fcer.core.zones import ZoneFamily, ZoneRule
from fcer.deploy.client import ask
from fcer.errors import InputError
from fcer.models.calibration_files import Calibration
from fcer.models.raw_days import predict_days
from fcer.models.student_files import LoadedStudent, load_student
from fcer.registry.calibrations import store_calibration
from fcer.registry.find_student import FoundStudent
from fcer.runtime.npy_text import from_text, to_text
from fcer.tracking.student_model import REGISTERED, log_student
from model_server import ModelServer
from student_cases import write_student

NO_INPUTS: list[Any] = [[[[[]]]]]
SIZES = [(1, 32, 32), (2, 32, 32), (1, 40, 36), (1, 33, 20), (3, 16, 16), (1, 1, 1)]
CLIENTS, TURNS = 4, 50
NAMES = ("probability", "uncertainty")


CALIBRATION = Calibration(
    student="served",
    recalibration=Recalibration("platt", scale=0.8, shift=-1.0),
    zone_prior=NONE,
    rules=tuple(
        ZoneRule(ZoneFamily("threshold"), p, miss, miss, 23, 1, 4.0, 3.0) for p, miss in ((0.4, 0.1), (0.5, 0.2))
    ),
    radius_px=4.0,
    fires=("a", "b"),
    chose_epoch=False,
    code_version="0",
)


class Served(NamedTuple):
    server: ModelServer
    model: Any
    """The same, loaded here as `mlflow.pyfunc.load_model` does."""
    student: LoadedStudent
    """The same, without MLflow."""


@pytest.fixture(scope="module")
def served(shared_store: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", shared_store)
        patch.chdir(folder)  # where MLflow makes the default experiment
        client = mlflow.MlflowClient(shared_store, shared_store)
        experiment = client.create_experiment("served", (folder / "artifacts").as_uri())
        run_id = client.create_run(experiment).info.run_id
        student = write_student(folder / "student", "served")
        log_student(run_id, student, {})
        (version,) = client.search_model_versions(f"run_id = '{run_id}'")
        registered = {"name": REGISTERED, "version": str(version.version)}
        store_calibration(FoundStudent(student, registered), CALIBRATION, run_id, folder)
        uri = f"models:/{REGISTERED}/{version.version}"
        server = ModelServer(uri, shared_store, folder)
        try:
            model = mlflow.pyfunc.load_model(uri)
            server.wait()
            yield Served(server, model, load_student(student))
        finally:
            server.kill()


def make_days(seed: int, samples: int = 1, height: int = 24, width: int = 20) -> np.ndarray:
    """NDVI and active fire, some values missing."""
    rng = np.random.default_rng(seed)
    days = rng.normal(size=(samples, 5, 2, height, width)).astype(np.float32)
    days[rng.random(days.shape) < 0.1] = np.nan
    days[..., 0, 0] = 1
    return days


def post(server: ModelServer, body: object, content_type: str = "application/json") -> tuple[int, Any]:
    """Status, and the answer or the sentence."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"{server.url}/invocations", data, {"Content-Type": content_type})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def by_json(server: ModelServer, days: np.ndarray) -> list[np.ndarray]:
    status, answer = post(server, {"inputs": days.tolist()})
    assert status == 200, answer
    return [np.array(answer["predictions"][name], np.float32) for name in NAMES]


def equal(maps: Any, expected: Any) -> bool:
    return all(np.array_equal(ours, theirs) for ours, theirs in zip(maps, expected, strict=True))


def test_it_is_well(served: Served):
    assert [served.server.status(path) for path in ("/ping", "/health")] == [200, 200]


def test_clients_side_by_side_get_what_one_gets_alone(served: Served):
    inputs = [make_days(k, *size) for k, size in enumerate(SIZES)]
    expected = [[maps.numpy() for maps in predict_days(served.student, days)] for days in inputs]
    assert len({maps[1].tobytes() for maps in expected}) == len(inputs), "answers that can be told apart"
    found: list[bool] = []

    def work(client: int) -> None:
        for turn in range(TURNS):
            k = (client + turn) % len(inputs)
            if (client + turn // 2) % 2:
                maps = by_json(served.server, inputs[k])
            else:
                maps = ask(served.server.url, inputs[k])[:2]
            found.append(equal(maps, expected[k]))

    threads = [threading.Thread(target=work, args=(client,)) for client in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == CLIENTS * TURNS and all(found)


def npy(array: np.ndarray) -> dict[str, Any]:
    return {"inputs": NO_INPUTS, "params": {"npy": to_text(array)}}


def with_value(value: float) -> np.ndarray:
    days = make_days(0, samples=2)
    days[1] = value
    return days


def lying_header() -> str:
    """A .npy file of a few bytes that says it has 10^12 numbers."""
    file = io.BytesIO()
    header = {"descr": "<f4", "fortran_order": False, "shape": (1, 5, 2, 10**6, 10**5)}
    np.lib.format.write_array_header_1_0(file, header)
    return base64.b64encode(file.getvalue() + bytes(8)).decode()


def pickled() -> str:
    file = io.BytesIO()
    np.save(file, np.array([{"a": 1}], object), allow_pickle=True)
    return base64.b64encode(file.getvalue()).decode()


def with_npy(text: object) -> dict[str, Any]:
    return {"inputs": NO_INPUTS, "params": {"npy": text}}


DAYS = make_days(0)
SMALL = DAYS[..., :1, :1]
NULL_DAY = [[[None]], [[None]]]
BAD_REQUESTS: dict[str, tuple[object, str]] = {
    "wrong channels, JSON": (
        {"inputs": np.zeros((1, 5, 3, 2, 2)).tolist()},
        "shape (1, 5, 3, 2, 2) does not fit; give (samples, 5 days, channels, rows, columns) with all 23 raw channels "
        "or these 2: NDVI (3), active fire (22)",
    ),
    "wrong channels, npy": (npy(np.zeros((1, 5, 3, 2, 2))), "shape (1, 5, 3, 2, 2) does not fit"),
    "wrong days": (npy(DAYS[:, :4]), "shape (1, 4, 2, 24, 20) does not fit; give (samples, 5 days"),
    "four dimensions, JSON": ({"inputs": DAYS[0].tolist()}, "Shape of input (5, 2, 24, 20) does not match"),
    "four dimensions, npy": (npy(DAYS[0]), "shape (5, 2, 24, 20) does not fit"),
    "text in the days": ({"inputs": [[[[["fire"]]]]]}, "could not convert string to float: 'fire'"),
    "text for the days": ({"inputs": "fire"}, "Failed to convert data `fire`"),
    "a text file": (b"fire", "Ensure that input is a valid JSON formatted string"),
    "not UTF-8": (b'{"inputs": "\xff"}', "Ensure that input is a valid JSON formatted string"),
    "huge shape": (with_npy(lying_header()), "promises float32 of shape (1, 5, 2, 1000000, 100000), but 8 bytes"),
    "too many pixels": (
        npy(np.zeros((1, 1, 1, 1025, 512), np.uint8)),
        "524800 pixels are too many for one request, which may hold 524288 (samples x rows x columns)",
    ),
    "NaN only, npy": (npy(with_value(np.nan)), "sample 1 (of 0 to 1) holds nothing but NaN in the channels that are"),
    "NaN only, JSON": ({"inputs": np.full((1, 5, 2, 2, 2), np.nan).tolist()}, "sample 0 (of 0 to 0) holds nothing"),
    "null only": ({"inputs": [[NULL_DAY] * 5]}, "sample 0 (of 0 to 0) holds nothing but NaN"),
    "infinite, npy": (npy(with_value(np.inf)), "infinite values; give NaN where a value is missing"),
    "infinite in single precision": (npy(np.full((1, 5, 2, 2, 2), 1e300)), "infinite values"),
    "infinite, JSON": ({"inputs": np.full((1, 5, 2, 2, 2), -np.inf).tolist()}, "infinite values"),
    "base64 cut within a group": (with_npy(to_text(DAYS)[:-3]), "not base64, or it was cut short"),
    "base64 cut between groups": (
        with_npy(to_text(DAYS)[:-400]),
        "of shape (1, 5, 2, 24, 20), but 18901 bytes of numbers follow",
    ),
    "no base64": (with_npy("fire!"), "params.npy: this is not base64"),
    "base64 of something else": (with_npy(base64.b64encode(b"fire").decode()), "this is not a .npy file of numbers"),
    "pickled objects": (with_npy(pickled()), "the .npy file holds object, not numbers; save float32 or float16"),
    "texts": (npy(np.array(["fire"])), "the .npy file holds <U4, not numbers"),
    "empty npy": (with_npy(""), "this is not a .npy file of numbers"),
    "no samples": (npy(DAYS[:0]), "shape (0, 5, 2, 24, 20) does not fit"),
    "npy that is a number": (with_npy(3), "Invalid parameters found"),
    "days twice": ({"inputs": SMALL.tolist(), "params": {"npy": to_text(DAYS)}}, "there are days in inputs too"),
    "empty": (b"", "Ensure that input is a valid JSON formatted string"),
    "empty object": ({}, "exactly one of the input fields"),
    "empty inputs": ({"inputs": []}, "an input of type <class 'list'> was found"),
    "no inputs": (
        {"inputs": NO_INPUTS},
        "inputs: it is empty; give days there, or as a base64 .npy file in params.npy",
    ),
    "ragged": ({"inputs": [[[[[1, 2], [3]]]]]}, "inhomogeneous shape"),
    "missing inputs": ({"params": {"npy": to_text(DAYS)}}, "exactly one of the input fields"),
    "unknown parameter": ({"inputs": NO_INPUTS, "params": {"nyp": to_text(DAYS)}}, "inputs: it is empty; give days"),
    "parameters that are none": ({"inputs": NO_INPUTS, "params": 3}, "Parameters must be a dictionary"),
    "a list": ([1, 2], "Received a list"),
    "a table": ({"dataframe_split": {"columns": ["a"], "data": [[1]]}}, "For pandas dataframe input"),
}


def test_a_bad_request_is_a_sentence_and_the_next_is_answered(served: Served):
    """One test, as every process that runs one of several would start a server."""
    expected = [maps.numpy() for maps in predict_days(served.student, DAYS)]
    wrong: dict[str, Any] = {}
    for case, (body, sentence) in BAD_REQUESTS.items():
        status, answer = post(served.server, body)
        if not (400 <= status < 500 and sentence in json.loads(answer)["message"]):
            wrong[case] = status, answer
        if not equal(ask(served.server.url, DAYS)[:2], expected):
            wrong[case] = "the next request was not answered as before"
    assert not wrong
    assert post(served.server, b"fire", "application/x-npy")[0] == 415


def test_the_client_says_what_the_server_says(served: Served):
    with pytest.raises(InputError) as error:
        ask(served.server.url, DAYS[:, :4])
    assert str(error.value).startswith(
        f"{served.server.url}/invocations: 400: input: shape (1, 4, 2, 24, 20) does not fit; give (samples, 5 days"
    )
    with pytest.raises(InputError, match="404: Not Found"):
        ask(f"{served.server.url}/elsewhere", DAYS)


def test_half_precision_and_null(served: Served):
    half = DAYS.astype(np.float16)
    expected = [maps.numpy() for maps in predict_days(served.student, half)]
    assert equal(ask(served.server.url, half)[:2], expected)
    with_null = [[None if np.isnan(value) else float(value) for value in half.ravel()]]
    nested = np.array(with_null, object).reshape(half.shape).tolist()
    status, answer = post(served.server, {"inputs": nested})
    assert status == 200 and equal([np.array(answer["predictions"][name], np.float32) for name in NAMES], expected)


def test_the_loaded_model_knows_both_ways(served: Served):
    expected = dict(zip(NAMES, (maps.numpy() for maps in predict_days(served.student, DAYS)), strict=True))
    plain = served.model.predict(DAYS)
    compact = served.model.predict(np.empty((1, 1, 1, 1, 0), np.float32), params={"npy": to_text(DAYS)})
    calibrated = {"calibrated_probability", "zone", "guarantees"}
    assert plain.keys() == compact.keys() == {*expected, *calibrated}
    for name, maps in expected.items():
        assert np.array_equal(plain[name], maps)
        assert np.array_equal(from_text(compact[name], name), maps)
    with pytest.raises(MlflowException, match=r"^input: shape \(1, 4, 2, 24, 20\) does not fit") as error:
        served.model.predict(DAYS[:, :4])
    assert error.value.get_http_status_code() == 400
    with pytest.raises(MlflowException, match="8388608 pixels are too many for one request"):
        served.model.predict(np.broadcast_to(np.float32(0), (2, 5, 23, 2048, 2048)))


def test_a_calibration_that_was_stored_later_is_answered_with(served: Served):
    maps = ask(served.server.url, DAYS)
    raw = maps.probability.astype(np.float64)
    assert maps.calibrated_probability is not None and maps.zone is not None
    assert np.array_equal(maps.calibrated_probability, CALIBRATION.recalibration.apply(raw).astype(np.float32))
    assert np.array_equal(maps.zone, np.where(raw >= 0.5, np.float32(0.2), np.where(raw >= 0.4, np.float32(0.1), 0)))
    assert len(np.unique(maps.zone)) > 1, "a map that shows zones"
    assert [one["expected_miss_at_most"] for one in maps.guarantees] == [0.1, 0.2]
    assert maps.guarantees[0]["guarantee"].startswith("On average over fires, at most 10 % of the next day's fire lies")
    status, answer = post(served.server, {"inputs": DAYS.tolist()})
    assert status == 200 and np.array_equal(np.array(answer["predictions"]["zone"], np.float32), maps.zone)
    assert answer["predictions"]["guarantees"] == list(maps.guarantees)
