"""How good generated pictures are, by the judge and its features."""

from __future__ import annotations

import torch
from torch import Tensor

from gencaps.abilities import Generates, Reconstructs
from gencaps.engine.evaluate import pixels
from gencaps.errors import GencapsError
from gencaps.metrics.effnet import effnet_features
from gencaps.metrics.frechet import frechet_distance
from gencaps.metrics.generation import rarest_share, read_as_asked, spread, sure_share
from gencaps.metrics.kernel_distance import kernel_distance
from gencaps.metrics.manifold import manifold_scores
from gencaps.reproduce.subject import BATCH, Measured, Subject, generate, sample

EACH, ALL = 1000, 10_000
"""Pictures of each class where a model paints what it is asked for, and in all where it does not."""


def generation(subject: Subject) -> Measured:
    """Compares generated pictures with the test part: the judge's readings, judge-FD, judge-KID, coverage.

    Where a model paints what it is asked for, it is asked for every class alike, and read back.
    """
    model, test, judge = subject.model, subject.splits.test, subject.judge()
    if model.pictures.labels != "classes":
        raise GencapsError(f"'{model.pictures.data}' has attributes: this measure is for classes")
    classes, noise = len(test.names), subject.noise("generation")
    asked = torch.arange(classes).repeat_interleave(subject.count(EACH, 4))
    asks = isinstance(subject.model, Generates)
    made = generate(model, asked, noise) if asks else sample(model, subject.count(ALL), noise)
    seen, real = judge.look(made), judge.look(test.x)
    values = {
        "rarest_class_percent": 100 * rarest_share(seen.label, classes),
        "sure_percent": 100 * sure_share(seen.presence),
        "judge_fd": frechet_distance(seen.features, real.features),
    }
    kid = kernel_distance(seen.features, real.features)
    values |= {"judge_kid": kid.mean, "judge_kid_low": kid.low, "judge_kid_high": kid.high}
    values |= manifold_scores(real.features, seen.features)._asdict()
    notes = [judge.note]
    if asks:
        asked = asked.to(seen.label.device)
        values["read_as_asked_percent"] = 100 * read_as_asked(seen.label, asked)
        of_class = spread(seen.features, asked, real.features, test.y.to(seen.label.device), classes)
        # the least varied class: a mean would hide one that is always painted alike
        values |= {"spread": of_class.min().item(), "spread_mean": of_class.mean().item()}
    if model.pictures.channels == 3 or subject.smoke:
        values |= _kid_effnet(made, test.x[: len(made)], model.device)
    return Measured(values, tuple(notes))


@torch.no_grad()
def rebuilt(subject: Subject) -> Measured:
    """Reads test pictures that went through a model and back: of what class the judge takes them, and their error."""
    model, test, judge = subject.model, subject.splits.test, subject.judge()
    if not isinstance(model, Reconstructs):
        raise GencapsError(f"a {model.paper} model does not paint a picture again: this claim needs one that does")
    x = pixels(test.x).to(subject.model.device)
    again = torch.cat([model.reconstruct(part) for part in x.split(BATCH)])
    label = judge.look(again).label
    right = read_as_asked(label, test.y.to(label.device))
    return Measured({"read_percent": 100 * right, "mse": (again - x).square().mean().item()}, (judge.note,))


def _kid_effnet(made: Tensor, real: Tensor, device: torch.device) -> dict[str, float]:
    # only a smoke run brings grey pictures here
    a, b = (effnet_features(x.expand(-1, 3, -1, -1), device=device) for x in (made, pixels(real)))
    kid = kernel_distance(a, b)
    return {"kid_effnet": kid.mean, "kid_effnet_low": kid.low, "kid_effnet_high": kid.high}
