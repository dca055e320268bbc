"""The pose of a parent given its parts, solved: parts vote, and votes that agree make the parent likely."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.primitives.pose import identity


def square(pose: Float[Tensor, "*batch 2 3"]) -> Float[Tensor, "*batch 3 3"]:
    """Adds the row (0, 0, 1) of homogeneous coordinates."""
    last = pose.new_tensor([0.0, 0.0, 1.0]).expand(*pose.shape[:-2], 1, 3)
    return torch.cat([pose, last], -2)


def solve_pose(
    weight: Float[Tensor, "batch parents children"],
    pose: Float[Tensor, "batch children 2 3"],
    offset: Float[Tensor, "parents children 2 3"],
    log_var: Float[Tensor, "parents children 2 3"],
    prior_scale: float,
) -> tuple[Float[Tensor, "batch parents 2 3"], Float[Tensor, "batch parents 2 3 3"]]:
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
    m = square(offset)
    # (parents, children, row, 3, 3): M C_r^-1 and M C_r^-1 M^T of every pair
    scaled = m[:, :, None] * precision[:, :, :, None, :]
    gram = torch.einsum("ijrxk,ijyk->ijrxy", scaled, m)
    eye = torch.eye(3, dtype=pose.dtype, device=pose.device)
    system = torch.einsum("bij,ijrxy->birxy", weight, gram) + eye / prior_scale**2
    votes = torch.einsum("bij,ijrxk,bjrk->birx", weight, scaled, pose)
    # e_r^T of the mean: sum_j w_j M C^-1 M^T e_r is a column of the system without its prior
    unit = identity(dtype=pose.dtype, device=pose.device)
    right = votes - torch.einsum("birxy,ry->birx", system - eye / prior_scale**2, unit)
    # a factor instead of a solve, which would make the host wait to see whether it worked: the prior makes P definite
    factor = torch.linalg.cholesky_ex(system).L
    return torch.cholesky_solve(right[..., None], factor)[..., 0], factor
