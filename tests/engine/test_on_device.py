"""A training step makes nothing on the host: a number that is copied to a GPU cannot be recorded there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gencaps.engine.pretrained import build
from gencaps.engine.recipe import make_recipe
from gencaps.model import PictureInfo, Step
from gencaps.primitives.noise import Noise
from gencaps.systems import SYSTEMS

TURNING: dict[str, object] = {"turns": 3, "turn_in_training": True}


class Made(TorchDispatchMode):
    """Counts tensors that are made from Python's numbers."""

    count = 0

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        self.count += func is torch.ops.aten.lift_fresh.default
        return func(*args, **(kwargs or {}))


CASES: list[tuple[str, dict[str, object]]] = [(system, {}) for system in SYSTEMS] + [("probabilistic", TURNING)]


@pytest.mark.parametrize(("system", "model"), CASES)
def test_a_step_makes_nothing_on_the_host(system: str, model: dict[str, object]) -> None:
    recipe = make_recipe(system, preset="small", overrides={"model": model})
    network = build(recipe.paper, recipe.model, PictureInfo(1, 28, tuple("0123456789"))).train()
    x, y = torch.rand(4, 1, 28, 28), torch.arange(4)
    done = torch.zeros(())
    for stage in network.stages():
        for player in network.players(stage.name):
            with Made() as made:
                network.losses(x, y, Step(Noise(0, "cpu"), stage=stage.name, player=player, progress=done))
            assert made.count == 0, (stage.name, player)


def test_it_would_be_seen() -> None:
    with Made() as made:
        torch.add(torch.as_tensor(0.5), torch.tensor(1.0))
    assert made.count == 2
