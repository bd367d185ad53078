"""What a fire manager reads first: two short sentences, and one figure."""

from collections.abc import Mapping, Sequence

import pandas as pd

from fcer.core.regions import PIXEL_METRES
from fcer.evaluation.results import Results
from fcer.evaluation.verdict import Standing, standing
from fcer.report.style import DASHED, Figure, Look, panel, plot_text

__all__ = ["first_figure", "first_sentences"]

_METRICS = {"auroc": "all pixels", "auroc_within": "pixels predicted alike"}
_UNDEFINED = "Near the fire the forecast's pixels are all right, or all wrong: no uncertainty can be judged by them."


def first_sentences(results: Results) -> list[str]:
    """How well the best uncertainty finds errors near the fire, and what does as well; as the paired tests say."""
    found = standing(results, "auroc")
    if found is None:
        return [_UNDEFINED]
    best = found.leading[0]
    kilometres = results.settings.anchor_px * PIXEL_METRES / 1000
    return [
        f"Of a wrong and a right pixel of the forecast within {kilometres:.3g} km of fire, the uncertainty of {best} "
        f"points at the wrong one {100 * found.scores[best]:.0f} times in 100; guessing would 50 times.",
        _compared(found),
    ]


def _compared(found: Standing) -> str:
    on = f"On {found.n} {found.unit}s"
    if len(found.methods) == 1 and not found.controls:
        return f"{on}, with no other method beside it."
    rivals = [*found.leading[1:], *(_in_words(name) for name in found.equal_controls)]
    if rivals:
        return f"{on} that is not clearly better than {_listed(rivals)}."
    if not found.is_clear:
        return f"{on} it cannot be told from the other methods."
    beaten = "any other method" if len(found.methods) > 1 else "any control"
    return f"{on} that is clearly better than {beaten}{', controls included' if found.controls else ''}."


def _in_words(control: str) -> str:
    """A control as somebody knows it who has not read the paper."""
    known = {
        "probability": "the fire probability alone",
        "boundary_distance": "the distance from the predicted edge",
        "today_distance": "the distance from today's fire",
    }
    return known.get(control, control)


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]


def first_figure(results: Results, style: Mapping[str, Look]) -> Figure:
    """How often each method finds the wrong one of two pixels at the anchor, with 95% intervals where there are any."""
    data = _scores(results)
    methods = [method for method in style if method in set(data["method"])]
    plot = panel("The wrong one of two pixels is found", "times in 100", "", height=110 + 34 * len(methods))
    for place, method in enumerate(methods):
        colour = style[method].colour
        for metric, symbol, shift in (("auroc", "circle", -0.13), ("auroc_within", "circle-open", 0.13)):
            rows = data[(data["method"] == method) & (data["metric"] == metric)].dropna(subset="value")
            spread = {
                "type": "data",
                "symmetric": False,
                "array": 100 * (rows["ci_high"] - rows["value"]),
                "arrayminus": 100 * (rows["value"] - rows["ci_low"]),
                "thickness": 1.5,
                "width": 3,
            }
            plot.add_scatter(
                x=100 * rows["value"],
                y=[place + shift] * len(rows),
                error_x=spread if rows["ci_low"].notna().any() else None,
                mode="markers",
                marker={"symbol": symbol, "size": 9, "color": colour, "line": {"width": 1.5, "color": colour}},
                name=plot_text(method),
                legendgroup=method,
                showlegend=False,
                hovertemplate=f"{_METRICS[metric]}: %{{x:.1f}} in 100<extra>%{{fullData.name}}</extra>",
            )
    plot.add_vline(50, line=DASHED)
    ticks = {"tickmode": "array", "tickvals": list(range(len(methods))), "ticktext": [plot_text(m) for m in methods]}
    plot.update_yaxes(**ticks, range=[len(methods) - 0.5, -0.5], title_text="")
    plot.update_layout(margin={"b": 48})
    caption = (
        "Further right is better; dashed is guessing. Filled: of all pixels near the fire, which mixes what was "
        "predicted with how sure it was. Open: of pixels that were predicted alike, where only how sure it was counts. "
        "Bars: 95% intervals, drawing fires."
    )
    return Figure("headline", "In short", caption, data, {"headline": plot})


def _scores(results: Results) -> pd.DataFrame:
    """Mean over years, with the interval of that mean where it was drawn (of one year: of that year)."""
    years = results.settings.years
    scope = "mean" if len(years) > 1 else str(years[0])
    drawn = results.intervals
    drawn = drawn[(drawn["scope"] == scope) & (drawn["b"] == "")]
    means = results.over_years("anchor")
    rows = means.melt("method", list(_METRICS), var_name="metric", value_name="value")
    intervals = drawn[["metric", "a", "ci_low", "ci_high"]].rename(columns={"a": "method"})
    return rows.merge(intervals, on=["method", "metric"], how="left")
