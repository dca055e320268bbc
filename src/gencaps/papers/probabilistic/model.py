"""Probabilistic capsules: how the generative model and its posterior are trained together."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.data.transforms import affine, bending, without_affine
from gencaps.model import Labelling, Losses, Pictures, Player, Stage, Step, averaged
from gencaps.papers.probabilistic.bound import Bound, Draws
from gencaps.papers.probabilistic.capsules import Capsules, PerPicture
from gencaps.papers.probabilistic.inference import random_numbers
from gencaps.papers.probabilistic.mixture import (
    ParentPoses,
    PerObject,
    disagreement,
    doubt,
    guessed,
    imbalance,
    misplaced,
    tempered,
)
from gencaps.papers.probabilistic.telling import Telling
from gencaps.papers.probabilistic.turns import Turns, turned
from gencaps.primitives.noise import Noise
from gencaps.primitives.processes import mean_over_processes

KNOTS = 5
"""Knots a side of the field that bends a twin."""
Mixed = tuple[dict[str, PerPicture], Float[Tensor, ""]]


class Evidence(NamedTuple):
    """How well each object alone explains the parts."""

    log_prob: PerObject
    pose: ParentPoses
    """Where it would have to be."""
    terms: dict[str, PerPicture]
    """What the network that finds objects, if there is one, is taught by."""


class ProbabilisticCapsules(Telling):
    """Trains a scene of objects, parts and templates by one bound (Smith et al., 2021); labels are never looked at.

    Stages, where ``road='parts-first'``: ``parts`` (no objects yet: the dummy is every part's parent), ``objects`` (the
    mixture over which one object is on, on parts that stand still), ``joint`` (parts and objects together), ``full``
    (the same with Gaussian poses) where they are asked for. The paper's road has ``joint``, and ``full``, alone. Poses
    that are ``gaussian-at-once`` are never deltas, in the same stages: what the paper's section 2.3 finds worse.

    Note: departs from the paper's road where it is parts-first, because the top layer of a direct joint run collapses.
    """

    paper = "probabilistic"
    title = "Probabilistic capsules"
    compiled = ("bound", "mix", "side")

    def stages(self) -> tuple[Stage, ...]:
        """Lists the stages of the road."""
        first = (Stage("parts"), Stage("objects")) if self.config.road == "parts-first" else ()
        full = () if self.config.poses == "delta" else (Stage("full"),)
        return (*first, Stage("joint"), *full)

    def deltas(self, stage: str) -> bool:
        """Says whether a stage takes poses as they are instead of drawing them. (Smith et al., 2021), Sec. 2.3."""
        return stage != "full" and self.config.poses != "gaussian-at-once"

    def players(self, stage: str) -> dict[str, Player]:
        """Lists the weights that move in a stage: those that its loss depends on."""
        objects = self.scene.family(0).own()
        if "0" in self.recogniser.parents:
            objects += self.recogniser.parents["0"].parameters()
        if stage == "objects":
            return {"model": Player(objects)}
        if stage == "parts":
            known = {id(p) for p in objects}
            return {"model": Player([p for p in self.parameters() if id(p) not in known])}
        return {"model": Player(list(self.parameters()))}

    def bound(self, x: Pictures, draws: tuple[Draws, ...], deltas: bool, objects: bool) -> Bound:
        """Gives the bound on a batch at one draw from q. (Smith et al., 2021), Eq. (9) and Eq. (7).

        Args:
            draws: random numbers, the top's first.
            deltas: takes poses as they are instead of drawing them.
            objects: leaves the top layer out where it is false: every capsule below is clutter.
        """
        with torch.autocast(x.device.type, enabled=False):
            return self.bound_at(x, self.infer(x, draws, deltas, objects), deltas)

    def evidence(self, child: Capsules) -> Evidence:
        """Gives log p(parts given each object alone), solved from votes, and how badly a network tells the same.

        Note: departs from (Smith et al., 2021), whose network learns along with the model. What votes solve teaches it,
        and no gradient of its own reaches the model: what it misses, it misses alone.
        """
        voted = self.vote(child)
        if self.config.top == "votes":
            return Evidence(voted.evidence, voted.pose, {})
        heat = self.config.vote_heat
        parts = Capsules(*(part.detach() for part in child))
        q = self.recogniser.above(0, parts)
        at = self.evidence_at(parts, q.pose, still=True)
        taught = {"guess": guessed(q, voted.evidence, heat), "place": misplaced(at, voted.evidence, heat)}
        return Evidence(voted.evidence, voted.pose, taught)

    def mix(
        self,
        x: Pictures,
        twin: Pictures | None,
        draws: tuple[Draws, ...],
        heat: Float[Tensor, ""],
        still: bool,
        deltas: bool,
    ) -> Mixed:
        """Gives minus the bound where exactly one object is on, which one being summed out; and their uneven use.

        Where the parts stand still, the sum is softened by a heat above 1, and what does not depend on objects is left
        out. A twin, the picture bent, is to show the same object, and one that stands out.

        Note: departs from Eq. (1) (Smith et al., 2021), by which any number of objects may be there.
        """
        with torch.autocast(x.device.type, enabled=False):
            with torch.set_grad_enabled(torch.is_grad_enabled() and not still):
                inferred = self.infer(x, draws, deltas, False)
            evidence, pose, terms = self.evidence(inferred.drawn[1])
            if self.scene.seen is not None and not still and torch.is_grad_enabled():
                self.scene.seen.see(pose.detach(), evidence.detach().softmax(1))
            if still:
                terms["mixture"] = -tempered(evidence, heat)
            else:
                bound = self.bound_of_one(x, inferred, tempered(evidence, 1.0), deltas)
                terms["mixture"], terms["picture"] = -bound.layers[0], -bound.picture
                terms["layers"] = -torch.stack(bound.layers[1:]).sum(0)
            if twin is not None:
                with torch.set_grad_enabled(torch.is_grad_enabled() and not still):
                    seen = self.infer(twin, draws, deltas, False).drawn[1]
                other = self.vote(seen).evidence
                terms["twin"], terms["doubt"] = heat * disagreement(evidence, other, heat), heat * doubt(evidence, heat)
            return terms, imbalance(evidence, heat)

    @torch.no_grad()
    def side(self, x: Pictures) -> Turns:
        """Gives the turn by which pictures are read best: the likeliest one of the scene, as it stands."""
        with torch.autocast(x.device.type, enabled=False):
            return self.encode(x).turn

    def steady(self, stage: str) -> bool:
        """Says that a step of any stage is always the same work."""
        return True

    @torch.no_grad()
    def begin(self, stage: str, x: Pictures, noise: Noise) -> None:
        """Lets objects begin as the first pictures' own arrangements of parts, the same ones in every process."""
        config = self.config
        if stage != "objects" or config.start != "pictures":
            return
        if config.turn_in_training:
            x = turned(x, self.encode(x).turn)  # ``side`` is compiled for the steps; this is done once
        pose = self.infer(x, None, True, False).drawn[1].pose
        # where pictures are fewer than objects, some stand for two
        seen = pose[torch.arange(config.capsules[0], device=x.device) % len(pose)]
        mine = seen if noise.rank == 0 else torch.zeros_like(seen)
        self.scene.family(0).offset.copy_(noise.world * mean_over_processes(mine))

    def _mixture(self, x: Pictures, step: Step, draws: tuple[Draws, ...]) -> Losses:
        """Computes the mixture's loss: cooling, and with the use of objects weighed less and less, on parts at rest."""
        config, still, done = self.config, step.stage == "objects", step.done(x)
        heat = config.heat ** (1.0 - (done / config.cool).clamp(max=1.0)) if config.cool and still else x.new_ones(())
        weight, balance = config.joint_twin, config.joint_balance
        if still:
            weight, balance = config.twin, config.balance * (1.0 - done)
        twin = bent(x, step.noise, config.bend) if weight else None
        terms, uneven = self.mix(x, twin, draws, heat, still, self.deltas(step.stage))
        terms["uneven"] = (heat * uneven).expand(len(x))
        return averaged(terms, {"uneven": balance, "twin": weight, "doubt": weight * config.sure})

    def losses(self, x: Pictures, y: Labelling, step: Step) -> Losses:
        """Computes minus the bound, or minus the mixture's log likelihood in the stage of the objects."""
        config = self.config
        draws = random_numbers(config.capsules, len(x), step.noise)
        if config.turn_in_training and step.stage != "parts":
            x = turned(x, self.side(x))
        if step.stage == "objects" or (step.stage != "parts" and config.objects == "one"):
            return self._mixture(x, step, draws)
        bound = self.bound(x, draws, self.deltas(step.stage), step.stage != "parts")
        names = [f"layer{k}" for k in range(len(bound.layers))]
        layers = dict(zip(names, (-part for part in bound.layers), strict=True))
        return averaged({"picture": -bound.picture, **layers})


def bent(x: Pictures, noise: Noise, pixels: float) -> Pictures:
    """Bends pictures by smooth random fields without an affine part, up to about so many pixels of 28."""
    field = without_affine(2 * noise.uniform(len(x), 2, KNOTS, KNOTS) - 1)
    size = (x.shape[-2], x.shape[-1])
    return affine(x, bend=bending(0.5 + field / 2, pixels * size[1] / 28, size))
