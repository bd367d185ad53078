"""Settings: YAML files, flags and addresses."""

import json
from pathlib import Path

import numpy as np

from .cases import Case, damaged, draw

SOUND = b"""years: [2018, 2019]
fires_per_year: 2
image_size: [40, 56]
radii: [0, 1, 2.5, full]
anchor: 1500m
methods: [student, ensemble]
seed: 7
storage: sqlite:///studies.db
"""
KEYS = ["years", "radii", "anchor", "methods", "seed", "storage", "out", "data", "width", "features", "space", "model"]
VALUES = [
    *("2018", "[]", "{}", "null", "~", "true", "-1", "1e400", ".nan", ".inf", "0x7fffffffffffffffffff", "2018-13-40"),
    *("2001-01-01", "!!python/object/apply:os.system [ls]", "!!binary aGk=", "!!set {a, b}", "&a [*a]", "'a\\0b'"),
    *('"a\\0b"', '"\\ud800"', "[[[[1]]]]", "[1, [2, {a: b}]]", "? [a]\n: b", "|\n  text\n  more", "*none", "!!float x"),
    *("12345678901234567890" * 300, "'" + "x" * 50_000 + "'", "!!timestamp 2018-99-99", "1:99:99", "<<: {a: 1}"),
]


def yaml(rng: np.random.Generator, _sound: Path, folder: Path) -> Case:
    """A configuration for `config show`."""
    path = folder / "experiment.yaml"
    kind = draw(rng, ["damage", "damage", "value", "value", "value", "deep", "aliases", "bytes"])
    if kind == "damage":
        content, what = damaged(SOUND, rng)
    elif kind == "value":
        key, value = str(draw(rng, KEYS)), str(draw(rng, VALUES))
        content, what = f"{key}: {value}\n".encode(), f"{key}: {value[:40]}"
    elif kind == "deep":
        opening, closing = draw(rng, [("[", "]"), ("{a: ", "}"), ("- ", ""), ("? ", "")])
        depth = int(draw(rng, [50, 2000, 20_000]))
        content, what = f"radii: {opening * depth}1{closing * depth}\n".encode(), f"{depth} deep in {opening}"
    elif kind == "aliases":
        lines = ["a0: &a0 [0, 0, 0, 0, 0, 0, 0, 0, 0]"]
        lines += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]" for k in range(1, 9)]
        key = str(draw(rng, KEYS))
        content, what = "\n".join([*lines, f"{key}: *a8"]).encode(), f"alias bomb in {key}"
        if draw(rng, [True, False]):  # within one key, so that no unknown key stops it first
            nested = "[0, 0]"
            for k in range(9):
                nested = f"[&n{k} {nested}, {', '.join([f'*n{k}'] * 8)}]"
            content = f"{key}: {nested}\n".encode()
    else:
        content, what = rng.bytes(int(rng.integers(200))), "any bytes"
    path.write_bytes(content)
    return Case(what, ("config", "show", "--config", str(path)))


ADDRESSES = [
    *(
        "postgresql://u:p@[::1",
        "http://[::1",
        "postgresql://",
        "postgresql://u:p@h:notaport/d",
        "sqlite://",
        "sqlite:///",
    ),
    *(
        "mysql://u:p@h/d",
        "://",
        ":",
        "//",
        "http://",
        "file:///etc/passwd",
        "sqlite:////dev/null/x.db",
        "journal:",
        "a\0b",
    ),
    *("sqlite:///a\0b.db", "journal:a\0b", "postgresql://u:p@h/d?password=secret", "sqlite:///" + "x" * 5000, "é://é"),
    *(
        "sqlite:///.",
        "journal:.",
        "journal:/dev/full",
        "sqlite:////proc/self/mem",
        "%s%n",
        "tcp://h:99999999",
        "local:0",
    ),
    *(
        "tcp://[::1",
        "models:/",
        "models:/a@b@c",
        "models:/fcer-student/99999999999999999999",
        "runs:/",
        "runs:/" + "0" * 32,
    ),
    *("models:/../../x/1", "0" * 32, "s3://bucket/key", "models:/a'b\"c/1", "-", " ", "\n", "\u202e"),
]


