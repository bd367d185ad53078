"""A real model server, `mlflow models serve`, on a port of its own."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path


class ModelServer:
    """Serves a model of the store at `tracking`, with as many threads for torch as `threads` says."""

    def __init__(self, model: str, tracking: str, folder: Path, threads: int = 1) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.log = folder / "model_server.log"
        call = [sys.executable, "-m", "mlflow", "models", "serve", "-m", model, "--env-manager", "local"]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        settings = {"PATH": path, "MLFLOW_TRACKING_URI": tracking, "OMP_NUM_THREADS": str(threads)}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*call, "--host", "127.0.0.1", "--port", str(port)],
                cwd=folder,
                env={**os.environ, **settings},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait(self) -> None:
        """Until it answers."""
        deadline = time.monotonic() + 300
        while self.status("/ping") != 200:
            assert self._process.poll() is None and time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.1)

    def status(self, path: str) -> int | None:
        """Of a GET; None where nobody answers."""
        try:
            with urllib.request.urlopen(f"{self.url}{path}", timeout=5) as answer:
                return int(answer.status)
        except OSError as error:
            return error.code if isinstance(error, urllib.error.HTTPError) else None

    def kill(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
