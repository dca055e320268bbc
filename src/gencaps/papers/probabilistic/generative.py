"""The generative model: objects, their parts, the parts' parts, and a picture, for any number of layers."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from gencaps.papers.probabilistic.capsules import Capsules, PerPicture, Poses
from gencaps.papers.probabilistic.config import ProbabilisticConfig
from gencaps.papers.probabilistic.layer import Bonds, Pairs, frames, log_children, log_parts, place
from gencaps.papers.probabilistic.mixture import log_pose_prior
from gencaps.papers.probabilistic.seen import SeenPoses
from gencaps.papers.probabilistic.templates import Painted, Templates
from gencaps.primitives import concrete, gaussian
from gencaps.primitives.likelihoods import gaussian_negative_log_likelihood
from gencaps.primitives.noise import Noise
from gencaps.primitives.pose import identity

FAR = 20.0
"""The logit of a presence that is as good as 0 or 1."""


def log_top(top: Capsules, share: float, temperature: float, pose_scale: float) -> PerPicture:
    """Gives log p(t^0, A^0), independent for each object. (Smith et al., 2021), Eq. (1) and Eq. (2).

    Args:
        top: t^0 and A^0.
        share: p.
        temperature: of the Concrete distribution that stands for Bernoulli(p).
        pose_scale: standard deviation of A^0; the paper's is 1.
    """
    logit = torch.full_like(top.presence_logit, math.log(share) - math.log1p(-share))
    on = concrete.log_prob_logit(top.presence_logit, logit, temperature)
    return (on + log_pose_prior(top.pose, pose_scale)).sum(1)


class Family(nn.Module):
    """Holds what is learned between two layers: affinities rho, presences gamma, offsets M and spreads c.

    Args:
        parents: capsules above, without the dummy.
        children: capsules below.
        scale: size of a child in its parent, where M begins.
    """

    def __init__(self, parents: int, children: int, scale: float, config: ProbabilisticConfig) -> None:
        super().__init__()
        self.least, self.dummy, self.dummy_scale = config.spread_min, config.dummy, config.dummy_scale
        entries = (2, 3) if config.entrywise else (1, 1)
        first = math.log(math.expm1(max(config.spread - config.spread_min, 1e-3)))
        self.dummy_offset = nn.Parameter(scale * identity((1, children)))
        self.dummy_presence = nn.Parameter(torch.zeros(1, children))
        self.offset = nn.Parameter(scale * identity((parents, children)) + 0.15 * torch.randn(parents, children, 2, 3))
        self.affinity = nn.Parameter(torch.zeros(parents, children))
        self.presence = nn.Parameter(torch.zeros(parents, children))
        self.spread = nn.Parameter(torch.full((parents, children, *entries), first))

    def forward(self) -> Bonds:
        """Gives what is learned as the formulas take it, the dummy first; ``c = spread_min + softplus(spread)``."""
        children = self.affinity.shape[1]
        dummy = self.affinity.new_full((1, children), math.log(self.dummy))
        affinity = torch.cat([dummy, functional.logsigmoid(self.affinity)])
        spread = torch.log(self.least + functional.softplus(self.spread)).expand(-1, -1, 2, 3)
        broad = spread.new_full((1, children, 2, 3), math.log(self.dummy_scale))
        presence = torch.cat([self.dummy_presence, self.presence])
        return Bonds(affinity, presence, torch.cat([self.dummy_offset, self.offset]), 2 * torch.cat([broad, spread]))

    def clutter(self) -> Bonds:
        """Gives the dummy's alone: what is left where there are no objects."""
        return Bonds(*(part[:1] for part in self()))

    def own(self) -> list[nn.Parameter]:
        """Lists what is learned of the parents, without the dummy."""
        return [self.offset, self.affinity, self.presence, self.spread]


