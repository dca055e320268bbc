"""A layer of children given their parents: who is whose part, which parts are there, and where."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from gencaps.papers.probabilistic.capsules import Capsules, Presences
from gencaps.primitives import concrete, gaussian
from gencaps.primitives.pose import homogeneous, identity

Pairs = Float[Tensor, "batch slots children"]
"""A number for each child and each parent that it may have; slot 0 is the dummy, slot i the parent i."""


class Bonds(NamedTuple):
    """What a layer has learned of parents (slots; 0 is the dummy) and children."""

    log_affinity: Float[Tensor, "slots children"]
    """log rho."""
    presence_logit: Float[Tensor, "slots children"]
    """The log odds of gamma."""
    offset: Float[Tensor, "slots children 2 3"]
    """M: a child's place in its parent."""
    log_var: Float[Tensor, "slots children 2 3"]
    """log c^2: how far a child may stray from its place."""


def log_choice(parent_logit: Float[Tensor, "batch parents"], log_affinity: Float[Tensor, "slots children"]) -> Pairs:
    """Gives log p(s_j = i): a child picks a parent that is there, by affinity. (Smith et al., 2021), Eq. (3).

    ``log(rho_ij t_i / sum_k rho_kj t_k)``; the dummy parent 0 is always on, so that the sum is never 0.

    Args:
        parent_logit: of the parents' presences t_i.
        log_affinity: log rho_ij.
    """
    log_t = functional.pad(functional.logsigmoid(parent_logit), (1, 0))  # log 1 = 0 for the dummy
    return (log_t[..., None] + log_affinity).log_softmax(1)


def log_presence(child_logit: Presences, presence_logit: Float[Tensor, "slots children"], temperature: float) -> Pairs:
    """Gives log p(t_j given s_j = i), a relaxed Bernoulli(gamma_ij). (Smith et al., 2021), Eq. (4).

    Note: the density is that of the presence's logit, as in ``primitives.concrete``: the slope between the two
    cancels in the bound.

    Args:
        child_logit: of the children's presences t_j.
        presence_logit: the log odds of gamma_ij.
        temperature: of the Concrete distribution.
    """
    y, logit = torch.broadcast_tensors(child_logit[:, None], presence_logit)
    return concrete.log_prob_logit(y, logit, temperature)


def frames(pose: Float[Tensor, "*batch 2 3"], top: bool) -> Float[Tensor, "*batch 2 3"]:
    """Gives the maps that parents put their parts through: ``I + A`` at the top, below it the pose itself.

    Note: departs from Eq. (5) (Smith et al., 2021) below the top, where it would add I to a full affine map.
    """
    return pose + identity(dtype=pose.dtype, device=pose.device) if top else pose


def place(
    frame: Float[Tensor, "batch parents 2 3"], offset: Float[Tensor, "slots children 2 3"]
) -> Float[Tensor, "batch slots children 2 3"]:
    """Gives where each parent expects each child: ``(I + A_i) M_ij``, the mean of (Smith et al., 2021), Eq. (5).

    Note: departs from the subscripts printed in Eq. (5): the pose is the chosen parent's, A_i.

    Args:
        frame: ``I + A_i`` of the parents; the dummy's is I.
        offset: M_ij.
    """
    dummy = identity((len(frame), 1), dtype=frame.dtype, device=frame.device)
    # a product a parent, of all pictures with all children: ``compose`` would make one of 2 x 2 with 2 x 3 for each
    return torch.einsum("birk,ijkc->bijrc", torch.cat([dummy, frame], 1), homogeneous(offset))


def log_pose(
    child: Capsules,
    mean: Float[Tensor, "batch slots children 2 3"],
    log_var: Float[Tensor, "slots children 2 3"],
    off_scale: float,
) -> Pairs:
    """Gives log p(A_j given t_j, s_j = i): near its place where it is on, anywhere where it is off.

    ``t_j log N(A_j; (I + A_i) M_ij, c_ij^2) + (1 - t_j) log N(A_j; 0, lambda_off^2)``. (Smith et al., 2021), Eq. (5)
    and Eq. (6).

    Note: departs from the subscripts printed there: the presence is the child's own, t_j; a relaxed one blends.

    Args:
        child: t_j and A_j.
        mean: where each parent expects each child.
        log_var: ``log c_ij^2``.
        off_scale: ``lambda_off`` as a standard deviation.
    """
    t = torch.sigmoid(child.presence_logit)[:, None]
    on = gaussian.log_prob(child.pose[:, None], mean, log_var[None]).sum((-2, -1))
    zero = child.pose.new_zeros(())
    off = gaussian.log_prob(child.pose, zero, zero + 2 * torch.log(zero + off_scale)).sum((-2, -1))
    return t * on + (1 - t) * off[:, None]


def log_parts(
    child: Capsules,
    parent_logit: Float[Tensor, "batch parents"],
    frame: Float[Tensor, "batch parents 2 3"],
    bonds: Bonds,
    temperature: float,
    off_scale: float,
) -> Pairs:
    """Gives log p(s_j = i, t_j, A_j given the parents) for each child and each parent: Eq. (3) to Eq. (6) together.

    (Smith et al., 2021). Its softmax over the slots is the posterior of s, Supplement D.
    """
    return (
        log_choice(parent_logit, bonds.log_affinity)
        + log_presence(child.presence_logit, bonds.presence_logit, temperature)
        + log_pose(child, place(frame, bonds.offset), bonds.log_var, off_scale)
    )


def log_children(pairs: Pairs) -> Float[Tensor, "batch"]:
    """Sums s out exactly: ``sum_j log sum_i p(t_j, A_j, s_j = i)``. (Smith et al., 2021), Eq. (9)."""
    return pairs.logsumexp(1).sum(1)


def whose(pairs: Pairs) -> Pairs:
    """Gives the posterior of s: whose part each child is. (Smith et al., 2021), Appendix D."""
    return pairs.softmax(1)
