"""Each capsule by itself as a factor analyser of the pictures that fall to it (Ghahramani et al., 1996).

With one number on the sphere and n on the line, a capsule that is on alone paints ``A_0 + A_1 t`` with ``A = e U_j``:
one picture of its own, and n ways in which it varies. New ones are drawn with t ~ N(0, I), so t of the pictures that it
is to paint must be so distributed. What follows finds the capsule that each picture falls to, and that capsule's t.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from gencaps.papers.product_of_experts.layer import Lower, Upper
from gencaps.papers.product_of_experts.painting import Back, falls_to, gram

Cost = Float[Tensor, "batch capsules"]
RIDGE = 0.4
"""Variance of what no factor explains, as a share of a number's variance; it only keeps the inference steady."""
SHARPNESS, ROUNDS = 0.1, 20
"""Of sharing out: the softness of a choice over the spread of its costs, and rounds of scaling."""
RATE = 0.05
"""How fast the running moments follow."""


class Seen(NamedTuple):
    """What every capsule would make of every picture by itself."""

    cost: Cost
    """``||z - A_0||^2``: how far a picture is from the capsule's own."""
    place: Float[Tensor, "batch capsules n"]
    """The mean of t given the picture, were the rest noise."""


def see(z: Lower, back: Back, share: float) -> Seen:
    """Gives ``||z - A_0||^2`` and ``(A_1^T A_1 + s I)^-1 A_1^T (z - A_0)``, (Ghahramani et al., 1996), Eq. (2).

    s is ``RIDGE`` times the mean variance of z's numbers. No A is written down for each picture.

    Args:
        z: the capsules below, before squashing.
        back: ``U_ji``.
        share: e of a capsule that is on alone.
    """
    along = share * torch.einsum("bio,ijod->bjd", z, back)
    squares = share**2 * gram(back)
    cost = z.square().sum((1, 2)).unsqueeze(1) - 2 * along[..., 0] + squares[:, 0, 0]
    noise = RIDGE * (z - z.mean(0)).square().mean()
    eye = torch.eye(back.shape[-1] - 1, device=z.device, dtype=z.dtype)
    # _ex: no look from the host at whether it worked; the ridge sees to it
    lower = torch.linalg.cholesky_ex(squares[:, 1:, 1:] + noise * eye).L
    # two triangular solutions, where a recorded step may not hold cholesky_solve
    inverse = torch.linalg.solve_triangular(lower, eye.expand_as(lower), upper=False)
    off = along[..., 1:] - squares[:, 0, 1:]
    return Seen(cost, torch.einsum("bjn,jmn,jmk->bjk", off, inverse, inverse))


def share_out(cost: Cost) -> Int[Tensor, "batch"]:
    """Shares pictures out to capsules by what they cost, so that each capsule gets as many (Cuturi, 2013), Sec. 4.

    By the costs themselves one capsule would soon win every picture, and the others would never learn to paint.
    """
    apart = cost - cost.mean(0) - cost.mean(1, keepdim=True) + cost.mean()
    beyond = (apart - apart.amin(1, keepdim=True)).double()  # of a picture's best capsule: its share is exp(0)
    share = (-beyond / (SHARPNESS * apart.std(correction=0)).clamp(min=torch.finfo(cost.dtype).tiny)).exp()
    capsule = share.new_ones(share.shape[1])
    for _ in range(ROUNDS):
        picture = 1 / (share @ capsule)
        capsule = 1 / (picture @ share).clamp(min=torch.finfo(share.dtype).tiny)
    return (share * capsule).argmax(1)


class Factors(nn.Module):
    """Follows the moments of each capsule's t, and evens them out to those of N(0, I).

    Without that, a capsule's own picture would hide in the mean of its t, of which new ones know nothing.
    """

    def __init__(self, capsules: int, factors: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(capsules, factors))
        self.register_buffer("covariance", torch.eye(factors).repeat(capsules, 1, 1))
        self.register_buffer("steps", torch.zeros(()))
        self.mean: Tensor
        self.covariance: Tensor
        self.steps: Tensor

    @torch.no_grad()
    def forward(self, z: Lower, back: Back, share: float) -> Upper:
        """Gives each picture's capsule as one that is drawn, (1, t) with t as of N(0, I); the others are zero."""
        # differences of large numbers: not in half precision, whatever autocast says
        with torch.autocast(z.device.type, enabled=False):
            cost, place = see(z, back, share)
            falls = falls_to(share_out(cost), cost.shape[1])
            self.follow(place, falls)
            lower = torch.linalg.cholesky_ex(self.covariance).L
            off = (place - self.mean).permute(1, 2, 0)
            even = torch.linalg.solve_triangular(lower, off, upper=False).permute(2, 0, 1)
            return torch.cat([torch.ones_like(even[..., :1]), even], -1) * falls.unsqueeze(-1)

    def follow(self, place: Float[Tensor, "batch capsules n"], falls: Tensor) -> None:
        """Adds a batch to the running moments of those t whose pictures fall to their capsule."""
        self.steps += 1
        weight = falls.to(place.dtype) / falls.sum(0).clamp(min=1)
        rate = (1 / (self.steps + 1)).clamp(min=RATE) * falls.any(0).to(place.dtype)
        self.mean.lerp_(torch.einsum("bj,bjn->jn", weight, place), rate.unsqueeze(1))
        gap = place - self.mean
        moment = torch.einsum("bj,bjn,bjm->jnm", weight, gap, gap)
        # a little of the identity: few pictures do not span all ways
        eye = torch.eye(gap.shape[-1], device=gap.device, dtype=gap.dtype)
        level = 1e-3 * moment.diagonal(dim1=1, dim2=2).mean(1)[:, None, None]
        self.covariance.lerp_(moment + level * eye, rate[:, None, None])
