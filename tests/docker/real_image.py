"""`make image-test`: the image is really built, without a Docker engine, and what it is for runs in it.

Needs Debian or Ubuntu, root, `apt-get install buildah debootstrap`, 15 GB of disk, and TORCH_INDEX as docker/README.md
says. The base is made by debootstrap; pip finds packages as pip does outside. Every command runs as the image says
(user 10001, its entry point and environment) on a read-only root, without capabilities; what it answers is compared
with the same command outside.

make image-test TORCH_INDEX=...
python tests/docker/real_image.py --keep FOLDER      built there unless it is, and left for the next time
"""

import argparse
import configparser
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

from compose_cases import free_port  # noqa: E402

MOST_BYTES = 2_500_000_000
SUITE = "bookworm"
"""The Debian whose python3 is 3.11."""
ENTER = """
set -eu
mount --bind "$ROOTFS" "$ROOTFS"
mount -o remount,bind,ro "$ROOTFS"
mount -t proc proc "$ROOTFS/proc"
mount -t tmpfs tmpfs "$ROOTFS/tmp"
mount --rbind /dev "$ROOTFS/dev"
for place in work data; do mount --bind "$PLACES/$place" "$ROOTFS/fcer/$place"; done
mount --bind "$PLACES/artifacts" "$ROOTFS/artifacts"
cd "$ROOTFS"
exec chroot . env --ignore-environment --chdir "$WORKING" "$@"
"""
SMALL = (
    *("--years", "2018", "2019", "2020", "2021", "--fires-per-year", "2", "--image-size", "34", "40"),
    *("--fire-days", "8", "8", "--members", "2", "--arch", "unet_t1", "--width", "0.0625", "--crop", "32"),
    *("--member-epochs", "1", "--head-epochs", "2", "--workers", "1"),
)


def needs() -> str:
    """What is missing, or nothing."""
    missing = [name for name in ("buildah", "debootstrap", "unshare", "setpriv") if shutil.which(name) is None]
    if missing:
        return f"{' and '.join(missing)} must be installed: apt-get install buildah debootstrap util-linux"
    if os.geteuid() != 0:
        return "root is needed, to make a base system and to mount: sudo make image-test"
    if not os.environ.get("TORCH_INDEX"):
        return (
            "TORCH_INDEX must name an index with torch for CPUs, see docker/README.md: make image-test TORCH_INDEX=..."
        )
    return ""


def say(text: str) -> None:
    print(f"image-test: {text}", flush=True)


