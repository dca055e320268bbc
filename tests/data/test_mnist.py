from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import torch

from gencaps.data import mnist
from tests.data.helpers import write_mnist


@pytest.mark.parametrize("packed", [True, False])
def test_idx_files_come_back_as_they_were_written(tmp_path: Path, packed: bool) -> None:
    arrays = write_mnist(tmp_path, packed=packed)
    splits = mnist.read(tmp_path)
    assert torch.equal(splits.train.x[:, 0], torch.from_numpy(arrays["train-images-idx3-ubyte"]))
    assert torch.equal(splits.test.y, torch.from_numpy(arrays["t10k-labels-idx1-ubyte"]).long())
    assert len(splits.valid) == 0
    assert splits.train.names == tuple("0123456789")


def test_dimensions_are_read_big_endian(tmp_path: Path) -> None:
    # magic 0x00000803, one picture of 2 rows and 3 columns, by hand
    path = tmp_path / "x"
    path.write_bytes(bytes([0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6]))
    assert mnist.read_idx(path, mnist.PICTURES, "").tolist() == [[[1, 2, 3], [4, 5, 6]]]


def test_first_bytes_decide_about_compression_not_the_name(tmp_path: Path) -> None:
    arrays = write_mnist(tmp_path, packed=False)
    stem = "train-images-idx3-ubyte"
    (tmp_path / stem).rename(tmp_path / f"{stem}.gz")
    labels = tmp_path / "t10k-labels-idx1-ubyte"
    labels.write_bytes(gzip.compress(labels.read_bytes()))
    assert len(mnist.read(tmp_path).train) == len(arrays[stem])


def test_dotted_names_are_found(tmp_path: Path) -> None:
    write_mnist(tmp_path, packed=False)
    for stem in mnist.STEMS:
        (tmp_path / stem).rename(tmp_path / stem.replace("-idx", ".idx"))
    assert mnist.is_here(tmp_path)
    assert len(mnist.read(tmp_path, "fashion_mnist").test) == 10


def test_fashion_has_the_names_of_its_classes(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    assert mnist.read(tmp_path, "fashion_mnist").train.names[9] == "Ankle boot"
