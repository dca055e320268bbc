"""The poses of objects as training saw them: what new scenes are drawn from."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gencaps.primitives.noise import Noise

RATE = 0.01
"""Weight of a batch in the running moments: a hundred batches or so are remembered."""
LEAST = 1e-5
"""The least variance of a pose along any direction, so that each object has a Gaussian whatever was seen of it."""


class SeenPoses(nn.Module):
    """A Gaussian of each object's pose, from moments that run along with training.

    Note: departs from Eq. (2) (Smith et al., 2021), whose N(0, I) mostly draws objects turned inside out or off the
    picture. Nothing is trained or inferred with it.
    """

    share: Float[Tensor, "objects"]
    first: Float[Tensor, "objects 6"]
    second: Float[Tensor, "objects 6 6"]

    def __init__(self, objects: int) -> None:
        super().__init__()
        # in float64 and without matrix products: a covariance is a small difference of large numbers
        for name, shape in (("share", ()), ("first", (6,)), ("second", (6, 6))):
            self.register_buffer(name, torch.zeros(objects, *shape, dtype=torch.float64))

    @torch.no_grad()
    def see(self, pose: Float[Tensor, "batch objects 2 3"], share: Float[Tensor, "batch objects"]) -> None:
        """Takes a batch into the moments, each pose weighed by how surely the object is there."""
        flat, weight = pose.flatten(2).double(), share.double()
        weighted = weight[..., None] * flat
        self.share.lerp_(weight.mean(0), RATE)
        self.first.lerp_(weighted.mean(0), RATE)
        self.second.lerp_((weighted[..., None] * flat[..., None, :]).mean(0), RATE)

    def draw(self, n: int, noise: Noise) -> Float[Tensor, "n objects 2 3"]:
        """Draws a pose of each object n times."""
        share = self.share.clamp(min=torch.finfo(self.share.dtype).tiny)
        mean = self.first / share[:, None]
        spread = self.second / share[:, None, None] - mean[:, :, None] * mean[:, None, :]
        variance, axes = torch.linalg.eigh(spread)
        factor = axes * variance.clamp(min=LEAST).sqrt()[:, None, :]
        strayed = torch.einsum("ixy,niy->nix", factor.float(), noise.normal(n, len(mean), 6))
        return (mean.float() + strayed).unflatten(2, (2, 3))
