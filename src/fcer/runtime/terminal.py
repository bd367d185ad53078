"""Text for a terminal or log that may know less than Unicode, from files that may hold anything."""

import io
import sys

__all__ = ["one_line", "safe_stdout"]


def safe_stdout() -> None:
    """Let what a terminal or log in ASCII cannot show (`±`) become `?`, instead of ending the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a notebook's or a test's own streams take any text
            stream.reconfigure(errors="replace")


def one_line(text: str) -> str:
    r"""The text in one line, without characters that a terminal would obey: names in files can hold any.

    >>> one_line("fire\x1b[2J:\n  no \0data")
    'fire?[2J: no ?data'
    """
    return "".join(character if character.isprintable() else "?" for character in " ".join(text.split()))
