from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from gencaps.data import cache as module
from gencaps.data.cache import memory_map
from gencaps.errors import GencapsError

SHAPE = (10, 1, 4, 4)


class Decoder:
    """Gives picture i filled with i + offset, and counts how often it is asked."""

    def __init__(self, offset: int = 0) -> None:
        self.calls, self.offset, self.lock = 0, offset, threading.Lock()

    def __call__(self, i: int) -> np.ndarray:
        with self.lock:
            self.calls += 1
        return np.full(SHAPE[1:], i + self.offset, np.uint8)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.bin"
    path.write_bytes(b"one")
    return path


def files(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "pictures").iterdir())


def test_pictures_come_back_in_order_and_are_decoded_once(cache: Path, source: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 3)  # 10 pictures in chunks of 3, 3, 3 and 1
    decode = Decoder()
    first = memory_map("toy", [source], SHAPE, decode)
    second = memory_map("toy", [source], SHAPE, decode)
    assert first[:, 0, 0, 0].tolist() == list(range(10))
    assert torch.equal(first, second)
    assert decode.calls == 10
    assert len(files(cache)) == 1


def test_a_changed_source_is_decoded_anew_and_the_old_file_goes(cache: Path, source: Path) -> None:
    memory_map("toy", [source], SHAPE, Decoder())
    old = files(cache)
    source.write_bytes(b"other")
    assert memory_map("toy", [source], SHAPE, Decoder(100))[3, 0, 0, 0] == 103
    assert len(files(cache)) == 1
    assert files(cache) != old


def test_the_time_of_change_counts_where_the_size_is_the_same(source: Path) -> None:
    memory_map("toy", [source], SHAPE, Decoder())
    stat = source.stat()
    os.utime(source, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000_000))
    assert memory_map("toy", [source], SHAPE, Decoder(7))[0, 0, 0, 0] == 7


def test_two_sizes_of_one_source_live_beside_each_other(cache: Path, source: Path) -> None:
    memory_map("toy", [source], SHAPE, Decoder())
    memory_map("toy", [source], (10, 1, 2, 2), lambda i: np.zeros((1, 2, 2), np.uint8))
    decode = Decoder()
    memory_map("toy", [source], SHAPE, decode)
    assert decode.calls == 0
    assert len(files(cache)) == 2


@pytest.mark.parametrize("fault", [KeyboardInterrupt, GencapsError("bad.png is damaged"), ValueError])
def test_an_interrupted_build_leaves_nothing(cache: Path, source: Path, monkeypatch, fault) -> None:
    monkeypatch.setattr(module, "CHUNK", 2)

    def decode(i: int) -> np.ndarray:
        if i == 5:
            raise fault
        return np.zeros(SHAPE[1:], np.uint8)

    kind = fault if isinstance(fault, type) else type(fault)
    with pytest.raises(kind):
        memory_map("toy", [source], SHAPE, decode)
    assert files(cache) == []
    assert memory_map("toy", [source], SHAPE, Decoder())[9, 0, 0, 0] == 9


def test_pictures_that_cannot_be_read_are_counted(source: Path) -> None:
    def decode(i: int) -> np.ndarray:
        if i % 3 == 1:
            raise GencapsError(f"{i}.png is damaged")
        return np.zeros(SHAPE[1:], np.uint8)

    with pytest.raises(GencapsError, match=r"^1.png is damaged \(and 2 more near it\)$"):
        memory_map("toy", [source], SHAPE, decode)


def test_a_truncated_cache_file_is_built_again(cache: Path, source: Path) -> None:
    memory_map("toy", [source], SHAPE, Decoder())
    path = cache / "pictures" / files(cache)[0]
    path.write_bytes(path.read_bytes()[:-20])
    assert memory_map("toy", [source], SHAPE, Decoder())[9, 0, 3, 3] == 9


def test_leftovers_of_killed_builds_go_after_a_day(cache: Path, source: Path) -> None:
    (cache / "pictures").mkdir(parents=True)
    old, new = (cache / "pictures" / f"{name}.part" for name in ("old", "new"))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    memory_map("toy", [source], SHAPE, Decoder())
    assert not old.exists()
    assert new.exists()  # another process may be writing it


def test_a_full_disk_is_told_in_one_line_and_leaves_nothing(cache: Path, source: Path, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "fsync", full)
    with pytest.raises(GencapsError, match=r"cannot write the cache .*: No space left.*set GENCAPS_CACHE"):
        memory_map("toy", [source], SHAPE, Decoder())
    assert files(cache) == []


def test_writing_to_the_map_does_not_change_the_file(source: Path) -> None:
    memory_map("toy", [source], SHAPE, Decoder()).fill_(255)
    assert memory_map("toy", [source], SHAPE, Decoder())[2, 0, 0, 0] == 2
