"""Asking a served student over HTTP, with nothing but numpy and the standard library."""

import http.client
import json
import os
import urllib.error
import urllib.request
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fcer.config.bounded import parse_json
from fcer.errors import FcerError, InputError
from fcer.runtime.npy_text import from_text, to_text

__all__ = ["Maps", "ask"]


class Maps(NamedTuple):
    """What a student says of each pixel, (samples, rows, columns), 0 to 1."""

    probability: NDArray[np.float32]
    """That it burns tomorrow."""
    uncertainty: NDArray[np.float32]
    """How little that is to be trusted."""
    calibrated_probability: NDArray[np.float32] | None = None
    """Of a student with a calibration: made to mean what it says."""
    zone: NDArray[np.float32] | None = None
    """The expected miss of the smallest guaranteed zone that holds the pixel; 0 where none does."""
    guarantees: tuple[dict[str, Any], ...] = ()
    """What each zone promises, in words and numbers."""


def ask(url: str, days: ArrayLike, *, timeout: float = 60.0, token: str | None = None) -> Maps:
    """The maps that the student served at `url` (`fcer serve`, `mlflow models serve`) predicts from raw days.

    Days are (samples, days, channels, rows, columns), NaN where a value is missing. They travel as a base64 .npy
    file in single precision; give float16 to halve that. `timeout` is in seconds. `token` is what the server asks for,
    by default that of the environment variable FCER_TOKEN.
    """
    if not url.startswith(("http://", "https://")):
        raise InputError(f"{url}: not the address of a server; give one such as http://127.0.0.1:8080")
    raw = np.asarray(days)
    if raw.dtype.kind not in "fiu":
        raise InputError(f"days: numbers are needed, not {raw.dtype}")
    with np.errstate(over="ignore"):  # infinite then, which the server refuses
        sent = raw.astype(np.float16 if raw.dtype == np.float16 else np.float32, copy=False)
    # MLflow wants `inputs` of five dimensions in every request, if only an empty one
    request = {"inputs": [[[[[]]]]], "params": {"npy": to_text(sent)}}
    return _maps(url, _post(f"{url.rstrip('/')}/invocations", json.dumps(request).encode(), timeout, token))


def _post(url: str, body: bytes, timeout: float, token: str | None) -> bytes:
    known = token or os.environ.get("FCER_TOKEN")
    allowed = {"Authorization": f"Bearer {known}"} if known else {}
    request = urllib.request.Request(url, body, {"Content-Type": "application/json", **allowed})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            content: bytes = answer.read()
            return content
    except urllib.error.HTTPError as error:
        with error:
            kind = InputError if error.code < 500 else FcerError
            raise kind(f"{url}: {error.code}: {_sentence(error.read()) or error.reason}") from None
    except (OSError, http.client.HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise FcerError(
            f"{url}: no answer ({reason}); see that the server runs there, or give it a longer timeout"
        ) from None


def _sentence(body: bytes) -> str | None:
    """What the model said was wrong, without what MLflow puts before it."""
    try:
        message = parse_json(body)["message"]
    except (ValueError, KeyError, TypeError):
        return None
    return str(message).rpartition("Error: ")[2]


def _maps(url: str, body: bytes) -> Maps:
    try:
        answer: dict[str, Any] = parse_json(body)["predictions"]
        calibrated = Maps._fields[2:4] if "zone" in answer else ()
        names = (*Maps._fields[:2], *calibrated)
        maps: dict[str, Any] = {name: from_text(answer[name], name).astype(np.float32) for name in names}
        return Maps(**maps, guarantees=tuple(map(dict, answer.get("guarantees", ()))))
    except (ValueError, KeyError, TypeError, InputError):
        raise FcerError(f"{url}: the answer is not a student's maps; see which model is served there") from None
