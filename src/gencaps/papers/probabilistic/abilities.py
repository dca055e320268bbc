"""How a picture becomes capsules and a picture again: encode, refine, reconstruct, make new ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.errors import GencapsError
from gencaps.model import CapsuleModel, PictureInfo, Pictures
from gencaps.papers.probabilistic.bound import Bound, Draws, bound_of, log_q
from gencaps.papers.probabilistic.capsules import Capsules, Layer, PerPicture
from gencaps.papers.probabilistic.config import ProbabilisticConfig
from gencaps.papers.probabilistic.generative import Scene
from gencaps.papers.probabilistic.inference import Inferred, Recogniser, draw_from, random_numbers
from gencaps.papers.probabilistic.layer import Bonds, log_children
from gencaps.papers.probabilistic.mixture import (
    Alone,
    ParentPoses,
    PerObject,
    Voted,
    each_alone,
    log_pose_prior,
    odds,
    tempered,
    vote,
)
from gencaps.papers.probabilistic.refine import climb
from gencaps.papers.probabilistic.turns import Turns, all_turns, turn_back, turned
from gencaps.primitives.noise import Noise
from gencaps.primitives.pose import compose, invert

LOOKS_ON_GPU, LOOKS = 4096, 512
"""Pictures that are looked at at once, each side counting as one: a GPU has room, and waits for small work."""


class Encoded(NamedTuple):
    """What q says of each layer of a picture's capsules, the top first, in the frame of the scene."""

    layers: tuple[Layer, ...]
    turn: Float[Tensor, "batch 2 3"]
    """From the picture as it was given to the scene's frame: how it was turned before it was read."""

    @property
    def objects(self) -> Layer:
        """The top layer: t0 and A0."""
        return self.layers[0]

    @property
    def presence(self) -> Float[Tensor, "batch objects"]:
        """How surely each object is there, 0 to 1."""
        return torch.sigmoid(self.objects.presence_logit)

    @property
    def parts(self) -> Layer:
        """The lowest layer, the templates'."""
        return self.layers[-1]

    def on_canvas(self) -> tuple[Layer, ...]:
        """Gives the layers where they lie on the picture as it was given."""
        return tuple(turn_back(layer, self.turn, top=k == 0) for k, layer in enumerate(self.layers))


class Look(NamedTuple):
    """What pictures are like from several sides; the sides come before the pictures."""

    layers: tuple[Layer, ...]
    height: Float[Tensor, "sides batch"]
    """log p(X, t, A) of each, at the middle of q."""