def urls(rng: np.random.Generator, sound: Path, folder: Path) -> Case:
    """Where things are: a study's storage, a cluster, a model, a tracking server."""
    address = str(draw(rng, ADDRESSES))
    if draw(rng, [True, False, False]):
        address = address.encode()[: int(rng.integers(1, 40))].decode(errors="ignore") + str(
            draw(rng, ["", "@", "[", "%"])
        )
    work = ("--work", str(folder / "work"))
    fire = str(sound / "fires" / "2018" / "fire_a.hdf5")
    commands = {
        "storage": ("search", "--study", "s", "--trials", "1", "--storage", address, "--fires-per-year", "1", *work),
        "cluster": ("synthesize", "--out", str(folder / "o"), "--cluster", address, *work),
        "model": ("predict", "--model", address, "--input", fire, "--out", str(folder / "m.tif"), *work),
        "show": ("config", "show", "--storage", address),
        "run": ("promote", "--run", address, *work),
    }
    kind = str(draw(rng, [name for name in commands if name != "storage" or not _usable(address)]))
    return Case(f"{kind} {address[:40]!r}", commands[kind])


def _usable(address: str) -> bool:
    """A storage that can be opened would be searched, which takes its time."""
    return address.startswith(("sqlite:///", "journal:")) and len(address.partition(":")[2].strip("/")) > 0


def flags(rng: np.random.Generator, _sound: Path, folder: Path) -> Case:
    """Values of options of a command that is over quickly."""
    key = str(
        draw(rng, ["years", "fires-per-year", "image-size", "fire-days", "seed", "out", "workers", "geotiff", "work"])
    )
    odd = [
        "",
        "-1",
        "0",
        "nan",
        "1e9",
        "99999999999999999999",
        "a\0b",
        "2018,2018",
        "none",
        "true",
        "x" * 5000,
        "[1]",
        "é",
    ]
    value = str(draw(rng, [value for value in odd if not (key == "seed" or (key, value) == ("workers", "0"))] or ["x"]))
    out = () if key == "out" else ("--out", str(folder / "o"))
    small = (
        ()
        if key in ("years", "fires-per-year", "image-size", "fire-days")
        else ("--fires-per-year", "1", "--years", "2018")
    )
    return Case(f"--{key} {value[:20]!r}", ("synthesize", f"--{key}", value, *out, *small))


def space(rng: np.random.Generator, _sound: Path, folder: Path) -> Case:
    """A search space as JSON or YAML for `search`."""
    path = folder / "space.yaml"
    values = [
        "2018-13-40",
        "[1, 2]",
        "{low: 1, high: 0}",
        "{low: .nan, high: 1}",
        "{low: 1e400, high: 1}",
        "[]",
        "{}",
        "{low: 0, high: 1, log: true}",
        "{low: a, high: b}",
        "null",
        "[[1]]",
        "{step: 0, low: 1, high: 2}",
    ]
    key = str(draw(rng, ["head_lr", "head_epochs", "head_loss", "nothing", "2018", "head_hidden", "seed"]))
    content = f"{key}: {draw(rng, values)}\n".encode()
    what = content.decode().strip()
    if draw(rng, [True, False, False]):
        content, what = damaged(json.dumps({"head_lr": {"low": 1e-4, "high": 1e-2, "log": True}}).encode(), rng)
    path.write_bytes(content)
    # a storage that cannot be opened: whatever the space is, no trial runs
    options = ("--study", "s", "--trials", "1", "--storage", "journal:/dev/null/x", "--work", str(folder / "work"))
    return Case(what, ("search", "--space", str(path), *options))
