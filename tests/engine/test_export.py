"""What is written for other runtimes computes what torch computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gencaps.api import Capsules
from gencaps.cli import main
from gencaps.engine.export import DECODER, ENCODER, export_onnx
from gencaps.engine.pretrained import build
from gencaps.engine.recipe import make_recipe
from gencaps.model import PictureInfo
from tests.helpers import refused

ort: Any = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'gencaps[export]'")
pytest.importorskip("onnxscript", reason="onnxscript is not installed: pip install 'gencaps[export]'")


def test_both_halves_agree_with_torch_for_any_number_of_pictures(
    trained_digits: Path, model: Capsules, tmp_path: Path
) -> None:
    assert main(["export", str(trained_digits), "--onnx", str(tmp_path / "onnx")]) == 0
    encoder, decoder = (
        ort.InferenceSession(str(tmp_path / "onnx" / name), providers=["CPUExecutionProvider"])
        for name in (ENCODER, DECODER)
    )
    for n in (1, 2, 7):
        x = torch.rand(n, 1, 8, 8, generator=torch.Generator().manual_seed(n))
        wanted = model.dials(x)
        found = encoder.run(None, {"pictures": x.numpy()})
        assert all(np.abs(a - b.numpy()).max() <= 1e-4 for a, b in zip(found, wanted, strict=True))
        painted = decoder.run(None, {"values": wanted.values.numpy(), "on": wanted.on.numpy()})[0]
        assert np.abs(painted - model.paint(wanted.values, wanted.on).pictures.numpy()).max() <= 1e-4


def test_what_has_no_plain_capsules_and_a_file_for_a_folder_are_refused(trained_digits: Path, tmp_path: Path) -> None:
    info = PictureInfo(1, 28, tuple("0123456789"), "classes", "digits")
    gan = build("capsule_gan", make_recipe("capsule_gan", preset="small", data="digits").model, info)
    refused(lambda: export_onnx(gan, tmp_path), "capsule_gan", "ONNX")
    (tmp_path / "file").write_text("")
    assert main(["export", str(trained_digits), "--onnx", str(tmp_path / "file")]) != 0