def likeliest(looks: Sequence[Look], sides: Float[Tensor, "sides 2 3"]) -> Encoded:
    """Keeps what each picture is like from its likeliest side; of equal ones the first, and none that is no number."""
    best = torch.cat([look.height for look in looks]).nan_to_num(-torch.inf).argmax(0)
    row = torch.arange(len(best), device=best.device)

    def kept(*parts: Tensor) -> Tensor:
        return torch.cat(parts)[best, row]

    layers = zip(*(look.layers for look in looks), strict=True)
    return Encoded(tuple(Layer(*map(kept, *layer)) for layer in layers), sides[best])


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

    def alone(self, child: Capsules, pose: ParentPoses, still: bool = False) -> Alone:
        """Gives the parts' log joint with s under each object alone at its pose.

        Args:
            still: lets no gradient into what the model has learned.
        """
        bonds = self.scene.family(0)()
        if still:
            bonds = Bonds(*(part.detach() for part in bonds))
        return each_alone(child, pose, bonds, self.config.temperature, self.config.off_scale)

    def evidence_at(self, child: Capsules, pose: ParentPoses, still: bool = False) -> PerObject:
        """Gives log p(parts, A_i) of each object alone at its pose. (Smith et al., 2021), Eq. (2) to Eq. (6)."""
        return self.alone(child, pose, still).log_prob() + log_pose_prior(pose, self.config.pose_scale)

    def evidence_of(self, child: Capsules, pose: ParentPoses) -> PerObject:
        """Gives how well each object alone explains the parts: by their votes, or at poses that a network gave."""
        return self.vote(child).evidence if self.config.top == "votes" else self.evidence_at(child, pose)

    def above(self, k: int, child: Capsules) -> Layer:
        """Gives q of layer k given a draw of the one below: by the set transformer, or the objects' by votes."""
        if k > 0 or self.config.top == "set":
            q = self.recogniser.above(k, child)
            # of one object a network tells which it is, by a softmax
            one = k == 0 and self.config.objects == "one"
            return q._replace(presence_logit=odds(q.presence_logit)) if one else q
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

    def bound_at(self, x: Pictures | None, inferred: Inferred, deltas: bool, turn: Turns | None = None) -> Bound:
        """Gives the bound at a draw from q.

        Args:
            x: the pictures; ``None`` leaves out how well they are painted.
            turn: of pictures that were turned to be read.
        """
        log_qs = [log_q(q, drawn, self.config.temperature, deltas) for q, drawn in zip(*inferred, strict=True)]
        log_layers = self.scene.log_layers(inferred.drawn)
        if x is None:
            return bound_of(torch.zeros_like(log_layers[0]), log_layers, tuple(log_qs))
        return bound_of(self.scene.log_picture(x, on_canvas(inferred.drawn[-1], turn)), log_layers, tuple(log_qs))

    def bound_of_one(
        self, x: Pictures | None, inferred: Inferred, mixture: PerPicture, deltas: bool, turn: Turns | None = None
    ) -> Bound:
        """Gives the bound at a draw from q where exactly one object is on.

        Args:
            inferred: of all layers but the objects', whose own is empty.
            mixture: log p(the layer below), which object being summed out, or a bound on it.
        """
        rest = self.bound_at(x, inferred, deltas, turn)
        # the first layer's parents are the objects of the mixture, not the dummy alone
        clutter = log_children(self.scene.pairs(0, *inferred.drawn[:2]))
        return Bound(rest.picture, (mixture, rest.layers[1] - clutter, *rest.layers[2:]))

    @property
    def solves(self) -> bool:
        """Whether there is one object, found by votes: then nothing of the top layer is left to infer."""
        return self.config.objects == "one" and self.config.top == "votes"

    def encode(self, x: Pictures) -> Encoded:
        """Gives presences and poses at every layer, without noise; from the likeliest of several sides where asked.

        Note: ``turns`` above 1 is not in the paper. The scene then has a turn of its own, with its prior; the networks
        know upright pictures alone, so each side is looked at and the likeliest is kept.
        """
        sides = all_turns(self.config.turns, x)
        if len(sides) == 1:
            return Encoded(self.infer(x, None).q, sides.expand(len(x), 2, 3))
        at_once = (LOOKS_ON_GPU if x.is_cuda else LOOKS) // max(1, len(x))
        return likeliest([self.look(x, some) for some in sides.split(max(1, at_once))], sides)

    def look(self, x: Pictures, sides: Float[Tensor, "sides 2 3"]) -> Look:
        """Looks at pictures from several sides at once."""
        many, turn = x.repeat(len(sides), 1, 1, 1), sides.repeat_interleave(len(x), 0)
        q = self.infer(turned(many, turn), None).q

        def by_side(part: Tensor) -> Tensor:
            return part.unflatten(0, (len(sides), len(x)))

        return Look(tuple(Layer(*map(by_side, layer)) for layer in q), by_side(self.log_joint(many, q, turn)))

    def log_joint(self, x: Pictures, q: tuple[Layer, ...], turn: Turns | None = None) -> PerPicture:
        """Gives log p(X, t, A) at the middle of q; where there is one object, which one being summed out.

        A turn of the scene has its own log prior, ``turn_prior (cos(turn) - 1)`` but for a constant.
        """
        middles = tuple(layer.middle() for layer in q)
        picture = self.scene.log_picture(x, on_canvas(middles[-1], turn))
        if turn is not None:
            picture = picture + self.config.turn_prior * (turn[..., 0, 0] - 1)
        if self.config.objects != "one":
            return picture + torch.stack(self.scene.log_layers(middles)).sum(0)
        below = [log_children(self.scene.pairs(k, *middles[k : k + 2])) for k in range(1, len(middles) - 1)]
        evidence = self.evidence_of(middles[1], middles[0].pose)
        return picture + torch.stack([tempered(evidence, 1.0), *below]).sum(0)

    def refine(
        self,
        x: Pictures,
        steps: int,
        rate: float = 0.02,
        seed: int = 0,
        layers: int | None = None,
        each: Callable[[], None] | None = None,
    ) -> Encoded:
        """Optimises q of each picture by itself, from the networks' answer on: free-form inference.

        (Smith et al., 2021), Sec. 2.4. The bound is climbed by Adam, at fresh random numbers each step. Where there is
        one object, which one it is is summed out; objects are solved from votes again, or, where a network found them,
        each one's pose is climbed by how well that object alone explains the parts.

        Args:
            steps: of Adam.
            rate: its first step size, which falls to 0.
            seed: of the random numbers.
            layers: how many, from the top, are optimised while those below stay as the networks told; ``None`` for all.
            each: is called after every step.
        """
        config, noise = self.config, Noise(seed, x.device)
        free = len(config.capsules) if layers is None else layers
        if not 1 <= free <= len(config.capsules):
            raise GencapsError(f"layers is {layers}; give 1 to {len(config.capsules)}, or None for all of this scene's")
        with torch.no_grad():
            start = self.encode(x)
        deltas, one = config.poses == "delta", config.objects == "one"
        if self.solves and free < 2:
            return start  # objects are solved: there is nothing to climb
        turn = start.turn if config.turns > 1 else None
        painted = x if free == len(config.capsules) else None  # what is painted by parts that stand still is no matter
        nobody = Layer(*(part[:, :0] for part in start.layers[0]))

        def objective(freed: tuple[Layer, ...]) -> Float[Tensor, "batch"]:
            q = (*freed, *start.layers[free:])
            draws = random_numbers(config.capsules, len(x), noise)
            drawn = tuple(
                draw_from(layer, draw, config.temperature, deltas) for layer, draw in zip(q, draws, strict=True)
            )
            if not one:
                return self.bound_at(painted, Inferred(q, drawn), deltas, turn).total()
            evidence = self.evidence_of(drawn[1], q[0].pose.detach())
            whole = Inferred((nobody, *q[1:]), (nobody.middle(), *drawn[1:]))
            bound = self.bound_of_one(painted, whole, tempered(evidence, 1.0), deltas, turn).total()
            if self.solves:
                return bound
            # a pose has the same best place whatever its object's share, and finds it however small that is
            own = self.evidence_at(Capsules(*(part.detach() for part in drawn[1])), q[0].pose).sum(1)
            return bound + own - own.detach()

        objects, *below = (*climb(objective, start.layers[:free], steps, rate, each), *start.layers[free:])
        if one:
            with torch.no_grad():
                parts = below[0].middle()
                if self.solves:
                    objects = self.above(0, parts)
                else:  # what the network guessed, the model tells
                    told = odds(self.evidence_at(parts, objects.pose) / config.vote_heat)
                    objects = objects._replace(presence_logit=told)
        return Encoded((objects, *below), start.turn)

    def paint(self, lowest: Capsules) -> Pictures:
        """Paints templates."""
        return self.scene.templates(lowest)

    def reconstruct(
        self, x: Pictures, noise: Noise | None = None, refine: int = 0, each: Callable[[], None] | None = None
    ) -> Pictures:
        """Paints a picture again from its parts; after ``refine`` steps of free-form inference where asked."""
        if refine:
            return self.paint(self.refine(x, refine, each=each).on_canvas()[-1].middle())
        parts = self.encode(x).on_canvas()[-1]
        draws = None if noise is None else random_numbers(self.config.capsules, len(x), noise)[-1]
        return self.paint(draw_from(parts, draws, self.config.temperature, self.config.poses == "delta"))

    def sample(self, n: int, noise: Noise) -> Pictures:
        """Paints n scenes from the prior."""
        return self.paint(self.scene.draw(n, noise)[-1])

    def sample_plainly(self, n: int, noise: Noise) -> Pictures:
        """Paints n scenes whose objects are drawn from the prior, each part as it most likely is."""
        return self.paint(self.scene.draw(n, noise, plain=True)[-1])


def on_canvas(lowest: Capsules, turn: Turns | None) -> Capsules:
    """Gives parts where they lie on a picture that was turned to be read."""
    if turn is None:
        return lowest
    return Capsules(lowest.presence_logit, compose(invert(turn)[..., None, :, :], lowest.pose))
