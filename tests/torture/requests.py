"""Requests to a served student: an answer, or a status from 400 on with one sentence that repeats nothing."""

import asyncio
import base64
import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fcer.registry.champion import Champion
from fcer.registry.serving import ServedApp

from .cases import Case, damaged, draw

_DAYS = (1, 5, 2, 16, 16)
_MARK = "echo-of-the-request"
_TOKEN = "a token"
_FAIR = {200, 400, 401, 404, 413, 415}


@cache
def _served(student: Path) -> ServedApp:
    return ServedApp(Champion(str(student), student.parent / "served", poll=60), _TOKEN)


def request(rng: np.random.Generator, sound: Path, _folder: Path) -> Case:
    """One request, in the same process: nothing of it may end the server."""
    headers = {"content-type": "application/json", "authorization": f"Bearer {_TOKEN}"}
    path = str(draw(rng, ["/invocations"] * 8 + ["/", "/invocations/..", "/ping", "/version"]))
    kind = str(draw(rng, ["body", "body", "body", "npy", "npy", "damage", "header"]))
    body, what = _body(kind, rng)
    if kind == "header":
        name = str(draw(rng, ["content-type", "authorization", "content-length"]))
        headers[name] = str(draw(rng, ["", "x", "-1", "9" * 30, "text/html", "Bearer ", "Bearer a tokeX", "١"]))
        what = f"{name}: {headers[name][:20]!r}"
    parts = [body] if rng.random() < 0.7 else [body[: len(body) // 2], body[len(body) // 2 :]]
    ended = rng.random() < 0.05
    return Case(
        f"{path}, {what}{', cut off' if ended else ''}",
        (),
        ask=lambda: asyncio.run(_ask(_served(sound / "student"), path, headers, parts, ended)),
    )


def _body(kind: str, rng: np.random.Generator) -> tuple[bytes, str]:
    days = rng.random(_DAYS).astype(np.float32)
    if kind == "npy":
        return _npy(rng, days)
    sound = json.dumps({"inputs": np.round(days, 2).tolist()}).encode()
    if kind == "damage":
        return damaged(sound, rng)
    odd = [
        *(
            b"",
            b"null",
            b"1",
            b"[]",
            b"{}",
            b"\xff\xfe",
            b'{"inputs": null}',
            b'{"inputs": "x"}',
            b'{"inputs": [[1], 2]}',
        ),
        *(b'{"inputs": ' + b"[" * 100_000, b'{"inputs": 1e400}', b'{"inputs": [[[[[NaN]]]]]}', b'{"inputs": {"a": 1}}'),
        *(b'{"inputs": [], "more": 1}', b'{"inputs": [], "params": 3}', b'{"inputs": [], "params": {"npy": [1]}}'),
        *(json.dumps({_MARK: [1]}).encode(), b'{"inputs": [[[[["' + _MARK.encode() + b'"]]]]]}', b"9" * 10_000),
        json.dumps({"inputs": np.zeros((1, 4, 2, 8, 8)).tolist()}).encode(),
        json.dumps({"inputs": np.zeros((1, 5, 22, 8, 8)).tolist()}).encode(),
        json.dumps({"inputs": np.zeros((1, 5, 2, 0, 8)).tolist()}).encode(),
        json.dumps({"inputs": np.full(_DAYS, 3e38).tolist()}).encode(),
        sound,
    ]
    body = bytes(draw(rng, odd))
    return body, f"body {body[:30]!r}"


def _npy(rng: np.random.Generator, days: np.ndarray) -> tuple[bytes, str]:
    """Days as base64 of a .npy file."""
    stream = io.BytesIO()
    np.save(stream, days)
    content, what = stream.getvalue(), "npy"
    way = int(rng.integers(5))
    if way == 0:
        content, what = damaged(content, rng)
    elif way == 1:
        said = str(draw(rng, ["'|O'", "'<f4', 'x': 1", "'<U9'", "[('a', '<f4')]"]))
        head = f"{{'descr': {said}, 'fortran_order': False, 'shape': (1, 5, 2, 90000, 90000)}}".encode()
        content, what = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head, f"npy of {said}"
    text = base64.b64encode(content).decode()
    if way == 2:
        text, what = str(draw(rng, ["", "=", "é", "A" * 5, text[:-7], " " + text])), "no base64"
    inputs: Any = [[[[[]]]]] if way != 3 else [[[[[1.0]]]]]
    return json.dumps({"inputs": inputs, "params": {"npy": text}}).encode(), what


async def _ask(app: ServedApp, path: str, headers: dict[str, str], parts: list[bytes], ended: bool) -> str:
    """What was wrong with the answer."""
    sent: list[dict[str, Any]] = []
    coming = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    coming.append({"type": "http.disconnect"} if ended else {"type": "http.request", "body": b""})

    async def receive() -> dict[str, Any]:
        return coming.pop(0)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET" if path in ("/ping", "/version") else "POST",
        "path": path,
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    await app(scope, receive, send)
    status, answer = sent[0]["status"], sent[1]["body"]
    if status not in _FAIR:
        return f"status {status}: {answer[:100]!r}"
    if status == 200:
        return ""
    said = json.loads(answer)["message"]
    if _MARK in said or len(said) > 1000 or "\n" in said:
        return "the request is repeated, or the sentence is none"
    return ""