class Image:
    """Our image, in a storage of its own that goes with its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._environment = {**os.environ, "TMPDIR": str(folder), "BUILDAH_ISOLATION": "chroot"}

    def buildah(self, *words: str, log: str = "") -> str:
        """The output of a command of buildah."""
        storage = ["--root", str(self.folder / "storage"), "--runroot", str(self.folder / "run")]
        call = ["buildah", *storage, "--storage-driver", "vfs", *words]
        if log:
            with (self.folder / log).open("w") as file:
                done = subprocess.run(call, env=self._environment, stdout=file, stderr=subprocess.STDOUT, text=True)
            said = (self.folder / log).read_text()[-3000:]
        else:
            done = subprocess.run(call, env=self._environment, capture_output=True, text=True)
            said = done.stderr
        if done.returncode:
            raise SystemExit(f"image-test: buildah {words[0]} failed:\n{said}")
        return done.stdout or ""

    def make_base(self) -> None:
        """A Debian with Python and nothing else."""
        base = self.folder / "base"
        packages = "--include=python3,python3-venv,ca-certificates"
        with (self.folder / "debootstrap.log").open("w") as log:
            call = ["debootstrap", "--variant=minbase", packages, SUITE, str(base)]
            if subprocess.run(call, stdout=log, stderr=log).returncode:
                raise SystemExit(f"image-test: debootstrap failed:\n{Path(log.name).read_text()[-3000:]}")
        container = self.buildah("from", "scratch").strip()
        self.buildah("add", container, str(base), "/")
        self.buildah("commit", "--rm", container, "fcer-base")
        shutil.rmtree(base)

    def build(self) -> None:
        """The recipe as it stands, with pip's own sources."""
        arguments = [
            "--build-arg",
            "BASE=localhost/fcer-base",
            "--build-arg",
            f"TORCH_INDEX={os.environ['TORCH_INDEX']}",
        ]
        recipe = ["--format", "docker", "--file", "docker/Dockerfile", "--tag", "fcer"]
        self.buildah("bud", *arguments, *self._sources(), *recipe, str(ROOT), log="build.log")

    def _sources(self) -> list[str]:
        """pip's configuration outside, and the local folders that it names, as volumes of the build."""
        listed = subprocess.run(
            [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
        )
        settings = {}
        for line in listed.stdout.splitlines():
            name, _, value = line.partition("=")
            settings[name.split(".")[-1]] = value.strip("'").replace("\\n", " ")
        known = configparser.RawConfigParser()
        known["global"] = settings
        with (self.folder / "pip.conf").open("w") as file:
            known.write(file)
        volumes = [f"{self.folder / 'pip.conf'}:/etc/pip.conf:ro"]
        for word in {word for value in [*settings.values(), os.environ["TORCH_INDEX"]] for word in value.split()}:
            local = Path(urlsplit(word).path) if word.startswith(("file://", "/")) else None
            if local is not None and local.exists():
                # an index names its files relative to itself
                place = local.parent if word.startswith("file://") else local
                volumes.append(f"{place}:{place}:ro")
        return [word for volume in sorted(set(volumes)) for word in ("--volume", volume)]

    def open(self) -> None:
        """Ready to run commands in: its files, and what it says of itself."""
        described: dict[str, Any] = json.loads(self.buildah("inspect", "--type", "image", "fcer"))
        self.settings = described["Docker"]["config"]
        self.bytes = int(json.loads(self.buildah("images", "--json", "fcer"))[0].get("size_raw", 0))
        self._container = self.buildah("from", "fcer").strip()
        self._files = Path(self.buildah("mount", self._container).strip())
        self.bytes = self.bytes or sum(p.lstat().st_size for p in self._files.rglob("*") if not p.is_dir())
        user, group = map(int, self.settings["User"].split(":"))
        for place in ("places", "outside"):
            shutil.rmtree(self.folder / place, ignore_errors=True)
        (self.folder / "outside").mkdir()
        for place in ("work", "data", "artifacts"):
            (self.folder / "places" / place).mkdir(parents=True)
            os.chown(self.folder / "places" / place, user, group)

    def start(self, *command: str, log: IO[str] | int = subprocess.PIPE, **environment: str) -> subprocess.Popen[str]:
        """`docker run --read-only --cap-drop=ALL IMAGE COMMAND`, in this machine's network."""
        user, group = self.settings["User"].split(":")
        known = [*self.settings["Env"], *(f"{name}={value}" for name, value in environment.items())]
        nobody = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", "--no-new-privs"]
        dropped = ["--bounding-set=-all", "--inh-caps=-all"]
        inside = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "enter"]
        outside = {"ROOTFS": str(self._files), "PLACES": str(self.folder / "places"), "PATH": os.environ["PATH"]}
        return subprocess.Popen(
            [*inside, *known, *nobody, *dropped, *self.settings["Entrypoint"], *command],
            env={**outside, "WORKING": self.settings["WorkingDir"]},
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *command: str, expect: int = 0, **environment: str) -> str:
        """What a command printed."""
        begun = time.monotonic()
        process = self.start(*command, **environment)
        said, _ = process.communicate(timeout=1800)
        if process.returncode != expect:
            raise SystemExit(f"image-test: {' '.join(command)[:60]} ended with {process.returncode}:\n{said[-3000:]}")
        say(f"{' '.join(command[:2])} ran in it ({time.monotonic() - begun:.0f} s)")
        return said

    def close(self) -> None:
        self.buildah("rm", self._container)


def outside(folder: Path, *command: str, **environment: str) -> None:
    """The same command on this machine."""
    call = [sys.executable, "-m", "fcer", *command]
    done = subprocess.run(call, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"image-test: outside of the image {command[0]} ended with {done.returncode}:\n{done.stderr}")


def same_head(one: Path, other: Path) -> None:
    """Two work folders hold the same student."""
    heads = [sorted((work / "students").glob("*/head.safetensors")) for work in (one, other)]
    assert [len(found) for found in heads] == [1, 1], heads
    assert heads[0][0].parent.name == heads[1][0].parent.name, "made of other members or settings"
    assert heads[0][0].read_bytes() == heads[1][0].read_bytes(), "another student than outside"


