"""Times label spreading beside scikit-learn's LabelSpreading(kernel="knn"): ratios from one run.

    python benchmarks/spreading.py [--points N ...] [--features N] [--repeats N] [--device D] [--json] [--out FILE]

Points lie near curved sheets of 12 dimensions, one a class, as pictures do; one in ten has a label. Every
measurement is a fresh process, ours and theirs in turn, so that whatever else the machine does meets both alike.
Memory is the highest resident set over what the process held before it spread (on a GPU, the device's memory).
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
import warnings
from pathlib import Path

import torch
from torch import Tensor

from gencaps.engine.run import environment
from gencaps.metrics.spreading import spread_labels

WAYS = ("scikit-learn", "gencaps")
CLASSES, SHEET, LABELLED, MOST_MIB = 10, 12, 0.1, 8 * 1024


def inputs(points: int, features: int) -> tuple[Tensor, Tensor]:
    """Makes points between 0 and 1, and their labels, -1 for none."""
    generator = torch.Generator().manual_seed(0)
    true = torch.randint(CLASSES, (points,), generator=generator)
    sheet = torch.randn(CLASSES, SHEET, features, generator=generator)
    middle = torch.randn(CLASSES, features, generator=generator)
    x = torch.empty(points, features)
    for label in range(CLASSES):
        here = (true == label).nonzero().squeeze(1)
        x[here] = torch.randn(len(here), SHEET, generator=generator) @ sheet[label] * 0.5 + middle[label]
    x.sigmoid_().add_(0.02 * torch.randn(points, features, generator=generator)).clamp_(0, 1)
    return x, true.where(torch.rand(points, generator=generator) < LABELLED, -1)


def spread(way: str, x: Tensor, y: Tensor) -> Tensor:
    """Spreads the labels one way, with scikit-learn's settings."""
    if way == "gencaps":
        return spread_labels(x, y, CLASSES).labels.cpu()
    from sklearn.semi_supervised import LabelSpreading

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it stops at max_iter, which ours does too
        return torch.from_numpy(LabelSpreading(kernel="knn", n_neighbors=7, alpha=0.2).fit(x, y).transduction_)


def measure(way: str, points: int, features: int, device: str) -> dict:
    """Spreads once in this process: seconds, MiB and the labels' digest. Call it once, in a fresh process."""
    place = device if way == "gencaps" else "cpu"
    small, few = inputs(200, 8)
    spread(way, small.to(place), few.to(place))  # loads the libraries that it needs
    x, y = inputs(points, features)
    x, y = x.to(place), y.to(place)
    on_gpu, status = place.startswith("cuda"), Path("/proc/self/status")
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    elif status.exists():
        Path("/proc/self/clear_refs").write_text("5")  # the highest resident set starts again at the present one
    before = torch.cuda.memory_allocated() / 2**20 if on_gpu else _resident_mib(status, "VmRSS")
    started_s = time.perf_counter()
    labels = spread(way, x, y)
    seconds = time.perf_counter() - started_s
    after = torch.cuda.max_memory_allocated() / 2**20 if on_gpu else _resident_mib(status, "VmHWM")
    return {"seconds": seconds, "peak_mib": after - before, "labels": labels.tolist()}


def _resident_mib(status: Path, field: str) -> float:
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith(field)) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if platform.system() == "Darwin" else 2**10)


def compare(points: int, features: int, repeats: int, options: list[str]) -> dict:
    """Measures both ways in turn."""
    found: dict[str, list[dict]] = {way: [] for way in WAYS}
    for _ in range(repeats):
        for way in WAYS:
            size = ["--points", str(points), "--features", str(features)]
            command = [sys.executable, __file__, "--measure", way, *size, *options]
            found[way].append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    seconds = {way: statistics.median(one["seconds"] for one in found[way]) for way in WAYS}
    peaks = {way: max(one["peak_mib"] for one in found[way]) for way in WAYS}
    theirs, ours = (found[way][0]["labels"] for way in WAYS)
    return {
        "points": points,
        "features": features,
        "median_s": seconds,
        "peak_mib": peaks,
        "times_faster": seconds[WAYS[0]] / seconds[WAYS[1]],
        "labels_that_differ": sum(a != b for a, b in zip(theirs, ours, strict=True)),
    }


def main() -> None:
    """Prints the comparison as a table, or as JSON."""
    parser = argparse.ArgumentParser(description="Label spreading beside scikit-learn's.")
    parser.add_argument("--points", type=int, nargs="+", default=[6000, 20000], help="sizes to compare at")
    parser.add_argument("--features", type=int, default=784, help="numbers a point")
    parser.add_argument("--repeats", type=int, default=3, help="processes of each way")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="torch threads")
    parser.add_argument("--device", default="cpu", help="where ours runs; scikit-learn knows the CPU only")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--out", type=Path, help="write the JSON to this file too")
    parser.add_argument("--measure", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.measure:
        print(json.dumps(measure(options.measure, options.points[0], options.features, options.device)))
        return

    passed = ["--threads", str(options.threads), "--device", options.device]
    result = {
        "benchmark": "spreading",
        "command": shlex.join(["python", "benchmarks/spreading.py", *sys.argv[1:]]),
        **environment(options.device),
        "sizes": [compare(points, options.features, options.repeats, passed) for points in options.points],
    }
    text = json.dumps(result, indent=2)
    if options.out:
        options.out.write_text(text + "\n")
    print(text if options.json else _table(result))


def _table(result: dict) -> str:
    lines = [f"label spreading, 7 neighbours, float32, {result['device']}"]
    lines.append(f"  {'points':<18}{'way':<16}{'time':>10}{'peak memory':>14}{'times faster':>15}{'labels differ':>16}")
    for size in result["sizes"]:
        for way in WAYS:
            ours = f"{size['times_faster']:>13.2f} x{size['labels_that_differ']:>16}" if way == WAYS[1] else ""
            lines.append(
                f"  {size['points']:>7} x {size['features']:<8}{way:<16}{size['median_s'][way]:>8.2f} s"
                f"{size['peak_mib'][way]:>10.0f} MiB{ours}"
            )
    for words, met in (
        ("at least as fast as scikit-learn", all(size["times_faster"] >= 1 for size in result["sizes"])),
        ("the same labels", all(size["labels_that_differ"] == 0 for size in result["sizes"])),
        ("below 8 GB", all(size["peak_mib"][WAYS[1]] <= MOST_MIB for size in result["sizes"])),
    ):
        lines.append(f"  goal, {words}: {'met' if met else 'MISSED'}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
