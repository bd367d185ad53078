"""What a study's page says before its plots: the best setting against the paper's, as a sentence and a table."""

import html
from collections.abc import Sequence

import optuna

from fcer.search.space import Space
from fcer.search.study import SCORES, best_trial, paper_trial, progress_of

__all__ = ["FEW", "against_paper", "markdown_of", "opening"]

FEW = 20
"""Complete trials below which importances are a guess."""


def against_paper(study: optuna.Study, objective: str) -> str:
    """The best trial and what it gained, in a sentence or two."""
    trials = study.get_trials(deepcopy=False)
    best, paper, done = best_trial(trials), paper_trial(trials), progress_of(trials)
    if best is None:
        return f"None of {done.done} trials is complete."
    counts = f"{done.complete} complete, {done.pruned} pruned, {done.failed} failed"
    said = f"Trial {best.number} is the best of {done.done} ({counts}): validation {objective} {best.values[0]:.4f}"
    if paper is None:
        return f"{said}; the paper's setting has no score."
    if paper.number == best.number:
        return f"{said}, which is the paper's setting: nothing that was tried is better."
    return (
        f"{said}, {best.values[0] - paper.values[0]:+.4f} against the paper's setting ({paper.values[0]:.4f}). It was "
        "chosen by these very numbers: whether it is better is for the test year to say."
    )


def rows(study: optuna.Study, space: Space) -> list[tuple[str, str, str]]:
    """What is compared, the paper's and the best: settings first, then scores."""
    trials = study.get_trials(deepcopy=False)
    best, paper = best_trial(trials), paper_trial(trials)
    if best is None or paper is None:
        return []
    ours, theirs = (space.settings(trial.params) for trial in (best, paper))
    scored, before = (trial.user_attrs.get(SCORES, {}) for trial in (best, paper))
    settings = [(name, _shown(theirs.get(name, "")), _shown(value)) for name, value in ours.items()]
    return [*settings, *((name, _shown(before.get(name, "")), _shown(value)) for name, value in scored.items())]


def opening(study: optuna.Study, space: Space, objectives: Sequence[str]) -> str:
    """The sentence and the table, as HTML."""
    body = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{html.escape(paper)}</td><td>{html.escape(best)}</td></tr>"
        for name, paper, best in rows(study, space)
    )
    head = "<tr><th></th><th>the paper's</th><th>the best</th></tr>"
    table = f"<table>{head}{body}</table>" if body else ""
    return f"<p>{html.escape(against_paper(study, objectives[0].upper()))}</p>\n{table}"


def markdown_of(study: optuna.Study, space: Space, objectives: Sequence[str]) -> str:
    """The same as Markdown."""
    lines = [f"| {name} | {paper} | {best} |" for name, paper, best in rows(study, space)]
    head = ["| | the paper's | the best |", "|:---|---:|---:|"] if lines else []
    return "\n".join([against_paper(study, objectives[0].upper()), "", *head, *lines])


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return " ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)
