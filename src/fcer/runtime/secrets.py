"""Texts that may hold an address with a password, made fit to be printed, logged and kept."""

import re
from urllib.parse import unquote

__all__ = ["masked"]

_HIDDEN = "***"
_SECRET = re.compile(r"pass|pwd|secret|token|credential|signature|api_?key|access_?key|^(auth|sig|key)$", re.IGNORECASE)
"""Names of query parameters whose values nobody else should see."""
_SCHEME = r"[A-Za-z][\w+.-]{0,40}://"
"""Of bounded length, or a long word would be searched once from each of its letters."""
_PORT = r"(?!\d+(?:\W|$))"
_SPACED = rf"(?!\[)[^\s:/?#@]*:{_PORT}[^\s@](?:(?!://)[^@\n]){{0,100}}@"
"""A user and a password that may have blanks: a colon that no port follows, and an @ on the same line."""
_ADDRESS = re.compile(rf"{_SCHEME}(?:{_SPACED})?\S+")
_SCHEMELESS = re.compile(rf"(?<![\w:/.])//(?!\[)[^\s:/?#@]+:{_PORT}\S+@\S+")
_DATABASE = re.compile(rf"(?!https?:){_SCHEME}.*", re.IGNORECASE | re.DOTALL)
_PARAMETER = re.compile(r"(?<=[?&;])([^=&;#]+)=([^&;#]*)")


def masked(text: str) -> str:
    """The text with the secrets of every address in it replaced by ***.

    In the address of a database, all before the last @ is a user and a password, whatever signs the password has. On
    the web, a user without a password is often a token, and is hidden too.

    >>> masked("postgresql://fcer:p@s/s w@db:5432/studies")
    'postgresql://fcer:***@db:5432/studies'
    >>> masked("at mysql://fcer:two words@db/studies no answer, nor does //fcer:hidden@db")
    'at mysql://fcer:***@db/studies no answer, nor does //fcer:***@db'
    >>> masked("see mysql://db/studies?user=fcer&password=hidden and https://token@host:5000/path")
    'see mysql://db/studies?user=fcer&password=*** and https://***@host:5000/path'
    """
    # A text that is all one database's address may have anything in its password
    if _DATABASE.fullmatch(text):
        return _masked_address(text)
    text = _SCHEMELESS.sub(lambda one: _masked_address(f"x:{one[0]}")[2:], text)
    return _ADDRESS.sub(lambda one: _masked_address(one[0]), text)


def _masked_address(address: str) -> str:
    scheme, _, rest = address.partition("://")
    web = scheme.lower() in ("http", "https")
    # On the web the host ends with the first of these signs; databases' addresses are read less strictly
    end = re.search(r"[/?#]", rest) if web else None
    place, tail = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
    user, at, host = place.rpartition("@")
    if not at or _is_host(user):
        return f"{scheme}://{_without_secrets(rest)}"
    name, colon, _ = user.partition(":")
    shown = f"{name}:{_HIDDEN}" if colon else _HIDDEN if web else name
    return f"{scheme}://{shown}@{_without_secrets(host + tail)}"


def _is_host(text: str) -> bool:
    """Whether what stands before an @ is no user: a file's path, or a host with its port, path and query."""
    return bool(re.match(r"/|[^:/?#@]*[/?#]|[^:/?#@]*:\d+(/[^?]*)?\?", text))


def _without_secrets(text: str) -> str:
    """With the values of those query parameters hidden that are secret by their names."""
    return _PARAMETER.sub(lambda one: f"{one[1]}={_HIDDEN}" if _SECRET.search(unquote(one[1])) else one[0], text)
