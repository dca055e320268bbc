"""Writes a model's two halves for other runtimes: capsules of pictures, and pictures of capsules."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from gencaps.abilities import Turns
from gencaps.errors import GencapsError
from gencaps.model import CapsuleModel

ENCODER, DECODER = "encoder.onnx", "decoder.onnx"


class Encoder(nn.Module):
    """Gives the capsules of pictures, as ``dials`` does."""

    def __init__(self, model: CapsuleModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, pictures: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Encodes."""
        assert isinstance(self.model, Turns)
        values, on, presence = self.model.dials(pictures)
        return values, on, presence


class Decoder(nn.Module):
    """Paints capsules, as ``turn`` does."""

    def __init__(self, model: CapsuleModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, values: Tensor, on: Tensor) -> Tensor:
        """Decodes."""
        assert isinstance(self.model, Turns)
        return self.model.turn(values, on)


@torch.no_grad()
def export_onnx(model: CapsuleModel, folder: Path) -> tuple[Path, Path]:
    """Writes ``encoder.onnx`` (pictures to values, on, presence) and ``decoder.onnx`` (values, on to pictures).

    Any number of pictures goes through at once.
    """
    if not isinstance(model, Turns):
        raise GencapsError(
            f"a {model.paper} model has no capsules that are plain numbers: it cannot be written as ONNX"
        )
    model = model.eval().cpu()
    x = torch.rand(2, model.pictures.channels, model.pictures.size, model.pictures.size)
    values, on, _ = model.dials(x)
    folder.mkdir(parents=True, exist_ok=True)
    first, second = folder / ENCODER, folder / DECODER
    _write(Encoder(model), (x,), first, ["pictures"], ["values", "on", "presence"])
    _write(Decoder(model), (values, on), second, ["values", "on"], ["pictures"])
    return first, second


def _write(half: nn.Module, example: tuple[Tensor, ...], path: Path, takes: list[str], gives: list[str]) -> None:
    batch = torch.export.Dim.DYNAMIC
    talk = logging.getLogger("torch.onnx")
    level = talk.level
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the exporter, about itself and about torchvision, which nobody needs
            talk.setLevel(logging.ERROR)
            made = torch.onnx.export(
                half.eval(),
                example,
                input_names=takes,
                output_names=gives,
                dynamic_shapes=tuple({0: batch} for _ in example),
                dynamo=True,
                verbose=False,
            )
    except ModuleNotFoundError as error:
        raise GencapsError(f"writing ONNX needs the package {error.name}: pip install 'gencaps[export]'") from None
    finally:
        talk.setLevel(level)
    assert made is not None
    made.save(path)
