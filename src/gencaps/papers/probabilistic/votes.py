"""The pose of a parent given its parts, solved: parts vote, and votes that agree make the parent likely."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.primitives.pose import homogeneous, identity


class Factor(NamedTuple):
    """The Cholesky factor L of 3 x 3 matrices ``P = L L^T``, entry by entry.

    Written out because a library's call for each of thousands of small matrices is slow, makes the host wait, and
    cannot be recorded in a CUDA graph.
    """

    l00: Float[Tensor, "*batch"]
    l10: Float[Tensor, "*batch"]
    l20: Float[Tensor, "*batch"]
    l11: Float[Tensor, "*batch"]
    l21: Float[Tensor, "*batch"]
    l22: Float[Tensor, "*batch"]

    @classmethod
    def of(cls, p: Float[Tensor, "*batch 3 3"], least: float) -> Factor:
        """Factors P, no eigenvalue of which is below ``least``: so no pivot is, whatever the rounding."""
        l00 = p[..., 0, 0].clamp(min=least).sqrt()
        l10, l20 = p[..., 1, 0] / l00, p[..., 2, 0] / l00
        l11 = (p[..., 1, 1] - l10.square()).clamp(min=least).sqrt()
        l21 = (p[..., 2, 1] - l20 * l10) / l11
        l22 = (p[..., 2, 2] - l20.square() - l21.square()).clamp(min=least).sqrt()
        return cls(l00, l10, l20, l11, l21, l22)

    def solve(self, right: Float[Tensor, "*batch 3"]) -> Float[Tensor, "*batch 3"]:
        """Gives ``P^-1 right``: forwards through L, backwards through its transpose."""
        y0 = right[..., 0] / self.l00
        y1 = (right[..., 1] - self.l10 * y0) / self.l11
        y2 = (right[..., 2] - self.l20 * y0 - self.l21 * y1) / self.l22
        x2 = y2 / self.l22
        x1 = (y1 - self.l21 * x2) / self.l11
        x0 = (y0 - self.l10 * x1 - self.l20 * x2) / self.l00
        return torch.stack([x0, x1, x2], -1)

    def log_det(self) -> Float[Tensor, "*batch"]:
        """Gives ``log det P``."""
        return 2 * (self.l00.log() + self.l11.log() + self.l22.log())

    def variances(self) -> Float[Tensor, "*batch 3"]:
        """Gives the diagonal of ``P^-1``: the squared columns of ``L^-1``, summed."""
        a, b, c = 1 / self.l00, 1 / self.l11, 1 / self.l22
        low = -self.l21 * b * c
        corner = (self.l21 * self.l10 * b - self.l20) * a * c
        side = -self.l10 * a * b
        return torch.stack([a * a + side * side + corner * corner, b * b + low * low, c * c], -1)


def solve_pose(
    weight: Float[Tensor, "batch parents children"],
    pose: Float[Tensor, "batch children 2 3"],
    offset: Float[Tensor, "parents children 2 3"],
    log_var: Float[Tensor, "parents children 2 3"],
    prior_scale: float,
) -> tuple[Float[Tensor, "batch parents 2 3"], Factor]:
    """Gives the posterior of each parent's pose given its parts': its mean, and its rows' precisions as factors.

    By (Smith et al., 2021), Eq. (5), a part's rows are linear in the parent's, ``a_jr = M_j^T (e_r + a_r) + noise``,
    and the prior, Eq. (2), is Gaussian: so ``P_r = I / prior_scale^2 + sum_j w_j M_j C_jr^-1 M_j^T`` and
    ``P_r a_r = sum_j w_j M_j C_jr^-1 (a_jr - M_j^T e_r)``, a 3 x 3 system for each row r.

    Args:
        weight: w_ij, how surely child j is there and is a part of parent i.
        pose: A_j of the children.
        offset: M_ij.
        log_var: ``log c_ij^2``, the diagonal of C.
        prior_scale: standard deviation of the prior of A_i.
    """
    precision = torch.exp(-log_var)
    m = homogeneous(offset)
    # (parents, children, row, 3, 3): M C_r^-1 and M C_r^-1 M^T of every pair
    scaled = m[:, :, None] * precision[:, :, :, None, :]
    gram = torch.einsum("ijrxk,ijyk->ijrxy", scaled, m)
    votes = torch.einsum("bij,ijrxk,bjrk->birx", weight, scaled, pose)
    system = torch.einsum("bij,ijrxy->birxy", weight, gram)
    # e_r^T of the mean: sum_j w_j M C^-1 M^T e_r is a column of the system without its prior
    unit = identity(dtype=pose.dtype, device=pose.device)
    right = votes - torch.einsum("birxy,ry->birx", system, unit)
    eye = torch.eye(3, dtype=pose.dtype, device=pose.device)
    factor = Factor.of(system + eye / prior_scale**2, prior_scale**-2)
    return factor.solve(right), factor
