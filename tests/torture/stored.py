"""What earlier commands wrote: results, journals, students and checkpoints."""

import hashlib
import json
import pickle
from pathlib import Path

import numpy as np
import torch

from .cases import Case, damaged, draw, fresh


def results(rng: np.random.Generator, sound: Path, folder: Path) -> Case:
    """A results folder for `report`."""
    made = fresh(sound / "results", folder / "results")
    name = str(
        draw(
            rng,
            [
                "evaluation.json",
                "evaluation.json",
                "tests.json",
                "sweep.csv",
                "segmentation.csv",
                "per_image.csv",
                "anchor.csv",
                "intervals.csv",
                "sensitivity.csv",
                "reliability.csv",
            ],
        )
    )
    path = made / name
    before = path.read_bytes()
    what = str(draw(rng, ["damage", "damage", "empty", "removed", "edited", "edited", "folder"]))
    if what == "damage":
        content, what = damaged(path.read_bytes(), rng)
        path.write_bytes(content)
    elif what == "empty":
        path.write_bytes(b"")
    elif what == "removed":
        path.unlink()
    elif what == "folder":
        path.unlink()
        path.mkdir()
    else:
        what = _edit(path, rng)
    changed = not path.is_file() or path.read_bytes() != before
    arguments = ("report", "--results", str(made), "--out", str(folder / "report"), "--work", str(folder / "work"))
    return Case(f"{name}: {what}", arguments, refuse=changed)


def _edit(path: Path, rng: np.random.Generator) -> str:
    """A file that reads well and says something else."""
    if path.suffix == ".csv":
        lines = path.read_text().splitlines()
        way = int(rng.integers(4))
        if way == 0:
            lines[0] = lines[0].replace(str(draw(rng, lines[0].split(","))), "other", 1)
        elif way == 1:
            lines = [line.replace("2018", "1999") for line in lines]
        elif way == 2:
            lines = [line.replace("student", str(draw(rng, ["zzz", "=1+1", "<script>"]))) for line in lines]
        else:
            del lines[1 + int(rng.integers(max(1, len(lines) - 1))) :]
        path.write_text("\n".join(lines) + "\n")
        return f"edited {way}"
    content = json.loads(path.read_text())
    if isinstance(content, list):
        content = draw(rng, [[], {}, [1], [{}], content[:1] * 3, [[[]]], None])
    else:
        key = str(draw(rng, sorted(content)))
        content[key] = draw(rng, ["zzz", [1999], -1, None, [], {}, 1e308, True, ["<b>"], "x" * 10_000])
        if draw(rng, [True, False, False]):
            del content[key]
    path.write_text(json.dumps(content))
    return "edited"


def journal(rng: np.random.Generator, sound: Path, folder: Path) -> Case:
    """A command's journal for `log`."""
    (kept,) = (sound / "journal").iterdir()
    made = fresh(kept, folder / "runs" / kept.name)
    path = made / "journal.jsonl"
    lines = path.read_text().splitlines()
    what = str(draw(rng, ["damage", "damage", "line", "line", "process", "missing start", "order"]))
    if what == "damage":
        content, what = damaged(path.read_bytes(), rng)
        path.write_bytes(content)
    else:
        place = int(rng.integers(len(lines)))
        if what == "line":
            odd = [
                "",
                "{}",
                "[]",
                "null",
                "1",
                '"x"',
                "[" * 20_000,
                '{"n": 1}',
                '{"sent": 99999}',
                '{"sent": []}',
                '{"anew": {}}',
                '{"process": 1, "uri": 2}',
                '{"n": "x", "run": 1, "op": "?", "at": -1, "data": []}',
                '{"n": 1e999, "run": "1", "op": "metrics", "at": 1, "data": {}}',
                '{"process": [1, 2, 3], "uri": ""}',
            ]
            lines[place] = str(draw(rng, odd))
        elif what == "process":
            pid = draw(rng, [-1, "x", 1e300, 10**30, None, [], True, 0])
            lines[0] = json.dumps({"process": ["host", pid, 0.0], "uri": draw(rng, ["", None, 3, "http://[::1"])})
        elif what == "missing start":
            lines = [line for line in lines if '"op": "start"' not in line]
        else:
            lines = [lines[k] for k in rng.permutation(len(lines))]
        path.write_text("\n".join(lines) + "\n")
    return Case(what, ("log", str(made), "--work", str(folder / "work")))


