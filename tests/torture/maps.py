"""Predicted maps, npz and HDF5, for `evaluate --predictions`."""

import warnings
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from .cases import Case, damaged, draw

SHAPE = (5, 12, 13)
HUGE = (10**7, 3000, 3000)


def arrays(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Two methods on a few images."""
    maps = {f"{m}_{k}": rng.random(SHAPE, np.float32) for m in ("student", "other") for k in ("prob", "unc")}
    fire_id = np.array([f"fire_{k // 2}" for k in range(SHAPE[0])])
    return {"y": (rng.random(SHAPE) < 0.2).astype(np.uint8), **maps, "fire_id": fire_id, "year": np.array(2018)}


def evaluate(path: Path, what: str, refuse: bool = False) -> Case:
    """The command that meets the file."""
    options = ("--out", str(path.parent / "results"), "--bootstrap", "5", "--radii", "0", "2")
    return Case(what, ("evaluate", "--predictions", str(path), *options), refuse=refuse)


def odd_arrays(rng: np.random.Generator) -> tuple[dict[str, Any], str]:
    """Arrays of which one is not what it should be."""
    stacks: dict[str, Any] = arrays(rng)
    name = str(draw(rng, sorted(stacks)))
    odd = {
        "NaN": np.full(SHAPE, np.nan, np.float32),
        "infinite": np.array(np.inf),
        "negative": np.array(-5),
        "huge number": np.array(2**63, np.uint64),
        "complex": np.ones(SHAPE, complex),
        "bytes": np.array([b"\xff\x00=1"] * SHAPE[0]),
        "words": np.full(SHAPE, "x"),
        "compound": np.zeros(SHAPE, [("a", "f4"), ("b", "i4")]),
        "dates": np.zeros(SHAPE, "M8[D]"),
        "no images": np.zeros((0, *SHAPE[1:]), np.float32),
        "one axis": np.zeros(SHAPE[0], np.float32),
        "five axes": np.zeros((1, 2, *SHAPE), np.float32),
        "formula": np.array(["=1+1", "+2", "-3", "@4", "\n"][: SHAPE[0]]),
        "control characters": np.array(["\x1b[2J\x00", "\x7f", "\u202e", "", "a"][: SHAPE[0]]),
        "long text": np.array(["x" * 5000] * SHAPE[0]),
    }
    what = str(draw(rng, [*odd, "missing", "twice its name", "nameless"]))
    if what == "missing":
        del stacks[name]
    elif what == "twice its name":
        stacks[f"{name}_{name}"] = stacks[name]
    elif what == "nameless":
        stacks[str(draw(rng, ["_prob", "_unc", "a/b_prob", "..", " ", "é_unc", "x" * 300]))] = stacks["y"]
    else:
        stacks[name] = odd[what]
    return stacks, f"{name}: {what}"


def npz(rng: np.random.Generator, _sound: Path, folder: Path) -> Case:
    """An npz file."""
    path = folder / "predictions_2018.npz"
    kind = draw(rng, ["damage", "damage", "arrays", "header", "member"])
    stacks, what = odd_arrays(rng) if kind == "arrays" else (arrays(rng), "")
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as archive:
        warnings.simplefilter("ignore")
        for name, array in stacks.items():
            with archive.open(f"{name}.npy", "w") as stream:
                np.lib.format.write_array(stream, np.asanyarray(array), allow_pickle=False)
        if kind == "header":
            text = str(draw(rng, _HEADERS))
            what = f"header {text[:40]}"
            content = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + bytes(8)
            archive.writestr(str(draw(rng, ["date.npy", "extra_prob.npy"])), content)
        elif kind == "member":
            method = int(draw(rng, [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_DEFLATED]))
            name = str(draw(rng, ["y.npy", "../../up.npy", "/etc/passwd", "date", "x" * 60000]))
            what = f"member {name[:20]!r} packed as {method}"
            archive.writestr(name, bytes(10_000), method)
    if kind == "damage":
        content, what = damaged(path.read_bytes(), rng)
        path.write_bytes(content)
    elif rng.random() < 0.1:
        path.write_bytes(_field(path.read_bytes(), 6, 8, 1))
        what += ", encrypted"
    return evaluate(path, what)


_HEADERS = [
    "{'descr': '<U8', 'fortran_order': False, 'shape': (1000000000000,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999, 9999, 9999)}",
    "{'descr': '<f4', 'fortran_order': True, 'shape': (-1, 2, 2)}",
    "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
    "{'descr': '|V0', 'fortran_order': False, 'shape': (5,)}",
    "{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (1,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (True, 2)}",
    "{'descr': '<f4', 'shape': 2}",
    "(" * 900,
    "-" * 9000 + "1",
    "",
    "\x00",
]


def _field(content: bytes, local: int, central: int, value: int) -> bytes:
    """A field of every member's two headers set."""
    data = bytearray(content)
    for signature, offset in ((b"PK\x03\x04", local), (b"PK\x01\x02", central)):
        start = data.find(signature)
        while start >= 0:
            data[start + offset] = value
            start = data.find(signature, start + 4)
    return bytes(data)


def hdf5(rng: np.random.Generator, _sound: Path, folder: Path) -> Case:
    """An HDF5 file."""
    path = folder / "predictions_2018.h5"
    kind = draw(rng, ["damage", "damage", "arrays", "replaced", "replaced"])
    stacks, what = odd_arrays(rng) if kind == "arrays" else (arrays(rng), "")
    with h5py.File(path, "w") as file:
        for name, array in stacks.items():
            try:
                text = array.dtype.kind == "U"
                file[name] = np.char.replace(array, "\0", "?").astype(h5py.string_dtype()) if text else array
            except (TypeError, ValueError, OSError):
                what += ", which HDF5 does not hold"
        if kind == "replaced":
            what = _replace(file, rng, folder)
    if kind == "damage":
        content, what = damaged(path.read_bytes(), rng)
        path.write_bytes(content)
    return evaluate(path, what, refuse=any(word in what for word in ("external", "link", "cycle", "virtual")))


def _replace(file: h5py.File, rng: np.random.Generator, folder: Path) -> str:
    """One array read from elsewhere, or declared otherwise than it is."""
    other = folder / "other.h5"
    with h5py.File(other, "w") as source:
        source["secret"] = np.full(SHAPE, 0.5, np.float32)
    name = str(draw(rng, ["y", "student_prob", "other_unc", "fire_id", "year"]))
    del file[name]
    layout = h5py.VirtualLayout(SHAPE, "<f4")
    layout[:] = h5py.VirtualSource(draw(rng, [other, folder / "none.h5"]), "secret", SHAPE)
    ways = {
        "external storage": lambda: file.create_dataset(name, SHAPE, "<f4", external=str(other)),
        "external link": lambda: file.__setitem__(name, h5py.ExternalLink(other, "secret")),
        "soft link": lambda: file.__setitem__(name, h5py.SoftLink("/student_unc")),
        "cycle": lambda: file.__setitem__(name, h5py.SoftLink(f"/{name}")),
        "virtual": lambda: file.create_virtual_dataset(name, layout),
        "empty": lambda: file.create_dataset(name, data=h5py.Empty("f4")),
        "group": lambda: file.create_group(name),
        "type": lambda: file.__setitem__(name, np.dtype("f4")),
        "huge": lambda: file.create_dataset(name, HUGE, "f4", chunks=(1, 100, 100)),
        "huge text": lambda: file.create_dataset(name, (10**12,), h5py.string_dtype(), chunks=(1000,)),
        "references": lambda: file.create_dataset(name, SHAPE, h5py.ref_dtype),
        "lists": lambda: file.create_dataset(name, SHAPE, h5py.vlen_dtype(np.float32)),
        "odd year": lambda: file.attrs.__setitem__("year", draw(rng, [np.inf, -1, "x", h5py.Empty("i4"), 10**18])),
    }
    what = str(draw(rng, list(ways)))
    ways[what]()
    return f"{name}: {what}"
