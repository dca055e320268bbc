"""Calls that arrive together run as one, with the answers that each would get alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from gencaps.api import Capsules
from gencaps.primitives.noise import Noise
from gencaps.service.batching import Batcher, Dropped, Ticket
from gencaps.service.limits import Limits
from gencaps.service.merging import JoinedNoise, likeness, merge, split
from gencaps.service.together import Together, stand_in

PATIENT = Limits(batch=64)


class Pair(NamedTuple):
    double: Tensor
    drawn: Tensor


class Counting:
    """A model that notes how many pictures it was asked for at once."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []
        self.hold = threading.Event()
        self.hold.set()

    def classify(self, x: Tensor, noise: Noise) -> Pair:
        self.hold.wait(30)
        self.asked.append(("classify", len(x)))
        if bool((x < 0).any()):
            raise ValueError("a bad picture")
        return Pair(2 * x, noise.normal(len(x), 3))

    def sample(self, n: int, noise: Noise) -> Tensor:
        self.asked.append(("sample", n))
        return noise.uniform(n, 2)

    def odd(self, x: Tensor, noise: Noise) -> Tensor:
        """Draws one row more than there are pictures, which belongs to nobody."""
        self.asked.append(("odd", len(x)))
        return noise.normal(len(x) + 1, 2)[:-1]

    def walk(self, n: int, steps: int, noise: Noise) -> list[int]:
        self.asked.append(("walk", n))
        return [n, steps]


def at_once(batcher: Batcher, jobs: list[Callable[[], Any]]) -> list[Any]:
    """Has jobs begun in one turn, while the thread is held up by another; gives results or exceptions."""
    began, gate = threading.Event(), threading.Event()
    batcher.submit(Ticket(), lambda: (began.set(), gate.wait(60)))
    assert began.wait(60)
    works = [batcher.submit(Ticket(), job) for job in jobs]
    gate.set()
    return [work.exception(60) or work.result() for work in works]


def asking(batcher: Batcher, work: str, *arguments: Any, ticket: Ticket | None = None) -> Callable[[], Any]:
    return lambda: batcher.ask(ticket or Ticket(), work, *arguments)


def test_calls_run_as_one_and_each_gets_its_rows_and_its_own_noise() -> None:
    model = Counting()
    batcher = Batcher(model, PATIENT)
    xs = [torch.full((n, 2), float(n)) for n in (1, 3, 2)]
    found = at_once(batcher, [asking(batcher, "classify", x, Noise(k)) for k, x in enumerate(xs)])
    batcher.close()
    assert model.asked == [("classify", 6)]
    for k, (x, pair) in enumerate(zip(xs, found, strict=True)):
        assert torch.equal(pair.double, 2 * x)
        assert torch.equal(pair.drawn, Noise(k).normal(len(x), 3))


def test_counted_work_runs_as_one() -> None:
    model = Counting()
    batcher = Batcher(model, PATIENT)
    found = at_once(batcher, [asking(batcher, "sample", n, Noise(n)) for n in (2, 5)])
    batcher.close()
    assert model.asked == [("sample", 7)]
    assert all(torch.equal(one, Noise(n).uniform(n, 2)) for n, one in zip((2, 5), found, strict=True))


def test_one_bad_picture_fails_alone() -> None:
    model = Counting()
    batcher = Batcher(model, PATIENT)
    xs = [torch.ones(1, 2), -torch.ones(1, 2), torch.ones(2, 2)]
    found = at_once(batcher, [asking(batcher, "classify", x, Noise(7)) for x in xs])
    batcher.close()
    assert isinstance(found[1], ValueError)
    for k in (0, 2):
        assert torch.equal(found[k].double, 2 * xs[k])
        assert torch.equal(found[k].drawn, Noise(7).normal(len(xs[k]), 3))  # as if nothing had been drawn before


@pytest.mark.parametrize("work", ["odd", "walk"])
def test_work_that_cannot_be_shared_runs_one_by_one(work: str) -> None:
    """Noise that belongs to nobody, and results that cannot be taken apart: each call is then asked alone."""
    model = Counting()
    batcher = Batcher(model, PATIENT)
    first: list[Any] = [torch.ones(2, 2)] if work == "odd" else [2, 4]
    found = at_once(batcher, [asking(batcher, work, *first, Noise(k)) for k in (1, 2)])
    batcher.close()
    assert model.asked.count((work, 2)) == 2
    if work == "odd":
        assert all(torch.equal(found[k], Noise(k + 1).normal(3, 2)[:-1]) for k in (0, 1))
    else:
        assert found == [[2, 4], [2, 4]]


def test_a_batch_is_bounded_and_a_larger_call_runs_alone() -> None:
    model = Counting()
    batcher = Batcher(model, Limits(batch=4))
    at_once(batcher, [asking(batcher, "classify", torch.ones(n, 2), Noise(0)) for n in (2, 2, 2, 9)])
    batcher.close()
    assert sum(n for _, n in model.asked) == 15
    assert max(n for _, n in model.asked) == 9
    assert all(n in (2, 4, 9) for _, n in model.asked)


def test_unlike_calls_do_not_mix() -> None:
    model = Counting()
    batcher = Batcher(model, PATIENT)
    shapes = [(1, 2), (1, 5), (1, 2), (1, 5)]
    at_once(batcher, [asking(batcher, "classify", torch.ones(shape), Noise(0)) for shape in shapes])
    batcher.close()
    assert model.asked == [("classify", 2), ("classify", 2)]
    x = torch.ones(2, 3)
    assert likeness("edit", (x, 0.5)) != likeness("edit", (x, 0.6))
    assert likeness("edit", (x, None)) != likeness("edit", (x, Noise(1)))
    assert likeness("edit", (x, Noise(2))) == likeness("edit", (x[:1], Noise(1)))


