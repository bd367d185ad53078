"""What became of every detection, as a page for the terminal and as numbers for a file."""

import json
from dataclasses import asdict
from pathlib import Path

from fcer.data.detections.ingest import Ingested
from fcer.runtime.files import write_text

__all__ = ["to_text", "write_account"]

ACCOUNT = "ingest.json"


def to_text(done: Ingested) -> str:
    """Read, dropped by each rule, in fires: the numbers add up. Then the fires, and how well satellites agree."""
    rows = [(f"read from {Path(file).name}", n) for file, n in done.read.items()]
    rows += [(f"dropped: {rule}", -n) for rule, n in done.dropped.items()]
    width = max(len(name) for name, _ in rows)
    rows.append((f"in {len(done.fires)} fires", done.in_fires))
    lines = [f"{name:<{width}}{f'{n:,}'.replace(',', ' '):>12}" for name, n in rows]
    pixels = sum(fire.pixels for fire in done.fires)
    lines += ["", f"{'fire':<30}{'detections':>12}{'fire pixels':>13}{'days':>6}{'missing':>9}{'image':>11}"]
    lines += [
        f"{fire.path.stem:<30}{fire.detections:>12}{fire.pixels:>13}{len(fire.days):>6}{len(fire.missing):>9}"
        f"{fire.grid.height:>7}x{fire.grid.width}"
        for fire in done.fires
    ]
    lines.append(f"{'in all':<30}{done.in_fires:>12}{pixels:>13}")
    if done.agreement:
        (a, b), (first, second) = done.agreement.satellites, done.agreement.shares
        lines += ["", f"fire pixels of {a} within a pixel of {b}'s, same day: {first:.0%}; the other way: {second:.0%}"]
    if done.incomplete:
        lines.append(f"{done.incomplete} is not over in these files and was set aside: it is never a label")
    lines.append(f"last full day: {done.last_full_day}; {len(done.active())} fires burnt on it")
    return "\n".join(lines)


def write_account(done: Ingested, out: Path) -> Path:
    """The same as JSON beside the fires."""
    fires = [
        {
            "fire": f"{fire.path.parent.name}/{fire.path.stem}",
            "detections": fire.detections,
            "pixels": fire.pixels,
            "days": [str(day) for day in fire.days],
            "missing": [str(day) for day in fire.missing],
            "last_seen": str(fire.last_seen),
            "agreement": fire.agreement and asdict(fire.agreement),
        }
        for fire in done.fires
    ]
    said = {
        "read": {Path(file).name: n for file, n in done.read.items()},
        "dropped": done.dropped,
        "in_fires": done.in_fires,
        "incomplete_day": done.incomplete and str(done.incomplete),
        "last_full_day": str(done.last_full_day),
        "problems": done.problems,
        "agreement": done.agreement and asdict(done.agreement),
        "fires": fires,
    }
    return write_text(out / ACCOUNT, json.dumps(said, indent=1) + "\n")
