"""What many tests share: a small trained model, made once a session."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

# tiny work: on a busy machine two threads that wait for each other take several times longer than one
os.environ["OMP_NUM_THREADS"] = "1"

import torch

torch.set_num_threads(1)
if not torch.cuda.is_available():
    # before anything imports Triton, whose own functions are made for the interpreter or not when they are read
    os.environ["TRITON_INTERPRET"] = "1"

if TYPE_CHECKING:  # imported here it would escape the shape checks, which begin after this file is read
    from gencaps.api import Capsules


@pytest.fixture(scope="session")
def trained_digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trains a tiny model on the digits through the command line and gives its run folder."""
    from gencaps.cli import main

    run = tmp_path_factory.mktemp("trained") / "digits"
    words = ["train", "variational", "--data", "digits", "--out", str(run), "--quiet"]
    settings = ["--train.epochs", "12", "--model.widths", "[16,32]", "--model.strides", "[1,2]"]
    assert main([*words, *settings]) == 0
    for name, image in zip(("a.png", "b.png"), _digit_images(), strict=True):
        image.save(run / name)
    return run


def _digit_images() -> list:
    from gencaps import data
    from gencaps.figures import to_images

    return to_images(data.load("digits").test.x[:2])


@pytest.fixture(scope="session")
def model(trained_digits: Path) -> Capsules:
    """The tiny model, ready to answer."""
    from gencaps.api import load

    return load(trained_digits, "cpu")


@pytest.fixture
def a(trained_digits: Path) -> Path:
    """A held-out digit."""
    return trained_digits / "a.png"


@pytest.fixture
def b(trained_digits: Path) -> Path:
    """Another one."""
    return trained_digits / "b.png"


@pytest.fixture
def real_data() -> Path:
    """Points at the real data sets, or skips the test by name where there are none."""
    root = os.environ.get("GENCAPS_DATA")
    if not root:
        pytest.skip("GENCAPS_DATA is not set: this test needs the real data sets")
    return Path(root)