@contextmanager
def serving(image: Image, port: int) -> Iterator[None]:
    """The MLflow server in the image, as compose.yaml starts it, on a store in a file."""
    store = ("--backend-store-uri", "sqlite:////artifacts/mlflow.db", "--artifacts-destination", "/artifacts")
    call = ("mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1", *store)
    path = image.folder / "server.log"
    with path.open("w") as log:
        server = image.start(*call, log=log, MLFLOW_SERVER_ENABLE_JOB_EXECUTION="false")
        try:
            until = time.monotonic() + 300
            while not image_answers(image, port):
                if server.poll() is not None or time.monotonic() > until:
                    raise SystemExit(f"image-test: the MLflow server does not answer:\n{path.read_text()[-3000:]}")
                time.sleep(1)
            say(f"the MLflow server answers on port {port}")
            yield
        finally:
            os.killpg(server.pid, signal.SIGKILL)  # and with it all that runs in its container
            server.wait()


def image_answers(image: Image, port: int) -> bool:
    """By the health check that the image brings."""
    asked = image.start("python", "/usr/local/bin/healthy", f"http://127.0.0.1:{port}/health")
    asked.communicate()
    return asked.returncode == 0


def use(image: Image) -> None:
    """Everything that the image is for."""
    places, apart = image.folder / "places", image.folder / "outside"
    refused = image.run("python", "-c", "open('/fcer/anything', 'w')", expect=1)
    assert "Read-only file system" in refused, refused
    assert image.run("python", "-c", "import os; print(os.getuid(), os.getgroups())").split()[0] == "10001"
    shutil.copy(ROOT / "tests" / "data" / "golden" / "predictions_2018.npz", places / "data")
    port = free_port()
    with serving(image, port):
        apart_store = {"MLFLOW_TRACKING_URI": f"sqlite:///{apart}/mlflow.db", "OMP_NUM_THREADS": "1"}
        tracked = {"MLFLOW_TRACKING_URI": f"http://127.0.0.1:{port}", "OMP_NUM_THREADS": "1"}
        image.run("distill", *SMALL, **tracked)
        outside(apart, "distill", *SMALL, **apart_store)
        same_head(places / "work", apart / "work")
        say("distill made the same student as outside, byte by byte")
        evaluate = ("evaluate", "--bootstrap", "50", "--predictions")
        image.run(*evaluate, "data/predictions_2018.npz", "--out", "work/results", **tracked)
        outside(apart, *evaluate, str(places / "data" / "predictions_2018.npz"), "--out", "results", **apart_store)
        for name in ("sweep.csv", "segmentation.csv", "tests.json"):
            assert (places / "work" / "results" / name).read_bytes() == (apart / "results" / name).read_bytes(), name
        say("evaluate --predictions gave the same tables as outside")
        fire = sorted((apart / "work").rglob("2021/*.hdf5"))[0]
        shutil.copy(fire, places / "data" / fire.name)
        model = ("--model", "models:/fcer-student@champion")
        image.run("predict", *model, "--input", f"data/{fire.name}", "--out", "work/map.tif", **tracked)
        assert (places / "work" / "map.tif").stat().st_size > 1000
        say("predict wrote a map with the champion of the server")


def main() -> int:
    """0 where the image was built and did all it should."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, help="folder to build in and leave; none: one that goes afterwards")
    options = parser.parse_args()
    if missing := needs():
        print(f"image-test: {missing}", file=sys.stderr)
        return 2
    with ExitStack() as stack:
        if options.keep is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="image-test-")))
        else:
            folder = options.keep.resolve()
            folder.mkdir(parents=True, exist_ok=True)
        image = Image(folder)
        if not (folder / "built").exists():
            for step in (image.make_base, image.build):
                begun = time.monotonic()
                step()
                say(f"{step.__name__.replace('_', ' ')}: done in {time.monotonic() - begun:.0f} s")
            (folder / "built").touch()
        image.open()
        stack.callback(image.close)
        say(f"the image holds {image.bytes / 1e9:.2f} GB (at most {MOST_BYTES / 1e9:g})")
        assert image.bytes < MOST_BYTES, "too large"
        use(image)
    say("built, small enough, and everything ran as user 10001 on a read-only root")
    return 0


if __name__ == "__main__":
    sys.exit(main())
