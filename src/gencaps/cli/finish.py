"""What is said and written when a run has ended."""

from __future__ import annotations

import json

from gencaps.engine.evaluate import evaluate
from gencaps.engine.log import relative
from gencaps.engine.train import Trained
from gencaps.files import write_atomically


def finish(trained: Trained, *, report: bool, quiet: bool) -> None:
    """Evaluates on the test part, once, and writes evaluation.json and report.html."""
    run, model, splits = trained
    seen = evaluate(model, splits.test)
    lines = []
    if seen.accuracy is not None:
        counted = f" ({seen.correct} of {seen.images})" if seen.correct is not None else ""
        lines.append(f"test accuracy {100 * seen.accuracy:.2f} %{counted}, error {seen.error_percent:.2f} %")
    if report:
        from gencaps.report.collect import collect
        from gencaps.report.page import write_report

        path = write_report(run.path / "report.html", collect(run, model, splits, seen))
        lines.append(f"report: {relative(path)}")
    # last, because a run with it is taken for finished
    write_atomically(run.path / "evaluation.json", json.dumps(seen.figures(), indent=2) + "\n")
    lines.append(f"model:  {relative(run.path)}")
    if not quiet:
        print("\n".join(lines))
