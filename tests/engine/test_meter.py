"""The meter's means, and the step and term that it blames."""

from __future__ import annotations

import pytest
import torch

from gencaps.engine.meter import Diverged, Meter, Stopwatch


def terms(**values: float) -> dict[str, torch.Tensor]:
    return {name: torch.tensor(value) for name, value in values.items()}


def test_means_run_over_all_flushes() -> None:
    meter = Meter()
    meter.add(0, terms(loss=1.0))
    assert meter.flush() == {"loss": 1.0}
    meter.add(1, terms(loss=2.0))
    meter.add(2, terms(loss=6.0))
    assert meter.flush() == {"loss": 3.0}  # (1 + 2 + 6) / 3
    again = Meter(meter.sums, meter.count)
    again.add(3, terms(loss=7.0))
    assert again.flush() == {"loss": 4.0}  # (1 + 2 + 6 + 7) / 4


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_first_bad_step_and_term_are_named(bad: float) -> None:
    meter = Meter()
    meter.add(10, terms(margin=1.0, recon=1.0))
    meter.add(11, terms(margin=1.0, recon=bad))
    meter.add(12, terms(margin=bad, recon=bad))
    with pytest.raises(Diverged, match="step 11: the loss term 'recon'"):
        meter.flush()


def test_adding_does_not_look_at_the_values() -> None:
    """A step that looked would make the host wait for the device."""

    class Unseen(torch.Tensor):
        def __float__(self) -> float:
            raise AssertionError("the step looked at a loss")

        def item(self) -> float:
            raise AssertionError("the step looked at a loss")

    meter = Meter()
    meter.add(0, {"loss": torch.tensor(1.0).as_subclass(Unseen)})
    assert len(meter.pending) == 1


def test_stopwatch_counts_only_between_start_and_stop() -> None:
    watch = Stopwatch(torch.device("cpu"))
    assert watch.total() == 0.0
    watch.start()
    watch.stop()
    first = watch.total()
    assert first > 0.0
    assert watch.total() == first
