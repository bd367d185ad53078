import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fcer.runtime import files
from fcer.runtime.files import atomic_path, scratch_folder
from fcer.runtime.processes import Process, this_process


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


def left_by(call: str, folder: Path) -> Path:
    """What a process that is killed while it runs `call` leaves in a folder."""
    program = (
        "import os, signal, sys; from pathlib import Path; from fcer.runtime.files import atomic_path, scratch_folder\n"
        f"with {call}: os.kill(os.getpid(), signal.SIGKILL)"
    )
    before = set(folder.iterdir())
    subprocess.run([sys.executable, "-c", program, str(folder)], check=False)
    (left,) = set(folder.iterdir()) - before
    return left


def test_scratch_is_gone_afterwards_and_what_a_kill_left_is_too(tmp_path: Path):
    left = left_by("scratch_folder(Path(sys.argv[1]), 'maps') as folder", tmp_path)
    with scratch_folder(tmp_path, "maps") as alive, scratch_folder(tmp_path, "maps") as folder:
        (folder / "y.npy").write_bytes(b"half")
        assert not left.exists() and alive.exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("call", ["atomic_path(Path(sys.argv[1]) / 'a.txt')", "scratch_folder(Path(sys.argv[1]), 'a')"])
def test_containers_that_share_a_host_name_leave_each_other_s_files_alone(tmp_path: Path, call: str):
    """The other's process number means nothing here: no process, or another one, has it."""
    theirs = left_by(call, tmp_path)
    here = files._place(this_process())
    assert here in theirs.name
    theirs = theirs.rename(theirs.with_name(theirs.name.replace(here, "0123456789ab")))

    def write() -> None:
        with atomic_path(tmp_path / "a.txt") as partial, scratch_folder(tmp_path, "a"):
            partial.write_text("whole")

    write()
    assert theirs.exists(), "its writer may live in a container of the same host name"
    week_ago = time.time() - files._SILENCE - 60
    os.utime(theirs, (week_ago, week_ago))
    write()
    assert sorted(tmp_path.iterdir()) == [tmp_path / "a.txt"], "nobody writes that slowly"


def test_a_process_is_told_by_more_than_host_and_number():
    me = this_process()
    assert me.is_here() and me.is_alive() and me.numbering
    assert not me._replace(numbering="another container").is_here()
    assert me._replace(numbering="").is_here(), "records of earlier versions know the host alone"
    assert not me._replace(started=me.started - 3600).is_alive(), "an earlier one of the same number"
    elsewhere = me._replace(numbering="another container", pid=1)
    assert elsewhere.may_live(time.time() - 5, silence=10) and not elsewhere.may_live(time.time() - 15, silence=10)
    assert Process(*json.loads(json.dumps(me))) == me


@pytest.mark.parametrize("pid", [-1, 10**30])
def test_a_number_that_no_process_has(pid: int):
    assert not this_process()._replace(pid=pid).is_alive()
