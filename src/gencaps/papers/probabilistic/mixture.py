"""Objects one at a time: how well each alone explains the parts. What teaches the top layer to specialise."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from gencaps.papers.probabilistic.capsules import Capsules, Layer, PerPicture
from gencaps.papers.probabilistic.layer import Bonds, Pairs, frames, log_pose, log_presence, place
from gencaps.papers.probabilistic.votes import solve_pose
from gencaps.primitives import gaussian

ParentPoses = Float[Tensor, "batch parents 2 3"]
PerObject = Float[Tensor, "batch parents"]
PerPart = Float[Tensor, "batch parents children"]


class Alone(NamedTuple):
    """Each child's log joint with s where one parent alone is on."""

    own: PerPart
    """log p(s_j = i, t_j, A_j): the child is that parent's part."""
    clutter: PerPart
    """log p(s_j = 0, t_j, A_j): the child is nobody's."""

    def log_prob(self) -> PerObject:
        """Sums s out: log p(all t_j, A_j given that parent i alone is on), Eq. (9) of (Smith et al., 2021)."""
        return torch.logaddexp(self.own, self.clutter).sum(2)

    def belongs(self) -> PerPart:
        """Gives how surely each child is the parent's."""
        return torch.sigmoid(self.own - self.clutter)

    def bound(self, share: PerPart) -> PerObject:
        """Gives what is below ``log_prob`` at any posterior of s, and equal to it where that is ``belongs``.

        ``sum_j r_j own_j + (1 - r_j) clutter_j + H(r_j)``, quadratic in the parent's pose.

        Args:
            share: r, how surely each child is said to be the parent's.
        """
        doubt = torch.special.entr(share) + torch.special.entr(1 - share)
        return (share * self.own + (1 - share) * self.clutter + doubt).sum(2)


def log_unchosen(child: Capsules, pose: ParentPoses, bonds: Bonds, temperature: float, off_scale: float) -> Pairs:
    """Gives log p(t_j, A_j given s_j = i), Eq. (4) to Eq. (6), of objects at these poses."""
    mean = place(frames(pose, top=True), bonds.offset)
    return log_presence(child.presence_logit, bonds.presence_logit, temperature) + log_pose(
        child, mean, bonds.log_var, off_scale
    )


def each_alone(child: Capsules, pose: ParentPoses, bonds: Bonds, temperature: float, off_scale: float) -> Alone:
    """Gives the parts' log joint under each object alone, Eq. (3) having one parent and the dummy to choose from."""
    pairs = log_unchosen(child, pose, bonds, temperature, off_scale)
    dummy, own = bonds.log_affinity[:1], bonds.log_affinity[1:]
    both = torch.logaddexp(own, dummy)
    return Alone(own - both + pairs[:, 1:], dummy - both + pairs[:, :1])


class Voted(NamedTuple):
    """What the parts say of each object, were it alone."""

    pose: ParentPoses
    """The mean of its pose's posterior."""
    pose_log_var: ParentPoses
    evidence: PerObject
    """A bound on log p(parts given the object alone), the pose integrated out."""


def vote(
    child: Capsules, bonds: Bonds, *, temperature: float, off_scale: float, pose_scale: float, rounds: int
) -> Voted:
    """Solves each object's pose from its parts, weighing them in turn by how surely they are its own.

    In each round the weights are the posterior of s at the last pose (an E step), and the pose is the exact posterior
    at these weights (an M step): EM routing, derived. The evidence is the bound of both posteriors: ``sum_j r_j own_j +
    (1 - r_j) clutter_j + H(r_j) + log p(A) + 3 log 2 pi - 0.5 log det P`` at the mean, the integral over the pose
    being exact; it is log p itself, (Smith et al., 2021), Eq. (9), where each part is surely its own or surely not.

    Note: not in the paper, which learns a network for it; (Smith et al., 2021), section 2.2 calls for such schemes.
    """
    t = torch.sigmoid(child.presence_logit)[:, None]
    parents = bonds.offset.shape[0] - 1
    share = torch.ones_like(t).expand(-1, parents, -1)
    offset, log_var = bonds.offset[1:], bonds.log_var[1:]
    for _ in range(rounds - 1):
        pose, _ = solve_pose(t * share, child.pose, offset, log_var, pose_scale)
        # rounds before the last only choose the weights; no gradient runs through them
        share = each_alone(child, pose, bonds, temperature, off_scale).belongs().detach()
    pose, factor = solve_pose(t * share, child.pose, offset, log_var, pose_scale)
    alone = each_alone(child, pose, bonds, temperature, off_scale).bound(share)
    log_det = factor.log_det().sum(-1)
    evidence = alone + log_pose_prior(pose, pose_scale) + 3 * math.log(2 * math.pi) - 0.5 * log_det
    return Voted(pose, factor.variances().log(), evidence)


