"""Probabilistic capsules: how the generative model and its posterior are trained together."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.model import Labelling, Losses, Pictures, Player, Stage, Step, averaged
from gencaps.papers.probabilistic.abilities import Abilities
from gencaps.papers.probabilistic.bound import Bound, Draws
from gencaps.papers.probabilistic.capsules import Capsules, PerPicture
from gencaps.papers.probabilistic.inference import random_numbers
from gencaps.papers.probabilistic.layer import log_children
from gencaps.papers.probabilistic.mixture import (
    PerObject,
    each_alone,
    guessed,
    imbalance,
    log_pose_prior,
    tempered,
)
from gencaps.primitives.noise import Noise
from gencaps.primitives.processes import mean_over_processes

Mixed = tuple[dict[str, PerPicture], Float[Tensor, ""]]


class ProbabilisticCapsules(Abilities):
    """Trains a scene of objects, parts and templates by one bound (Smith et al., 2021); labels are never looked at.

    Stages, where ``road='parts-first'``: ``parts`` (no objects yet: the dummy is every part's parent), ``objects`` (the
    mixture over which one object is on, on parts that stand still), ``joint`` (parts and objects together), ``full``
    (the same with Gaussian poses) where they are asked for. The paper's road has ``joint``, and ``full``, alone.

    Note: departs from the paper's road where it is parts-first, because the top layer of a direct joint run collapses.
    """

    paper = "probabilistic"
    title = "Probabilistic capsules"
    compiled = ("bound", "mix")

    def stages(self) -> tuple[Stage, ...]:
        """Lists the stages of the road."""
        first = (Stage("parts"), Stage("objects")) if self.config.road == "parts-first" else ()
        full = (Stage("full"),) if self.config.poses == "gaussian" else ()
        return (*first, Stage("joint"), *full)

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

    def evidence(self, child: Capsules, heat: Float[Tensor, ""]) -> tuple[PerObject, dict[str, PerPicture]]:
        """Gives log p(parts given each object alone), and where a network finds objects, how badly it tells which."""
        config = self.config
        if config.top == "votes":
            return self.vote(child).evidence, {}
        q = self.recogniser.above(0, child)
        alone = each_alone(child, q.pose, self.scene.family(0)(), config.temperature, config.off_scale)
        evidence = alone.log_prob() + log_pose_prior(q.pose, config.pose_scale)
        return evidence, {"guess": guessed(q, evidence, heat)}

    def mix(self, x: Pictures, draws: tuple[Draws, ...], heat: Float[Tensor, ""], still: bool) -> Mixed:
        """Gives minus the bound where exactly one object is on, which one being summed out; and their uneven use.

        At a heat above 1 the sum is softened. Where the parts stand still, what does not depend on objects is left out.

        Note: departs from Eq. (1) (Smith et al., 2021), by which any number of objects may be there.
        """
        with torch.autocast(x.device.type, enabled=False):
            with torch.set_grad_enabled(torch.is_grad_enabled() and not still):
                inferred = self.infer(x, draws, True, False)
            evidence, terms = self.evidence(inferred.drawn[1], heat)
            terms["mixture"] = -tempered(evidence, heat)
            if not still:
                bound = self.bound_at(x, inferred, True)
                clutter = log_children(self.scene.pairs(0, *inferred.drawn[:2]))
                # the first layer's parents are the objects of the mixture, not the dummy alone
                terms["picture"], terms["layers"] = -bound.picture, clutter - torch.stack(bound.layers).sum(0)
            return terms, imbalance(evidence, heat)

    @torch.no_grad()
    def start(self, x: Pictures, noise: Noise) -> None:
        """Lets objects begin as the first pictures' own arrangements of parts, the same ones in every process."""
        config = self.config
        pose = self.infer(x, None, True, False).drawn[1].pose
        # where pictures are fewer than objects, some stand for two
        seen = pose[torch.arange(config.capsules[0], device=x.device) % len(pose)]
        mine = seen if noise.rank == 0 else torch.zeros_like(seen)
        self.scene.family(0).offset.copy_(noise.world * mean_over_processes(mine))

    def _mixture(self, x: Pictures, step: Step, draws: tuple[Draws, ...]) -> Losses:
        """Computes the mixture's loss: cooling, and with the use of objects weighed less and less, on parts at rest."""
        config, still = self.config, step.stage == "objects"
        if still and self.training and step.progress == 0.0 and config.start == "pictures":
            self.start(x, step.noise)
        done = min(1.0, step.progress / config.cool) if config.cool and still else 1.0
        heat = x.new_full((), config.heat ** (1.0 - done))
        terms, uneven = self.mix(x, draws, heat, still)
        terms["uneven"] = (heat * uneven).expand(len(x))
        return averaged(terms, {"uneven": config.balance * (1.0 - step.progress) if still else config.joint_balance})

    def losses(self, x: Pictures, y: Labelling, step: Step) -> Losses:
        """Computes minus the bound, or minus the mixture's log likelihood in the stage of the objects."""
        config = self.config
        draws = random_numbers(config.capsules, len(x), step.noise)
        if step.stage == "objects" or (step.stage == "joint" and config.objects == "one"):
            return self._mixture(x, step, draws)
        bound = self.bound(x, draws, step.stage != "full", step.stage != "parts")
        names = [f"layer{k}" for k in range(len(bound.layers))]
        layers = dict(zip(names, (-part for part in bound.layers), strict=True))
        return averaged({"picture": -bound.picture, **layers})
