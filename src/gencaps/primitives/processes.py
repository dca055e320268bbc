"""What the processes of one run agree on."""

from __future__ import annotations

from torch import Tensor, distributed


def mean_over_processes(x: Tensor) -> Tensor:
    """Averages a tensor over all processes that train together, so that each sees what a single one would."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return x
    total = x.clone()
    distributed.all_reduce(total)
    return total / distributed.get_world_size()
