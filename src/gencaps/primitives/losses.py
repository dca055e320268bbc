"""The two margin losses that teach capsules to be present or absent; one value per example."""

from __future__ import annotations

from jaxtyping import Float, Shaped
from torch import Tensor
from torch.nn import functional


def length_margin_loss(
    length: Float[Tensor, "*batch capsules"],
    target: Shaped[Tensor, "*batch capsules"],
    upper: float = 0.9,
    lower: float = 0.1,
    down_weight: float = 0.5,
) -> Float[Tensor, "*batch"]:
    """Wants the capsules of present entities long and the others short.

    ``sum_k T_k max(0, m+ - ||v_k||)^2 + lambda (1 - T_k) max(0, ||v_k|| - m-)^2``. (Sabour et al., 2017), Eq.
    (4).

    Args:
        length: ``||v_k||``.
        target: ``T_k``, 1 for present and 0 for absent entities.
        upper: ``m+``, long enough for a present entity.
        lower: ``m-``, short enough for an absent one.
        down_weight: ``lambda``, the weight of the absent entities.
    """
    target = target.to(length.dtype)
    missing = functional.relu(upper - length).square()
    surplus = functional.relu(length - lower).square()
    return (target * missing + down_weight * (1 - target) * surplus).sum(-1)


def kl_margin_loss(
    kl: Float[Tensor, "*batch capsules"],
    target: Shaped[Tensor, "*batch capsules"],
    margin: float,
    down_weight: float,
) -> Float[Tensor, "*batch"]:
    """Wants the capsules of present entities on the prior and the others at least a margin away from it.

    ``sum_k T_k KL_k + lambda (1 - T_k) max(0, m - KL_k)``. (Huang et al., 2018), Eq. (3).

    Args:
        kl: ``L_KL(c_k)``, from ``gaussian.kl_to_standard_normal``.
        target: ``T_k``, 1 for present and 0 for absent entities.
        margin: ``m``.
        down_weight: ``lambda``, the weight of the absent entities.
    """
    target = target.to(kl.dtype)
    return (target * kl + down_weight * (1 - target) * functional.relu(margin - kl)).sum(-1)
