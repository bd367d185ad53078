"""How good a backbone is on the validation years: loss and average precision over all their pixels together."""

from typing import NamedTuple

import numpy as np
import torch

from fcer.core.segmentation import average_precision_score
from fcer.data.samples import Samples
from fcer.errors import DataError
from fcer.models.inference import fast, predict_logits
from fcer.training.batches import load
from fcer.training.distributed import World
from fcer.training.learner import Learner, fire_loss
from fcer.training.settings import MemberSettings

__all__ = ["Validation", "check_classes", "validate"]


class Validation(NamedTuple):
    """What `validate` found."""

    loss: float
    ap: float


def check_classes(samples: Samples, years: tuple[int, ...]) -> None:
    """Refuse years on which average precision is undefined, before anything is trained for it."""
    fire = no_fire = False
    for index in range(len(samples)):
        _, tomorrow = samples.raw(index)
        fire, no_fire = fire or bool(tomorrow.any()), no_fire or not tomorrow.all()
        if fire and no_fire:
            return
    found = f"only pixels {'with' if fire else 'without'} fire" if len(samples) else "no sample"
    raise DataError(
        f"validation years {', '.join(map(str, years))}: {found} in the central {samples.crop} px of "
        f"{len(samples)} samples, so that average precision is undefined; add fires of these years, or choose another "
        "fold or --crop"
    )


@torch.no_grad()
def validate(learner: Learner, samples: Samples, settings: MemberSettings, world: World) -> Validation:
    """Score every sample once, shared out among the processes; all of them get the same answer."""
    mine = list(range(world.rank, len(samples), world.size))
    batches = [mine[k : k + settings.batch_size] for k in range(0, len(mine), settings.batch_size)]
    backbone = fast(learner.backbone)
    prob = np.empty((len(mine), settings.crop, settings.crop), np.float32)
    fire = np.empty(prob.shape, np.bool_)
    loss, done = 0.0, 0
    pin = learner.device.type == "cuda"
    for x_BTCHW, y_B1HW in load(samples, batches, workers=settings.loader_workers, pin=pin):
        here = slice(done, done + len(x_BTCHW))
        done = here.stop
        logits_B1HW = predict_logits(backbone, x_BTCHW)
        loss += float(fire_loss(logits_B1HW, y_B1HW.to(learner.device), settings.pos_weight)) * len(x_BTCHW)
        prob[here] = logits_B1HW[:, 0].sigmoid().cpu()
        fire[here] = y_B1HW[:, 0].bool()
    parts = world.gather((loss, prob, fire))
    return world.share(_pooled(parts) if world.is_main else Validation(np.nan, np.nan))


def _pooled(parts: list[tuple[float, np.ndarray, np.ndarray]]) -> Validation:
    losses, probs, fires = zip(*parts, strict=True)
    # one part is the rule, and would only be copied
    prob, fire = (some[0] if len(some) == 1 else np.concatenate(some) for some in (probs, fires))
    return Validation(sum(losses) / len(prob), average_precision_score(fire, prob))
