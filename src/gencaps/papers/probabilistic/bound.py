"""The one bound that training and free-form inference maximise."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.papers.probabilistic.capsules import Capsules, Layer, PerPicture, Poses, Presences
from gencaps.primitives import concrete, gaussian


class Draws(NamedTuple):
    """The random numbers of one layer."""

    uniform: Presences
    normal: Poses


class Bound(NamedTuple):
    """The parts of the bound, each a number for each picture; their sum is the bound."""

    picture: PerPicture
    """log p(X given the lowest layer)."""
    layers: tuple[PerPicture, ...]
    """log p - log q of each layer, the top first."""

    def total(self) -> PerPicture:
        """Gives the bound."""
        return self.picture + torch.stack(self.layers).sum(0)


def sample_layer(q: Layer, draws: Draws, temperature: float, deltas: bool) -> Capsules:
    """Draws a layer from q so that gradients reach it: Concrete presences, Gaussian or delta poses.

    (Smith et al., 2021), Sec. 2.2 and Sec. 2.3.
    """
    logit = concrete.sample_logit(q.presence_logit, temperature, draws.uniform)
    pose = q.pose if deltas else gaussian.sample(q.pose, q.pose_log_var, draws.normal)
    return Capsules(logit, pose)


def log_q(q: Layer, drawn: Capsules, temperature: float, deltas: bool) -> PerPicture:
    """Gives log q of a layer's draw; of delta poses, which have no density, the presences' alone.

    Note: with delta poses the objective is that of MAP estimates of the poses, not a bound on log p(X).
    (Smith et al., 2021), Sec. 2.3.
    """
    log_t = concrete.log_prob_logit(drawn.presence_logit, q.presence_logit, temperature).sum(1)
    if deltas:
        return log_t
    return log_t + gaussian.log_prob(drawn.pose, q.pose, q.pose_log_var).sum((1, 2, 3))


def bound_of(log_picture: PerPicture, log_p: tuple[PerPicture, ...], log_qs: tuple[PerPicture, ...]) -> Bound:
    """Puts the bound together layer by layer: log p(X) + sum_k log p_k - log q_k. (Smith et al., 2021), Appendix A.

    Note: departs from Eq. (8) as printed, which counts p(s given t, A) twice and leaves the picture out; s is already
    summed out of log p_k, Eq. (9).
    """
    return Bound(log_picture, tuple(p - q for p, q in zip(log_p, log_qs, strict=True)))


def log_marginal(weights: Float[Tensor, "samples batch"]) -> Float[Tensor, "batch"]:
    """Estimates log p(X) from the log weights log p - log q of many draws: the log of their mean."""
    return weights.logsumexp(0) - torch.log(torch.tensor(float(len(weights))))
