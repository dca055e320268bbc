from __future__ import annotations

import threading
from collections.abc import Generator, Iterable
from itertools import chain

import pytest
import torch

from gencaps.data import Batches, ImageSet, iterate
from gencaps.errors import GencapsError

CPU = torch.device("cpu")


def toy(n: int) -> ImageSet:
    """Makes a set in which picture, label and index are the same number."""
    index = torch.arange(n)
    return ImageSet("toy", index.to(torch.uint8).view(n, 1, 1, 1), index, tuple(map(str, range(n))))


def seen(batches: Batches, epoch: int, start: int = 0) -> list[list[int]]:
    found = []
    for x, y in batches.epoch(epoch, start):
        assert torch.equal(x[:, 0, 0, 0].long(), y)  # picture and label stay together
        found.append(y.tolist())
    return found


def flat(lists: Iterable[list[int]]) -> list[int]:
    return list(chain.from_iterable(lists))


@pytest.fixture(params=[8 * 2**30, 0], ids=["resident", "streamed"])
def resident_bytes(request: pytest.FixtureRequest) -> int:
    return request.param


def test_an_epoch_shows_each_picture_once(resident_bytes: int) -> None:
    batches = Batches(toy(24), 6, seed=0, device=CPU, resident_bytes=resident_bytes)
    shown = seen(batches, 0)
    assert [len(batch) for batch in shown] == [6] * 4
    assert sorted(flat(shown)) == list(range(24))


def test_a_rest_is_left_out_but_not_the_same_rest_each_time() -> None:
    batches = Batches(toy(25), 6, seed=0, device=CPU)
    assert batches.steps == 4
    left = [set(range(25)) - set(flat(seen(batches, e))) for e in range(8)]
    assert all(len(rest) == 1 for rest in left)
    assert len({min(rest) for rest in left}) > 1


def test_the_order_depends_on_seed_and_epoch_alone(resident_bytes: int) -> None:
    def order(seed: int, epoch: int) -> list[list[int]]:
        return seen(Batches(toy(24), 6, seed=seed, device=CPU, resident_bytes=resident_bytes), epoch)

    used = Batches(toy(24), 6, seed=3, device=CPU, resident_bytes=resident_bytes)
    for epoch in (0, 1, 5):  # what was drawn before does not matter
        assert seen(used, epoch) == order(3, epoch)
    assert order(3, 0) != order(3, 1)
    assert order(3, 1) != order(1, 3)
    assert order(3, 0) != order(4, 0)


def test_streamed_and_resident_batches_are_the_same() -> None:
    resident, streamed = (Batches(toy(50), 7, seed=1, device=CPU, resident_bytes=b) for b in (2**20, 0))
    assert resident.resident
    assert not streamed.resident
    assert seen(resident, 2) == seen(streamed, 2)


@pytest.mark.parametrize("start", [0, 1, 3, 4])
def test_resuming_gives_the_tail_of_the_epoch(resident_bytes: int, start: int) -> None:
    batches = Batches(toy(24), 6, seed=0, device=CPU, resident_bytes=resident_bytes)
    assert seen(batches, 2, start) == seen(batches, 2)[start:]


def test_ranks_partition_the_global_batch_in_order(resident_bytes: int) -> None:
    whole = seen(Batches(toy(26), 8, seed=0, device=CPU), 1)
    ranks = [
        seen(Batches(toy(26), 8, seed=0, device=CPU, rank=r, world=4, resident_bytes=resident_bytes), 1)
        for r in range(4)
    ]
    for step, batch in enumerate(whole):
        assert flat(rank[step] for rank in ranks) == batch


@pytest.mark.parametrize(("n", "batch", "world", "expected"), [(5, 8, 1, 5), (5, 8, 2, 4), (8, 8, 2, 8), (3, 1, 1, 1)])
def test_a_small_set_gives_smaller_batches(n: int, batch: int, world: int, expected: int) -> None:
    batches = Batches(toy(n), batch, seed=0, device=CPU, world=world)
    assert batches.batch == expected
    assert batches.steps == max(1, n // expected)
    assert len(seen(batches, 0)[0]) == expected // world


@pytest.mark.parametrize(
    ("n", "batch", "world", "says"),
    [
        (9, 8, 3, "does not divide over 3"),
        (9, 0, 1, "batch of 0"),
        (0, 4, 1, "0 pictures"),
        (2, 4, 4, "2 pictures"),
    ],
)
def test_impossible_batches_are_refused(n: int, batch: int, world: int, says: str) -> None:
    with pytest.raises(GencapsError, match=says):
        Batches(toy(n), batch, seed=0, device=CPU, world=world)


def test_leaving_an_epoch_early_ends_its_thread() -> None:
    before = threading.active_count()
    epoch = Batches(toy(200), 2, seed=0, device=CPU, resident_bytes=0).epoch(0)
    assert isinstance(epoch, Generator)
    next(epoch)
    assert threading.active_count() > before
    epoch.close()
    assert threading.active_count() == before


def test_a_fault_in_the_thread_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = Batches(toy(8), 2, seed=0, device=CPU, resident_bytes=0)
    batches._x = batches._x[:3]  # as if the file had shrunk under the map
    with pytest.raises((IndexError, RuntimeError)):
        list(batches.epoch(0))


def test_evaluation_runs_in_order_with_a_short_last_batch() -> None:
    found = [batch.y.tolist() for batch in iterate(toy(7), 3, CPU)]
    assert found == [[0, 1, 2], [3, 4, 5], [6]]


def test_attributes_come_with_their_pictures(resident_bytes: int) -> None:
    n = 12
    y = torch.stack([torch.arange(n), torch.arange(n) * 2], 1).to(torch.uint8)
    attributes = ImageSet("toy", y[:, :1, None, None].clone(), y, ("a", "b"), "attributes")
    for x, labels in Batches(attributes, 4, seed=0, device=CPU, resident_bytes=resident_bytes).epoch(0):
        assert torch.equal(x[:, 0, 0, 0] * 2, labels[:, 1])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_device_does_not_change_the_batches(resident_bytes: int) -> None:
    here = Batches(toy(50), 7, seed=1, device=CPU)
    there = Batches(toy(50), 7, seed=1, device=torch.device("cuda"), resident_bytes=resident_bytes)
    assert seen(here, 3) == seen(there, 3)
    assert all(batch.x.is_cuda and batch.y.is_cuda for batch in there.epoch(0))
