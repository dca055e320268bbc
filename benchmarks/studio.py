"""Measures the studio in a browser: the first view, and the time from moving a slider to the new picture.

    python benchmarks/studio.py --out docs/results/studio_cpu.json runs/demo

Chromium and the service share the machine. A slider of the Edit panel is moved step by step, each step once the
picture of the last is there; the time runs from the input event to the decoded picture in the page.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

DRAG = """async (moves) => {
  const painted = document.querySelector("img[alt='The edited picture']");
  const times = [];
  for (let k = 0; k < moves; k += 1) {
    const input = document.querySelectorAll(".dial input")[k % document.querySelectorAll(".dial input").length];
    const before = painted.dataset.painted;
    const began = performance.now();
    input.value = 2.5 * Math.sin(k);
    input.dispatchEvent(new Event("input", { bubbles: true }));
    while (painted.dataset.painted === before) await new Promise((done) => setTimeout(done, 1));
    await new Promise(requestAnimationFrame);
    times.push(performance.now() - began);
  }
  return times;
}"""


def measure(address: str, model: str, moves: int) -> dict[str, Any]:
    """Opens the page several times, then drags."""
    from playwright.sync_api import sync_playwright

    path = os.environ.get("GENCAPS_CHROMIUM") or shutil.which("chromium")
    first_s = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        for _ in range(5):
            page = browser.new_context().new_page()
            began_s = time.perf_counter()
            page.goto(f"{address}#model={model}&panel=analyse")
            page.wait_for_function("() => document.querySelector('.answer')?.textContent")
            first_s.append(time.perf_counter() - began_s)
            page.close()
        page = browser.new_page()
        page.goto(f"{address}#model={model}&panel=edit")
        page.wait_for_selector(".dial input")
        page.wait_for_timeout(500)
        times_ms = sorted(page.evaluate(DRAG, moves))
        browser.close()
    return {
        "first_view_s": first_s,
        "slider_to_picture_ms": {
            "moves": moves,
            "p50": statistics.median(times_ms),
            "p95": times_ms[len(times_ms) * 95 // 100],
            "worst": times_ms[-1],
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--moves", type=int, default=300)
    options = parser.parse_args()
    from gencaps.api import load
    from gencaps.engine.devices import choose_device
    from gencaps.engine.run import environment

    command = [sys.executable, "-m", "gencaps", "serve", options.model, "--port", "0", "--no-browser"]
    began_s = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split("answers on ")[1].split()[0]
        ready_s = time.perf_counter() - began_s
        found = measure(address, Path(options.model).resolve().name, options.moves)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    found = {
        "what": "the studio in Chromium: first view of Analyse, and a slider of Edit",
        "model": repr(load(options.model, "cpu")),
        "service_ready_s": ready_s,
        **found,
        "command": shlex.join(["python", "benchmarks/studio.py", *sys.argv[1:]]),
        **environment(choose_device("cpu")),
    }
    print(json.dumps(found, indent=1))
    if options.out is not None:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
