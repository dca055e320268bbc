"""How the fused kernels of routing are loaded and launched."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

ALIGNED = 16
"""Bytes that addresses are multiples of where a kernel may read several numbers at once."""


def _load_kernels(name: str) -> Any:
    """Loads a module by its file: Triton reads functions as they are written, and an import hook that checks types
    would wrap them. From then on it is known, so that the next may import from it."""
    full = f"gencaps.primitives.{name}"
    spec = spec_from_file_location(full, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    sys.modules[full] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


kernels = _load_kernels("routing_triton")
vote_kernels = _load_kernels("routing_votes_triton")
KNOWN = kernels.triton.__version__.startswith("3.6.")
"""Whether this Triton's compiled kernels are known to run as ``_run`` runs them, past their hooks."""
_compiled: dict[Any, tuple[Any, list[Any]]] = {}


def launch(kernel: Any, grid: tuple[int, int, int], *args: Any, **constants: Any) -> None:
    """Launches a kernel, past Triton's own look at every argument where the same was launched before.

    A look takes longer than many a kernel. What a kernel was compiled for on an NVIDIA GPU is all in the key: device,
    constants, types, and that every address is aligned (else Triton looks itself); batch and caps_in are not.
    """
    tensors = [arg for arg in args if isinstance(arg, Tensor)]
    device = tensors[0].get_device()  # -1 on a CPU
    elsewhere = device < 0 or device != torch.cuda.current_device() or torch.version.hip is not None
    if elsewhere or any(tensor.data_ptr() % ALIGNED for tensor in tensors):
        _looked_at(kernel, grid, *args, **constants)
        return
    key = (kernel, device, *(tensor.dtype for tensor in tensors), *constants.values())
    known = _compiled.get(key)
    if known is None:
        ready = _looked_at(kernel, grid, *args, **constants)
        if ready is not None:  # Triton's interpreter compiles nothing
            _compiled[key] = ready, [constants[name] for name in kernel.arg_names[len(args) :]]
        return
    ready, rest = known
    _run(ready, grid, device, *args, *rest)


def _looked_at(kernel: Any, grid: tuple[int, int, int], *args: Any, **constants: Any) -> Any:
    """Launches a kernel by Triton; with one step of its loop at a time where the GPU has too little shared memory."""
    try:
        return kernel[grid](*args, **constants)
    except kernels.triton.OutOfResources:
        return kernel[grid](*args, **{**constants, "num_stages": 1})


def _run(ready: Any, grid: tuple[int, int, int], device: int, *args: Any) -> None:
    """Runs a compiled kernel; where it is known how, without the hooks of Triton's own profiler, which take as long."""
    if not KNOWN:
        ready[grid](*args)
        return
    stream = torch._C._cuda_getCurrentRawStream(device)  # a public stream object takes longer to make
    ready.run(*grid, stream, ready.function, ready.packed_metadata, None, None, None, *args)
