"""Times routing by agreement on a GPU, forward and backward, beside the usual way: ratios from one run.

    python benchmarks/routing_cuda.py [--out docs/results/routing_cuda.json] [--quick]

Ways: the usual one (votes by a broadcast matmul, a loop in Python), votes by einsum, the same compiled, ours in plain
torch, and ours fused. All take gradients through the last round and may use tf32. Times are medians of interleaved
repeats by CUDA events, eagerly (what the host takes to launch counts) and recorded as a CUDA graph (the GPU alone, as
in a recorded training step); memory is the highest allocation over what the arguments take. Beside them stand the bytes
and the operations that cannot be saved, as shares of what this GPU copies and multiplies in the same run.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from routing import usual
from torch import Tensor

from gencaps.engine.recorded import warm_up
from gencaps.engine.run import environment
from gencaps.primitives.routing import route
from gencaps.primitives.routing_reference import route_reference
from gencaps.primitives.squash import squash


class Sizes(NamedTuple):
    """A routing problem."""

    batch: int = 512
    caps_in: int = 1152
    caps_out: int = 10
    dim_in: int = 8
    dim_out: int = 16
    rounds: int = 3


Way = Callable[[Tensor, Tensor, int], Tensor]
USUAL, COMPILED = "usual (broadcast votes)", "einsum votes, compiled"
PLAIN, FUSED = "gencaps, plain", "gencaps, fused"
RECORDED = "gencaps, fused, recorded"
SWEEP = {
    "batch": (32, 128, 512, 2048),
    "caps_in": (288, 1152, 4608),
    "caps_out": (10, 32, 100),
    "dim_out": (8, 16, 32),
    "rounds": (1, 3, 5),
}


def ways() -> dict[str, Way]:
    """Lists what is compared."""

    def einsum(u: Tensor, weight: Tensor, rounds: int) -> Tensor:
        return route_reference(u, weight, rounds).v

    return {
        USUAL: lambda u, weight, rounds: usual(u, weight, rounds),
        "einsum votes": einsum,
        COMPILED: torch.compile(einsum, dynamic=False),
        PLAIN: lambda u, weight, rounds: route(u, weight, rounds, backend="plain"),
        FUSED: lambda u, weight, rounds: route(u, weight, rounds, backend="fused"),
    }


def arguments(sizes: Sizes) -> tuple[Tensor, Tensor, Tensor]:
    """Makes the capsules, the weights and a gradient to send back."""
    generator = torch.Generator("cuda").manual_seed(0)
    like: dict[str, Any] = {"generator": generator, "device": "cuda"}
    u = squash(torch.randn(sizes.batch, sizes.caps_in, sizes.dim_in, **like))
    weight = 0.1 * torch.randn(sizes.caps_out, sizes.caps_in, sizes.dim_out, sizes.dim_in, **like)
    return u.requires_grad_(), weight.requires_grad_(), torch.randn(sizes.batch, sizes.caps_out, sizes.dim_out, **like)


def one_pass(way: Way, given: tuple[Tensor, Tensor, Tensor], rounds: int) -> tuple[Tensor, ...]:
    """Runs forward and backward: the outputs, and the gradients of the capsules and of the weights."""
    u, weight, pull = given
    v = way(u, weight, rounds)
    return v.detach(), *torch.autograd.grad(v, (u, weight), pull)


def milliseconds(work: Callable[[], Any], repeats: int) -> list[float]:
    """Times work by events on the GPU."""
    found = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        found.append(start.elapsed_time(end))
    return found


def measure(sizes: Sizes, chosen: dict[str, Way], repeats: int = 20) -> dict[str, dict[str, float]]:
    """Times every way in turn and takes its peak memory; a way that does not fit has none."""
    given = arguments(sizes)
    times: dict[str, list[float]] = {name: [] for name in chosen}
    peaks: dict[str, float] = {}
    for lap in range(3):
        for name, way in chosen.items():
            if lap and name not in peaks:
                continue
            try:
                torch.cuda.synchronize()
                held = torch.cuda.memory_allocated()
                torch.cuda.reset_peak_memory_stats()
                found = milliseconds(lambda way=way: one_pass(way, given, sizes.rounds), 3 if lap == 0 else repeats)
                peaks[name] = (torch.cuda.max_memory_allocated() - held) / 2**20
                times[name] += found if lap else []
            except torch.cuda.OutOfMemoryError:
                torch.cuda.empty_cache()
    return {name: {"ms": statistics.median(times[name]), "peak_mib": peaks[name]} for name in peaks if times[name]}


def recorded(sizes: Sizes, chosen: dict[str, Way], repeats: int = 20) -> dict[str, float]:
    """Times every way recorded as a CUDA graph, ms."""
    given = arguments(sizes)
    found = {}
    for name, way in chosen.items():
        warm_up(lambda way=way: one_pass(way, given, sizes.rounds))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept = one_pass(way, given, sizes.rounds)
        found[name] = statistics.median(milliseconds(graph.replay, repeats)[2:])
        del graph, kept
    return found


def rates() -> dict[str, float]:
    """Measures what this GPU copies and multiplies, in TB/s and in TFLOP/s with tf32."""
    x = torch.empty(2**28, device="cuda")
    y = torch.empty_like(x)
    a = torch.randn(8192, 8192, device="cuda")
    copying, multiplying = (
        statistics.median(milliseconds(work, 10)[2:]) for work in (lambda: y.copy_(x), lambda: a @ a)
    )
    return {"copy_tb_s": 2 * 4 * x.numel() / copying / 1e9, "matmul_tflops": 2 * 8192**3 / multiplying / 1e9}


def least_ms(sizes: Sizes, rate: dict[str, float]) -> dict[str, float]:
    """Gives the least time: u, W read and v written, twice that back; and the products that recompute the votes."""
    moved = 4 * sizes.caps_in * sizes.dim_in * (sizes.batch + sizes.caps_out * sizes.dim_out)
    product = 2 * sizes.batch * sizes.caps_in * sizes.caps_out * sizes.dim_in * sizes.dim_out
    # sums of every round, logits of all but the first; back, the gradients of u and of W
    products = product * (sizes.rounds + (sizes.rounds - 1) + 2)
    return {"traffic": 3 * moved / rate["copy_tb_s"] / 1e9, "products": products / rate["matmul_tflops"] / 1e9}


def at_size(sizes: Sizes, chosen: dict[str, Way], rate: dict[str, float]) -> dict[str, Any]:
    """Measures one size of a sweep: eagerly; ours recorded, too, and how near that is to the least time."""
    found: dict[str, Any] = measure(sizes, chosen, 5)
    alone = recorded(sizes, {FUSED: chosen[FUSED]})[FUSED]
    found[RECORDED] = {"ms": alone}
    found["share_of_rate"] = {of: least / alone for of, least in least_ms(sizes, rate).items()}
    return found


def differences(sizes: Sizes, chosen: dict[str, Way]) -> dict[str, float]:
    """Compares ours with the einsum way in full float32: largest difference over largest value."""
    allowed = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    given = arguments(sizes)
    pairs = zip(
        ("outputs", "gradient of u", "gradient of W"),
        one_pass(chosen[FUSED], given, sizes.rounds),
        one_pass(chosen["einsum votes"], given, sizes.rounds),
        strict=True,
    )
    found = {name: ((ours - theirs).abs().max() / theirs.abs().max()).item() for name, ours, theirs in pairs}
    torch.backends.cuda.matmul.allow_tf32 = allowed
    return found


def main() -> None:
    """Measures the sizes that were promised, then how cost grows, and writes both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--quick", action="store_true", help="the promised sizes alone")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    chosen, rate = ways(), rates()
    result: dict[str, Any] = {**environment("cuda"), **rate, "sizes": {}}
    for batch in (128, 512):
        sizes = Sizes(batch)
        found = measure(sizes, chosen)
        result["sizes"][f"batch {batch}"] = {
            **found,
            "times_faster_than_usual": found[USUAL]["ms"] / found[FUSED]["ms"],
            "times_faster_than_compiled": found[COMPILED]["ms"] / found[FUSED]["ms"],
            "memory_share": found[FUSED]["peak_mib"] / found[USUAL]["peak_mib"],
            "least_ms": least_ms(sizes, rate),
            "recorded_ms": (alone := recorded(sizes, chosen)),
            "times_faster_than_usual_recorded": alone[USUAL] / alone[FUSED],
            "times_faster_than_compiled_recorded": alone[COMPILED] / alone[FUSED],
        }
        print(batch, json.dumps(result["sizes"][f"batch {batch}"]), flush=True)
    result["differences"] = differences(Sizes(64), chosen)
    large = Sizes(32, 100_000, 100)
    result["large"] = measure(large, {FUSED: chosen[FUSED]}, 2)
    print("large", result["large"], "differences", result["differences"], flush=True)
    if not options.quick:
        few = {name: chosen[name] for name in (USUAL, PLAIN, FUSED)}
        result["growth"] = {
            name: {str(value): at_size(Sizes(**{name: value}), few, rate) for value in values}
            for name, values in SWEEP.items()
        }
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + "\n")
        if "growth" in result:
            plot(result["growth"], options.out.with_suffix(".png"))


def plot(growth: dict[str, Any], path: Path) -> None:
    """Draws how time and memory grow with every size."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3 * len(growth), 5.5), layout="constrained")
    ways = (USUAL, PLAIN, FUSED, RECORDED)
    for column, (name, rows) in zip(figure.subplots(2, len(growth), squeeze=False).T, growth.items(), strict=True):
        for axes, (key, label) in zip(column, {"ms": "ms", "peak_mib": "MiB"}.items(), strict=True):
            for way in ways if key == "ms" else ways[:-1]:
                seen = [(int(value), row[way][key]) for value, row in rows.items() if way in row]
                axes.loglog(*zip(*seen, strict=True), marker="o", label=way)
            axes.set_xticks([int(value) for value in rows], list(rows), minor=False)
            axes.set_xticks([], minor=True)
            axes.set(xlabel=name, ylabel=label)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
