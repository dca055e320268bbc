"""What single capsules draw, and how well all of them together hold a picture: (Hauser, 2020)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from gencaps.abilities import Draws
from gencaps.engine.evaluate import evaluate, pixels
from gencaps.errors import GencapsError
from gencaps.figures import grid
from gencaps.metrics.generation import specialisation, sure_share
from gencaps.metrics.neighbors import nearest
from gencaps.metrics.pca import PCA
from gencaps.model import CapsuleModel
from gencaps.primitives.noise import Noise
from gencaps.reproduce.measures.probes import UNITS, flat
from gencaps.reproduce.subject import Measured, Subject

EACH, ROWS = 500, 4
"""Samples of each capsule that are measured, and that are shown."""
KNOWN = 10_000
"""Training pictures that a sample is held against."""


@torch.no_grad()
def drawn(
    model: CapsuleModel, each: int, noise: Noise, domain: str
) -> Float[Tensor, "each capsules channels height width"]:
    """Draws so many samples from every capsule, one of each at a time."""
    if not isinstance(model, Draws):
        raise GencapsError(f"a {model.paper} model does not draw from single capsules: this claim needs one that does")
    which = torch.arange(model.experts, device=model.device)
    return torch.stack([model.draw(which, noise, domain) for _ in range(each)])


def negatives(made: Float[Tensor, "n channels height width"], usual: float) -> float:
    """Gives the share of pictures whose mean intensity is nearer to ``1 - usual`` than to ``usual``.

    ``usual`` is the mean intensity of training pictures: the mean intensity rule.
    """
    mean = made.mean((1, 2, 3))
    return ((mean - (1 - usual)).abs() < (mean - usual).abs()).double().mean().item()


def negatives_by_nearest(
    made: Float[Tensor, "n channels height width"], real: Float[Tensor, "m channels height width"]
) -> float:
    """Gives the share of pictures that lie nearer to a real one when dark and light are swapped.

    The mean intensity rule takes a bright coat for a negative, and a shoe's dark negative for none; this one looks at
    what is painted.
    """
    rows = real.flatten(1)
    as_is, swapped = (nearest(x.flatten(1), rows, 1).sq_distance for x in (made, 1 - made))
    return (swapped < as_is).double().mean().item()


def _samples(subject: Subject, domain: str) -> Float[Tensor, "each capsules channels height width"]:
    return drawn(subject.model, subject.count(EACH, 4), subject.noise("samples"), domain)


def _negatives(subject: Subject, domain: str) -> Measured:
    """Says how many samples of all capsules are negatives, and how many real pictures the rule takes for such."""
    splits, made = subject.splits, _samples(subject, domain).flatten(0, 1)
    usual = splits.train.x.float().mean().item() / 255
    known = pixels(splits.train.x[:KNOWN].to(made.device))
    values = {
        "percent": 100 * negatives(made, usual),
        "real_percent": 100 * negatives(pixels(splits.test.x), usual),
        "nearest_percent": 100 * negatives_by_nearest(made, known),
    }
    rules = (
        f"mean intensity rule: a negative's is nearer to {1 - usual:.2f} than to {usual:.2f}",
        "nearest picture rule: a negative is nearer to a real picture with dark and light swapped",
    )
    return Measured(values, rules)


def negatives_full(subject: Subject) -> Measured:
    """Counts negatives among samples from the whole sphere of directions, (Hauser, 2020), section 4.2."""
    return _negatives(subject, "full")


def negatives_restricted(subject: Subject) -> Measured:
    """Counts negatives among samples from the half that training visits, (Hauser, 2020), section 4.2."""
    return _negatives(subject, "restricted")


def samples_restricted(subject: Subject) -> Measured:
    """Lets the judge read samples of every capsule from the half that training visits: how sure it is, how far capsules
    specialise."""
    judge, test, made = subject.judge(), subject.splits.test, _samples(subject, "restricted")
    seen = judge.look(made.flatten(0, 1))
    special = specialisation(seen.label.unflatten(0, made.shape[:2]).T, len(test.names))
    values = {
        "judge_sure_percent": 100 * sure_share(seen.presence),
        "top_class_percent": 100 * special.mean_top_share,
        "leading_classes": float(special.leading),
        "variance": made.var(0).mean().item(),
        "variance_real": pixels(test.x).var(0).mean().item(),
    }
    return Measured(values, (judge.note,))


def reconstruction(subject: Subject) -> Measured:
    """Gives the test error of pictures rebuilt through all capsules, beside that of as many principal components."""
    train, test, device = subject.splits.train, subject.splits.test, subject.model.device
    seen = evaluate(subject.model, test)
    assert seen.mse is not None
    x = flat(test.x, device)
    # where there are fewer pixels than numbers, components hold all: half as many are compared with
    components = min(UNITS, x.shape[1] // 2)
    pca = (PCA.fit(flat(train.x, device), components).rebuild(x) - x).square().mean().item()
    return Measured({"mse": seen.mse, "mse_pca320": pca, "mse_over_pca320": seen.mse / pca})


def _figure(subject: Subject, domain: str) -> Image.Image:
    made = drawn(subject.model, ROWS, subject.noise("figure"), domain)
    return grid(made.flatten(0, 1), made.shape[1])


def capsule_samples_full(subject: Subject) -> Image.Image:
    """Draws the first four samples of each capsule, a column each, (Hauser, 2020), Figure 2 (a) and (c)."""
    return _figure(subject, "full")


def capsule_samples_restricted(subject: Subject) -> Image.Image:
    """Draws the same in the half that training visits, (Hauser, 2020), Figure 2 (b) and (d)."""
    return _figure(subject, "restricted")
