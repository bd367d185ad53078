"""What compose.yaml starts, started: PostgreSQL with passwords, MLflow's server on it, a worker, a model server, Dask.

Only the containers are missing. Commands, environments and health checks are read from the file.
"""

import json
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import mlflow
import numpy as np
import psycopg2
import pytest
from distributed import Client
from sqlalchemy.engine import URL, make_url

from compose_cases import DOCKER, SECRETS, Service, free_port, image_environment, run_image, services
from fcer.search.storage import open_storage, parse_store
from postgres_server import postgres_server
from study_cases import HEAD, TINY

pytestmark = pytest.mark.slow


@dataclass
class Stack:
    folder: Path
    database: URL
    swaps: dict[str, str]
    server: Service
    uri: str


def database_started(url: URL, folder: Path) -> None:
    """What PostgreSQL's image does on an empty volume: the user and database of its environment, then our script."""
    given = services()["db"]["environment"]
    administrator = psycopg2.connect(url.render_as_string(hide_password=False))
    administrator.autocommit = True
    with administrator.cursor() as cursor:
        cursor.execute(
            f"CREATE ROLE {given['POSTGRES_USER']} SUPERUSER LOGIN PASSWORD %s", [given["POSTGRES_PASSWORD"]]
        )
        cursor.execute(f"CREATE DATABASE {given['POSTGRES_DB']} OWNER {given['POSTGRES_USER']}")
        place = {"PGHOST": str(url.host), "PGPORT": str(url.port)}
        script = [DOCKER / "databases.sh"]
        done = subprocess.run(script, env=image_environment(folder) | given | place, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        # The server of the tests trusts everyone at first
        cursor.execute("SHOW hba_file")
        Path(cursor.fetchone()[0]).write_text("host all all 127.0.0.1/32 scram-sha-256\n")
        cursor.execute("SELECT pg_reload_conf()")
    administrator.close()


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder, port = tmp_path_factory.mktemp("stack"), free_port()
    with postgres_server() as url:
        database = make_url(url)
        database_started(database, folder)
        swaps = {
            "127.0.0.1:5000": f"127.0.0.1:{port}",
            "--port=5000": f"--port={port}",
            "http://mlflow:5000": f"http://127.0.0.1:{port}",
            "@db:5432": f"@{database.host}:{database.port}",
            "=/artifacts": f"={folder}/artifacts",
        }
        server = Service("mlflow", folder, swaps)
        try:
            assert not server.healthy(), "not before it was started"
            server.start()
            yield Stack(folder, database, swaps, server, f"http://127.0.0.1:{port}")
        finally:
            server.kill()


@pytest.fixture(scope="module")
def distilled(stack: Stack) -> mlflow.MlflowClient:
    """`docker compose run --rm worker distill ...`."""
    quick = [*TINY, *HEAD, "--arch", "unet_t1", "--members", "2", "--member-epochs", "1"]
    done = run_image(stack.folder, "distill", *quick, **Service("worker", stack.folder, stack.swaps).environment)
    assert (done.returncode, done.stderr) == (0, "")
    return mlflow.MlflowClient(stack.uri, stack.uri)


def test_the_database_is_healthy_and_wants_passwords(stack: Stack):
    check = services()["db"]["healthcheck"]["test"]
    place = {"PGHOST": str(stack.database.host), "PGPORT": str(stack.database.port)}
    assert subprocess.run(check[1:], env=os.environ | place, capture_output=True).returncode == 0
    for user, password, name in (
        ("mlflow", "wrong", "mlflow"),
        ("studies", SECRETS["POSTGRES_PASSWORD"], "studies"),
        ("studies", SECRETS["STUDIES_PASSWORD"], "mlflow"),
    ):
        with pytest.raises(psycopg2.OperationalError):
            psycopg2.connect(
                user=user, password=password, dbname=name, host=stack.database.host, port=stack.database.port
            )


def test_a_worker_keeps_studies_in_a_database_of_their_own(stack: Stack, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PGPASSWORD", services()["worker"]["environment"]["PGPASSWORD"])
    place = f"postgresql://studies@{stack.database.host}:{stack.database.port}/studies"
    storage = open_storage(parse_store(place, stack.folder / "unused"))
    assert storage.get_all_studies() == []


def test_the_server_answers_to_its_own_names_alone(stack: Stack):
    """A page of another site cannot have a browser talk to it by a name that it made up."""
    address = f"{stack.uri}/api/2.0/mlflow/experiments/search?max_results=1"
    for host in ("mlflow:5000", "localhost:5000", "127.0.0.1:80"):
        with urllib.request.urlopen(urllib.request.Request(address, headers={"Host": host}), timeout=30) as answer:
            assert answer.status == 200
    for host in ("fire.example", "10.0.0.1"):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(urllib.request.Request(address, headers={"Host": host}), timeout=30)


def test_the_run_is_read_back(distilled: mlflow.MlflowClient, stack: Stack):
    experiment = distilled.get_experiment_by_name("fcer").experiment_id
    (run,) = distilled.search_runs([experiment], "attributes.run_name = 'distill 2021'")
    assert run.info.status == "FINISHED"
    assert len(distilled.get_metric_history(run.info.run_id, "val/auroc")) == 4
    assert run.data.params["year"] == "2021"
    with (
        psycopg2.connect(
            user="mlflow",
            password=SECRETS["POSTGRES_PASSWORD"],
            dbname="mlflow",
            host=stack.database.host,
            port=stack.database.port,
        ) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT value FROM metrics WHERE run_uuid = %s AND key = 'best/val_auroc'", [run.info.run_id])
        assert cursor.fetchone() == (run.data.metrics["best/val_auroc"],), "in PostgreSQL, and not somewhere else"
    assert not list(stack.folder.rglob("mlflow.db"))


def test_artifacts_pass_through_the_server(distilled: mlflow.MlflowClient, stack: Stack, tmp_path: Path):
    experiment = distilled.get_experiment_by_name("fcer").experiment_id
    (run,) = distilled.search_runs([experiment], "attributes.run_name = 'distill 2021'")
    assert run.info.artifact_uri.startswith("mlflow-artifacts:")
    fetched = Path(distilled.download_artifacts(run.info.run_id, "student", str(tmp_path)))
    (student,) = (stack.folder / "work" / "students").glob("*")
    assert (fetched / "head.safetensors").read_bytes() == (student / "head.safetensors").read_bytes()
    assert list((stack.folder / "artifacts").rglob(f"{run.info.run_id}/artifacts/student/head.safetensors"))


def test_the_champion_is_served(distilled: mlflow.MlflowClient, stack: Stack):
    assert str(distilled.get_model_version_by_alias("fcer-student", "champion").version) == "1"
    port = free_port()
    swaps = {"127.0.0.1:8080": f"127.0.0.1:{port}", "--port=8080": f"--port={port}", **stack.swaps}
    served = Service("serve", stack.folder, swaps)
    days = np.random.default_rng(0).random((1, 1, 23, 16, 16), dtype=np.float32)
    call = urllib.request.Request(
        f"http://127.0.0.1:{port}/invocations",
        json.dumps({"inputs": days.tolist()}).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        served.start()
        with urllib.request.urlopen(call, timeout=60) as answer:
            maps = json.load(answer)["predictions"]
        assert np.shape(maps["probability"]) == np.shape(maps["uncertainty"]) == (1, 16, 16)
    finally:
        served.kill()
    assert not served.healthy()


def test_the_cluster_computes(tmp_path: Path):
    ports = {":8786": f":{free_port()}", ":8787": f":{free_port()}", ":8790": f":{free_port()}"}
    swaps = {"--port=8786": f"--port={ports[':8786'][1:]}", "tcp://scheduler": "tcp://127.0.0.1", **ports}
    swaps |= {"/fcer/work": str(tmp_path)}
    scheduler, worker = (Service(name, tmp_path, swaps) for name in ("scheduler", "dask-worker"))
    try:
        scheduler.start()
        worker.start()
        with Client(f"tcp://127.0.0.1{ports[':8786']}", timeout=60) as client:
            client.wait_for_workers(1, timeout=60)
            assert client.submit(sum, [1, 2, 3]).result(timeout=60) == 6
        assert (tmp_path / "dask").is_dir()
    finally:
        worker.kill()
        scheduler.kill()
