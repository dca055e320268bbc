"""The settings of probabilistic capsules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gencaps.errors import GencapsError, refuse_below


@dataclass(frozen=True)
class ProbabilisticConfig:
    """Probabilistic capsules; the defaults are the model of section 4 and Supplement B (Smith et al., 2021)."""

    capsules: tuple[int, ...] = (16, 16)
    """Capsules in each layer, the top first; the last are the templates."""
    template: int = 12
    """Pixels a side of a template."""
    share: float = 0.1
    """p in Eq. (1): how often an object is there."""
    pose_scale: float = 1.0
    """Standard deviation of an object's pose, Eq. (2)."""
    temperature: float = 1.0
    """Of the Concrete presences."""
    dummy: float = 0.05
    """rho of the dummy parent, Eq. (3): how readily a part belongs to no object; other affinities lie below 1."""
    dummy_scale: float = 0.5
    """c of the dummy parent: how broadly such parts are scattered."""
    off_scale: float = 0.5
    """lambda_off in Eq. (6), as a standard deviation."""
    spread: float = 0.3
    """Where c in Eq. (5) begins, as a standard deviation."""
    spread_min: float = 0.1
    """The least c; without a bound the objective has none either."""
    entrywise: bool = False
    """Learns c for each of a pose's six numbers, not one for all six."""
    sigma: float = 0.2
    """Standard deviation of the pixels, Eq. (7)."""
    widths: tuple[int, ...] = (32, 32, 32, 32)
    """Channels of the part encoder's convolutions; the first two have stride 2."""
    features: int = 16
    """Numbers that each part pools from the convolutions."""
    follow: bool = False
    """Lets parts begin where their capsules attend; for objects that may lie anywhere on the picture."""
    width: int = 128
    """Width of the set transformer."""
    blocks: int = 4
    """Its induced attention blocks."""
    heads: int = 4
    """Its attention heads."""
    points: int = 32
    """Its inducing points."""
    code: int = 32
    """Numbers that it sums a set up in."""
    norm: Literal["before", "after"] = "before"
    """Where its blocks normalise; after is as first published, and deaf for a thousand steps."""
    top: Literal["set", "votes"] = "set"
    """How objects are found: by the set transformer (votes teach it which one is there), or solved from votes."""
    vote_heat: float = 20.0
    """What the votes' log odds are divided by: parts that stray together count as fewer."""
    votes: int = 3
    """Rounds in which votes are weighed by who belongs to whom."""
    turns: int = 1
    """Sides from which a trained model looks at a picture, keeping what explains it best; 1 is the paper."""
    turn_prior: float = 0.0
    """How much likelier an upright scene is than a turned one: its log prior is this times cos(turn) - 1; 0 is even."""
    turn_in_training: bool = False
    """Chooses the side in training too, once there are objects: for training pictures that come at any angle."""
    draw_poses: Literal["prior", "seen"] = "prior"
    """What a new object's pose is drawn from: Eq. (2), or, where a picture shows one object, as training saw it."""
    poses: Literal["delta", "gaussian", "gaussian-at-once"] = "delta"
    """Posterior of the poses, section 2.3; gaussian adds a last stage to a run of deltas, at once has none."""
    road: Literal["joint", "parts-first"] = "joint"
    """Trains everything at once (the paper), or parts, then objects as a mixture, then all."""
    objects: Literal["several", "one"] = "several"
    """How many objects a picture may show while all is trained together: any number, Eq. (1), or exactly one."""
    joint_balance: float = 0.0
    """The weight that keeps every object in use while all is trained together, where there is exactly one."""
    start: Literal["random", "pictures"] = "random"
    """Where objects begin: at random, or as the arrangements of parts in the first pictures."""
    heat: float = 20.0
    """Temperature at which the mixture over the one object begins; it cools to 1."""
    cool: float = 0.7
    """Share of that stage after which it has cooled."""
    balance: float = 10.0
    """Weight that keeps every object in use while the mixture is trained; it falls to 0."""

    twin: float = 0.0
    """Weight that makes a picture and a bent copy of it show the same object, in the stage of objects; 0 for none."""
    joint_twin: float = 0.0
    """The same while all is trained together, where there is exactly one object."""
    bend: float = 2.5
    """How far the copy is bent, in pixels of 28; nothing affine is done to it."""
    sure: float = 0.3
    """Weight, times that of the twin, that makes one object stand out."""

    def __post_init__(self) -> None:
        refuse_below(
            self,
            1,
            "capsules",
            "template",
            "widths",
            "features",
            "width",
            "blocks",
            "heads",
            "points",
            "code",
            "votes",
            "turns",
        )
        if len(self.capsules) < 2:
            raise GencapsError(f"model.capsules is {self.capsules}; it needs two layers or more, such as (16, 16)")
        for name in _POSITIVE:
            if not 0 < getattr(self, name) < 1e6:
                raise GencapsError(f"model.{name} is {getattr(self, name)}; it must be above 0 and below a million")
        if not 0 < self.share < 1:
            raise GencapsError(f"model.share is {self.share}; it must be above 0 and below 1")
        if self.heat < 1:
            raise GencapsError(f"model.heat is {self.heat}; it must be at least 1")
        if not 0 <= self.cool <= 1:
            raise GencapsError(f"model.cool is {self.cool}; it must be from 0 to 1")
        for name in ("balance", "joint_balance", "twin", "joint_twin", "bend", "sure", "turn_prior"):
            if getattr(self, name) < 0:
                raise GencapsError(f"model.{name} is {getattr(self, name)}; it must not be negative")
        if self.capsules[0] < 2 and self.objects == "one":
            raise GencapsError("model.capsules begins with 1, and model.objects one asks which it is: set 2 or more")
        if self.draw_poses == "seen" and self.objects != "one":
            raise GencapsError(
                "model.draw_poses seen is for pictures of one object: set model.objects one, or leave it out"
            )
        if self.turn_in_training and self.turns < 2:
            raise GencapsError("model.turn_in_training needs sides to choose from: set model.turns, such as 12")
        if self.width % self.heads:
            raise GencapsError(f"model.width is {self.width}; it must be a multiple of model.heads, {self.heads}")


_POSITIVE = (
    "pose_scale",
    "temperature",
    "dummy",
    "dummy_scale",
    "off_scale",
    "spread",
    "spread_min",
    "sigma",
    "vote_heat",
)
