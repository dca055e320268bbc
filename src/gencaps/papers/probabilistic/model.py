"""Probabilistic capsules: how the generative model and its posterior are trained together."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.model import Labelling, Losses, Pictures, Player, Stage, Step, averaged
from gencaps.papers.probabilistic.abilities import Abilities
from gencaps.papers.probabilistic.bound import Bound, Draws
from gencaps.papers.probabilistic.capsules import PerPicture
from gencaps.papers.probabilistic.inference import random_numbers
from gencaps.papers.probabilistic.mixture import each_alone, guessed, imbalance, log_pose_prior, tempered

Mixed = tuple[dict[str, PerPicture], Float[Tensor, ""]]


class ProbabilisticCapsules(Abilities):
    """Trains a scene of objects, parts and templates by one bound (Smith et al., 2021); labels are never looked at.

    Stages, where ``road='parts-first'``: ``parts`` (no objects yet: the dummy is every part's parent), ``objects`` (the
    mixture over which one object is on, on parts that stand still), ``joint`` (the whole bound), and ``full`` (the same
    with Gaussian poses) where they are asked for. The paper's road has ``joint``, and ``full``, alone.

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

    def mix(self, x: Pictures, draws: tuple[Draws, ...], heat: Float[Tensor, ""]) -> Mixed:
        """Gives minus the log likelihood of the mixture over which one object is on, and how unevenly they are used.

        Where the set transformer finds objects, it also learns to tell which one is on.
        """
        config, bonds = self.config, self.scene.family(0)()
        with torch.autocast(x.device.type, enabled=False):
            with torch.no_grad():  # the parts stand still
                child = self.infer(x, draws, True, False).drawn[1]
            if config.top == "votes":
                evidence, terms = self.vote(child).evidence, {}
            else:
                q = self.recogniser.above(0, child)
                alone = each_alone(child, q.pose, bonds, config.temperature, config.off_scale)
                evidence = alone.log_prob() + log_pose_prior(q.pose, config.pose_scale)
                terms = {"guess": guessed(q, evidence, heat)}
            return {"mixture": -tempered(evidence, heat), **terms}, imbalance(evidence, heat)

    def losses(self, x: Pictures, y: Labelling, step: Step) -> Losses:
        """Computes minus the bound, or minus the mixture's log likelihood in the stage of the objects."""
        config = self.config
        draws = random_numbers(config.capsules, len(x), step.noise)
        if step.stage == "objects":
            done = min(1.0, step.progress / config.cool) if config.cool else 1.0
            heat = x.new_full((), config.heat ** (1.0 - done))
            terms, uneven = self.mix(x, draws, heat)
            terms["uneven"] = (heat * uneven).expand(len(x))
            return averaged(terms, {"uneven": config.balance * (1.0 - step.progress)})
        bound = self.bound(x, draws, step.stage != "full", step.stage != "parts")
        names = [f"layer{k}" for k in range(len(bound.layers))]
        layers = dict(zip(names, (-part for part in bound.layers), strict=True))
        return averaged({"picture": -bound.picture, **layers})
