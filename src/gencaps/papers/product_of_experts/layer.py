"""One layer of expert capsules: up by W, down by the same W, and back by U."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gencaps.papers.product_of_experts.energy import free_energy
from gencaps.papers.product_of_experts.spaces import fired, parted, presence, squash_onto
from gencaps.primitives import routing_kernels
from gencaps.primitives.routing import Routed, coefficients, route_with_coefficients
from gencaps.primitives.squash import direction, squash

Lower = Float[Tensor, "batch caps_in dim_in"]
Upper = Float[Tensor, "batch caps_out dim_out"]
Coefficients = Float[Tensor, "batch caps_out caps_in"]
Weight = Float[Tensor, "caps_out caps_in dim_out dim_in"]


def up(x: Lower, weight: Weight, c: Coefficients) -> Upper:
    """Gives ``z_j = sum_i c_ij W_ij x_i``. (Hauser, 2020), Eq. (3)."""
    last = x.transpose(1, 2).contiguous(), weight.permute(0, 2, 3, 1).contiguous()
    return routing_kernels.weighted_sum(c.transpose(0, 1), *last).transpose(0, 1)


def down(x: Upper, weight: Weight, c: Coefficients) -> Lower:
    """Gives ``z~_i = sum_j c_ij W_ij^T x_j``, with the c of the way up. (Hauser, 2020), Algorithm 1 and section 3.2."""
    last = weight.permute(0, 2, 3, 1).contiguous(), x.transpose(0, 1).contiguous()
    return routing_kernels.to_inputs(c.transpose(0, 1), *last).transpose(1, 2)


def mix(
    x: Lower,
    weight: Weight,
    c: Coefficients,
    steps: int = 1,
    uniform: Float[Tensor, "steps batch caps_out"] | None = None,
    z: Upper | None = None,
    line: int = 0,
) -> Lower:
    """Mixes the model's distribution by dynamic routing, up and down again with the same c.

    (Hauser, 2020), section 3.2 and Algorithm 1; more than one step is CD-k (Hinton, 2002).

    Args:
        x: where the chain starts.
        weight: ``W_ij``.
        c: coefficients of the first routing, kept through all steps.
        steps: how often up and down.
        uniform: random numbers by which capsules fire wholly or not at all, with probability ``||x_j||``; without
            them a capsule hands down its length, as in Algorithm 1.
        z: ``up(x, weight, c)``, where it is known already.
        line: numbers of a capsule that are not on the sphere.
    """
    for step in range(steps):
        if step > 0 or z is None:
            z = up(x, weight, c)
        upper = squash_onto(z, line)
        if uniform is not None:
            upper = fired(z, line) * (uniform[step] < presence(upper, line)).unsqueeze(-1)
        x = squash(down(upper, weight, c))
    return x


def contrast(
    z: Upper,
    model: Float[Tensor, "chains caps_in dim_in"],
    weight: Weight,
    c: Float[Tensor, "chains caps_out caps_in"],
    line: int = 0,
) -> tuple[Float[Tensor, "batch"], Float[Tensor, "chains"]]:
    """Gives ``F(x)`` and ``F(x~)``: descending their difference with c and x~ held fixed is Algorithm 1.

    (Hauser, 2020), Eq. (18): minus the gradient of the difference is the positive minus the negative phase.

    Args:
        z: the data's capsules before squashing, ``up(x, weight, c)``.
        model: ``x~``, what mixing made.
        weight: ``W_ij``.
        c: the coefficients of ``x~``: the data's, but where chains go on by themselves.
        line: numbers of a capsule that are not on the sphere.
    """
    return free_energy(z, line), free_energy(up(model, weight, c), line)


class ExpertLayer(nn.Module):
    """Capsules that explain those below: ``weight`` (W) learns what they are, ``back`` (U) how to paint from them.

    (Hauser, 2020), section 4.1.

    Args:
        caps_in: capsules below.
        dim_in: numbers in each of them.
        caps_out: capsules of this layer.
        dim_out: numbers in each of them.
        iterations: rounds of routing by agreement on the way up.
        back_iterations: rounds on the way back.
        scale: length of a first capsule before squashing, about, where those below have length 1.
        chains: chains of persistent contrastive divergence; 0 for none.
        line: n of S^m x R^n x (0, 1): numbers of a capsule that are not on the sphere; the paper has none.
    """

    def __init__(
        self,
        caps_in: int,
        dim_in: int,
        caps_out: int,
        dim_out: int,
        iterations: int,
        back_iterations: int,
        scale: float,
        chains: int = 0,
        line: int = 0,
    ) -> None:
        super().__init__()
        self.iterations, self.back_iterations, self.line = iterations, back_iterations, line
        self.weight = nn.Parameter(torch.empty(caps_out, caps_in, dim_out, dim_in))
        self.back = nn.Parameter(torch.empty(caps_in, caps_out, dim_in, dim_out))
        # c_ij is about 1 / caps_in, so that ||z||^2 is dim_out std^2 / caps_in where inputs have length 1
        nn.init.normal_(self.weight, std=scale * math.sqrt(caps_in / dim_out))
        nn.init.normal_(self.back, std=1 / math.sqrt(dim_in))
        self.register_buffer("mean_direction", torch.zeros(caps_out, dim_out))
        self.mean_direction: Tensor
        # capsules of random directions and of length 1 / 2: no data is looked at before training
        self.register_buffer("chains", 0.5 * direction(torch.randn(chains, caps_in, dim_in)))
        self.chains: Tensor

    def encode(self, x: Lower) -> Routed:
        """Routes capsules up: the squashed capsules ``x_j`` and their c, which sum to 1 over the inputs.

        (Hauser, 2020), section 2.2.
        """
        if self.line:
            c = self.coefficients(x)
            return Routed(squash_onto(up(x, self.weight, c), self.line), c)
        return route_with_coefficients(x, self.weight, self.iterations, agreement="cosine", over="inputs")

    def coefficients(self, x: Lower) -> Coefficients:
        """Gives the c of ``encode`` alone, held fixed."""
        return coefficients(x, self.weight, self.iterations, agreement="cosine", over="inputs")

    def route_back(self, x: Upper) -> Routed:
        """Routes capsules back: those below, squashed, and ``e_ji``, which sum to 1 over the capsules j above.

        (Hauser, 2020), section 4.1: ``z_i = sum_j e_ji U_ji x_j``. The cosine with a capsule that is zero is 0.
        """
        return route_with_coefficients(x, self.back, self.back_iterations, agreement="cosine", over="inputs")

    def back_coefficients(self, x: Upper) -> Float[Tensor, "batch caps_in caps_out"]:
        """Gives the e of ``route_back`` alone, held fixed."""
        return coefficients(x, self.back, self.back_iterations, agreement="cosine", over="inputs")

    @property
    def share_alone(self) -> float:
        """The ``e_ji`` of the one capsule that is on where the others are zero.

        Its vote agrees with the outcome wholly, so that each round but the last adds 1 to its logit; the others' cosine
        is 0.
        """
        return 1 / (1 + (self.back.shape[1] - 1) * math.exp(1 - self.back_iterations))

    @torch.no_grad()
    def follow(self, x: Upper) -> None:
        """Adds a batch to the mean training direction of each capsule, whose half of the sphere training visits."""
        # a half of the sphere alone: the other numbers stay 0
        on_sphere, _ = parted(x, self.line)
        self.mean_direction[:, : on_sphere.shape[-1]] += direction(on_sphere).sum(0)
