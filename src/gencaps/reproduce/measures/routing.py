"""What routing does in the discriminator of a CapsuleGAN."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.engine.evaluate import pixels
from gencaps.errors import GencapsError
from gencaps.metrics.adversarial import THRESHOLD
from gencaps.papers.capsule_gan.networks import CapsuleNetwork
from gencaps.primitives.routing import coefficients, route
from gencaps.primitives.squash import length
from gencaps.reproduce.subject import BATCH, Measured, Subject, sample

SAMPLES = 10_000


@torch.no_grad()
def routing(subject: Subject) -> Measured:
    """Says how uneven routing's coefficients are, and what becomes of verdicts where all are made even.

    Over the test part and as many generated pictures. ``share`` is ``(sum_i c_i)^2 / (N sum_i c_i^2)``, the share of
    the N votes that count: 1 where all have the same coefficient, 1/N where one has everything.
    """
    model, n = subject.model, subject.count(SAMPLES, 60)
    network = getattr(model, "discriminator", None)
    if not isinstance(network, CapsuleNetwork):
        raise GencapsError(f"a {model.paper} model has no capsule network for a discriminator: this claim needs one")
    made = sample(model, n, subject.noise("routing"))
    both = torch.cat([pixels(subject.splits.test.x[:n]).to(made.device), made])
    share, routed, even = (
        torch.cat(column) for column in zip(*(_look(network, x) for x in both.split(BATCH)), strict=True)
    )
    values = {
        "share": share.mean().item(),
        "score_change": (routed - even).abs().mean().item(),
        "verdicts_changed_percent": 100 * ((routed >= THRESHOLD) != (even >= THRESHOLD)).double().mean().item(),
    }
    return Measured(values)


def _look(network: CapsuleNetwork, x: Float[Tensor, "n channels height width"]) -> tuple[Tensor, Tensor, Tensor]:
    """Gives the share of votes that count, and the longest capsule with and without routing."""
    layer, u = network.routed, network.see(2 * x - 1)
    c = coefficients(u, layer.weight, layer.iterations, agreement=layer.agreement, over=layer.over)
    share = c.sum(2).square() / (c.shape[2] * c.square().sum(2))
    even = route(u, layer.weight, 1, agreement=layer.agreement, over=layer.over)
    return share.mean(1), length(layer(u)).amax(1), length(even).amax(1)
