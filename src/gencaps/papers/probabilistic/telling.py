"""What a scene can tell and do with its objects: who painted what, a parse, objects moved and placed."""

from __future__ import annotations

from itertools import pairwise

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from gencaps.abilities import Explained, Parsed
from gencaps.model import Pictures
from gencaps.papers.probabilistic.abilities import Abilities, Encoded
from gencaps.papers.probabilistic.capsules import Capsules, Poses, Presences
from gencaps.papers.probabilistic.generative import hard
from gencaps.papers.probabilistic.layer import Pairs, frames, whose
from gencaps.papers.probabilistic.templates import responsibilities
from gencaps.primitives.noise import Noise
from gencaps.primitives.pose import compose, identity, invert


class Telling(Abilities):
    """A scene that says how it reads a picture, and paints it otherwise."""

    def template_sheet(self) -> Pictures:
        """Gives every template as it looks on black: colour times alpha."""
        return self.scene.templates.sheet()

    @property
    def objects(self) -> int:
        """How many objects it knows."""
        return self.config.capsules[0]

    def arrange(self, on: Float[Tensor, "batch objects"], pose: Poses, noise: Noise | None = None) -> Pictures:
        """Paints these objects at these poses: 'this object at that pose'; without noise in their plainest form."""
        return self.paint(self.scene.unroll(Capsules(hard(on > 0.5), pose), noise)[-1])

    def place(self, on: Float[Tensor, "batch objects"], frame: Poses) -> Pictures:
        """Paints objects in these frames, ``I + A``."""
        return self.arrange(on, frame - identity(dtype=frame.dtype, device=frame.device))

    def explain(self, x: Pictures) -> Explained:
        """Says which template painted which pixel, and which object, through the posterior of s.

        (Smith et al., 2021), Figures 5 and 7, and Supplement D.
        """
        code = self.encode(x)
        lowest = code.on_canvas()[-1].middle()
        shares = responsibilities(self.scene.templates.covers(lowest))
        belongs = self.belongs(code)
        objects = torch.einsum("bsc,bchw->bshw", belongs, shares[:, :-1])
        objects = torch.cat([objects[:, :1] + shares[:, -1:], objects[:, 1:]], 1)
        return Explained(self.paint(lowest), shares, objects, self.presence(code))

    def presence(self, code: Encoded) -> Presences:
        """Gives how surely each object is there; where it is one, how surely it is this one, by the model itself."""
        if self.config.objects == "one":
            return self.evidence_of(code.layers[1].middle(), code.objects.pose).softmax(1)
        return torch.sigmoid(code.objects.presence_logit)

    def strongest(self, x: Pictures) -> Integer[Tensor, "batch"]:
        """Names the object that is there most surely."""
        return self.encode(x).objects.presence_logit.argmax(1)

    def parse(self, x: Pictures) -> Parsed:
        """Reads pictures as objects and parts: who is there, whose part it is, and what it painted."""
        code = self.encode(x)
        lowest, links = code.on_canvas()[-1].middle(), self.whose(code)
        picture = self.paint(lowest)
        shares = responsibilities(self.scene.templates.covers(lowest))[:, :-1]
        painted = [shares]
        for link in reversed(links):
            painted.insert(0, torch.einsum("bpc,bchw->bphw", link[:, 1:], painted[0]))
        there = (self.presence(code), *(torch.sigmoid(layer.presence_logit) for layer in code.layers[1:]))
        return Parsed(picture, there, links, tuple(part[:, :, None] * picture[:, None] for part in painted))

    def whose(self, code: Encoded) -> tuple[Pairs, ...]:
        """Gives the posterior of s between each layer and the one below, slot 0 being nobody's: Supplement D.

        Where there is one object, it is the posterior of which object that is, times that of s.
        """
        layers = tuple(layer.middle() for layer in code.layers)
        shares = [whose(self.scene.pairs(k, parent, child)) for k, (parent, child) in enumerate(pairwise(layers))]
        if self.config.objects == "one":
            own = self.presence(code)[..., None] * self.alone(layers[1], layers[0].pose).belongs()
            shares[0] = torch.cat([1 - own.sum(1, keepdim=True), own], 1)
        return tuple(shares)

    def belongs(self, code: Encoded) -> Pairs:
        """Gives how surely each template is a part of each object, slot 0 being nobody's, through all layers."""
        total, *below = self.whose(code)
        for share in below:  # clutter stays clutter; a middle capsule hands its parts on to its own parents
            handed = torch.einsum("bsm,bmc->bsc", total, share[:, 1:])
            total = torch.cat([handed[:, :1] + share[:, :1], handed[:, 1:]], 1)
        return total

    def move(self, x: Pictures, motion: Float[Tensor, "batch objects 2 3"]) -> Pictures:
        """Paints pictures with their objects moved on the canvas: each object's parts follow it, clutter stays.

        Args:
            motion: an affine map for each object, applied after its own pose.
        """
        code = self.encode(x)
        still = identity((len(x), 1), dtype=x.dtype, device=x.device)
        whole = torch.cat([still, motion], 1)
        owner = self.belongs(code).argmax(1)
        follow = whole.gather(1, owner[..., None, None].expand(-1, -1, 2, 3))
        lowest = code.on_canvas()[-1].middle()
        return self.paint(Capsules(lowest.presence_logit, compose(follow, lowest.pose)))

    def moved(self, x: Pictures, which: Integer[Tensor, "batch"], by: Float[Tensor, "batch 2 3"]) -> Pictures:
        """Paints pictures with one object of each moved about its own middle: ``T_c B T_c^-1``, c where its frame lies.

        Args:
            which: the object.
            by: B.
        """
        row = torch.arange(len(x), device=x.device)
        there = identity((len(x),), dtype=x.dtype, device=x.device)
        there[..., 2] = self.encode(x).on_canvas()[0].pose[row, which, :, 2]
        motion = identity((len(x), self.objects), dtype=x.dtype, device=x.device)
        motion[row, which] = compose(there, compose(by, invert(there)))
        return self.move(x, motion)


def motion_to(start: Poses, end: Poses) -> Poses:
    """Gives the motion on the canvas that takes objects from one pose to another: ``(I + B)(I + A)^-1``."""
    return compose(frames(end, top=True), invert(frames(start, top=True)))
