"""What every worker needs, imported once by the process that all of them are forked from."""

from fcer.search import scores, worker
from fcer.training.head import make_head
from fcer.training.head_settings import HeadSettings

__all__ = ["scores", "worker"]

# The first optimiser imports half of torch's compiler
make_head(1, HeadSettings())
