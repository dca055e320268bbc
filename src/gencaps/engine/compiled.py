"""Compiles the heavy methods of a model in place."""

from __future__ import annotations

import torch

from gencaps.model import CapsuleModel


def compile_methods(model: CapsuleModel, *, recorded: bool = False) -> None:
    """Compiles the methods that a model names; on a GPU each runs as one CUDA graph, or in that of a recorded step.

    Their many small launches, not their arithmetic, are what a step otherwise waits for. Answering and
    evaluating go through other methods and are never compiled.
    """
    mode = "reduce-overhead" if model.device.type == "cuda" and not recorded else None
    for name in model.compiled:
        setattr(model, name, torch.compile(getattr(model, name), mode=mode))
