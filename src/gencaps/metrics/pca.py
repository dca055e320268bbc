"""Principal components: the linear code that any other of the same size is measured against."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.metrics.checks import refuse_unlike, refuse_unusable


@dataclass(frozen=True, eq=False)
class PCA:
    """Codes samples by their first principal components."""

    mean: Float[Tensor, "features"]
    components: Float[Tensor, "components features"]
    """Orthonormal, of most variance first."""

    @classmethod
    def fit(cls, x: Float[Tensor, "n features"], components: int) -> PCA:
        """Finds the directions of most variance, as many as there are where fewer than asked for."""
        refuse_unusable(x, "the set of the principal components", least=2)
        x = x.detach().double()
        mean = x.mean(0)
        # of the covariance: pictures have fewer pixels than there are pictures
        _, vectors = torch.linalg.eigh((x - mean).T @ (x - mean))
        return cls(mean, vectors.flip(1)[:, :components].T.contiguous())

    def encode(self, x: Float[Tensor, "n features"]) -> Float[Tensor, "n components"]:
        """Gives the components of samples."""
        refuse_unlike(x, self.components)
        return (x.double() - self.mean) @ self.components.T

    def rebuild(self, x: Float[Tensor, "n features"]) -> Float[Tensor, "n features"]:
        """Gives samples as their components hold them."""
        return self.encode(x) @ self.components + self.mean
