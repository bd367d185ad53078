"""The served student over HTTP, as MLflow's scoring protocol has it: /invocations, /ping, /health, and /version.

A plain ASGI application. The token is looked at before anything of a body is read, a body is bounded before it is kept,
and nothing of it is ever sent back.
"""

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import numpy as np

from fcer.deploy.answers import LARGEST
from fcer.errors import InputError
from fcer.registry.champion import Champion

__all__ = ["TOKEN", "ServedApp"]

TOKEN = "FCER_TOKEN"
"""The environment variable with the token that requests must bring, where one is set."""

_CHANNELS, _BYTES = 23, 4
_Receive = Callable[[], Awaitable[dict[str, Any]]]
_Send = Callable[[dict[str, Any]], Awaitable[None]]


class _RefusedError(Exception):
    """A request that is answered with a status and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class ServedApp:
    """Answers with the champion's maps."""

    def __init__(self, champion: Champion, token: str | None = None) -> None:
        self._champion = champion
        self._token = token

    @property
    def most_bytes(self) -> int:
        """Of a body: the largest input as base64, and what stands around it."""
        days = self._champion.answers.loaded.student.backbone.days
        return LARGEST * days * _CHANNELS * _BYTES * 4 // 3 + (1 << 16)

    async def __call__(self, scope: dict[str, Any], receive: _Receive, send: _Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        try:
            status, content = 200, await self._answer(scope, receive)
        except _RefusedError as refused:
            status, content = refused.status, _error(str(refused))
        except InputError as error:
            status, content = 400, _error(str(error))
        except Exception as error:  # whatever one request meets, the next is to be answered
            status, content = 500, _error(f"{type(error).__name__} while answering; see the server's log")
        await _respond(send, status, content)

    async def _answer(self, scope: Mapping[str, Any], receive: _Receive) -> bytes:
        wanted = (scope["method"], scope["path"])
        if wanted in (("GET", "/ping"), ("GET", "/health")):
            return b"\n"
        if wanted not in (("GET", "/version"), ("POST", "/invocations")):
            raise _RefusedError(404, "there are POST /invocations, GET /version, /ping and /health")
        headers = {key.lower(): value for key, value in scope["headers"]}
        given = headers.get(b"authorization", b"")
        if self._token is not None and not hmac.compare_digest(given, b"Bearer " + self._token.encode()):
            raise _RefusedError(401, f"give the token that the server has in {TOKEN}, as Authorization: Bearer TOKEN")
        if wanted[1] == "/version":
            return json.dumps(self._champion.version).encode()
        answers = self._champion.answers  # a reload from here on is the next request's
        body = await _read(receive, headers, self.most_bytes)
        maps = await asyncio.to_thread(lambda: answers.answer(*_parsed(headers, body)))
        return await asyncio.to_thread(_encoded, maps)


async def _read(receive: _Receive, headers: Mapping[bytes, bytes], most: int) -> bytes:
    """The body, as long as it is not too large."""
    too_large = _RefusedError(413, f"the body may have {most} bytes; ask for fewer samples at a time")
    said = headers.get(b"content-length", b"0")
    if not said.isdigit() or int(said) > most:
        raise too_large if said.isdigit() else _RefusedError(400, "Content-Length is no number")
    parts, length = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _RefusedError(400, "the request ended before its body did")
        length += len(message.get("body", b""))
        if length > most:
            raise too_large
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def _parsed(headers: Mapping[bytes, bytes], body: bytes) -> tuple[np.ndarray[Any, Any], str | None]:
    """Days, plain or as text of a .npy file, of a request in MLflow's form."""
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != b"application/json":
        raise _RefusedError(415, "days come as JSON: Content-Type: application/json")
    try:
        said = json.loads(body)
    except RecursionError:
        raise InputError("the request is nested too deeply; days have five dimensions") from None
    except ValueError:
        raise InputError('the request is no JSON; give {"inputs": [...]}') from None
    if not isinstance(said, dict) or "inputs" not in said or set(said) - {"inputs", "params"}:
        raise InputError('the request is not {"inputs": [...]}, with "params" beside where days are a .npy file')
    params = said.get("params") or {}
    npy = params.get("npy") if isinstance(params, dict) else params
    if not isinstance(params, dict) or set(params) - {"npy"} or not (npy is None or isinstance(npy, str)):
        raise InputError("params: it may hold npy alone, a .npy file as base64 text")
    try:
        return np.asarray(said["inputs"], dtype=np.float32), npy
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise InputError("inputs: not numbers of one shape (samples, days, channels, rows, columns)") from None


def _encoded(maps: Mapping[str, Any]) -> bytes:
    return json.dumps({"predictions": {name: _plain(value) for name, value in maps.items()}}).encode()


def _plain(value: Any) -> Any:
    """As JSON has it: null where there is no number."""
    if not isinstance(value, np.ndarray):
        return value
    return np.where(np.isnan(value), np.array(None, dtype=object), value.astype(object)).tolist()


def _error(sentence: str) -> bytes:
    return json.dumps({"error_code": "BAD_REQUEST", "message": sentence}).encode()


async def _respond(send: _Send, status: int, content: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    if status in (401, 413):
        headers.append((b"connection", b"close"))  # what is left of the body is nobody's
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
