"""Routing by agreement as the papers write it, votes and all: slow, large and easy to check."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from gencaps.primitives.routing import Agreement, Gradient, Over, Routed
from gencaps.primitives.squash import squash


def route_reference(
    u: Float[Tensor, "batch caps_in dim_in"],
    weight: Float[Tensor, "caps_out caps_in dim_out dim_in"],
    iterations: int = 3,
    *,
    agreement: Agreement = "dot",
    over: Over = "outputs",
    gradient: Gradient = "last",
) -> Routed:
    """Routes capsules as ``routing.route_with_coefficients`` does, by writing down every vote.

    ``u_hat_ij = W_ij u_i``, ``s_j = sum_i c_ij u_hat_ij``, (Sabour et al., 2017), Eq. (2); ``c =
    softmax(b)``, Eq. (3).
    """
    u_hat = torch.einsum("jiod,bid->bjio", weight, u)
    # rounds before the last only choose c; no gradient runs through them unless it is asked for
    early = u_hat if gradient == "all" else u_hat.detach()
    b = u.new_zeros(u_hat.shape[:3])
    for _ in range(iterations - 1):
        c = torch.softmax(b, dim=1 if over == "outputs" else 2)
        s = torch.einsum("bji,bjio->bjo", c, early)
        if agreement == "dot":
            b = b + torch.einsum("bjio,bjo->bji", early, squash(s))
        else:
            b = b + functional.cosine_similarity(early, s.unsqueeze(2), dim=-1)
    c = torch.softmax(b, dim=1 if over == "outputs" else 2)
    return Routed(squash(torch.einsum("bji,bjio->bjo", c, u_hat)), c)
