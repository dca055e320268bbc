"""What a trained scene can do: encode, reconstruct, refine, make new pictures, explain, move objects."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.model import CapsuleModel, Explained, PictureInfo, Pictures
from gencaps.papers.probabilistic.bound import Bound, Draws, bound_of, log_q
from gencaps.papers.probabilistic.capsules import Capsules, Layer, PerPicture, Poses
from gencaps.papers.probabilistic.config import ProbabilisticConfig
from gencaps.papers.probabilistic.generative import Scene, hard
from gencaps.papers.probabilistic.inference import Inferred, Recogniser, draw_from, random_numbers
from gencaps.papers.probabilistic.layer import frames, whose
from gencaps.papers.probabilistic.mixture import Voted, odds, vote
from gencaps.papers.probabilistic.refine import climb
from gencaps.papers.probabilistic.templates import responsibilities
from gencaps.papers.probabilistic.turns import all_turns, pick, turn_back, turned
from gencaps.primitives.noise import Noise
from gencaps.primitives.pose import compose, identity, invert


class Encoded(NamedTuple):
    """What q says of each layer of a picture's capsules, the top first."""

    layers: tuple[Layer, ...]

    @property
    def objects(self) -> Layer:
        """The top layer: t0 and A0."""
        return self.layers[0]

    @property
    def parts(self) -> Layer:
        """The lowest layer, the templates'."""
        return self.layers[-1]


