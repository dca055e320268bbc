"""Asking for compilation compiles, and changes nothing but speed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from tests.engine.helpers import tiny, train, weights


@pytest.mark.skipif(shutil.which("c++") is None and shutil.which("g++") is None, reason="no C++ compiler here")
def test_compiled_networks_train_to_the_same_weights(tmp_path: Path) -> None:
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()
    plain = weights(train(tmp_path / "plain", tiny(epochs=1)).run.path)
    assert not counters["stats"]["unique_graphs"]
    compiled = weights(train(tmp_path / "compiled", tiny(epochs=1, compile=True)).run.path)
    # an encoder and a decoder, each once: evaluation does not compile again
    assert counters["stats"]["unique_graphs"] == 2
    for name, tensor in plain.items():
        torch.testing.assert_close(compiled[name], tensor, rtol=1e-3, atol=1e-4)
