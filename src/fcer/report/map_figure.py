"""Maps of a small and a large fire: what burnt, and what each method says of it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fcer.core.arrays import BoolArray, FloatArray
from fcer.core.regions import PIXEL_METRES
from fcer.evaluation.anchor_words import within_anchor
from fcer.evaluation.results import Results
from fcer.report.cases import Case, case_table, compared_methods, shown_methods
from fcer.report.style import LOOK, Figure, plot_text

__all__ = ["Window", "map_figure", "scale_bar", "uncertainty_limit", "window_around"]

_INK = "#1f1f1f"
"""On maps, which are pale on any page: not the ink of text, which a dark page turns."""
_SCENE = [[0, "#f3f2ee"], [0.5, "#eccb8f"], [1, "#b3402a"]]
_WRONG = [[0, "#f3f2ee"], [1, "#3b3b3b"]]
_BARS_KM = (0.5, 1, 2, 5, 10, 20, 50, 100)
_LEAST_SIDE = 24
_DIGITS = 4


class Window(NamedTuple):
    """A part of an image: rows and columns, the last ones excluded."""

    top: int
    bottom: int
    left: int
    right: int

    def cut(self, image: Any) -> Any:
        """What is seen of an image."""
        return image[self.top : self.bottom, self.left : self.right]


def window_around(region: BoolArray) -> Window:
    """A square around the region with a margin, as far as the image goes."""
    rows, columns = np.flatnonzero(region.any(axis=1)), np.flatnonzero(region.any(axis=0))
    side = int(max(np.ptp(rows), np.ptp(columns))) + 1
    side = max(side + side // 4, _LEAST_SIDE)
    starts = []
    for places, length in ((rows, region.shape[0]), (columns, region.shape[1])):
        middle = (int(places[0]) + int(places[-1]) + 1) // 2
        starts.append(max(min(middle - side // 2, length - side), 0))
    top, left = starts
    return Window(top, min(top + side, region.shape[0]), left, min(left + side, region.shape[1]))


def scale_bar(width: int) -> float:
    """The length in kilometres of a scale bar for a map of some pixels: round, and at most a third of it.

    >>> scale_bar(128), scale_bar(24)
    (10, 2)
    """
    fitting = [length for length in _BARS_KM if length <= width * PIXEL_METRES / 1000 / 3]
    return fitting[-1] if fitting else _BARS_KM[0]


def uncertainty_limit(cases: Sequence[Case]) -> float:
    """The top of the one scale for all uncertainties: the largest that is seen in any map."""
    return max(float(window_around(c.region).cut(unc).max()) for c in cases for unc in c.unc.values()) or 1.0


def map_figure(cases: Sequence[Case], results: Results) -> Figure:
    """A panel for the scene of each case with the reference's errors below, and one for each method's two maps."""
    methods, limit = shown_methods(results.settings), uncertainty_limit(cases)
    panels = {}
    for case in cases:
        for column, method in enumerate((None, *methods)):
            figure = make_subplots(2, 1, subplot_titles=_titles(case, method, results), vertical_spacing=0.12)
            _draw_column(figure, case, method, 1, 1)
            _finish(figure, limit, height=540, bar=0.9 if method else None)
            figure.update_layout(meta=[method] if method else None)
            panels[f"{case.size}_{column}"] = figure
    title = "Maps of two fires" if len(cases) > 1 else "Maps of one fire"
    return Figure(
        "maps",
        title,
        _caption(cases, results),
        case_table(cases),
        panels,
        columns=1 + len(methods),
        digits=_DIGITS,
        whole=lambda: _whole(cases, results, limit),
    )


def _whole(cases: Sequence[Case], results: Results, limit: float) -> go.Figure:
    """Two rows for each case: truth and probabilities, then the reference's errors and uncertainties."""
    columns = (None, *shown_methods(results.settings))
    titles: list[str] = []
    for case in cases:
        upper, lower = zip(*(_titles(case, method, results) for method in columns), strict=True)
        titles += [*upper, *lower]
    n_rows = 2 * len(cases)
    gap = {"vertical_spacing": 0.14 / n_rows, "horizontal_spacing": 0.02}
    figure = make_subplots(n_rows, len(columns), subplot_titles=titles, **gap)
    for place, case in enumerate(cases):
        for column, method in enumerate(columns, start=1):
            _draw_column(figure, case, method, 2 * place + 1, column)
    _finish(figure, limit, height=300 * n_rows + 90, bar=0.42)
    figure.update_layout(width=290 * len(columns))
    return figure


def _titles(case: Case, method: str | None, results: Results) -> tuple[str, str]:
    """Of the upper and the lower map of a method, or of the scene and the errors."""
    if method is None:
        return _scene_title(case), f"errors of {plot_text(results.settings.reference)}"
    return f"{plot_text(method)}:<br>probability", f"{plot_text(method)}:<br>uncertainty"


def _scene_title(case: Case) -> str:
    name = "<br>".join(plot_text(part) for part in (case.fire_id, case.date) if part) or f"image {case.index}"
    return f"{case.size} fire, {case.year}<br>{name}"


def _caption(cases: Sequence[Case], results: Results) -> str:
    pair = compared_methods(results.settings.own_methods)
    what = f"difference in AUROC ({pair[0]} less {pair[1]})" if len(pair) > 1 else f"AUROC of {pair[0]}"
    scores = "; ".join(f"{case.size} {case.score:+.3f}, mean {case.pool_mean:+.3f}" for case in cases)
    return (
        f"A good uncertainty is dark where the errors are: the first map shows the scene with the fire in red and the "
        f"region {within_anchor(results.settings)} in sand, the others the framed part with the fire's "
        f"outline and the region's (dotted), all uncertainties on one scale. Shown is the fire of each size whose "
        f"{what} is closest to the mean of its size ({scores}).{_left_out(results)}"
    )


