"""Addresses as they may be shown: without their passwords."""

import re

__all__ = ["masked"]

_USER = re.compile(r"(:/{1,2}[^\s:/]*):\S*@")
"""A password ends with the last @, since it may hold one itself."""
_QUERY = re.compile(r"([?&;][\w.-]*(?:passw|pwd|passphrase|token|secret|key)[\w.-]*=)[^&;\s'\"]*", re.IGNORECASE)


def masked(text: str) -> str:
    """The text with *** for every password in an address, be it before the host or among the parameters.

    Examples
    --------
    >>> masked("postgresql://me:p@ss@host/db?sslmode=require&password=p")
    'postgresql://me:***@host/db?sslmode=require&password=***'
    """
    return _QUERY.sub(r"\1***", _USER.sub(r"\1:***@", text))
