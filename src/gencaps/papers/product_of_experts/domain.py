"""Where new capsules are drawn from: the whole sphere of directions, or the half that training visits."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from gencaps.errors import GencapsError, nearest
from gencaps.papers.product_of_experts.spaces import parted

Domain = Literal["full", "restricted"]


def check_domain(domain: str) -> None:
    """Refuses a domain that there is not."""
    if domain not in get_args(Domain):
        raise GencapsError(f"there is no domain '{domain}'{nearest(domain, get_args(Domain))}")


def into_half(
    z: Float[Tensor, "*batch dim"], mean_direction: Float[Tensor, "*batch dim"], line: int = 0
) -> Float[Tensor, "*batch dim"]:
    """Flips what lies in the half of the sphere that training does not visit. (Hauser, 2020), section 4.2.

    Args:
        z: drawn capsules.
        mean_direction: the mean training direction of each; its length is of no matter.
        line: numbers that are not on the sphere, and stay as they are.
    """
    (on_sphere, on_line), (mean, _) = parted(z, line), parted(mean_direction, line)
    outside = torch.einsum("...d,...d->...", on_sphere, mean) < 0
    return torch.cat([torch.where(outside.unsqueeze(-1), -on_sphere, on_sphere), on_line], -1)


def alone(
    z: Float[Tensor, "batch dim"], which: Integer[Tensor, "batch"], capsules: int
) -> Float[Tensor, "batch capsules dim"]:
    """Puts each drawn capsule in its place among others that are zero. (Hauser, 2020), section 4.2."""
    place = torch.nn.functional.one_hot(which, capsules).to(z.dtype)
    return torch.einsum("bj,bd->bjd", place, z)
