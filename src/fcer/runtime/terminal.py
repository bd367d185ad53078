"""Text for a terminal or log that may know less than Unicode, from files that may hold anything."""

import io
import sys
import time

__all__ = ["NowAndThen", "one_line", "safe_stdout"]


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


class NowAndThen:
    """Where no terminal shows a bar, a line from time to time: whoever reads a log is to see that work goes on."""

    def __init__(self, total: int, seconds: float = 60.0) -> None:
        self._total, self._seconds = total, seconds
        self._begun = self._told = time.monotonic()

    def line(self, done: int) -> str | None:
        """How far it is and how long it takes at most, where it is time to say so."""
        now = time.monotonic()
        if sys.stderr.isatty() or now - self._told < self._seconds or not done:
            return None
        self._told = now
        left = (now - self._begun) / done * (self._total - done)
        return f"epoch {done} of {self._total}, {max(1, round(left / 60))} min left at most"
