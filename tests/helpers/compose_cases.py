"""The services of docker/compose.yaml, run without containers: their own commands, environments and health checks."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
SECRETS = {"POSTGRES_PASSWORD": "un, 'deux' & $trois", "STUDIES_PASSWORD": 'quatre " cinq; --'}
_VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?::-(?P<default>[^}]*)|:\?[^}]*)\}")


def compose_file() -> dict[str, Any]:
    """The file with its secrets filled in and every other variable at its default."""

    def value(match: re.Match[str]) -> str:
        return match["default"] if match["default"] is not None else SECRETS[match["name"]]

    def fill(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: fill(inner) for key, inner in node.items()}
        if isinstance(node, list):
            return [fill(inner) for inner in node]
        return _VARIABLE.sub(value, node) if isinstance(node, str) else node

    filled: dict[str, Any] = fill(yaml.safe_load((DOCKER / "compose.yaml").read_text()))
    return filled


def services() -> dict[str, dict[str, Any]]:
    described: dict[str, dict[str, Any]] = compose_file()["services"]
    return described


def recipe_line(instruction: str) -> list[str]:
    """The words of an instruction of the Dockerfile in its exec form: the last one holds."""
    lines = re.findall(rf"^{instruction} .*?(\[.*\])$", (DOCKER / "Dockerfile").read_text(), re.MULTILINE)
    words: list[str] = json.loads(lines[-1])
    return words


def image_environment(folder: Path) -> dict[str, str]:
    """As in the image: its programs, and nothing of whoever runs the tests."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    for name, file in {"fcer-entrypoint": "entrypoint.sh", "healthy": "healthy.py"}.items():
        if not (programs / name).exists():
            (programs / name).symlink_to(DOCKER / file)
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), "/usr/bin", "/bin"])
    return {"PATH": path, "HOME": str(folder), "MLFLOW_DISABLE_TELEMETRY": "true", "OMP_NUM_THREADS": "1"}


def run_image(folder: Path, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
    """`docker run IMAGE COMMAND`."""
    call = [*recipe_line("ENTRYPOINT"), *(command or recipe_line("CMD"))]
    environment = image_environment(folder) | more
    return subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


class Service:
    """A long-running service. `swaps` puts this machine's ports and folders for those of the container."""

    def __init__(self, name: str, folder: Path, swaps: Mapping[str, str]) -> None:
        self._described = services()[name]
        self._swaps = {"0.0.0.0": "127.0.0.1", **swaps}
        self._folder = folder
        self._log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        given = self._described.get("environment", {})
        own = {key: self._swapped(value) for key, value in given.items() if value is not None}
        return image_environment(self._folder) | own

    def start(self) -> None:
        call = [*recipe_line("ENTRYPOINT"), *map(self._swapped, self._described["command"])]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                call,
                cwd=self._folder,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + 300
        while not self.healthy():
            assert self._process.poll() is None and time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.5)

    def healthy(self) -> bool:
        """What its own health check says."""
        kind, *call = map(self._swapped, self._described["healthcheck"]["test"])
        assert kind == "CMD"
        return subprocess.run(call, env=self.environment, capture_output=True).returncode == 0

    def kill(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def _swapped(self, word: str) -> str:
        for theirs, ours in self._swaps.items():
            word = word.replace(theirs, ours)
        return word
