"""What came of a study: its trials as a table, what mattered, and optuna's plots on one page."""

import html
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import optuna
import yaml
from optuna import visualization
from optuna.importance import get_param_importances
from optuna.trial import FrozenTrial, TrialState
from plotly.offline import get_plotlyjs

from fcer.runtime.csv_cells import rows_text
from fcer.runtime.files import atomic_path
from fcer.search.liveness import WORKER
from fcer.search.page import FEW, opening
from fcer.search.references import SCORE_NAMES, reference_rows, references_section
from fcer.search.space import Space
from fcer.search.study import FAILURE, PAPER, RETRY_OF, SCORES, counts

__all__ = ["importances", "plots_page", "settings_yaml", "trials_csv", "write_results"]

_SLICES = 4
"""Settings that a row of plots has room for."""
_SCORES = ("auroc", "auroc_within", "auprc", "fidelity", "epoch", "fit_seconds")


def write_results(folder: Path, study: optuna.Study, space: Space, objectives: Sequence[str]) -> list[Path]:
    """The table and the page in `folder`, each whole or not at all."""
    texts = {
        "trials.csv": trials_csv(study.get_trials(deepcopy=False), space, reference_rows(study)),
        "plots.html": plots_page(study, objectives, opening(study, space, objectives)),
    }
    for name, text in texts.items():
        with atomic_path(folder / name) as partial:
            partial.write_text(text, encoding="utf-8")
    return [folder / name for name in texts]


def trials_csv(trials: Sequence[FrozenTrial], space: Space, references: Sequence[Mapping[str, Any]] = ()) -> str:
    """All trials, one a row; `counts` says which are among those that were asked for.

    Beside them, the same in every row, what needs no head scores on the same pixels: the backbone's entropy and its
    probability.
    """
    searched = list(dict.fromkeys(name for trial in trials for name in space.settings(trial.params)))
    beside = {f"{row['name']}_{score}": row[score] for row in references for score in ("auroc", "auroc_within")}
    columns = ["number", "state", "counts", "paper", *_SCORES, *beside, *searched]
    columns += ["retry_of", "failure", "worker", "started", "ended"]
    rows = []
    for trial in trials:
        attributes = trial.user_attrs
        settings = {name: _plain(value) for name, value in space.settings(trial.params).items()}
        rows.append(
            {
                "number": trial.number,
                "state": trial.state.name.lower(),
                "counts": str(counts(trial)).lower(),
                "paper": str(PAPER in attributes).lower(),
                **{name: attributes.get(SCORES, {}).get(name, "") for name in _SCORES},
                **beside,
                **settings,
                "retry_of": attributes.get(RETRY_OF, ""),
                "failure": attributes.get(FAILURE, ""),
                "worker": ":".join(map(str, attributes.get(WORKER, [])[:2])),
                "started": trial.datetime_start or "",
                "ended": trial.datetime_complete or "",
            }
        )
    return rows_text(rows, columns)


def importances(study: optuna.Study) -> dict[str, float]:
    """How much of the differences in AUROC each dimension explains (PED-ANOVA); empty where too few trials tell."""
    scores = {trial.values[0] for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))}
    if len(scores) < 2:
        return {}
    with _quiet_optuna():
        return get_param_importances(study, target=_first_value)


def plots_page(study: optuna.Study, objectives: Sequence[str], first: str = "") -> str:
    """Optuna's plots as one HTML page that needs nothing but itself, below what is to be said `first`."""
    sections = "\n".join(
        f"<h2>{html.escape(title)}</h2>\n{_markup(figure)}" for title, figure in _figures(study, objectives).items()
    )
    title = html.escape(f"Study {study.study_name}")
    style = "body{font-family:sans-serif;max-width:1100px;margin:2em auto;padding:0 1em}td,th{padding:2px 1em}"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        f"<style>{style}</style>\n<script>{get_plotlyjs()}</script></head>\n<body><h1>{title}</h1>\n"
        f"{first}\n{references_section(study)}{sections}\n</body></html>\n"
    )


def _figures(study: optuna.Study, objectives: Sequence[str]) -> dict[str, Any]:
    name = SCORE_NAMES[objectives[0]]
    target: dict[str, Any] = {"target": _first_value, "target_name": f"validation {name}"}
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if not complete:
        return {}
    plots: dict[str, Callable[[], Any]] = {
        "History": lambda: _history(study, target),
        "Settings together": lambda: visualization.plot_parallel_coordinate(study, **target),
        "Time line": lambda: visualization.plot_timeline(study),
    }
    searched = sorted({name for trial in complete for name in trial.params})
    for k in range(0, len(searched), _SLICES):
        some = searched[k : k + _SLICES]  # all side by side would not fit the page
        plots[f"Each setting: {', '.join(some)}"] = partial(visualization.plot_slice, study, some, **target)
    if len({trial.values[0] for trial in complete}) > 1:
        caution = f" (a guess: below {FEW} complete trials)" if len(complete) < FEW else ""
        plots[f"Importance{caution}"] = lambda: visualization.plot_param_importances(study, **target)
    if len(objectives) > 1:
        plots["Pareto front"] = lambda: visualization.plot_pareto_front(study, target_names=list(objectives))
    else:
        plots["Curves"] = lambda: visualization.plot_intermediate_values(study)
    with _quiet_optuna():
        return {title: plot() for title, plot in plots.items()}


def _history(study: optuna.Study, target: dict[str, Any]) -> Any:
    """Trials and the best so far; beside them what was pruned, at its last value, and the paper's setting."""
    figure = visualization.plot_optimization_history(study, **target)
    trials = study.get_trials(deepcopy=False)
    done = [(trial.number, trial.values[0]) for trial in trials if trial.state is TrialState.COMPLETE]
    best = list(accumulate((value for _, value in done), max))
    figure.add_scatter(x=[number for number, _ in done], y=best, mode="lines", name="best so far")
    marked = {
        "pruned, last value": [(t.number, _last(t)) for t in trials if t.state is TrialState.PRUNED and _last(t)],
        "the paper's setting": [(t.number, t.values[0]) for t in trials if PAPER in t.user_attrs and t.values],
    }
    for name, symbol in zip(marked, ("x", "star"), strict=True):
        if marked[name]:
            x, y = zip(*marked[name], strict=True)
            figure.add_scatter(x=x, y=y, mode="markers", name=name, marker={"symbol": symbol, "size": 10})
    return figure


def _last(trial: FrozenTrial) -> float | None:
    last = trial.last_step
    return None if last is None else trial.intermediate_values[last]


def _markup(figure: Any) -> str:
    """As wide as the page, whatever width Optuna had in mind."""
    figure.update_layout(width=None, autosize=True)
    return str(figure.to_html(full_html=False, include_plotlyjs=False, default_width="100%"))


def _first_value(trial: FrozenTrial) -> float:
    return float(trial.values[0])


def _quiet_optuna() -> "warnings.catch_warnings[None]":
    """Optuna warns of settings that few trials have tried; the plots show it."""
    return warnings.catch_warnings(action="ignore", category=UserWarning)


def _plain(value: Any) -> Any:
    return " ".join(map(str, value)) or "none" if isinstance(value, tuple) else value


def settings_yaml(settings: Mapping[str, Any], heading: str) -> str:
    """Settings as a configuration that `--config` reads."""
    plain = {
        key: list(value) if isinstance(value, tuple) else str(value) if isinstance(value, Path) else value
        for key, value in settings.items()
    }
    return f"# {heading}\n{yaml.safe_dump(plain, sort_keys=False)}"