class Abilities(CapsuleModel):
    """A scene and its posterior, and what can be asked of them."""

    def __init__(self, config: ProbabilisticConfig, pictures: PictureInfo) -> None:
        super().__init__(config, pictures)
        self.config: ProbabilisticConfig = config
        self.scene = Scene(config, pictures.channels, pictures.size)
        self.recogniser = Recogniser(config, pictures.channels, pictures.size)

    @property
    def generative_parameters(self) -> int:
        """How many numbers the generative model has learned."""
        return sum(p.numel() for p in self.scene.parameters())

    def vote(self, child: Capsules) -> Voted:
        """Asks the parts for the objects, each alone."""
        config = self.config
        return vote(
            child,
            self.scene.family(0)(),
            temperature=config.temperature,
            off_scale=config.off_scale,
            pose_scale=config.pose_scale,
            rounds=config.votes,
        )

    def above(self, k: int, child: Capsules) -> Layer:
        """Gives q of layer k given a draw of the one below: by the set transformer, or the objects' by votes."""
        if k > 0 or self.config.top == "set":
            return self.recogniser.above(k, child)
        voted = self.vote(child)
        return Layer(odds(voted.evidence / self.config.vote_heat), voted.pose, voted.pose_log_var)

    def infer(
        self, x: Pictures, draws: tuple[Draws, ...] | None, deltas: bool = True, objects: bool = True
    ) -> Inferred:
        """Draws each layer from q given the one below, from the picture up. (Smith et al., 2021), Sec. 2.2.

        Args:
            draws: random numbers, the top's first; ``None`` takes medians and means.
            deltas: takes poses as they are instead of drawing them.
            objects: where false, the top layer has no capsules.
        """
        layer, found = self.recogniser.lowest(x), []
        for k in reversed(range(len(self.config.capsules))):
            drawn = draw_from(layer, None if draws is None else draws[k], self.config.temperature, deltas)
            found.append((layer, drawn))
            if k == 1 and not objects:
                layer = Layer(*(part[:, :0] for part in (drawn.presence_logit, drawn.pose, drawn.pose)))
                found.append((layer, layer.middle()))
                break
            if k > 0:
                layer = self.above(k - 1, drawn)
        return Inferred(*(tuple(part) for part in zip(*reversed(found), strict=True)))

    def bound_at(self, x: Pictures, inferred: Inferred, deltas: bool) -> Bound:
        """Gives the bound at a draw from q."""
        log_qs = [log_q(q, drawn, self.config.temperature, deltas) for q, drawn in zip(*inferred, strict=True)]
        log_picture = self.scene.log_picture(x, inferred.drawn[-1])
        return bound_of(log_picture, self.scene.log_layers(inferred.drawn), tuple(log_qs))

    def encode(self, x: Pictures) -> Encoded:
        """Gives presences and poses at every layer, without noise; from the likeliest of several sides where asked.

        Note: ``turns`` above 1 is not in the paper. The networks know upright pictures alone, but the model itself does
        not care how its frames are turned: so each picture is looked at from all sides, and the best account is kept.
        """
        best = self.infer(x, None).q
        height = self.log_joint(x, best) if self.config.turns > 1 else x.new_zeros(len(x))
        for turn in all_turns(self.config.turns, x)[1:]:
            found = self.infer(turned(x, turn), None).q
            layers = tuple(turn_back(layer, turn, top=k == 0) for k, layer in enumerate(found))
            score = self.log_joint(x, layers)
            higher = score > height
            height = torch.where(higher, score, height)
            best = tuple(pick(higher, new, old) for new, old in zip(layers, best, strict=True))
        return Encoded(best)

    def log_joint(self, x: Pictures, q: tuple[Layer, ...]) -> PerPicture:
        """Gives log p(X, t, A) at the middle of q."""
        middles = tuple(layer.middle() for layer in q)
        return self.scene.log_picture(x, middles[-1]) + torch.stack(self.scene.log_layers(middles)).sum(0)

    def refine(self, x: Pictures, steps: int, rate: float = 0.02, seed: int = 0) -> Encoded:
        """Optimises q of each picture by itself, from the networks' answer on: free-form inference.

        (Smith et al., 2021), Sec. 2.4. The bound is climbed by Adam, at fresh random numbers each step.

        Args:
            steps: of Adam.
            rate: its step size.
            seed: of the random numbers.
        """
        deltas, noise = self.config.poses == "delta", Noise(seed, x.device)

        def objective(q: tuple[Layer, ...]) -> Float[Tensor, "batch"]:
            draws = random_numbers(self.config.capsules, len(x), noise)
            pairs = zip(q, draws, strict=True)
            drawn = tuple(draw_from(layer, draw, self.config.temperature, deltas) for layer, draw in pairs)
            return self.bound_at(x, Inferred(q, drawn), deltas).total()

        return Encoded(climb(objective, self.encode(x).layers, steps, rate))

    def paint(self, lowest: Capsules) -> Pictures:
        """Paints templates."""
        return self.scene.templates(lowest)

    def reconstruct(self, x: Pictures, noise: Noise | None = None, refine: int = 0) -> Pictures:
        """Paints a picture again from its parts; after ``refine`` steps of free-form inference where asked."""
        if refine:
            return self.paint(self.refine(x, refine).parts.middle())
        parts = self.encode(x).parts
        draws = None if noise is None else random_numbers(self.config.capsules, len(x), noise)[-1]
        return self.paint(draw_from(parts, draws, self.config.temperature, self.config.poses == "delta"))

    def sample(self, n: int, noise: Noise) -> Pictures:
        """Paints n scenes from the prior."""
        return self.paint(self.scene.draw(n, noise)[-1])

    def template_sheet(self) -> Pictures:
        """Gives every template as it looks on black: colour times alpha."""
        return self.scene.templates.sheet()

    def arrange(self, on: Float[Tensor, "batch objects"], pose: Poses, noise: Noise | None = None) -> Pictures:
        """Paints these objects at these poses: 'this object at that pose'; without noise in their plainest form."""
        return self.paint(self.scene.unroll(Capsules(hard(on > 0.5), pose), noise)[-1])

    def explain(self, x: Pictures) -> Explained:
        """Says which template painted which pixel, and which object, through the posterior of s.

        (Smith et al., 2021), Figures 5 and 7, and Supplement D.
        """
        layers = tuple(layer.middle() for layer in self.encode(x).layers)
        shares = responsibilities(self.scene.templates.covers(layers[-1]))
        belongs = self.belongs(layers)
        objects = torch.einsum("bsc,bchw->bshw", belongs, shares[:, :-1])
        objects = torch.cat([objects[:, :1] + shares[:, -1:], objects[:, 1:]], 1)
        return Explained(self.paint(layers[-1]), shares, objects, torch.sigmoid(layers[0].presence_logit))

    def belongs(self, layers: tuple[Capsules, ...]) -> Float[Tensor, "batch slots children"]:
        """Gives how surely each template is a part of each object, slot 0 being nobody's, through all layers."""
        total = None
        for k, (parent, child) in enumerate(pairwise(layers)):
            share = whose(self.scene.pairs(k, parent, child))
            if total is None:
                total = share
            else:  # clutter stays clutter; a middle capsule hands its parts on to its own parents
                handed = torch.einsum("bsm,bmc->bsc", total, share[:, 1:])
                total = torch.cat([handed[:, :1] + share[:, :1], handed[:, 1:]], 1)
        assert total is not None
        return total

    def move(self, x: Pictures, motion: Float[Tensor, "batch objects 2 3"]) -> Pictures:
        """Paints pictures with their objects moved on the canvas: each object's parts follow it, clutter stays.

        Args:
            motion: an affine map for each object, applied after its own pose.
        """
        layers = tuple(layer.middle() for layer in self.encode(x).layers)
        still = identity((len(x), 1), dtype=x.dtype, device=x.device)
        whole = torch.cat([still, motion], 1)
        owner = self.belongs(layers).argmax(1)
        follow = whole.gather(1, owner[..., None, None].expand(-1, -1, 2, 3))
        lowest = layers[-1]
        return self.paint(Capsules(lowest.presence_logit, compose(follow, lowest.pose)))


def motion_to(start: Poses, end: Poses) -> Poses:
    """Gives the motion on the canvas that takes objects from one pose to another: ``(I + B)(I + A)^-1``."""
    return compose(frames(end, top=True), invert(frames(start, top=True)))
