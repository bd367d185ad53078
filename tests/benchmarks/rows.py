"""The one table that all benchmarks write: what was measured, the least or most that is promised, and the verdict.

A floor or a limit holds on any machine, and a row beyond it fails the run. An aim is what this is built for, on a
processor that can; where it is not reached, the end of the table says so.
"""

import json
import math
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

__all__ = ["ROWS", "Row", "broken", "grows", "header", "hold", "show", "summary", "write_json"]


@dataclass(frozen=True)
class Row:
    """A ratio that should reach a floor, or a value that should keep a limit."""

    what: str
    value: float
    floor: float | None = None
    limit: float | None = None
    aim: float | None = None
    plain_s: float | None = None
    ours_s: float | None = None
    note: str = ""
    points: list[dict[str, float]] = field(default_factory=list)
    """Size, seconds and MB, of what was measured at several sizes."""

    @property
    def kept(self) -> bool:
        """Whether it is as promised; what could not be measured is not."""
        return _within(self.value, self.floor, self.limit)

    @property
    def reached(self) -> bool:
        """Whether the aim is: a factor to keep low has a limit, one to drive up has none."""
        return _within(self.value, None, self.aim) if self.limit is not None else _within(self.value, self.aim, None)

    def __str__(self) -> str:
        times = "".join(f"{'' if s is None else f'{1e3 * s:.1f}':>10}" for s in (self.plain_s, self.ours_s))
        bounds = (self.floor, self.limit, self.aim)
        shown = "".join(f"{'' if bound is None else f'{bound:g}':>8}" for bound in bounds)
        verdict = "SHORT" if not self.kept else "ok" if self.reached else "below"
        return f"{self.what:<72}{times}{self.value:>9.2f}{shown}  {verdict:<5}  {self.note}"


def _within(value: float, least: float | None, most: float | None) -> bool:
    """Whether it lies between the bounds that there are; what is not a number never does."""
    return (-math.inf if least is None else least) <= value <= (math.inf if most is None else most)


ROWS: list[Row] = []
"""Of this run, in their order."""


def header() -> str:
    """The line above the table."""
    return f"{'':<72}{'plain ms':>10}{'fcer ms':>10}{'value':>9}{'floor':>8}{'limit':>8}{'aim':>8}"


def _add(row: Row) -> None:
    ROWS.append(row)
    print(row, flush=True)


def show(
    what: str, ours: float, theirs: float, floor: float | None, note: str = "", *, aim: float | None = None
) -> None:
    """How many times as fast as the plain way; without a floor it is for information."""
    _add(Row(what, theirs / ours, floor=floor, aim=aim, plain_s=theirs, ours_s=ours, note=note))


def hold(what: str, value: float, limit: float | None, note: str = "", *, aim: float | None = None) -> None:
    """A share, a factor or a size, and the most that it may be."""
    _add(Row(what, value, limit=limit, aim=aim, note=note))


def grows(what: str, unit: str, points: Sequence[tuple[float, float, float]], limit: float = 1.15) -> None:
    """Time against size: the power of the size that it grows with, 1 where it is in proportion.

    Points are size, seconds and peak memory in MB. What a process begins with makes the power smaller, never larger.
    """
    (first, fast, _), (last, slow, _) = points[0], points[-1]
    slope = math.log(slow / fast) / math.log(last / first)
    told = "; ".join(f"{size:g} {unit} {seconds:.2f} s {memory:.0f} MB" for size, seconds, memory in points)
    kept = [{"size": size, "seconds": seconds, "mb": memory} for size, seconds, memory in points]
    _add(Row(f"{what}: growth with {unit}, power", slope, limit=limit, note=told, points=kept))


def broken(name: str, error: BaseException) -> None:
    """A benchmark that could not be run falls short."""
    _add(Row(name, math.nan, floor=0.0, note=f"{type(error).__name__}: {error}"))


def summary() -> str:
    """The last lines: what fell short, and which aims were not reached."""
    short = [row for row in ROWS if not row.kept]
    below = [row for row in ROWS if row.kept and not row.reached]
    lines = [f"{len(short)} of {len(ROWS)} rows fell short:"] if short else [f"all {len(ROWS)} rows are as promised"]
    lines += [f"  {row}" for row in short]
    if below:
        lines += [f"{len(below)} of them do not reach their aim on this machine:", *(f"  {row}" for row in below)]
    return "\n".join(lines)


def write_json(path: Path) -> None:
    """All rows, and what they were measured on."""
    machine = {"processor": platform.machine(), "cores": os.cpu_count(), "load": os.getloadavg()}
    rows = [{**asdict(row), "kept": row.kept, "reached": row.reached} for row in ROWS]
    for row in rows:
        row["value"] = None if math.isnan(row["value"]) else row["value"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")
