"""Free-form inference: the posterior of each picture optimised by itself."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.papers.probabilistic.capsules import Layer


def climb(
    objective: Callable[[tuple[Layer, ...]], Float[Tensor, "batch"]],
    start: tuple[Layer, ...],
    steps: int,
    rate: float,
    each: Callable[[], None] | None = None,
) -> tuple[Layer, ...]:
    """Climbs an objective by Adam in all numbers of q, each picture for itself. (Smith et al., 2021), Sec. 2.4.

    The step size falls to 0: where the objective has random numbers, steps of one size would carry off what matters
    little, and with it what objects are read from. Pictures do not disturb each other: the sum's gradient is each
    picture's own, and Adam scales each number by itself.

    Args:
        each: is called after every step.
    """
    with torch.enable_grad():
        free = tuple(Layer(*(part.detach().clone().requires_grad_() for part in layer)) for layer in start)
        numbers = [part for layer in free for part in layer]
        search = torch.optim.Adam(numbers, rate)
        slower = torch.optim.lr_scheduler.CosineAnnealingLR(search, max(1, steps))
        for _ in range(steps):
            loss = -objective(free).sum()
            # only the numbers of q: the model's weights must keep what gradients they have
            found = torch.autograd.grad(loss, numbers, allow_unused=True)
            for number, gradient in zip(numbers, found, strict=True):
                number.grad = gradient
            search.step()
            slower.step()
            if each is not None:
                each()
    return tuple(Layer(*(part.detach() for part in layer)) for layer in free)
