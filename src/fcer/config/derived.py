"""Settings of one step, derived from the configuration by name: defaults and checks stand in `Config` alone."""

import dataclasses
from typing import Any, ClassVar, Self

from fcer.config.fields import fields
from fcer.config.resolve import checked
from fcer.config.settings import Config

__all__ = ["FromConfig"]


class FromConfig:
    """Base of a dataclass whose field `lr` is the setting `PREFIXlr` of the configuration, or else its `lr`.

    However an object is built, its values pass the configuration's checks. A field that the configuration does not
    know is the dataclass's own.
    """

    prefix: ClassVar[str]

    def __post_init__(self) -> None:
        for name, key in _keys(type(self)).items():
            checked(key, getattr(self, name), f"{self.prefix.rstrip('_')} settings")

    @classmethod
    def of(cls, config: Config) -> Self:
        """What of the configuration decides the step."""
        return cls(**cls._taken(config))

    @classmethod
    def _taken(cls, config: Config) -> dict[str, Any]:
        return {name: getattr(config, key) for name, key in _keys(cls).items()}


def _keys(cls: type[FromConfig]) -> dict[str, str]:
    """The setting behind each field."""
    names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
    either = {name: (cls.prefix + name, name) for name in names}
    return {name: key for name, keys in either.items() for key in keys if key in fields()}
