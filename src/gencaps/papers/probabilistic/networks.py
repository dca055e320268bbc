"""The amortised posterior's networks: convolutions with attentive pooling for parts, a set transformer for the rest."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from gencaps.papers.probabilistic.capsules import Capsules, Layer
from gencaps.primitives.gaussian import bounded_log_var
from gencaps.primitives.pose import identity

FIRST_LOG_VAR = -6.0
"""Where log sigma^2 of a pose begins: a spread of 0.05, a pixel or less."""
LOUD = 4.0
"""What the set transformer's inputs are multiplied by: poses differ by tenths, which its norms would drown."""
SHARP = 5.0
"""What the first weights of attention are multiplied by where parts follow it: even attention lies in the middle."""
Tokens = Float[Tensor, "batch tokens width"]


def pooled(
    features: Float[Tensor, "batch capsules features height width"],
    attention: Float[Tensor, "batch capsules height width"],
) -> Float[Tensor, "batch capsules features_and_place"]:
    """Averages each capsule's features where it attends, and where that is: attentive pooling (Kosiorek et al., 2019).

    Note: departs from it by the mean place (x, y), -1 to 1, beside the features, because a pose needs it.
    """
    share = attention.flatten(2).softmax(-1)
    lines = (torch.linspace(-1, 1, n, dtype=share.dtype, device=share.device) for n in attention.shape[-2:])
    y, x = torch.meshgrid(*lines, indexing="ij")
    place = torch.stack([x, y], -1).reshape(-1, 2)
    mean = torch.einsum("bcp,bcfp->bcf", share, features.flatten(3))
    return torch.cat([mean, share @ place], -1)


class PartEncoder(nn.Module):
    """Finds the parts of a picture, q(t, A given X): four convolutions, attentive pooling, a head a capsule.

    (Smith et al., 2021), sections 4 and B.

    Args:
        channels: of the pictures.
        capsules: how many parts.
        widths: channels of the convolutions; the first two have stride 2.
        features: numbers that each capsule pools.
        scale: size of a template on the canvas, where poses begin.
        follow: lets a part begin to lie where its capsule attends, and attention begin sharp. Else a part begins in the
            middle wherever the picture's object is, and most parts of objects that lie anywhere never learn to move.
    """

    def __init__(
        self, channels: int, capsules: int, widths: tuple[int, ...], features: int, scale: float, follow: bool = False
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for place, width in enumerate(widths):
            layers += [nn.Conv2d(channels, width, 3, stride=2 if place < 2 else 1, padding=1), nn.ELU()]
            channels = width
        self.convolutions = nn.Sequential(*layers)
        self.maps = nn.Conv2d(channels, capsules * (features + 1), 1)
        self.heads = nn.Parameter(torch.randn(capsules, features + 2, 13) * 0.3 / features**0.5)
        first = torch.cat([torch.zeros(1), scale * identity().flatten(), torch.full((6,), FIRST_LOG_VAR)])
        self.bias = nn.Parameter(first.repeat(capsules, 1))
        if follow:
            with torch.no_grad():
                # the place's x and y, the last of what is pooled, go on to the pose's third column
                self.heads[:, -2, 3] += 1.0
                self.heads[:, -1, 6] += 1.0
                self.maps.weight.unflatten(0, (capsules, -1))[:, 0] *= SHARP

    def forward(self, x: Float[Tensor, "batch channels height width"]) -> Layer:
        """Gives the parts of pictures."""
        maps = self.maps(self.convolutions(x)).float()
        maps = maps.unflatten(1, (len(self.bias), -1))
        seen = pooled(functional.elu(maps[:, :, 1:]), maps[:, :, 0])
        return as_layer(torch.einsum("bcf,cfo->bco", seen, self.heads) + self.bias)


def as_layer(out: Float[Tensor, "batch capsules 13"]) -> Layer:
    """Sorts a network's numbers into presence, pose and spread of each capsule."""
    logit, pose, log_var = out[..., 0], out[..., 1:7].unflatten(-1, (2, 3)), out[..., 7:]
    return Layer(logit, pose, bounded_log_var(log_var).unflatten(-1, (2, 3)))


def _norm(width: int, there: bool) -> nn.Module:
    return nn.LayerNorm(width) if there else nn.Identity()


class Attention(nn.Module):
    """Lets tokens look at other tokens: multi-head attention and a dense layer, both added to what came in.

    Note: departs from the block of (Lee et al., 2019) where it normalises before each of the two, not after. After it,
    the top layer's outputs did not depend on the picture for over a thousand steps.
    """

    def __init__(self, width: int, heads: int, before: bool = True) -> None:
        super().__init__()
        self.heads = heads
        self.norm_query, self.norm_seen, self.norm_dense = (_norm(width, before) for _ in range(3))
        self.norm_looked, self.norm_out = (_norm(width, not before) for _ in range(2))
        self.query, self.seen, self.out = nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)
        self.dense = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, tokens: Tokens, others: Float[Tensor, "batch others width"]) -> Tokens:
        """Gives the tokens after a look at the others."""
        queries = self.query(self.norm_query(tokens))
        keys, values = self.seen(self.norm_seen(others)).chunk(2, -1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (queries, keys, values))
        looked = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        tokens = self.norm_looked(tokens + self.out(looked))
        return self.norm_out(tokens + self.dense(self.norm_dense(tokens)))


