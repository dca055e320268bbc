"""Where training runs: one CPU, one GPU, several of either, or several machines under torchrun."""

from __future__ import annotations

import logging
import os
from typing import Literal

import torch
from lightning_fabric import Fabric
from lightning_fabric.strategies.ddp import DDPStrategy

from gencaps.errors import GencapsError

Device = Literal["auto", "cpu", "cuda"]
Precision = Literal["auto", "32", "bf16"]


def choose_device(device: Device | str) -> Literal["cpu", "cuda"]:
    """Names the device to use; a GPU that is asked for and not there is refused."""
    if device not in ("auto", "cpu", "cuda"):
        raise GencapsError(f"there is no device '{device}': choose auto, cpu or cuda")
    if device == "cuda" and not torch.cuda.is_available():
        raise GencapsError("no CUDA GPU is to be found here: use --device cpu, or --device auto")
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return "cuda" if device == "cuda" else "cpu"


def make_fabric(device: Device | str, devices: int, precision: Precision) -> Fabric:
    """Sets up Lightning Fabric; under torchrun it takes the processes that torchrun started."""
    kind = choose_device(device)
    if precision == "bf16" and kind == "cpu":
        raise GencapsError("train.precision is bf16, which many CPUs cannot run: use 32 or auto without a GPU")
    if devices < 1:
        raise GencapsError(f"--devices is {devices}; it must be at least 1")
    available = torch.cuda.device_count() if kind == "cuda" else devices
    if devices > available:
        raise GencapsError(f"--devices is {devices}, and this machine has {available} GPU: use --devices {available}")
    nodes = 1
    if "LOCAL_WORLD_SIZE" in os.environ:
        devices = int(os.environ["LOCAL_WORLD_SIZE"])
        nodes = int(os.environ["WORLD_SIZE"]) // devices
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # its hints are not for our users
    if kind == "cuda":
        torch.set_float32_matmul_precision("high")
    strategy = "auto"
    if devices * nodes > 1:
        # a player whose turn it is not has no gradient, nor has a decoder whose loss has weight 0
        strategy = DDPStrategy(find_unused_parameters=True)
    return Fabric(
        accelerator=kind,
        devices=devices,
        num_nodes=nodes,
        strategy=strategy,
        precision="bf16-mixed" if kind == "cuda" and precision != "32" else "32-true",
    )


def memory_bytes(device: torch.device) -> int:
    """Says how much memory a device has, in use or not."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    if not hasattr(os, "sysconf"):  # not a Unix: it will show
        return 2**63
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
