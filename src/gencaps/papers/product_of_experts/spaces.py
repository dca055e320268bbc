"""Capsules on S^m x R^n x (0, 1), which (Hauser, 2020), section 4.2, wishes for: a direction, a place, and a firing.

Of a capsule's numbers ``z = (a, t)`` the last n, ``t``, are not bent into a sphere: twice as much of something is not
where it began. The energy of Eq. (7) gains the Gaussian units of a restricted Boltzmann machine,

    E = sum_j ||tau_j||^2 / 2 - ||x_j|| (log ||a_j||^2 + tau_j . t_j),

where ``tau_j`` is the capsule's place: ``N(t, I)`` where it fires, and N(0, I), as new ones are drawn, where it does
not. Summing tau out as Eq. (10) does with firing leaves the odds of firing ``||a||^2 exp(||t||^2 / 2)``. With n = 0 all
of it is the paper's capsule.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.primitives.squash import direction, length, squash, unsquash

Capsules = Float[Tensor, "*batch dim"]
Each = Float[Tensor, "*batch"]


def parted(z: Capsules, line: int) -> tuple[Float[Tensor, "*batch _"], Float[Tensor, "*batch _"]]:
    """Parts capsules into the numbers of the sphere and those of the line."""
    on_sphere, on_line = z.split([z.shape[-1] - line, line], -1)
    return on_sphere, on_line


def log_odds(z: Capsules, line: int) -> Each:
    """Gives ``log P(on) / P(off) = log ||a||^2 + ||t||^2 / 2``; with n = 0 that of (Hauser, 2020), Eq. (12)."""
    a, t = parted(z, line)
    # the least length above 0 keeps the gradient at 0 finite
    return 2 * length(a).clamp(min=torch.finfo(z.dtype).tiny).log() + 0.5 * t.square().sum(-1)


def fired(z: Capsules, line: int) -> Capsules:
    """Gives capsules that fire wholly: ``(a / ||a||, t)``."""
    a, t = parted(z, line)
    return torch.cat([direction(a), t], -1)


def squash_onto(z: Capsules, line: int) -> Capsules:
    """Gives ``x = P(on) (a / ||a||, t)``, whose part on the sphere is as long as firing is likely.

    The capsule that (Hauser, 2020), section 4.2, wishes for; with n = 0 the squash of Eq. (4).
    """
    return squash(z) if line == 0 else log_odds(z, line).sigmoid().unsqueeze(-1) * fired(z, line)


def unsquash_from(x: Capsules, line: int) -> Capsules:
    """Undoes ``squash_onto``; with n = 0 it is (Hauser, 2020), Eq. (6). The zero capsule stays zero."""
    if line == 0:
        return unsquash(x)
    first, rest = parted(x, line)
    eps = torch.finfo(x.dtype).eps
    p = length(first).unsqueeze(-1).clamp(min=eps**2, max=1 - eps)
    t = rest / p
    reach = (0.5 * (p.logit() - 0.5 * t.square().sum(-1, keepdim=True))).exp()
    return torch.cat([direction(first) * reach, t], -1)


def presence(x: Capsules, line: int) -> Each:
    """Gives ``P(on)``, the length of a squashed capsule's part on the sphere. (Hauser, 2020), Eq. (5) with n = 0."""
    return length(parted(x, line)[0])


def as_drawn(z: Capsules, line: int) -> Capsules:
    """Brings the part on the sphere to the length of one drawn from N(0, I), the root of its numbers."""
    a, t = parted(z, line)
    return torch.cat([a.shape[-1] ** 0.5 * direction(a), t], -1)
