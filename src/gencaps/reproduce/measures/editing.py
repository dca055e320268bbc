"""Whether an edit changes what it should and nothing else, by the judge; and whether styles really move."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.data import synthetic
from gencaps.data.catalog import faces_asked
from gencaps.data.images import ImageSet
from gencaps.engine.evaluate import pixels
from gencaps.errors import GencapsError
from gencaps.metrics.editing import edited, style_ratio
from gencaps.primitives.gaussian import sample
from gencaps.reproduce.measures.classify import dashed
from gencaps.reproduce.subject import Measured, Subject

PICTURES, DRAWS, BATCH = 1000, 8, 250
EDITED = ("Eyeglasses", "Smiling", "Bangs", "Male", "Mouth_Slightly_Open")
"""The attributes of CelebA that are edited; of other sets all are."""
BEARDS = ("5_o_Clock_Shadow", "Goatee", "Mustache", "No_Beard", "Sideburns")
JEWELS = ("Heavy_Makeup", "Wearing_Lipstick", "Wearing_Earrings", "Wearing_Necklace", "Wearing_Necktie")
ENTAILED: dict[str, tuple[str, ...]] = {
    "Male": (*BEARDS, *JEWELS, "Arched_Eyebrows", "Attractive", "Bald", "Bushy_Eyebrows", "Receding_Hairline"),
    "Smiling": ("Mouth_Slightly_Open", "High_Cheekbones"),
    "Mouth_Slightly_Open": ("Smiling", "High_Cheekbones"),
    "Bangs": ("Bald", "Receding_Hairline"),
}
"""What an attribute of CelebA brings along: left out of what must be kept."""


def edited_attributes(names: Sequence[str]) -> list[int]:
    """Gives the places of the attributes that are edited: of CelebA's 40 those named above, of other sets all."""
    return [place for place, name in enumerate(names) if len(names) != 40 or name in EDITED]


@torch.no_grad()
def edits(subject: Subject) -> Measured:
    """Flips one attribute at a time and asks the judge what changed against the unedited reconstruction, in percent."""
    model, judge = subject.model, subject.judge()
    test = subject.splits.test[: subject.count(PICTURES)]
    names = test.names
    x = pixels(test.x.to(model.device))
    before = judge.look(torch.cat([model.reconstruct(part) for part in x.split(BATCH)])).label
    values: dict[str, float] = {}
    for target in edited_attributes(names):
        name = names[target]
        wanted = torch.full_like(before, -1)
        wanted[:, target] = 1 - before[:, target]
        style = subject.noise(f"edit {name}")
        made = torch.cat([model.edit(a, b, style) for a, b in zip(x.split(BATCH), wanted.split(BATCH), strict=True)])
        entailed = [names.index(other) for other in ENTAILED.get(name, ()) if other in names]
        found = edited(before, judge.look(made).label, target, entailed)
        values |= {f"changed-{dashed(name)}": 100 * found.changed, f"kept-{dashed(name)}": 100 * found.kept}
    return Measured(values, (judge.note,))


@torch.no_grad()
def styles(subject: Subject) -> Measured:
    """Compares draws of one attribute's capsule from the prior with draws from its posterior, others at their means.

    ``ratio``: mean pairwise distance of the judge's features, prior over posterior, the mean over attributes, on
    pictures that have the attribute. ``kept_ratio``, on synthetic faces, where it is known which pixels an attribute
    may touch: the mean change of a pixel outside them over that inside, between two prior draws.
    """
    model, judge = subject.model, subject.judge()
    test = subject.splits.test
    ratios, kept = [], []
    for target in edited_attributes(test.names):
        chosen = test.y[:, target].nonzero()[: subject.count(100, 4), 0]
        if len(chosen) == 0:
            continue
        x = pixels(test.x[chosen].to(model.device))
        prior, posterior = (_draws(subject, x, target, own=own) for own in (False, True))
        features = [judge.look(draws.flatten(0, 1)).features.unflatten(0, (-1, DRAWS)) for draws in (prior, posterior)]
        ratios.append(style_ratio(*features))
        if subject.run.recipe.data.startswith("faces"):
            kept.append(_outside_over_inside(prior, _region(subject, test, test.names[target], chosen)))
    if not ratios:
        raise GencapsError(f"no test picture of '{subject.run.recipe.data}' has any attribute: there are no styles")
    values = {"ratio": sum(ratios) / len(ratios)}
    if kept:
        values["kept_ratio"] = sum(kept) / len(kept)
    return Measured(values, (judge.note,))


def _draws(subject: Subject, x: Tensor, target: int, *, own: bool) -> Float[Tensor, "pictures draws c h w"]:
    """Paints pictures with one attribute's capsule drawn anew: from its own posterior, or from the prior."""
    model = subject.model
    noise = subject.noise(f"style {target} {own}")
    x = x.repeat_interleave(DRAWS, 0)
    group = (torch.arange(model.entities.groups, device=x.device) == target).expand(len(x), -1)
    if not own:
        return model.resample(x, noise, group).unflatten(0, (-1, DRAWS))
    mu, log_var, kl = model.encode(x)
    moved = model.entities.capsules_in(group)[..., None]
    drawn = torch.where(moved, sample(mu, log_var, noise.normal(*mu.shape)), mu)
    return model.decode(model.activate(drawn, model.entities.least(kl))).unflatten(0, (-1, DRAWS))


def _region(subject: Subject, test: ImageSet, name: str, chosen: Tensor) -> Tensor:
    """Marks the pixels that an attribute may touch in test faces: their numbers are drawn again from their seed."""
    nuisance = synthetic.sample(faces_asked(subject.run.recipe.data)[1], 1).nuisance[chosen]
    return synthetic.region(name, nuisance, test.x.shape[-1])


def _outside_over_inside(draws: Float[Tensor, "pictures draws c h w"], region: Tensor) -> float:
    change = (draws[:, 1:] - draws[:, :-1]).abs().mean((1, 2)).cpu()
    return (change[~region].mean() / change[region].mean()).item()