class Scene(nn.Module):
    """Says how likely capsules and a picture are together, and makes new ones. (Smith et al., 2021), Sec. 2.1."""

    def __init__(self, config: ProbabilisticConfig, channels: int, size: int) -> None:
        super().__init__()
        self.config = config
        counts = config.capsules
        scales = [*[1.0] * (len(counts) - 2), config.template / size]
        self.families = nn.ModuleList(
            Family(above, below, scale, config)
            for above, below, scale in zip(counts[:-1], counts[1:], scales, strict=True)
        )
        self.templates = Templates(counts[-1], channels, config.template, size)
        self.seen = SeenPoses(counts[0]) if config.draw_poses == "seen" else None

    def family(self, k: int) -> Family:
        """Gives the family of layer k and the one below it, layer 0 being the top."""
        family = self.families[k]
        assert isinstance(family, Family)
        return family

    def pairs(self, k: int, parent: Capsules, child: Capsules) -> Pairs:
        """Gives log p(s_j = i, t_j, A_j given the layer k above); a layer of no capsules leaves the dummy alone."""
        config, family = self.config, self.family(k)
        bonds = family() if parent.pose.shape[1] else family.clutter()
        frame = frames(parent.pose, top=k == 0)
        return log_parts(child, parent.presence_logit, frame, bonds, config.temperature, config.off_scale)

    def log_layers(self, layers: tuple[Capsules, ...]) -> tuple[PerPicture, ...]:
        """Gives log p of each layer given the one above it, the top first. (Smith et al., 2021), Appendix A."""
        config = self.config
        top = log_top(layers[0], config.share, config.temperature, config.pose_scale)
        below = [log_children(self.pairs(k, parent, child)) for k, (parent, child) in enumerate(pairwise(layers))]
        return (top, *below)

    def log_picture(self, x: Painted, lowest: Capsules) -> PerPicture:
        """Gives log p(X given the lowest capsules): Gaussian pixels around the painted picture, Eq. (7)."""
        return -gaussian_negative_log_likelihood(self.templates(lowest), x, self.config.sigma)

    def unroll(self, top: Capsules, noise: Noise | None = None) -> tuple[Capsules, ...]:
        """Makes the layers below given objects, Eq. (3) to Eq. (6); without noise each part as it most likely is.

        Presences come out hard, as the unrelaxed model has them.
        """
        layers, parent = [top], top
        for k in range(len(self.families)):
            bonds = self.family(k)()
            logit = functional.pad(functional.logsigmoid(parent.presence_logit), (1, 0))[..., None] + bonds.log_affinity
            means = place(frames(parent.pose, top=k == 0), bonds.offset)
            parent = _children(logit, bonds, means, noise, self.config.off_scale)
            layers.append(parent)
        return tuple(layers)

    def draw(self, n: int, noise: Noise, plain: bool = False) -> tuple[Capsules, ...]:
        """Draws whole scenes from the prior, Eq. (1) to Eq. (6), with hard presences.

        Args:
            plain: draws objects alone, each part below being as it most likely is.

        Note: departs from Eq. (1) where the model was trained on exactly one object: then one is drawn; and from
        Eq. (2) where poses are drawn as training saw them.
        """
        count = self.config.capsules[0]
        on = noise.uniform(n, count)
        if self.config.objects == "one":
            on = on == on.amax(1, keepdim=True)
        else:
            on = on < self.config.share
        if self.seen is None:
            pose = self.config.pose_scale * noise.normal(n, count, 2, 3)
        else:
            pose = self.seen.draw(n, noise)
        return self.unroll(Capsules(hard(on), pose), None if plain else noise)


def hard(on: Bool[Tensor, "batch capsules"]) -> Float[Tensor, "batch capsules"]:
    """Gives the logits of presences that are 0 or 1."""
    return torch.where(on, FAR, -FAR)


def _children(
    choice_logit: Pairs,
    bonds: Bonds,
    means: Float[Tensor, "batch slots children 2 3"],
    noise: Noise | None,
    off_scale: float,
) -> Capsules:
    """Draws s, then t, then A of a layer's children, or takes the likeliest of each."""
    batch, _, children = choice_logit.shape
    if noise is not None:
        uniform = noise.uniform(*choice_logit.shape).clamp(1e-20, 1 - 1e-7)
        choice_logit = choice_logit - torch.log(-torch.log(uniform))  # Gumbel noise: the largest is a draw
    s = choice_logit.argmax(1)
    column = torch.arange(children, device=s.device)
    odds = bonds.presence_logit[s, column]
    mean = _chosen(means, s)
    if noise is None:
        return Capsules(hard(odds > 0), mean)
    on = noise.uniform(batch, children) < torch.sigmoid(odds)
    epsilon = noise.normal(batch, children, 2, 3)
    strayed = gaussian.sample(mean, bonds.log_var[s, column], epsilon)
    return Capsules(hard(on), torch.where(on[..., None, None], strayed, off_scale * epsilon))


def _chosen(means: Float[Tensor, "batch slots children 2 3"], s: Tensor) -> Poses:
    index = s[:, None, :, None, None].expand(-1, 1, -1, 2, 3)
    return means.gather(1, index)[:, 0]
