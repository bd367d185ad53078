"""The compose file as docker-compose reads it: it wants its secrets, and opens no door."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from compose_cases import DOCKER, ROOT, SECRETS, compose_file, services

TEXT = (DOCKER / "compose.yaml").read_text()


def config(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """`docker-compose config` on a copy: a docker/.env that someone has must not matter."""
    compose = shutil.which("docker-compose")
    if compose is None:
        pytest.skip("docker-compose is not installed: apt-get install docker-compose")
    shutil.copy(DOCKER / "compose.yaml", folder)
    environment = {"PATH": os.environ["PATH"], "COMPOSE_PROFILES": "worker,serve,cluster", **variables}
    return subprocess.run([compose, "config"], cwd=folder, env=environment, capture_output=True, text=True)


def test_docker_compose_reads_what_the_tests_run(tmp_path: Path):
    done = config(tmp_path, **SECRETS)
    assert done.returncode == 0, done.stderr
    # What is printed can be given to docker-compose again, so that it doubles the sign of a variable
    read: dict[str, Any] = yaml.safe_load(done.stdout.replace("$$", "$"))["services"]
    assert set(read) == set(services()) == {"db", "mlflow", "worker", "serve", "scheduler", "dask-worker"}
    for name, described in services().items():
        for part in ("command", "environment", "image"):
            assert read[name].get(part) == described.get(part)
        assert read[name]["healthcheck"]["test"] == described["healthcheck"]["test"]


@pytest.mark.parametrize("missing", SECRETS)
@pytest.mark.parametrize("empty", [True, False])
def test_it_starts_nothing_without_a_secret(missing: str, empty: bool, tmp_path: Path):
    given = {key: value for key, value in SECRETS.items() if key != missing}
    done = config(tmp_path, **given, **({missing: ""} if empty else {}))
    assert done.returncode != 0
    assert missing in done.stderr and "set it in docker/.env" in done.stderr


def test_example_of_secrets_lacks_them_and_names_every_variable():
    lines = (DOCKER / ".env.example").read_text().splitlines()
    pairs = [line.removeprefix("# ").partition("=") for line in lines if re.match(r"(# )?[A-Z_]+=", line)]
    assert all(value == "" for _, _, value in pairs)
    used = set(re.findall(r"\$\{(\w+)", TEXT)) | {"MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"}
    assert {name for name, _, _ in pairs} == used
    assert ".env" in (DOCKER / ".gitignore").read_text().splitlines()


def test_no_password_is_written_down():
    raw = yaml.safe_load(TEXT)["services"]
    secrets = [
        value
        for service in raw.values()
        for name, value in service.get("environment", {}).items()
        if name.endswith("PASSWORD")
    ]
    assert len(secrets) > len(SECRETS)
    assert all(value is None or re.fullmatch(r"\$\{\w+:\?[^}]+\}", value) for value in secrets)
    assert not re.search(r"://[^/\s@]*:[^/\s@]*@", TEXT), "none in an address"
    assert not (
        set(SECRETS.values()) & {word for service in services().values() for word in service.get("command", [])}
    )


def test_no_port_is_open_to_the_world():
    published = [port for service in services().values() for port in service.get("ports", [])]
    assert len(published) == 3
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in published)
    assert all("network_mode" not in service for service in services().values())
    assert compose_file()["networks"]["store"] == {"internal": True}
    reach = {name for name, service in services().items() if "store" in service["networks"]}
    assert reach == {"db", "mlflow", "worker"} and services()["db"]["networks"] == ["store"]


@pytest.mark.parametrize("name", services())
def test_every_service_is_confined(name: str):
    service = services()[name]
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"] and "/tmp" in service["tmpfs"]
    assert service["security_opt"] == ["no-new-privileges:true"] and service["init"] is True
    assert service["mem_limit"] and service["restart"] == ("no" if name == "worker" else "unless-stopped")
    assert "privileged" not in service and "docker.sock" not in str(service)
    assert service["healthcheck"]["test"][0] == "CMD"


def test_the_image_is_built_once_from_the_recipe():
    built = {name: service["build"] for name, service in services().items() if "build" in service}
    assert set(built) == {"mlflow"}
    folder = (DOCKER / built["mlflow"]["context"]).resolve()
    assert folder == ROOT and (folder / built["mlflow"]["dockerfile"]).is_file()
    recipe = (DOCKER / "Dockerfile").read_text()
    assert f"ARG BASE={built['mlflow']['args']['BASE']}\n" in recipe and "\nARG TORCH_INDEX=" in recipe
    folders = re.search(r"install --directory .* (/fcer .*)$", recipe, re.MULTILINE)
    assert folders is not None
    mounts = {
        mount.split(":")[1]
        for service in services().values()
        if service["image"] == "fcer"
        for mount in service["volumes"]
    }
    assert mounts <= set(folders[1].split()), "a volume is its user's to write to"
