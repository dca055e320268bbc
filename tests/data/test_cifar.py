from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from gencaps.data import cifar
from gencaps.errors import GencapsError
from tests.data.helpers import rng

N = 4


def write_binary(folder: Path) -> np.ndarray:
    base = folder / "cifar-10-batches-bin"
    base.mkdir(parents=True)
    records = rng().integers(0, 256, (6, N, 3073), dtype=np.uint8)
    records[:, :, 0] %= 10
    for stem, part in zip(cifar.TRAIN + cifar.TEST, records, strict=True):
        part.tofile(base / f"{stem}.bin")
    return records


def write_python(folder: Path, records: np.ndarray, protocol: int = 2) -> None:
    base = folder / "cifar-10-batches-py"
    base.mkdir(parents=True)
    for stem, part in zip(cifar.TRAIN + cifar.TEST, records, strict=True):
        content = {b"data": part[:, 1:].copy(), b"labels": part[:, 0].tolist(), b"batch_label": b"x"}
        (base / stem).write_bytes(pickle.dumps(content, protocol=protocol))


def test_binary_records_are_label_then_red_green_blue(tmp_path: Path) -> None:
    records = write_binary(tmp_path)
    splits = cifar.read(tmp_path, records=N)
    assert len(splits.train) == 5 * N
    assert len(splits.test) == N
    # picture 1 of the third file: green, row 2, column 3 is byte 1 + 1024 + 2 * 32 + 3
    assert int(splits.train.x[2 * N + 1, 1, 2, 3]) == records[2, 1, 1 + 1024 + 67]
    assert splits.train.y.tolist() == records[:5, :, 0].reshape(-1).tolist()


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_python_version_equals_the_binary_one(tmp_path: Path, protocol: int) -> None:
    records = write_binary(tmp_path / "a")
    write_python(tmp_path / "b", records, protocol)
    binary, python = (cifar.read(tmp_path / name, records=N) for name in "ab")
    assert torch.equal(binary.train.x, python.train.x)
    assert torch.equal(binary.test.y, python.test.y)


class _Attack:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("attacked",)


class _ObjectArray:
    def __reduce__(self) -> str | tuple[object, ...]:
        return np.array([_Attack()], dtype=object).__reduce__()


@pytest.mark.parametrize("payload", [_Attack(), {b"data": _Attack(), b"labels": [0]}, _ObjectArray()])
def test_a_pickle_that_wants_to_run_something_is_refused_and_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, payload: object
) -> None:
    monkeypatch.chdir(tmp_path)
    write_python(tmp_path, rng().integers(0, 10, (6, N, 3073), dtype=np.uint8))
    bad = tmp_path / "cifar-10-batches-py" / "data_batch_1"
    bad.write_bytes(pickle.dumps(payload))
    with pytest.raises(GencapsError, match=r"data_batch_1 is not a CIFAR-10 batch.*gencaps data get cifar10"):
        cifar.read(tmp_path, records=N)
    assert not (tmp_path / "attacked").exists()


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda data: data[:-1], "no multiple of 3073"),
        (lambda data: b"", "no multiple of 3073"),
        (lambda data: data[:3073], "1 pictures instead of 4"),
        (lambda data: bytes([10]) + data[1:], "label 10"),
    ],
)
def test_a_damaged_binary_file_is_named(tmp_path: Path, damage, says: str) -> None:
    write_binary(tmp_path)
    bad = tmp_path / "cifar-10-batches-bin" / "data_batch_2.bin"
    bad.write_bytes(damage(bad.read_bytes()))
    with pytest.raises(GencapsError, match=f"data_batch_2.bin.*{says}"):
        cifar.read(tmp_path, records=N)
