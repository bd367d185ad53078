"""What a search is held to: scores that need no head. A head that merely learnt the predicted class is seen by them."""

import html
from typing import Any

import optuna
from optuna.trial import FrozenTrial

from fcer.search.study import REFERENCES, SCORES, best_trial, paper_trial

__all__ = ["SCORE_NAMES", "beside_references", "reference_rows", "references_section"]

SCORE_NAMES = {
    "auroc": "AUROC",
    "auroc_within": "AUROC within the predicted class",
    "auprc": "AUPRC",
    "fidelity": "fidelity",
}


def reference_rows(study: optuna.Study) -> list[dict[str, Any]]:
    """Name, AUROC and AUROC within the predicted class of each; none of a study that an older version began."""
    return [{"name": name, **scores} for name, scores in study.user_attrs.get(REFERENCES, {}).items()]


def beside_references(study: optuna.Study, best: FrozenTrial) -> str:
    """The best head's scores beside those that need none, as a sentence: which of them it is above, and in what."""
    ours = best.user_attrs[SCORES]
    rows = reference_rows(study)
    others = "; ".join(f"the backbone's {row['name']} {row['auroc']:.4f} and {row['auroc_within']:.4f}" for row in rows)
    if not others or "auroc_within" not in ours:
        return "what the backbone's entropy and probability score is not known"
    above = [
        f"{SCORE_NAMES[score]} above {' and '.join(names)}"
        for score in ("auroc", "auroc_within")
        if (names := [row["name"] for row in rows if ours[score] > row[score]])
    ]
    verdict = f"it is in {', in '.join(above)}" if above else "it is above neither in either"
    return (
        f"on the same validation pixels, AUROC and AUROC within the predicted class: trial {best.number} "
        f"{ours['auroc']:.4f} and {ours['auroc_within']:.4f}; {others}; {verdict} (untested: these pixels chose it)"
    )


def references_section(study: optuna.Study) -> str:
    """The sentence and a table for the study's page; nothing before a trial is complete."""
    trials = study.get_trials(deepcopy=False)
    best, paper = best_trial(trials), paper_trial(trials)
    if best is None or not reference_rows(study):
        return ""
    named = [(f"best head, trial {best.number}", best.user_attrs[SCORES])]
    named += [("the paper's setting", paper.user_attrs[SCORES])] if paper else []
    named += [(f"{row['name']} of the backbone, no head", row) for row in reference_rows(study)]
    cells = [(html.escape(name), _cell(scores, "auroc"), _cell(scores, "auroc_within")) for name, scores in named]
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in cells)
    sentence = html.escape(beside_references(study, best))
    return (
        f"<h2>Beside what needs no head</h2>\n<p>{sentence[0].upper()}{sentence[1:]}.</p>\n"
        "<table><tr><th></th><th>validation AUROC</th><th>within the predicted class</th></tr>"
        f"{lines}</table>\n"
    )


def _cell(scores: dict[str, Any], name: str) -> str:
    return f"{scores[name]:.4f}" if name in scores else "–"