def log_pose_prior(pose: ParentPoses, pose_scale: float) -> PerObject:
    """Gives log p(A_i) of each object's pose. (Smith et al., 2021), Eq. (2)."""
    zero = pose.new_zeros(())
    return gaussian.log_prob(pose, zero, zero + 2 * math.log(pose_scale)).sum((-2, -1))


def tempered(evidence: PerObject, heat: float | Float[Tensor, ""]) -> PerPicture:
    """Gives the log likelihood of the mixture over which one object is on, softened by heat: 1 is exact.

    ``heat log mean_i exp(evidence_i / heat)``: at a great heat the mean, so that each object learns from each picture.
    """
    return heat * ((evidence / heat).logsumexp(1) - math.log(evidence.shape[1]))


def imbalance(evidence: PerObject, heat: float | Float[Tensor, ""]) -> Float[Tensor, ""]:
    """Gives how unevenly a batch uses the objects: KL of their mean responsibility from uniform, 0 where even.

    The prior on the aggregate posterior that Eq. (1) itself implies, its p being the same for every object.
    """
    mean = (evidence / heat).softmax(1).mean(0)
    return (mean * torch.log(mean * len(mean) + 1e-8)).sum()


def disagreement(first: PerObject, second: PerObject, heat: float | Float[Tensor, ""]) -> PerPicture:
    """Gives how differently two views of a picture tell which object is on: the divergence both ways, 0 where alike.

    ``KL(r || r') + KL(r' || r)`` of the responsibilities. Note: not in the paper; see (Hu et al., 2017).
    """
    one, other = ((evidence / heat).log_softmax(1) for evidence in (first, second))
    return ((one.exp() - other.exp()) * (one - other)).sum(1)


def doubt(evidence: PerObject, heat: float | Float[Tensor, ""]) -> PerPicture:
    """Gives the entropy of which object is on: 0 where one stands out, ``log n`` where none does."""
    log_share = (evidence / heat).log_softmax(1)
    return -(log_share.exp() * log_share).sum(1)


def odds(evidence: PerObject) -> PerObject:
    """Gives the log odds that an object is the one that is on: ``e_i - log sum_{k != i} exp e_k``."""
    same = torch.eye(evidence.shape[1], dtype=torch.bool, device=evidence.device)
    others = evidence[:, None].masked_fill(same, -torch.inf)
    return evidence - others.logsumexp(2)


def guessed(q: Layer, evidence: PerObject, heat: float) -> PerPicture:
    """Gives how badly an encoder's presences tell which object is on: the cross entropy of its softmax.

    The responsibilities, softened by heat, teach; nothing flows back into them.
    """
    wanted = (evidence / heat).softmax(1).detach()
    return -(wanted * functional.log_softmax(q.presence_logit, 1)).sum(1)


def misplaced(at: PerObject, evidence: PerObject, heat: float) -> PerPicture:
    """Gives how badly the objects explain the parts at an encoder's poses, weighed by their responsibilities.

    ``-sum_i r_i log p(parts, A_i given i) / heat``: least at the most likely poses. Nothing flows back into r.

    Args:
        at: log p(parts, A_i) of each object alone at its pose.
        evidence: what the responsibilities are taken from.
        heat: softens them.
    """
    return -((evidence / heat).softmax(1).detach() * at).sum(1) / heat
