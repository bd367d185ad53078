"""What is written to a journal is read back, whatever moment it was cut off at."""

import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcer.errors import FcerWarning, InputError
from fcer.runtime.processes import Process, this_process
from fcer.tracking.journal import FILE, Entry, Journal, from_line, is_complete, read_journal, to_line

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9)
DATA = st.dictionaries(st.text(max_size=9), SCALARS | st.lists(st.lists(SCALARS, max_size=3), max_size=3), max_size=3)
OPS = st.sampled_from(["params", "metrics", "tags", "origins", "text", "file", "dataset", "model", "end"])


@given(st.builds(Entry, st.integers(1), st.text(), OPS, st.integers(0), DATA))
def test_an_entry_is_one_line_and_comes_back(entry: Entry):
    line = to_line(entry._asdict())
    assert line.count("\n") == 1 and line.splitlines()[0] + "\n" == line
    assert Entry(**from_line(line)) == entry


def test_numbers_that_are_none_come_back():
    rows = [["a", float("nan"), 0], ["a", float("inf"), 1]]
    assert str(from_line(to_line({"rows": rows}))["rows"]) == str(rows)


@given(st.data())
def test_a_flipped_bit_is_found_and_its_line_named(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject):
    journal = Journal.create(tmp_path_factory.mktemp("runs"), "train", "")
    journal.mark_sent(journal.add(None, "start", {"name": "train"}), "0123456789abcdef")
    journal.add("1", "metrics", {"rows": [["val/ap", 0.5, 1]]})
    path = journal.folder / FILE
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 2))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"journal\.jsonl, line \d: cannot be read"):
        read_journal(journal.folder)


def test_lines_of_versions_without_a_checksum_are_read():
    assert from_line('{"sent": 3}') == {"sent": 3}


@pytest.mark.parametrize(
    "line",
    [
        "[" * 20_000,
        "null",
        '{"sent": 9}',
        '{"anew": "7"}',
        '{"n": 3, "run": "1", "op": "text", "at": 1, "data": {}}',
        '{"n": 2, "run": "5", "op": "text", "at": 1, "data": {}}',
        '{"n": 2, "run": "1", "op": "dance", "at": 1, "data": {}}',
        '{"n": 2, "run": "2", "op": "start", "at": 1, "data": {}}',
    ],
)
def test_a_line_that_no_command_wrote_is_named(tmp_path: Path, line: str):
    journal = Journal.create(tmp_path, "train", "")
    journal.add(None, "start", {"name": "train"})
    with (journal.folder / FILE).open("a") as file:
        file.write(line + "\n")
    with pytest.raises(InputError, match=r"journal\.jsonl, line 3: cannot be read"):
        read_journal(journal.folder)


@given(st.lists(st.tuples(OPS.filter(lambda op: op != "end"), DATA, st.booleans()), max_size=5))
def test_a_journal_read_anew_is_the_one_written(tmp_path_factory: pytest.TempPathFactory, logged: list[Any]):
    journal = Journal.create(tmp_path_factory.mktemp("runs"), "train", "http://server")
    start = journal.add(None, "start", {"name": "train"})
    journal.mark_sent(start, "abc")
    for op, data, sent in logged:
        entry = journal.add(start.run, op, data)
        if sent:
            journal.mark_sent(entry)
    read = read_journal(journal.folder)
    assert read.pending == journal.pending and len(read.entries) == len(logged) + 1
    assert (read.run_ids, read.open_runs, read.process) == ({"1": "abc"}, {"1": "train"}, this_process())
    read.send_anew(start.run)
    again = read_journal(journal.folder)
    assert list(again.pending.values()) == list(read.pending.values()) == list(read.entries.values())
    assert not again.run_ids


@given(st.data())
def test_cut_off_anywhere_whole_lines_remain(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject):
    journal = Journal.create(tmp_path_factory.mktemp("runs"), "train", "")
    for k in range(4):
        journal.add(None if k == 0 else "1", "start" if k == 0 else "text", {"name": f"fire é {k}", "text": "\n"})
    path = journal.folder / FILE
    content = path.read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut])
    read = read_journal(journal.folder)
    whole = content[:cut].count(b"\n")
    assert len(read.entries) == max(0, whole - 1)
    if content[:cut].endswith(b"\n") or cut == 0:
        read.claim()
    else:
        with pytest.warns(FcerWarning, match="the last line was cut short"):
            read.claim()
    assert len(read_journal(journal.folder).entries) == len(read.entries)


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path):
    journal = Journal.create(tmp_path, "train", "")
    with (journal.folder / FILE).open("a") as file:
        file.write("{broken\n")
    journal.add(None, "start", {"name": "train"})
    with pytest.raises(InputError, match=r"journal\.jsonl, line 2: cannot be read .* remove the line"):
        read_journal(journal.folder)


def test_a_journal_is_complete_when_nothing_is_left(tmp_path: Path):
    journal = Journal.create(tmp_path, "train", "")
    entry = journal.add(None, "start", {"name": "train"})
    journal.mark_sent(entry, "abc")
    journal.release()
    assert not is_complete(journal.folder), "its run has not ended"
    assert not read_journal(journal.folder).alive, "nobody writes it any more"
    journal.mark_sent(journal.add("1", "end", {"status": "FINISHED"}))
    journal.release()
    assert is_complete(journal.folder)


def test_a_folder_is_named_by_time_and_command(tmp_path: Path):
    names = {Journal.create(tmp_path, "member fold 0", "").folder.name for _ in range(3)}
    assert len(names) == 3
    assert all(name.split("-", 2)[2].startswith("member_fold_0-") for name in names)


def test_who_is_alive():
    me = this_process()
    assert me.pid == os.getpid() and me.is_here() and me.is_alive()
    assert not me._replace(started=me.started - 3600).is_alive(), "the number was given to another process"
    assert not me._replace(pid=2**22 + 1).is_alive()
    assert not me._replace(host="elsewhere").is_here()


def test_a_journal_of_another_machine_is_alive_while_it_is_heard_of(tmp_path: Path):
    journal = Journal.create(tmp_path, "train", "")
    assert journal.alive
    journal.process = Process("elsewhere", 1, 0.0)
    for hours, alive in ((1, True), (48, False)):
        then = time.time() - hours * 3600
        os.utime(journal.folder / FILE, (then, then))
        assert journal.alive == alive, "it cannot be asked"