def test_a_lone_request_waits_for_nobody() -> None:
    """With a patience of an hour it would show."""
    batcher = Batcher(Counting(), Limits(wait_s=3600.0))
    for _ in range(3):
        work = batcher.submit(Ticket(), asking(batcher, "classify", torch.ones(1, 2), Noise(0)))
        assert len(work.result(60).double) == 1
    batcher.close()


def test_as_many_as_came_together_are_waited_for() -> None:
    """Two clients that ask again and again share every batch, though one is always first."""
    model = Counting()
    batcher = Batcher(model, Limits(wait_s=3600.0))
    at_once(batcher, [asking(batcher, "classify", torch.ones(1, 2), Noise(k)) for k in range(2)])
    model.asked.clear()
    works = [batcher.submit(Ticket(), asking(batcher, "classify", torch.ones(1, 2), Noise(0))) for _ in range(2)]
    assert all(len(work.result(60).double) == 1 for work in works)
    assert model.asked == [("classify", 2)]
    batcher.close()


def test_slow_work_apart_holds_nobody_up() -> None:
    gate, model = threading.Event(), Counting()
    with ThreadPoolExecutor(1) as pool:
        batcher = Batcher(model, Limits(wait_s=0.0), elsewhere=pool)
        slow = batcher.submit(
            Ticket(), lambda: (batcher.apart(lambda: gate.wait(60)), batcher.ask(Ticket(), "sample", 1, Noise(0)))
        )
        other = batcher.submit(Ticket(), asking(batcher, "sample", 2, Noise(0)))
        assert len(other.result(60)) == 2
        assert not slow.done()
        gate.set()
        waited, drawn = slow.result(60)
        assert waited
        assert len(drawn) == 1
        failed = batcher.submit(Ticket(), lambda: batcher.apart(lambda: 1 // 0))
        assert isinstance(failed.exception(60), ZeroDivisionError)
        batcher.close()


def test_a_call_whose_client_left_is_not_run() -> None:
    model = Counting()
    batcher = Batcher(model, Limits(wait_s=0.0))
    model.hold.clear()
    ticket, late = Ticket(), Ticket()
    ask = asking(batcher, "classify", torch.ones(5, 2), Noise(0), ticket=ticket)
    gate = threading.Event()
    batcher.submit(Ticket(), gate.wait)
    first = batcher.submit(Ticket(), asking(batcher, "classify", torch.ones(1, 2), Noise(0)))
    # of another shape: it waits for a turn of its own
    second = batcher.submit(ticket, asking(batcher, "classify", torch.ones(1, 3), Noise(0), ticket=ticket))
    third = batcher.submit(late, ask)
    gate.set()
    ticket.dropped = late.dropped = True
    model.hold.set()
    assert len(first.result(60).double) == 1
    assert isinstance(second.exception(60), Dropped)
    assert isinstance(third.exception(60), Dropped)
    batcher.close()
    assert model.asked == [("classify", 1)]


def test_closing_drops_what_waits_ends_the_thread_and_refuses_more() -> None:
    model, gate = Counting(), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        batcher = Batcher(model, elsewhere=pool)
        away = batcher.submit(Ticket(), lambda: batcher.apart(lambda: gate.wait(60)))
        batcher.submit(Ticket(), asking(batcher, "sample", 1, Noise(0))).result(60)
        batcher.close()
        assert isinstance(away.exception(60), Dropped)
        assert batcher._thread is not None
        assert not batcher._thread.is_alive()
        with pytest.raises(Dropped):
            batcher.submit(Ticket(), asking(batcher, "sample", 1, Noise(0)))
        gate.set()


def test_merging_and_splitting_are_inverse() -> None:
    xs = [torch.rand(n, 3) for n in (2, 1, 4)]
    (merged, share) = merge("edit", [(x, 0.5) for x in xs])
    assert share == 0.5
    nested = split(Pair(merged, merged + 1), [2, 1, 4])
    assert all(torch.equal(a.double, x) and torch.equal(a.drawn, x + 1) for a, x in zip(nested, xs, strict=True))
    with pytest.raises(ValueError, match="nobody"):
        JoinedNoise([Noise(0)], [2]).normal(3)


@pytest.mark.parametrize("kind", ["reconstruct", "edit", "generate", "interpolate"])
def test_a_shared_model_paints_what_a_lone_one_paints(models: dict[str, Capsules], kind: str) -> None:
    """Different seeds and wishes in one batch; the numbers agree but for the order of adding up."""
    faces = models["faces"]
    x = faces.generate(n=4, seed=1).pictures
    asks: dict[str, Callable[[Capsules, int], Any]] = {
        "reconstruct": lambda model, k: model.reconstruct(x[k], sample=True, seed=k),
        "edit": lambda model, k: model.edit(x[k], {model.names[k]: k % 2}, styles=2, sample=True, seed=k),
        "generate": lambda model, k: model.generate(attributes={"Hat": k % 2}, n=k + 1, seed=k),
        "interpolate": lambda model, k: model.interpolate(x[k], x[3 - k], only=[model.names[k]], steps=3),
    }
    counted: list[tuple[str, int]] = []
    batcher = Batcher(faces.model, PATIENT, lambda work, calls: counted.append((work, calls)))
    ask = asks[kind]
    shared = stand_in(faces.model)
    found = at_once(batcher, [lambda k=k: ask(Together(faces, batcher, Ticket(), shared), k) for k in range(4)])
    batcher.close()
    assert (kind, 4) in counted
    for k, painted in enumerate(found):
        wanted = ask(faces, k)
        assert torch.allclose(painted.pictures, wanted.pictures, atol=1e-5)
        assert (painted.labels, painted.columns) == (wanted.labels, wanted.columns)
