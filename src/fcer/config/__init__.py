"""Every setting once: what it means, how values come together, what is checked."""

from fcer.config.resolve import Resolved, resolve, to_yaml
from fcer.config.settings import Config

__all__ = ["Config", "Resolved", "resolve", "to_yaml"]
