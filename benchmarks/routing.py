"""Times routing by agreement, forward and backward, beside the usual way: ratios from one run.

    python benchmarks/routing.py [--json] [--repeats N] [--threads N]

The usual way writes the votes down by a broadcast matmul and loops in Python, gradients through the last
round only. The second rival writes them down by one einsum (batched matrix products), the best one gets with
votes. Times are medians of interleaved repeats, so that whatever else the machine does meets all ways alike.
Memory is the highest resident set of a fresh process over what it held before the one pass that it makes.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from gencaps.engine.run import environment
from gencaps.primitives.routing import route
from gencaps.primitives.routing_reference import route_reference
from gencaps.primitives.squash import squash

BATCH, CAPS_IN, CAPS_OUT, DIM_IN, DIM_OUT, ROUNDS = 128, 1152, 10, 8, 16, 3
SIZES = f"{CAPS_IN} -> {CAPS_OUT} capsules, {DIM_IN} -> {DIM_OUT} dimensions, batch {BATCH}, {ROUNDS} rounds"
LEAST_SPEED, MOST_MEMORY = 5.0, 1 / 3


def usual(u: Tensor, weight: Tensor, rounds: int = ROUNDS) -> Tensor:
    """Routes as most published code does."""
    u_hat = torch.matmul(weight[None], u[:, None, :, :, None]).squeeze(-1)
    stopped = u_hat.detach()
    b = u.new_zeros(u_hat.shape[:3])
    for _ in range(rounds - 1):
        c = torch.softmax(b, dim=1)
        v = squash((c.unsqueeze(-1) * stopped).sum(2))
        b = b + (stopped * v.unsqueeze(2)).sum(-1)
    c = torch.softmax(b, dim=1)
    return squash((c.unsqueeze(-1) * u_hat).sum(2))


WAYS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "usual (broadcast votes)": usual,
    "einsum votes": lambda u, weight: route_reference(u, weight, ROUNDS).v,
    "gencaps": lambda u, weight: route(u, weight, ROUNDS),
}
USUAL, OURS = "usual (broadcast votes)", "gencaps"


def inputs(batch: int = BATCH, caps_in: int = CAPS_IN) -> tuple[Tensor, Tensor, Tensor]:
    """Makes the capsules, the weights and a gradient to send back."""
    generator = torch.Generator().manual_seed(0)
    u = squash(torch.randn(batch, caps_in, DIM_IN, generator=generator))
    weight = 0.1 * torch.randn(CAPS_OUT, caps_in, DIM_OUT, DIM_IN, generator=generator)
    pull = torch.randn(batch, CAPS_OUT, DIM_OUT, generator=generator)
    return u.requires_grad_(), weight.requires_grad_(), pull


def one_pass(way: str, u: Tensor, weight: Tensor, pull: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Runs forward and backward: the outputs, and the gradients of the capsules and of the weights."""
    v = WAYS[way](u, weight)
    of_u, of_weight = torch.autograd.grad(v, (u, weight), pull)
    return v.detach(), of_u, of_weight


def peak_mib(way: str) -> float:
    """Measures in this process how far one pass lifts the resident set. Call it once, in a fresh process."""
    one_pass(way, *inputs(batch=2, caps_in=4))  # loads the libraries that the pass needs
    given = inputs()
    status = Path("/proc/self/status")
    if status.exists():
        Path("/proc/self/clear_refs").write_text("5")  # the highest resident set starts again at the present one
        before = _status_kib(status, "VmRSS")
        one_pass(way, *given)
        return (_status_kib(status, "VmHWM") - before) / 1024
    unit = 2**20 if platform.system() == "Darwin" else 2**10
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    one_pass(way, *given)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / unit


def _status_kib(status: Path, field: str) -> int:
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith(field))


def peak_in_fresh_process(way: str, threads: int) -> float:
    """Measures the same in a process of its own."""
    command = [sys.executable, __file__, "--peak", way, "--threads", str(threads)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def medians_ms(repeats: int) -> dict[str, float]:
    """Times every way, one after the other, again and again."""
    given = inputs()
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    for repeat in range(repeats + 1):
        for way in WAYS:
            started_s = time.perf_counter()
            one_pass(way, *given)
            if repeat > 0:  # the first one warms up
                times[way].append(1e3 * (time.perf_counter() - started_s))
    return {way: statistics.median(values) for way, values in times.items()}


def differences() -> dict[str, float]:
    """Compares our outputs and gradients with the usual way's: largest difference over largest value."""
    given = inputs()
    names = ("outputs", "gradient of u", "gradient of W")
    pairs = zip(names, one_pass(OURS, *given), one_pass(USUAL, *given), strict=True)
    return {name: ((ours - theirs).abs().max() / theirs.abs().max()).item() for name, ours, theirs in pairs}


def main() -> None:
    """Prints the comparison as a table, or as JSON."""
    parser = argparse.ArgumentParser(description="Routing forward + backward on CPU, beside the usual way.")
    parser.add_argument("--repeats", type=int, default=7, help="timed repeats of each way")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="torch threads")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--peak", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.peak:
        print(peak_mib(options.peak))
        return

    peaks = {way: peak_in_fresh_process(way, options.threads) for way in WAYS}
    times = medians_ms(options.repeats)
    result = {
        "benchmark": "routing",
        "sizes": SIZES,
        "command": shlex.join(["python", "benchmarks/routing.py", *sys.argv[1:]]),
        **environment("cpu"),
        "median_ms": times,
        "peak_mib": peaks,
        "times_faster": times[USUAL] / times[OURS],
        "memory_share": peaks[OURS] / peaks[USUAL],
        "largest_relative_difference": differences(),
    }
    print(json.dumps(result, indent=2) if options.json else _table(result))


def _table(result: dict) -> str:
    times, peaks = result["median_ms"], result["peak_mib"]
    lines = [f"routing, forward + backward: {result['sizes']}, float32, {result['device']}"]
    lines.append(f"  {'way':<26}{'time':>10}{'peak memory':>14}{'times faster':>15}{'of its memory':>15}")
    for way in times:
        lines.append(
            f"  {way:<26}{times[way]:>7.0f} ms{peaks[way]:>10.0f} MiB"
            f"{times[USUAL] / times[way]:>13.1f} x{100 * peaks[way] / peaks[USUAL]:>13.1f} %"
        )
    off = ", ".join(f"{name} {value:.0e}" for name, value in result["largest_relative_difference"].items())
    lines.append(f"  ours against the usual way, largest relative difference: {off}")
    for words, met in (
        (f"at least {LEAST_SPEED:.0f} x faster", result["times_faster"] >= LEAST_SPEED),
        ("at most a third of the memory", result["memory_share"] <= MOST_MEMORY),
        ("equal to 1e-5", max(result["largest_relative_difference"].values()) <= 1e-5),
    ):
        lines.append(f"  goal, {words}: {'met' if met else 'MISSED'}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
