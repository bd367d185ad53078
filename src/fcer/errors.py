"""The one family of errors that a user is meant to read: each is one sentence with a remedy.

The command line prints the sentence and exits with the error's `exit_code`; anything outside this family
is a defect of ours and keeps its traceback behind `--debug`.
"""

import warnings

__all__ = [
    "AlarmError",
    "CheckpointError",
    "ConfigError",
    "DataError",
    "FcerError",
    "FcerWarning",
    "PredictionsError",
    "UndefinedMetricWarning",
    "warn",
]


class FcerError(Exception):
    """Something failed that the user can understand and act on."""

    exit_code = 1


class AlarmError(FcerError):
    """Everything was done, and what was found calls for somebody: forecasts do not keep their promise."""

    exit_code = 3


class InputError(FcerError):
    """What the user handed over cannot be used."""

    exit_code = 2


class CheckpointError(InputError):
    """A file of weights cannot be used: broken, unsafe, or of another architecture."""


class ConfigError(InputError):
    """A key, a value or a flag is wrong."""


class DataError(InputError):
    """A fire, a day or a whole dataset cannot be read as WildfireSpreadTS."""


class PredictionsError(InputError):
    """A predicted-maps file breaks the format."""


class FcerWarning(UserWarning):
    """Work goes on, but the user should know."""


class UndefinedMetricWarning(FcerWarning):
    """A metric has no value here (one class only, no fire at all) and is NaN."""


def warn(sentence: str) -> None:
    """Tell the user, and go on."""
    warnings.warn(sentence, FcerWarning, stacklevel=3)  # of whoever called the function that warns
