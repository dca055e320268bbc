"""Asking for compilation compiles, and changes nothing but speed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.engine.helpers import tiny, weights

# a process of its own: the tests' shape checks wrap every function, and those cannot be compiled
CODE = """
import sys
from pathlib import Path
from torch._dynamo.utils import counters
from tests.engine.helpers import tiny, train
train(Path(sys.argv[1]), tiny(epochs=1, compile=True))
print(counters["stats"]["unique_graphs"], sum(counters["graph_break"].values()))
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs g++, which is not here")
def test_compiled_networks_train_to_the_same_weights(tmp_path: Path) -> None:
    words = [sys.executable, "-c", CODE, str(tmp_path / "compiled")]
    done = subprocess.run(words, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    # augmentation, encoder and decoder, each once and whole: evaluation does not compile again
    assert done.stdout.split() == ["3", "0"]
    from tests.engine.helpers import train

    plain = weights(train(tmp_path / "plain", tiny(epochs=1)).run.path)
    for name, tensor in weights(tmp_path / "compiled").items():
        torch.testing.assert_close(tensor, plain[name], rtol=1e-3, atol=1e-4)
