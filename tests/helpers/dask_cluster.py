"""A Dask cluster started by hand, as on several machines: a scheduler and workers, each a process of its own."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from distributed import Client

TESTS = Path(__file__).parent


class HandMadeCluster:
    """`dask scheduler`, and as many `dask worker` as are asked for; a block ends all of them."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{port}"
        self.workers: list[subprocess.Popen[bytes]] = []
        self._folder = folder
        call = ["scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
        self._scheduler = self._start(*call)

    def add_worker(self, *options: str) -> None:
        """One without a nanny: nobody starts it again when it is lost."""
        local = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory", str(self._folder / "dask")]
        self.workers.append(self._start("worker", self.address, *local, *options))
        with Client(self.address, timeout=60) as client:
            client.wait_for_workers(len(self.workers), timeout=60)

    def kill_scheduler(self) -> None:
        self._scheduler.kill()

    def __enter__(self) -> "HandMadeCluster":
        return self

    def __exit__(self, *_: object) -> None:
        for process in (*self.workers, self._scheduler):
            process.kill()
            process.wait()

    def _start(self, *call: str) -> "subprocess.Popen[bytes]":
        environment = os.environ | {"PYTHONPATH": str(TESTS), "OMP_NUM_THREADS": "1"}
        with (self._folder / "dask.log").open("ab") as log:
            command = [sys.executable, "-m", "dask", *call]
            return subprocess.Popen(command, cwd=self._folder, env=environment, stdout=log, stderr=log)
