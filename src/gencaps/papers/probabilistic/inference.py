"""The amortised posterior: the generative model's dependencies turned round, from the picture up."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from gencaps.papers.probabilistic.bound import Draws, sample_layer
from gencaps.papers.probabilistic.capsules import Capsules, Layer
from gencaps.papers.probabilistic.config import ProbabilisticConfig
from gencaps.papers.probabilistic.networks import ParentEncoder, PartEncoder
from gencaps.primitives.noise import Noise


class Inferred(NamedTuple):
    """What q says of a picture's capsules and what was drawn from it, the top first."""

    q: tuple[Layer, ...]
    drawn: tuple[Capsules, ...]


class Recogniser(nn.Module):
    """Finds capsules from the picture up: convolutions for parts, a set transformer for each layer above.

    (Smith et al., 2021), Sec. 2.2 and Figure 2: each layer is drawn before the next is asked for.
    """

    def __init__(self, config: ProbabilisticConfig, channels: int, size: int) -> None:
        super().__init__()
        counts = config.capsules
        scale = config.template / size
        self.parts = PartEncoder(channels, counts[-1], config.widths, config.features, scale, config.follow)
        # objects that are solved from votes need no network
        learned = [k for k in range(len(counts) - 1) if k > 0 or config.top == "set"]
        self.parents = nn.ModuleDict({str(k): self._parents(k, config) for k in learned})

    def _parents(self, k: int, config: ProbabilisticConfig) -> ParentEncoder:
        return ParentEncoder(
            config.capsules[k + 1],
            config.capsules[k],
            width=config.width,
            blocks=config.blocks,
            heads=config.heads,
            points=config.points,
            code=config.code,
            norm=config.norm,
            top=k == 0,
        )

    def lowest(self, x: Float[Tensor, "batch channels height width"]) -> Layer:
        """Gives q(t, A given X) of the parts."""
        return self.parts(x)

    def above(self, k: int, child: Capsules) -> Layer:
        """Gives q(t, A given the layer below) of layer k, layer 0 being the top."""
        return self.parents[str(k)](child)


def random_numbers(counts: tuple[int, ...], batch: int, noise: Noise) -> tuple[Draws, ...]:
    """Draws the random numbers of every layer."""
    return tuple(Draws(noise.uniform(batch, n), noise.normal(batch, n, 2, 3)) for n in counts)


def draw_from(q: Layer, draws: Draws | None, temperature: float, deltas: bool) -> Capsules:
    """Gives a draw from a layer, or its middle where no random numbers are given."""
    return q.middle() if draws is None else sample_layer(q, draws, temperature, deltas)
