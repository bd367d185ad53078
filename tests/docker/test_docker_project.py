"""docker/mlproject and the files of the Kubernetes backend, as MLflow's own code reads them."""

import importlib
import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml
from mlflow.projects import _parse_kubernetes_config
from mlflow.projects._project_spec import load_project
from mlflow.projects.backend.local import _get_docker_command
from mlflow.projects.docker import validate_docker_env
from mlflow.projects.utils import get_entry_point_command

from compose_cases import DOCKER, ROOT, compose_file, run_image

PROJECT = load_project(str(DOCKER))
COMMAND = get_entry_point_command(PROJECT, "distill", {"year": "2021", "head_lr": "0.05"}, None)
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def test_it_has_the_entry_points_of_the_project():
    ours, theirs = (yaml.safe_load((folder / "mlproject").read_text())["entry_points"] for folder in (DOCKER, ROOT))
    assert ours == {name: {"command": f"fcer {name}"} for name in theirs}


def test_mlflow_runs_it_in_a_container(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    validate_docker_env(PROJECT)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:5000")
    info = SimpleNamespace(run_id="0" * 32, experiment_id="1", artifact_uri="mlflow-artifacts:/1/0/artifacts")
    call = _get_docker_command(
        SimpleNamespace(tags=[PROJECT.docker_env["image"]]),
        SimpleNamespace(info=info),
        {"network": "host"},
        PROJECT.docker_env["volumes"],
        PROJECT.docker_env.get("environment"),
    )
    assert call[:5] == ["docker", "run", "--rm", "--network", "host"] and call[-1] == "fcer"
    assert "MLFLOW_TRACKING_URI=http://127.0.0.1:5000" in call and f"MLFLOW_RUN_ID={'0' * 32}" in call
    volumes = compose_file()["volumes"]
    mounts = [f"{volumes[name]['name']}:/fcer/{name}" for name in ("work", "data")]
    assert [call[i + 1] for i, word in enumerate(call) if word == "-v"] == mounts, "the same that compose mounts"
    done = run_image(tmp_path, *COMMAND[0].split(), "--help")
    assert done.returncode == 0 and done.stdout.startswith("usage: fcer distill"), done.stderr


@pytest.fixture
def kubernetes_backend() -> Iterator[Any]:
    """MLflow's code. It imports a client of Kubernetes, which filling in a template has no use for."""
    named = ("kubernetes", "kubernetes.config", "kubernetes.config.config_exception")
    stand_ins = {} if importlib.util.find_spec("kubernetes") else {name: ModuleType(name) for name in named}
    if stand_ins:
        vars(stand_ins[named[-1]])["ConfigException"] = Exception
    sys.modules.update(stand_ins)
    try:
        yield importlib.import_module("mlflow.projects.kubernetes")
    finally:
        for name in stand_ins:
            del sys.modules[name]
        del sys.modules["mlflow.projects.kubernetes"]


@pytest.fixture
def job(kubernetes_backend: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("KUBE_MLFLOW_TRACKING_URI", "http://mlflow.fcer:5000")
    config = _parse_kubernetes_config(json.loads((DOCKER / "kubernetes_config.json").read_text()))
    filled: dict[str, Any] = kubernetes_backend._get_kubernetes_job_definition(
        PROJECT.name,
        f"{config['repository-uri']}:abc",
        f"sha256:{'0' * 64}",
        kubernetes_backend._get_run_command(COMMAND),
        {"MLFLOW_RUN_ID": "0" * 32, "MLFLOW_TRACKING_URI": "http://127.0.0.1:5000"},
        config["kube-job-template"],
    )
    return filled


def test_the_filled_template_is_a_job(job: dict[str, Any]):
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    assert _NAME.fullmatch(job["metadata"]["name"]) and _NAME.fullmatch(job["metadata"]["namespace"])
    pod = job["spec"]["template"]["spec"]
    assert pod["restartPolicy"] in ("Never", "OnFailure")
    (container,) = pod["containers"]
    assert _NAME.fullmatch(container["name"])
    assert container["image"] == f"registry.example.org/fcer:abc@sha256:{'0' * 64}"
    assert container["command"] == ["fcer", "distill", "--year", "2021", "--head_lr", "0.05"]
    environment = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert len(environment) == len(container["env"]) == 4
    assert environment["MLFLOW_TRACKING_URI"] == "http://mlflow.fcer:5000"
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    assert "{replaced" not in json.dumps(job)


def test_the_job_is_confined_and_holds_no_secret(job: dict[str, Any]):
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    user = pod["securityContext"]["runAsUser"]
    assert pod["securityContext"]["runAsNonRoot"] and f"\nUSER {user}:" in (DOCKER / "Dockerfile").read_text()
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert set(container["resources"]) == {"requests", "limits"}
    secrets = [entry for entry in container["env"] if entry["name"].endswith(("USERNAME", "PASSWORD"))]
    assert len(secrets) == 2 and all("secretKeyRef" in entry["valueFrom"] for entry in secrets)
