"""Compiles a model's networks in place."""

from __future__ import annotations

import torch

from gencaps.model import CapsuleModel


def compile_networks(model: CapsuleModel) -> None:
    """Compiles the networks that a model names; on a GPU each runs as one CUDA graph.

    Their many small launches, not their arithmetic, are what a step otherwise waits for.
    """
    mode = "reduce-overhead" if model.device.type == "cuda" else None
    for name in model.compiled:
        network = model.get_submodule(name)
        # Module.compile() does nothing, silently, for a network that is one of torch's own containers
        network.forward = torch.compile(network.forward, mode=mode)
