import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from fcer.runtime.files import atomic_path, scratch_folder


def test_a_block_that_succeeds_replaces_the_file(tmp_path: Path):
    path = tmp_path / "new" / "file.txt"
    for text in ("first", "second"):
        with atomic_path(path) as partial:
            assert partial.suffix == ".txt" and partial.name.startswith(".")
            partial.write_text(text)
        assert path.read_text() == text
    assert list(path.parent.iterdir()) == [path]


def test_a_block_that_fails_leaves_the_file_alone(tmp_path: Path):
    path = tmp_path / "file.txt"
    path.write_text("before")
    with pytest.raises(ZeroDivisionError), atomic_path(path) as partial:
        partial.write_text("half")
        _ = 1 / 0
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_the_umask_decides_who_may_read_it(tmp_path: Path):
    old = os.umask(0o027)
    try:
        with atomic_path(tmp_path / "file") as partial:
            partial.write_text("")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_what_a_killed_writer_left_is_swept_and_a_living_one_s_is_not(tmp_path: Path):
    path = tmp_path / "a [1].txt"
    call = (
        "import sys, time; from pathlib import Path; from fcer.runtime.files import atomic_path, scratch_folder\n"
        "with atomic_path(Path(sys.argv[1])) as partial: print('writing', flush=True); time.sleep(60)"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", call, str(path)], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for writer in writers:
        assert writer.stdout is not None and writer.stdout.readline() == "writing\n"
    assert len(list(tmp_path.iterdir())) == 2
    writers[0].send_signal(signal.SIGKILL)
    writers[0].wait()
    with atomic_path(path) as partial:
        partial.write_text("whole")
    assert len(list(tmp_path.iterdir())) == 2, "the file, and what the living writer writes"
    writers[1].kill()
    writers[1].wait()


def test_scratch_is_gone_afterwards_and_what_a_kill_left_is_too(tmp_path: Path):
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    left = tmp_path / f".maps-{socket.gethostname()}-{dead.stdout.strip()}-abc"
    left.mkdir()
    (left / "y.npy").write_bytes(b"half")
    alive = tmp_path / f".maps-{socket.gethostname()}-{os.getppid()}-abc"
    alive.mkdir()
    with scratch_folder(tmp_path, "maps") as folder:
        (folder / "y.npy").write_bytes(b"half")
        assert not left.exists() and alive.exists()
    assert list(tmp_path.iterdir()) == [alive]
