"""Which capsules stand for what: one a class, or two (off and on) an attribute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Integer
from torch import Tensor
from torch.nn import functional as F

from gencaps.errors import GencapsError
from gencaps.model import Labelling, PictureInfo

Active = Int[Tensor, "batch groups"]
"""The state of each group whose capsule is switched on."""


@dataclass(frozen=True)
class Entities:
    """Groups of capsules of which one each is active: classes are one group, every attribute is a group of two.

    Capsules lie in one row, group by group and within a group state by state (off, then on); those that are always
    on come last.
    """

    groups: int
    states: int
    labels: str
    """``classes`` or ``attributes``."""
    rest: int = 0
    """Capsules that are always on."""

    @classmethod
    def of(cls, pictures: PictureInfo, rest: int = 0) -> Entities:
        """Reads them off what the pictures show."""
        names = len(pictures.names)
        if pictures.labels == "attributes":
            if names < 1:
                raise GencapsError(f"'{pictures.data}' has no attributes: there is nothing to learn")
            return cls(names, 2, "attributes", rest)
        if names < 2:
            raise GencapsError(f"'{pictures.data}' has {names} class; a classifier needs at least 2")
        return cls(1, names, "classes", rest)

    @property
    def count(self) -> int:
        """How many capsules there are."""
        return self.groups * self.states + self.rest

    def titles(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Names every capsule: by its class, or by its attribute and its state."""
        states = [f"{name} {state}" for name in names for state in ("off", "on")]
        own = names if self.labels == "classes" else tuple(states)
        return (*own, *(f"rest {k + 1}" for k in range(self.rest)))

    def weights(self, off: float, rest: float) -> Float[Tensor, "entities"]:
        """Weighs the capsules: those of attributes that are off, those that are always on, and 1 all others."""
        weights = torch.ones(self.count)
        if self.labels == "attributes":
            weights[: self.groups * self.states : self.states] = off
        weights[self.groups * self.states :] = rest
        return weights

    def active(self, y: Labelling) -> Active:
        """Gives the states that labels name."""
        return (y if y.ndim == 2 else y[:, None]).long()

    def label(self, active: Active) -> Labelling:
        """Gives the labels that states mean."""
        return active if self.labels == "attributes" else active[:, 0]

    def mask(self, active: Active) -> Bool[Tensor, "batch entities"]:
        """Marks the active capsules."""
        return F.pad(F.one_hot(active, self.states).bool().flatten(1), (0, self.rest), value=True)

    def grouped(self, values: Float[Tensor, "batch entities"]) -> Float[Tensor, "batch groups states"]:
        """Lays one value a capsule out by group and state, without those that are always on."""
        return values[:, : self.groups * self.states].unflatten(1, (self.groups, self.states))

    def least(self, kl: Float[Tensor, "batch entities"]) -> Active:
        """Finds the state of least KL in every group: what the picture shows."""
        return self.grouped(kl).argmin(-1)

    def presence(self, kl: Float[Tensor, "batch entities"]) -> Float[Tensor, "batch names"]:
        """Gives how surely each class or attribute is there: softmax(-KL) over a group's states.

        For an attribute that is ``sigmoid(kl_off - kl_on)``.
        """
        shares = (-self.grouped(kl)).softmax(-1)
        return shares[..., 1] if self.labels == "attributes" else shares[:, 0]

    def surprise(self, kl: Float[Tensor, "batch entities"], active: Active) -> Float[Tensor, "batch"]:
        """Gives the cross entropy of the presences, summed over the groups."""
        return F.cross_entropy(-self.grouped(kl).transpose(1, 2), active, reduction="none").sum(1)

    def absent(self, active: Active) -> Bool[Tensor, "batch groups"]:
        """Marks the attributes that are off; of classes the one that is shown is never absent."""
        return (active == 0) & (self.labels == "attributes")

    def capsules_in(self, groups: Bool[Tensor, "batch groups"]) -> Bool[Tensor, "batch entities"]:
        """Marks every capsule of the marked groups; those that are always on belong to none."""
        return F.pad(groups.repeat_interleave(self.states, 1), (0, self.rest), value=False)


def keep(
    capsules: Float[Tensor, "batch entities dim"], mask: Bool[Tensor, "batch entities"], flag: bool = False
) -> Float[Tensor, "batch entities features"]:
    """Zeroes every capsule but the active ones: M ⊙ C (Huang et al., 2018), section 3.2.

    With ``flag`` each capsule gets one number more, 1 where it is active and 0 elsewhere.
    """
    if flag:
        capsules = F.pad(capsules, (0, 1), value=1.0)
    return torch.where(mask[..., None], capsules, 0.0)


def changed(active: Active, wanted: Integer[Tensor, "batch groups"]) -> Active:
    """Gives the states after an edit: the wanted ones, and the present ones where -1 leaves them alone."""
    return torch.where(wanted < 0, active, wanted.long())


class Invented(NamedTuple):
    """What pictures are painted from that nobody saw, and what they are to show."""

    capsules: Float[Tensor, "batch entities dim"]
    active: Active


def invented(
    entities: Entities,
    seen: Float[Tensor, "batch entities dim"],
    active: Active,
    prior: Float[Tensor, "batch entities dim"],
    chance: Float[Tensor, "batch 2"],
    share: float,
    others: float = 0.0,
) -> Invented:
    """Mixes new pictures from the prior with edits of seen ones: what changes state is drawn from the prior.

    An edit changes one group, or all in which the next picture of the batch differs: so what is asked for goes
    together as it does in pictures.

    Args:
        chance: uniform random numbers; below ``share`` the first makes an edit, below ``share * others`` one towards
            the next picture; the second says which group changes where it is one.
    """
    rest = entities.states - 1
    place = (chance[:, 1] * (entities.groups * rest)).long()
    one = F.one_hot(place // rest, entities.groups).bool()
    after = torch.where(one, (active + place[:, None] % rest + 1) % entities.states, active)
    after = torch.where(chance[:, :1] < share * others, active.roll(-1, 0), after)
    edit = chance[:, :1] < share
    after = torch.where(edit, after, active)
    drawn = entities.capsules_in(after != active) | ~edit
    return Invented(torch.where(drawn[..., None], prior, seen), after)