class InducedAttention(nn.Module):
    """Lets a set look at itself through a few learned points: ISAB of (Lee et al., 2019)."""

    def __init__(self, width: int, heads: int, points: int, before: bool = True) -> None:
        super().__init__()
        self.points = nn.Parameter(0.7 * torch.randn(1, points, width))
        self.gather, self.spread = Attention(width, heads, before), Attention(width, heads, before)

    def forward(self, tokens: Tokens) -> Tokens:
        """Gives the set after a look at itself."""
        return self.spread(tokens, self.gather(self.points.expand(len(tokens), -1, -1), tokens))


class ParentEncoder(nn.Module):
    """Finds parents from their children alone, q(t, A given the layer below): a set transformer and small MLPs.

    (Smith et al., 2021), sections 4 and B. No feature of the picture comes here.

    Args:
        children: capsules below.
        parents: capsules of this layer.
        width: of the tokens.
        code: numbers that the set is summed up in.
        norm: whether blocks normalise before or after.
        top: whether poses begin at 0, as at the top, or at the identity.
    """

    def __init__(
        self,
        children: int,
        parents: int,
        *,
        width: int,
        blocks: int,
        heads: int,
        points: int,
        code: int,
        norm: str,
        top: bool,
    ) -> None:
        super().__init__()
        self.top = top
        self.enter = nn.Linear(7, width)
        self.child = nn.Parameter(torch.randn(children, width) * 0.5)
        self.blocks = nn.ModuleList(InducedAttention(width, heads, points, norm == "before") for _ in range(blocks))
        self.seed = nn.Parameter(0.7 * torch.randn(1, 1, width))
        self.pool = Attention(width, heads, norm == "before")
        self.sum_up = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, code))
        # ELU, as the paper's convolutions have: rectified, all units of the poses' head died in two of six runs
        self.heads = nn.ModuleList(
            nn.Sequential(nn.Linear(code, 128), nn.ELU(), nn.Linear(128, parents * n)) for n in (1, 6, 6)
        )

    def forward(self, child: Capsules) -> Layer:
        """Gives the parents of children."""
        t = torch.sigmoid(child.presence_logit)[..., None]
        # where a part that is off lies means nothing
        tokens = self.enter(LOUD * torch.cat([t, t * child.pose.flatten(2)], -1)) + self.child
        for block in self.blocks:
            tokens = block(tokens)
        code = self.sum_up(self.pool(self.seed.expand(len(tokens), -1, -1), tokens))[:, 0]
        logit, pose, log_var = (head(code).float() for head in self.heads)
        pose, log_var = (part.unflatten(1, (-1, 2, 3)) for part in (pose, log_var))
        if not self.top:
            pose = pose + identity(dtype=pose.dtype, device=pose.device)
        return Layer(logit, pose, bounded_log_var(log_var + FIRST_LOG_VAR))
