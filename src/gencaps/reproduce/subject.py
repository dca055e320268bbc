"""What a measure looks at: one seed's models with their data, and the judge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.abilities import Generates, Samples
from gencaps.data.images import Splits
from gencaps.engine.run import Run
from gencaps.engine.train import Trained
from gencaps.errors import GencapsError
from gencaps.model import CapsuleModel, Labelling
from gencaps.primitives.noise import Noise, mix_seed
from gencaps.reproduce.judge import Judge

BATCH = 500


class Measured(NamedTuple):
    """Named numbers, and what a reader should know beside them."""

    values: dict[str, float]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Subject:
    """One seed's trained models, in the order of the claim's runs."""

    trained: tuple[Trained, ...]
    seed: int
    find_judge: Callable[[Run], Judge]
    """Gives the judge of a run's data, trained where it is missing."""
    smoke: bool = False

    @property
    def model(self) -> Any:
        """The first run's model; a measure asks it for what it needs."""
        return self.trained[0].model

    @property
    def splits(self) -> Splits:
        """The first run's data."""
        return self.trained[0].splits

    @property
    def run(self) -> Run:
        """The first run."""
        return self.trained[0].run

    def judge(self) -> Judge:
        """Gives the judge of the first run's data."""
        return self.find_judge(self.run)

    def count(self, wanted: int, smoke: int = 40) -> int:
        """Gives how many pictures to make: fewer where only the path is tried."""
        return smoke if self.smoke else wanted

    def noise(self, purpose: str) -> Noise:
        """Gives the random numbers of a measure, fixed by seed and purpose."""
        return Noise(mix_seed(self.seed, purpose), self.model.device)


@torch.no_grad()
def generate(model: CapsuleModel, y: Labelling, noise: Noise) -> Float[Tensor, "n channels height width"]:
    """Paints what was asked for, some hundred at a time, on the model's device."""
    if not isinstance(model, Generates):
        raise GencapsError(f"a {model.paper} model does not paint what it is asked for: this claim needs one that does")
    return torch.cat([model.generate(part, noise) for part in y.to(model.device).split(BATCH)])


@torch.no_grad()
def sample(model: CapsuleModel, n: int, noise: Noise) -> Float[Tensor, "n channels height width"]:
    """Paints n pictures of anything; a model that must be asked is asked for every class in turn."""
    if isinstance(model, Samples):
        return torch.cat([model.sample(min(BATCH, n - done), noise) for done in range(0, n, BATCH)])
    classes = len(model.pictures.names)
    return generate(model, torch.arange(n) % classes, noise)
