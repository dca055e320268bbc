"""Two processes see what one would: the same losses from the same global batch."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gencaps.engine.run import Run
from tests.engine.helpers import tiny, weights

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def launch(words: list[str], processes: int) -> None:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    options = ["--nproc-per-node", str(processes), "--master-addr", "127.0.0.1", "--master-port", str(free_port())]
    torchrun = [sys.executable, "-m", "torch.distributed.run", *options, "-m", "gencaps"] if processes > 1 else []
    done = subprocess.run(
        [*(torchrun or [sys.executable, "-m", "gencaps"]), *words],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed")
def test_two_processes_give_the_losses_of_one(tmp_path: Path) -> None:
    """Group normalisation and noise that belongs to a picture's place in the batch: nothing may differ but rounding."""
    recipe = tiny(epochs=2, validate_every=2)
    (tmp_path / "recipe.yaml").write_text(recipe.to_yaml())
    for processes in (1, 2):
        words = ["train", "variational", "--config", str(tmp_path / "recipe.yaml"), "--device", "cpu"]
        launch([*words, "--out", str(tmp_path / str(processes)), "--quiet", "--no-report"], processes)
    one, two = (Run.open(tmp_path / name).rows() for name in ("1", "2"))
    assert [row["split"] for row in one] == [row["split"] for row in two] == ["train", "train", "valid"]
    for alone, together in zip(one, two, strict=True):
        for term in ("loss", "margin", "recon"):
            if term in alone:
                assert together[term] == pytest.approx(alone[term], rel=1e-5)
    for name, tensor in weights(tmp_path / "1").items():
        torch.testing.assert_close(weights(tmp_path / "2")[name], tensor, rtol=1e-3, atol=1e-4)
