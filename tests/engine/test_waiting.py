"""On a GPU no step makes the host wait."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from gencaps.engine.recipe import make_recipe
from gencaps.engine.train import start

SMALL: dict[str, Any] = {"dim": 4, "widths": [8], "strides": [2], "decoder": [16]}
ADVERSARY: dict[str, Any] = {"adversarial_weight": 1.0, "reading_weight": 1.0, "discriminator": 8, "scales": 1}


def waits(folder: Path, batch: int, **model: Any) -> int:
    """Counts how often the host waits for the GPU in two epochs."""
    train = {"epochs": 2, "batch": batch, "samples_every": 0, "valid": 0.0, "ema": 0.9, "degrees": 5.0, "bend": 0.5}
    recipe = make_recipe("variational", overrides={"model": {**SMALL, **model}, "train": train})
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            start(recipe, folder, device="cuda", quiet=True)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return sum("synchronizing" in str(warning.message) for warning in caught)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("model", [{}, ADVERSARY], ids=["alone", "with an adversary"])
def test_the_host_waits_no_more_often_for_ten_times_the_steps(tmp_path: Path, model: dict[str, Any]) -> None:
    few = waits(tmp_path / "few", 240, **model)  # 2 x 5 steps of the digits
    many = waits(tmp_path / "many", 24, **model)  # 2 x 50 or more
    assert few > 0  # an evaluation looks at what it got: the count works
    assert many <= few + 10  # a look at the losses once a second, whatever the steps
