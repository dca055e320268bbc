"""A kernel that was launched before is launched without another look at its arguments."""

from __future__ import annotations

from typing import Any

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed")
from gencaps.primitives import routing_launch
from gencaps.primitives.routing_launch import launch


class OnGPU(torch.Tensor):
    """A tensor that says it lies on a GPU."""

    address = 0

    def get_device(self) -> int:
        return 0

    def data_ptr(self) -> int:
        return self.address


class Kernel:
    """Writes down how it was launched; what it gives launches as a compiled kernel does."""

    arg_names = ("x", "n", "SIZE", "FLAG")
    function, packed_metadata = "function", "packed"

    def __init__(self, calls: list[tuple[Any, ...]], ready: bool) -> None:
        self.calls, self.ready = calls, ready

    def __getitem__(self, grid: tuple[int, int, int]) -> Any:
        def run(*args: Any, **constants: Any) -> Any:
            self.calls.append(("ready" if self.ready else "looked", grid, args[1:], constants))
            return Kernel(self.calls, True)

        return run

    def run(self, *words: Any) -> None:
        """Runs as a compiled kernel of Triton 3.6 does: grid, stream, function, its metadata and three for hooks."""
        assert words[3:9] == ("stream 0", "function", "packed", None, None, None)
        self.calls.append(("run", words[:3], words[10:], {}))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: f"stream {device}", raising=False)
    monkeypatch.setattr(routing_launch, "_compiled", {})
    return []


def on_gpu(dtype: torch.dtype = torch.float32, address: int = 0) -> OnGPU:
    made = torch.zeros(2, dtype=dtype).as_subclass(OnGPU)
    made.address = address
    return made


@pytest.mark.parametrize("known", [False, True])
def test_the_second_launch_is_ready_and_has_the_constants_in_the_kernels_order(
    calls: list[tuple[Any, ...]], known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routing_launch, "KNOWN", known)
    kernel = Kernel(calls, False)
    for n in (7, 9):
        launch(kernel, (n, 1, 1), on_gpu(), n, FLAG=True, SIZE=16, num_warps=8)
    assert calls == [
        ("looked", (7, 1, 1), (7,), {"FLAG": True, "SIZE": 16, "num_warps": 8}),
        ("run" if known else "ready", (9, 1, 1), (9, 16, True), {}),
    ]


def test_a_kernel_too_large_for_the_gpu_is_launched_with_fewer_stages_and_known_so(
    calls: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routing_launch, "KNOWN", False)

    class Large(Kernel):
        def __getitem__(self, grid: tuple[int, int, int]) -> Any:
            def run(*args: Any, **constants: Any) -> Any:
                if constants.get("num_stages") != 1:
                    raise routing_launch.kernels.triton.OutOfResources(200, 100, "shared memory")
                return Kernel.__getitem__(self, grid)(*args, **constants)

            return run

    kernel = Large(calls, False)
    for _ in range(2):
        launch(kernel, (1, 1, 1), on_gpu(), 7, SIZE=16, FLAG=True, num_stages=3)
    assert [(call[0], call[3]) for call in calls] == [
        ("looked", {"SIZE": 16, "FLAG": True, "num_stages": 1}),
        ("ready", {}),
    ]


def test_other_constants_warps_types_and_addresses_are_looked_at(calls: list[tuple[Any, ...]]) -> None:
    kernel = Kernel(calls, False)
    launch(kernel, (1, 1, 1), on_gpu(), 1, SIZE=16, FLAG=True)
    launch(kernel, (1, 1, 1), on_gpu(), 1, SIZE=32, FLAG=True)
    launch(kernel, (1, 1, 1), on_gpu(), 1, SIZE=16, FLAG=True, num_warps=8)
    launch(kernel, (1, 1, 1), on_gpu(torch.bfloat16), 1, SIZE=16, FLAG=True)
    launch(kernel, (1, 1, 1), on_gpu(address=8), 1, SIZE=16, FLAG=True)
    launch(kernel, (1, 1, 1), torch.zeros(2), 1, SIZE=16, FLAG=True)  # on a CPU
    assert [call[0] for call in calls] == ["looked"] * 6
