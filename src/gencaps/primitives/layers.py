"""Capsule layers over the primitives, for pictures of any size and any number of channels."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gencaps.errors import GencapsError
from gencaps.primitives.routing import Agreement, Gradient, Over, route
from gencaps.primitives.squash import squash


class PrimaryCapsules(nn.Module):
    """Makes the first capsules of a picture: a convolution whose channels are grouped into vectors, squashed.

    Every position holds ``capsules`` capsules; the ``dim`` numbers of one capsule come from one position.
    (Sabour et al., 2017), Sec. 4.

    Args:
        channels_in: channels of what comes in.
        capsules: capsules at each position.
        dim: numbers in a capsule.
        kernel: side of the convolution's square window.
        stride: its step.
        padding: zeros put around the picture, pixels a side.
    """

    def __init__(self, channels_in: int, capsules: int, dim: int, kernel: int, stride: int, padding: int = 0) -> None:
        super().__init__()
        self.capsules = capsules
        self.dim = dim
        self.conv = nn.Conv2d(channels_in, capsules * dim, kernel, stride, padding)

    def count(self, height: int, width: int) -> int:
        """Counts the capsules that a picture of this size gives."""
        (kernel, _), (stride, _) = self.conv.kernel_size, self.conv.stride
        around = 2 * int(self.conv.padding[0])
        height, width = height + around, width + around
        if min(height, width) < kernel:
            raise GencapsError(
                f"primary capsules: a picture of {height} x {width} is smaller than the kernel of {kernel}; "
                "give a larger picture or a smaller kernel"
            )
        return self.capsules * ((height - kernel) // stride + 1) * ((width - kernel) // stride + 1)

    def forward(self, x: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch caps_out {self.dim}"]:
        """Gives the capsules of each picture, ordered by kind, then by position."""
        count = self.count(x.shape[-2], x.shape[-1])
        by_kind = self.conv(x).unflatten(1, (self.capsules, self.dim))
        # the permute belongs before the reshape: without it a capsule would collect one channel at dim
        # positions
        return squash(by_kind.permute(0, 1, 3, 4, 2).reshape(-1, count, self.dim))


class DenseCapsules(nn.Module):
    """Routes every input capsule to every output capsule, each pair through a matrix of its own.

    (Sabour et al., 2017), Eq. (2) and Procedure 1.

    Args:
        caps_in: input capsules.
        dim_in: numbers in each of them.
        caps_out: output capsules.
        dim_out: numbers in each of them.
        iterations: rounds of routing.
        agreement: how votes are compared with the outcome, see ``routing.route``.
        over: what the coefficients sum to one over.
        gradient: which rounds gradients run through.
    """

    def __init__(
        self,
        caps_in: int,
        dim_in: int,
        caps_out: int,
        dim_out: int,
        iterations: int = 3,
        agreement: Agreement = "dot",
        over: Over = "outputs",
        gradient: Gradient = "last",
    ) -> None:
        super().__init__()
        self.iterations = iterations
        self.agreement: Agreement = agreement
        self.over: Over = over
        self.gradient: Gradient = gradient
        self.weight = nn.Parameter(torch.empty(caps_out, caps_in, dim_out, dim_in))
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draws the weights so that inputs of length 1 give outputs of length about 1 before squashing.

        With even coefficients c, ``E ||s||^2 = caps_in c^2 dim_out std^2``, which decides std. Where votes
        are compared by inner product they are kept at length 1 or below, or the first round would already
        decide everything.
        """
        caps_out, caps_in, dim_out, _ = self.weight.shape
        c = 1 / (caps_out if self.over == "outputs" else caps_in)
        vote_length = 1 / (c * math.sqrt(caps_in))
        if self.agreement == "dot":
            vote_length = min(1.0, vote_length)
        nn.init.normal_(self.weight, std=vote_length / math.sqrt(dim_out), generator=generator)

    def forward(self, u: Float[Tensor, "batch caps_in dim_in"]) -> Float[Tensor, "batch caps_out dim_out"]:
        """Gives the squashed output capsules."""
        return route(
            u,
            self.weight,
            self.iterations,
            agreement=self.agreement,
            over=self.over,
            gradient=self.gradient,
        )
