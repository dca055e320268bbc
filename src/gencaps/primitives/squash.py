"""Lengths of capsules: a length below one that can be read as a probability, and the way back."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def one_for_zero(largest: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """Gives what to divide by so that elements up to ``largest`` end up at 1 or below: 1 where all are 0."""
    return torch.where(largest > 0, largest, torch.ones_like(largest))


def length(v: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch"]:
    """Measures each capsule: ``||v||`` over the last axis, the probability that the capsule is on.

    (Sabour et al., 2017), Sec. 2; (Hauser, 2020), Eq. (5). The gradient at 0 is 0, and neither the value nor
    the gradient overflows where the square of an element would.

    Args:
        v: capsules.
    """
    # scaled by the largest element, so that the squares of huge and of tiny elements stay inside the number
    # range
    largest = v.detach().abs().amax(-1, keepdim=True)
    scale = one_for_zero(largest)
    return scale.squeeze(-1) * torch.linalg.vector_norm(v / scale, dim=-1)


def direction(v: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
    """Divides each capsule by its length, ``v / ||v||``; the zero capsule stays zero.

    Capsules shorter than the machine precision shrink towards zero instead, which bounds the gradient.

    Args:
        v: capsules.
    """
    return v / length(v).clamp(min=torch.finfo(v.dtype).eps).unsqueeze(-1)


def squash(z: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
    """Shrinks each capsule to a length below one and keeps its direction.

    ``v = ||z||^2 / (1 + ||z||^2) * z / ||z||`` over the last axis. (Sabour et al., 2017), Eq. (1);
    (Hauser, 2020), Eq. (4). Value and gradient are finite everywhere, 0 included, where both are 0.

    Args:
        z: capsules before squashing (``s`` in Sabour et al.), one capsule along the last axis.
    """
    n = length(z).unsqueeze(-1)
    # n / (1 + n^2) is the same for n and 1 / n; the one below 1 has a square that cannot overflow
    r = torch.where(n > 1, n.clamp(min=1).reciprocal(), n)
    return z * (r / (1 + r * r))


def unsquash(v: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
    """Undoes ``squash``: stretches a length in [0, 1) to [0, infinity) and keeps the direction.

    ``z = sqrt(||v|| / (1 - ||v||)) * v / ||v||`` over the last axis. (Hauser, 2020), Eq. (6).

    Note: departs from Eq. (6) outside [eps^2, 1 - eps] (eps: the machine precision), because it is infinite
    at length 1, undefined beyond, and its slope is infinite at 0: longer capsules are taken as of length 1 -
    eps, and shorter ones shrink linearly to 0.

    Args:
        v: squashed capsules.
    """
    eps = torch.finfo(v.dtype).eps
    n = length(v).unsqueeze(-1)
    inside = n.clamp(min=eps**2, max=1 - eps)
    return v / n.clamp(min=eps**2) * (inside / (1 - inside)).sqrt()
