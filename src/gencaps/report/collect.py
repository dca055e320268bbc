"""Gathers what a run's report shows: figures, pictures and facts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gencaps.abilities import Generates, Interpolates, Reconstructs, Samples
from gencaps.baselines.pixel_svm import PixelSVM
from gencaps.data.images import ImageSet, Splits
from gencaps.engine.evaluate import Evaluation, pixels
from gencaps.engine.run import Run
from gencaps.engine.samples import attribute_grid, class_grid
from gencaps.model import CapsuleModel, count_parameters
from gencaps.primitives.noise import Noise, mix_seed
from gencaps.report.content import Hard, ReportContent

JUDGED = 20
"""Generated pictures of each class that the judge reads."""
TRUSTED = 0.9
"""Share of real pictures that the judge must read right for its word to be shown."""
PAIRS, DRAWS, LIKED, STRIPS, STEPS, HARDEST = 20, 10, 4, 6, 9, 12


@torch.no_grad()
def collect(run: Run, model: CapsuleModel, splits: Splits, seen: Evaluation) -> ReportContent:
    """Looks at a finished run's model over its test part; nothing here is chosen for looks."""
    info, facts = model.pictures, run.facts()
    noise = Noise(mix_seed(run.recipe.seed, "report"), model.device)
    first = pixels(splits.test.x[:PAIRS].to(model.device))
    samples = interpolations = reconstructed = None
    judged: list[tuple[str, str, str]] = []
    if isinstance(model, Generates) and info.labels == "classes":
        samples = class_grid(model, min(20, len(info.names)), DRAWS, noise)
        if info.size <= 32:
            judged = judge(model, splits, noise)
    elif isinstance(model, Generates):
        samples = attribute_grid(model, splits, LIKED, DRAWS, noise)
    elif isinstance(model, Samples):
        samples = model.sample(LIKED * DRAWS, noise).unflatten(0, (LIKED, DRAWS))
    if isinstance(model, Reconstructs):
        reconstructed = model.reconstruct(first)
    if isinstance(model, Interpolates) and len(first) > STRIPS:
        interpolations = model.interpolate(first[:STRIPS], first[1 : STRIPS + 1], STEPS)
    return ReportContent(
        title=f"{model.title} on {info.data}",
        lead=(
            f"{count_parameters(model.parameters()):,} parameters trained on {len(splits.train):,} pictures of "
            f"{info.size} x {info.size} pixels in {len(info.names)} {info.labels}, seed {run.recipe.seed}."
        ),
        headline=[*headline(seen), *judged],
        metrics=run.rows(),
        names=info.names,
        confusion=seen.confusion,
        real=None if reconstructed is None else first.cpu(),
        reconstructed=_cpu(reconstructed),
        samples=_cpu(samples),
        asked=isinstance(model, Generates) and info.labels == "classes",
        interpolations=_cpu(interpolations),
        hardest=hardest(seen, splits.test),
        config=run.recipe.to_yaml(),
        command=facts.get("command", ""),
        versions=facts.get("environment", {}),
        split=facts.get("split", {}),
    )


def _cpu(x: Tensor | None) -> Tensor | None:
    return None if x is None else x.cpu()


def headline(seen: Evaluation) -> list[tuple[str, str, str]]:
    """Picks the figures that stand on top."""
    found = []
    if seen.accuracy is not None:
        counted = f"{seen.correct:,} of {seen.images:,}" if seen.correct is not None else f"mean over {seen.images:,}"
        found.append(("Test accuracy", f"{100 * seen.accuracy:.2f} %", f"{counted} held-out pictures"))
    if seen.mse is not None:
        found.append(("Reconstruction", f"{seen.mse:.4f}", "mean squared error of a test pixel, values 0 to 1"))
    return found


def judge(model: CapsuleModel, splits: Splits, noise: Noise) -> list[tuple[str, str, str]]:
    """Asks a support vector machine, fitted on the real training pictures, to read generated ones.

    Gives nothing where it reads real pictures badly itself, as it does photographs.
    """
    share, trust, n = judged_share(model, splits, noise)
    if trust < TRUSTED:
        return []
    note = f"of {n:,} by a pixel SVM that reads {100 * trust:.1f} % of real test pictures"
    return [("Generated pictures read as asked", f"{100 * share:.1f} %", note)]


@torch.no_grad()
def judged_share(model: CapsuleModel, splits: Splits, noise: Noise, each: int = JUDGED) -> tuple[float, float, int]:
    """Gives the share of generated pictures read as asked, of real ones read right, and how many were made."""
    svm, classes = PixelSVM(splits.train), len(model.pictures.names)
    made = class_grid(model, classes, each, noise)
    wanted = torch.arange(classes).repeat_interleave(each)
    share = (svm.read(made.flatten(0, 1)) == wanted).double().mean().item()
    return share, svm.accuracy(splits.test), len(wanted)


def hardest(seen: Evaluation, test: ImageSet) -> list[Hard]:
    """Lists the test pictures whose own class seemed least present, the worst first."""
    if seen.presence is None or test.labels != "classes" or seen.predicted is None:
        return []
    own = seen.presence.gather(1, test.y[:, None])[:, 0]
    found: list[Hard] = []
    for i in own.argsort(stable=True)[:HARDEST].tolist():
        chosen: Any = seen.predicted[i].item()
        shown = Hard(pixels(test.x[i]), test.names[int(test.y[i])], test.names[chosen], seen.presence[i, chosen].item())
        found.append(shown)
    return found