def _left_out(results: Results) -> str:
    shown = shown_methods(results.settings)
    missing = [method for method in results.settings.own_methods if method not in shown]
    return f" For want of room there are no maps of {', '.join(missing)}." if missing else ""


def _draw_column(figure: go.Figure, case: Case, method: str | None, row: int, column: int) -> None:
    """The two maps of a method below one another; without one, the scene and the reference's errors."""
    window = window_around(case.region)
    if method is not None:
        for offset, values in enumerate((case.prob[method], case.unc[method])):
            axis = {"coloraxis": ("coloraxis", "coloraxis2")[offset]}
            _draw_map(figure, values.astype(np.float32), window, row + offset, column, axis)
            _draw_outlines(figure, case, window, row + offset, column)
        return
    whole = Window(0, case.fire.shape[0], 0, case.fire.shape[1])
    scene = case.fire.astype(np.uint8) + case.region
    _draw_map(figure, scene, whole, row, column, {"colorscale": _SCENE, "zmin": 0, "zmax": 2, "showscale": False})
    frame = {"x0": window.left - 0.5, "x1": window.right - 0.5, "y0": window.top - 0.5, "y1": window.bottom - 0.5}
    figure.add_shape(type="rect", **frame, line={"color": _INK, "width": 1}, row=row, col=column)
    wrong = {"colorscale": _WRONG, "zmin": 0, "zmax": 1, "showscale": False}
    _draw_map(figure, case.error.astype(np.uint8), window, row + 1, column, wrong)
    _draw_outlines(figure, case, window, row + 1, column)


def _draw_map(
    figure: go.Figure, values: FloatArray | Any, window: Window, row: int, column: int, colours: dict[str, Any]
) -> None:
    seen = window.cut(values)
    figure.add_heatmap(
        z=seen, x0=window.left, y0=window.top, dx=1, dy=1, hovertemplate="%{z:.3f}<extra></extra>", **colours,
        row=row, col=column,
    )  # fmt: skip
    height, width = seen.shape
    length = scale_bar(width)
    start, level = window.left + 0.04 * width, window.bottom - 0.06 * height
    line = {"color": _INK, "width": 3}
    end = start + length * 1000 / PIXEL_METRES
    figure.add_shape(type="line", x0=start, x1=end, y0=level, y1=level, line=line, row=row, col=column)
    note = {"text": f"{length:g} km", "showarrow": False, "yanchor": "bottom", "xanchor": "left"}
    note["font"] = {"color": _INK, "size": 11}
    figure.add_annotation(x=start, y=level, **note, row=row, col=column)


def _draw_outlines(figure: go.Figure, case: Case, window: Window, row: int, column: int) -> None:
    for mask, dash, width in ((case.fire, "solid", 1.3), (case.region, "dot", 1)):
        figure.add_contour(
            z=window.cut(mask).astype(np.uint8),
            x0=window.left,
            y0=window.top,
            dx=1,
            dy=1,
            contours={"start": 0.5, "end": 0.5, "size": 1, "coloring": "none"},
            line={"color": _INK, "width": width, "dash": dash},
            showscale=False,
            showlegend=False,
            hoverinfo="skip",
            row=row,
            col=column,
        )


def _finish(figure: go.Figure, limit: float, *, height: int, bar: float | None) -> None:
    """The look; scales as long as the share `bar` of the width: beside each other, or if long below one another."""
    length = bar or 0.9
    apart = {"x": (0.25, 0.75), "y": (-0.01, -0.01)} if length < 0.5 else {"x": (0.5, 0.5), "y": (-0.01, -0.12)}
    style = {"orientation": "h", "thickness": 10, "len": length, "yanchor": "top", "outlinewidth": 0}
    bars = [{**style, "x": apart["x"][k], "y": apart["y"][k], "tickfont": {"size": 10}} for k in (0, 1)]
    figure.update_layout(
        **LOOK,
        height=height,
        margin={"l": 4, "r": 4, "t": 60, "b": 72 if length < 0.5 else 104},
        coloraxis={
            "colorscale": "Oranges",
            "cmin": 0,
            "cmax": 1,
            "colorbar": {**bars[0], "title": {"text": "fire probability", "side": "bottom"}},
        },
        coloraxis2={
            "colorscale": "Blues",
            "cmin": 0,
            "cmax": limit,
            "colorbar": {**bars[1], "title": {"text": "uncertainty, one scale", "side": "bottom"}},
        },
    )
    if bar is None:
        figure.update_layout(coloraxis_showscale=False, coloraxis2_showscale=False)
    for note in figure.layout.annotations[: len(figure._grid_ref) * len(figure._grid_ref[0])]:
        note.font.size = 11
    axis = {"showgrid": False, "zeroline": False, "showticklabels": False, "ticks": "", "constrain": "domain"}
    figure.update_xaxes(**axis)
    figure.update_yaxes(**axis, autorange="reversed")
    # square pixels: each map's rows are as high as its columns are wide
    for place in range(1, len(figure.layout.annotations) + 1):
        name = "" if place == 1 else str(place)
        if f"xaxis{name}" in figure.layout:
            figure.layout[f"yaxis{name}"].update(scaleanchor=f"x{name}", scaleratio=1)