def safetensors(rng: np.random.Generator, sound: Path, folder: Path) -> Case:
    """A student whose head or backbone is damaged, for `predict`."""
    made = fresh(sound / "student", folder / "student")
    path = made / str(draw(rng, ["head.safetensors", "backbone.safetensors"]))
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    what = str(draw(rng, ["damage", "header", "header", "length", "bits in weights"]))
    if what == "header":
        header = json.loads(content[8 : 8 + size])
        stated = json.loads(header["__metadata__"]["fcer"])
        key = str(draw(rng, sorted(stated)))
        stated[key] = draw(rng, [None, -1, "x", [], {}, 1e308, True, [[1]], 10**30])
        header["__metadata__"]["fcer"] = json.dumps(stated)
        text = json.dumps(header).encode()
        content = len(text).to_bytes(8, "little") + text + content[8 + size :]
        what = f"header {key}"
    elif what == "length":
        content = int(draw(rng, [0, 1, size - 1, 2**40, 2**63])).to_bytes(8, "little") + content[8:]
    elif what == "bits in weights":
        data = bytearray(content)
        data[8 + size + int(rng.integers(len(content) - 8 - size))] ^= 1 << int(rng.integers(8))
        content = bytes(data)
    else:
        content, what = damaged(content, rng)
    path.write_bytes(content)
    options = ("--input", str(sound / "fires" / "2018" / "fire_a.hdf5"), "--out", str(folder / "map.tif"))
    arguments = ("predict", "--model", str(made), *options, "--work", str(folder / "work"))
    return Case(f"{path.name}: {what}", arguments, refuse=what == "bits in weights")


def calibration(rng: np.random.Generator, sound: Path, folder: Path) -> Case:
    """A student whose calibration is damaged, or of another student, for `predict`."""
    made = fresh(sound / "calibrated", folder / "student")
    path = made / "calibration.json"
    before = json.loads(path.read_text())
    what = str(draw(rng, ["damage", "damage", "value", "value", "text"]))
    if what == "damage":
        content, what = damaged(path.read_bytes(), rng)
        path.write_bytes(content)
    elif what == "value":
        after = json.loads(path.read_text())
        inside = after["calibration"]
        key = str(draw(rng, sorted(inside)))
        inside[key] = draw(rng, [None, -1, "x", [], {}, 1e308, True, [[1]], 10**400])
        if draw(rng, [True, False]):  # with a checksum that fits: what it says must be looked at, too
            plain = json.dumps(inside, sort_keys=True, separators=(",", ":")).encode()
            after["sha256"] = hashlib.sha256(plain).hexdigest()
        path.write_text(json.dumps(after))
        what = f"{key} {str(inside[key])[:10]}"
    else:
        path.write_text(str(draw(rng, ["", "[]", "NaN", "[" * 100_000, '{"calibration": {}}', "\ufeff{}"])))
    try:
        same = json.loads(path.read_bytes()) == before
    except (ValueError, RecursionError):
        same = False
    options = ("--input", str(sound / "fires" / "2018" / "fire_a.hdf5"), "--out", str(folder / "map.tif"))
    arguments = ("predict", "--model", str(made), *options, "--work", str(folder / "work"))
    return Case(what, arguments, refuse=not same and "adapted" not in what)


class _Marker:
    """Leaves a trace if it is ever unpickled into code."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return Path.touch, (self.path,)


def pth(rng: np.random.Generator, sound: Path, folder: Path) -> Case:
    """Released checkpoints of which one is not, for `evaluate`."""
    made = folder / "checkpoints"
    made.mkdir()
    what = str(draw(rng, ["damage", "damage", "pickle", "state", "kind"]))
    path = made / "fold0_testAP0.300.pth"
    state = {"model.encoder.conv1.weight": torch.zeros(2, 3, 3, 3)}
    if what == "damage":
        torch.save(state, path)
        content, what = damaged(path.read_bytes(), rng)
        path.write_bytes(content)
    elif what == "pickle":
        with path.open("wb") as file:
            pickle.dump(_Marker(folder / "EXECUTED"), file)
    elif what == "state":
        odd = [{}, [], {"a": 1}, {1: torch.zeros(2)}, torch.zeros(3), {"model.encoder.conv1.weight": torch.zeros(0)}]
        torch.save(draw(rng, odd), path)
    else:
        path.write_bytes(draw(rng, [b"", b"PK", b"\x80\x02.", b"not weights"]))
    years = ("--year", "2021", "--arch", "utae_t5", "--data", str(sound / "fires"), "--out", str(folder / "out"))
    return Case(what, ("evaluate", "--checkpoints", str(made), *years, "--work", str(folder / "work")))
