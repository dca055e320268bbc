"""What a layer of capsules is: a presence and a pose each."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

Presences = Float[Tensor, "batch capsules"]
Poses = Float[Tensor, "batch capsules 2 3"]
PerPicture = Float[Tensor, "batch"]


class Capsules(NamedTuple):
    """One layer's values: relaxed presences, as logits, and affine poses.

    At the top a pose is the deviation A from the identity, N(0, I) of Eq. (2) (Smith et al., 2021); below it is the
    full affine map, which Eq. (5) centres on (I + A) M.
    """

    presence_logit: Presences
    """Of t: ``t = sigmoid(presence_logit)``."""
    pose: Poses
    """A."""


class Layer(NamedTuple):
    """What q says of one layer of capsules given the layer below: Concrete presences and Gaussian poses."""

    presence_logit: Presences
    """The log odds of q(t): what a linear probe reads (Smith et al., 2021), section 5.1."""
    pose: Poses
    """The mean of q(A)."""
    pose_log_var: Poses
    """log sigma^2 of q(A); not used where poses are deltas."""

    def middle(self) -> Capsules:
        """Gives the capsules without noise: the medians of the presences, the means of the poses."""
        return Capsules(self.presence_logit, self.pose)
