"""The Python reference: one entry for each public name."""

import fcer

__all__ = ["python_page"]

_INTRO = """# Python

What `import fcer` offers. These names are [stable](stable.md); everything else may change without notice. Importing
`fcer` is cheap: torch, MLflow, Optuna and plotly are imported when something needs them.
"""


def python_page() -> str:
    """Directives that mkdocstrings fills in.

    Each names the module that an object lies in: `fcer.sweep` alone would be taken for the module of that name.
    """
    names = sorted((name for name in fcer.__all__ if name != "__version__"), key=str.lower)
    objects = (getattr(fcer, name) for name in names)
    return "\n".join([_INTRO, *(f"\n::: {found.__module__}.{found.__name__}\n" for found in objects)])
