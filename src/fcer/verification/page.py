"""The record as one small HTML page: what is promised, what was seen, day by day."""

import html
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from fcer.report.markup import note, section, table, table_row
from fcer.runtime.files import atomic_path
from fcer.verification.alarms import KINDS, SEASON_RATE, Season
from fcer.verification.days import Day, days_of
from fcer.verification.truth import MISSING, SEEN, WAITING

__all__ = ["write_page"]

_STYLE = (
    "body{font:15px/1.45 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;font-size:13px}td,th{padding:.2rem .6rem;text-align:right}"
    "th:first-child,td:first-child{text-align:left;white-space:nowrap}tr:nth-child(even){background:#f6f6f6}.wide{overflow-x:auto}"
    ".alarm{color:#b00020;font-weight:600}.note{color:#6b6b6b}svg{width:100%;height:7rem}"
)
_CHARTED = {
    "verify/ap": "AP",
    "verify/lift": "AP against persistence",
    "verify/nll_skill": "NLL skill",
    "verify/auroc": "AUROC of errors",
}
_WIDE, _HIGH = 1000, 100


def write_page(path: Path, record: pd.DataFrame, seasons: Sequence[Season]) -> None:
    """One section a student and season; the file appears once it is whole."""
    counts = record["status"].value_counts()
    said = ", ".join(f"{int(counts.get(status, 0))} {status}" for status in (SEEN, WAITING, MISSING))
    if (record["synthetic"] != "").any():
        said += ". These fires are synthetic: they never burnt."
    body = [f"<h1>Forecasts, and what burnt</h1><p>{said}</p>", *(_season(record, season) for season in seasons)]
    page = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Forecasts, and what burnt</title>'
        f"<style>{_STYLE}</style></head><body>\n" + "\n".join(body) + "\n</body></html>\n"
    )
    with atomic_path(path) as partial:
        partial.write_text(page, encoding="utf-8")


def _season(record: pd.DataFrame, season: Season) -> str:
    days = days_of(record, season)
    alarm = f'<p class="alarm">{html.escape(season.sentence)}</p>' if season.alarms else "<p>No alarm.</p>"
    untested = f"; nothing is promised, or was seen, of: {', '.join(season.untested)}" if season.untested else ""
    about = note(
        "Alarms are sequential tests by fire, which may be looked at daily: all kinds together raise a false one in at "
        f"most {SEASON_RATE:.0%} of quiet seasons. alarm/KIND: evidence (its logarithm), 1 raises one{untested}."
    )
    return section(f"{season.model}, {season.year}: {season.fires} fires", alarm, *_charts(days), _table(days), about)


def _charts(days: Sequence[Day]) -> list[str]:
    found = []
    for name, title in _CHARTED.items():
        points = [(k, day.metrics[name]) for k, day in enumerate(days) if name in day.metrics]
        if len(points) > 1:
            low, high = min(y for _, y in points), max(y for _, y in points)
            line = " ".join(
                f"{_WIDE * k / (len(days) - 1):.1f},{_HIGH - (_HIGH - 10) * (y - low) / ((high - low) or 1) - 5:.1f}"
                for k, y in points
            )
            span = f"{days[0].day} to {days[-1].day}"
            label = html.escape(f"{title}, day by day, {span}: between {low:.3f} and {high:.3f}")
            found.append(
                f'<p>{label}</p><svg viewBox="0 0 {_WIDE} {_HIGH}" preserveAspectRatio="none" role="img" '
                f'aria-label="{label}"><polyline points="{line}" fill="none" stroke="#0072b2" stroke-width="2"/></svg>'
            )
    return found


def _shown(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _table(days: Sequence[Day]) -> str:
    names = list(dict.fromkeys(name for day in days for name in day.metrics))
    order = {f"alarm/{kind}": k for k, kind in enumerate(KINDS)}
    names.sort(key=lambda name: order.get(name, -1))
    rows = [table_row([str(day.day)], [_shown(day.metrics.get(name)) for name in names]) for day in days]
    return table(["day", *(name.removeprefix("verify/") for name in names)], [rows])
