from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gencaps import data
from gencaps.data import catalog, digits, loading
from gencaps.data.images import counts
from gencaps.errors import GencapsError
from tests.data.helpers import write_celeba, write_mnist
from tests.helpers import refused


def test_digits_need_nothing_and_hold_out_a_stratified_fifth() -> None:
    splits = data.load("digits", valid=0.0)
    assert [len(part) for part in splits] == [1438, 0, 359]  # 1797 / 5 = 359.4
    whole = counts(digits.read())
    for name, held in counts(splits.test).items():
        assert abs(held - whole[name] / 5) <= 1
    assert splits.train.x.shape[1:] == (1, 8, 8)
    assert int(splits.train.x.max()) == 255  # 16 of 16
    assert int(digits.read().x[0, 0, 0, 2]) == 80  # 5 of 16: 79.7


def test_every_load_gives_the_same_parts_for_the_same_seed() -> None:
    def record(seed: int) -> dict[str, object]:
        return data.split_record(data.load("digits", seed=seed))

    assert record(3) == record(3)
    assert record(3) != record(4)


def test_the_three_parts_share_no_picture() -> None:
    # digits of scikit-learn are all different, so the pictures themselves tell
    splits = data.load("digits", valid=0.2, seed=5)
    parts = [{bytes(x.flatten().tolist()) for x in part.x} for part in splits]
    assert sum(map(len, parts)) == 1797
    assert len(set.union(*parts)) == 1797
    assert [len(part) for part in splits] == [1150, 288, 359]


def test_official_parts_are_kept_and_valid_is_cut_from_train(tmp_path: Path) -> None:
    arrays = write_mnist(tmp_path / "mnist", train=50, test=20)
    splits = data.load("mnist", root=tmp_path, valid=0.2, seed=1)
    assert [len(part) for part in splits] == [40, 10, 20]
    assert counts(splits.valid) == dict.fromkeys("0123456789", 1)
    assert torch.equal(splits.test.x[:, 0], torch.from_numpy(arrays["t10k-images-idx3-ubyte"]))
    other = data.load("mnist", root=tmp_path, valid=0.2, seed=2)
    assert torch.equal(other.test.x, splits.test.x)
    assert not torch.equal(other.valid.x, splits.valid.x)


def test_an_official_valid_part_is_kept_whatever_the_share(tmp_path: Path) -> None:
    write_celeba(tmp_path / "celeba")
    assert [len(part) for part in data.load("celeba", root=tmp_path, size=8, valid=0.5)] == [4, 4, 4]
    assert [len(part) for part in data.load("celeba", root=tmp_path, size=8, valid=0.0)] == [4, 0, 4]


@pytest.mark.parametrize("size", [4, 12])
def test_pictures_are_resized_where_asked(size: int) -> None:
    splits = data.load("digits", size=size)
    assert all(part.x.shape[1:] == (1, size, size) for part in splits)


def test_faces_come_at_any_size_and_are_tested_on_the_same_faces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "FACES", (20, 10))
    small, other = data.load("faces", size=16, seed=0), data.load("faces", size=16, seed=1)
    assert [len(part) for part in small] == [18, 2, 10]
    assert small.train.x.shape[1:] == (3, 16, 16)
    assert torch.equal(small.test.x, other.test.x)
    assert not torch.equal(small.train.y, other.train.y)
    assert data.load("faces", size=40).train.x.shape[-1] == 40


def test_fewer_faces_can_be_asked_for_and_are_the_first_of_the_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "FACES", (30, 10))
    few, many = (data.load(spec, size=16, valid=0.0) for spec in ("faces:20", "faces"))
    assert [len(part) for part in few] == [20, 0, 4]  # a fifth to test
    assert torch.equal(few.train.y, many.train.y[:20])
    assert torch.equal(few.train.x, many.train.x[:20])
    assert torch.equal(few.test.x, many.test.x[:4])
    assert data.describe("faces:20").pictures == 24


@pytest.mark.parametrize("asked", ["9", "1000001", "many", "-20", "2.5"])
def test_an_impossible_number_of_faces_is_refused(asked: str) -> None:
    refused(lambda: data.load(f"faces:{asked}"), f"'faces:{asked}'", "from 10 to 1000000")


def test_affnist_is_made_of_mnist_and_says_so(tmp_path: Path) -> None:
    write_mnist(tmp_path / "mnist")
    splits = data.load("affnist", root=tmp_path, seed=1)
    assert splits.test.name == "affNIST (regenerated)"
    assert splits.train.x.shape[1:] == (1, 40, 40)
    assert torch.equal(splits.test.x, data.load("affnist", root=tmp_path, seed=2).test.x)


def test_mnist_to_affnist_trains_on_moved_digits_and_is_tested_on_affnist(tmp_path: Path) -> None:
    arrays = write_mnist(tmp_path / "mnist", train=30, test=10)
    splits, affine = (data.load(n, root=tmp_path, valid=0.0) for n in ("mnist_to_affnist", "affnist"))
    assert [len(part) for part in splits] == [30, 0, 10]
    assert torch.equal(splits.test.x, affine.test.x)
    assert torch.equal(splits.test.y, affine.test.y)
    assert (splits.train.name, splits.test.name) == ("mnist_to_affnist", "affNIST (regenerated)")
    assert not torch.equal(splits.train.x, affine.train.x)
    plain = torch.from_numpy(arrays["train-images-idx3-ubyte"])
    # nothing but moved: as much ink in every picture as before
    assert torch.equal(splits.train.x.sum((1, 2, 3), dtype=torch.int64), plain.sum((1, 2), dtype=torch.int64))
    assert torch.equal(splits.train.y, torch.from_numpy(arrays["train-labels-idx1-ubyte"]).long())


def test_mnist_to_affnist_is_the_same_set_for_every_seed(tmp_path: Path) -> None:
    write_mnist(tmp_path / "mnist", train=30)
    first, other = (data.load("mnist_to_affnist", root=tmp_path, valid=0.0, seed=seed) for seed in (0, 1))
    assert all(torch.equal(a.x, b.x) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("mnsit", "no data set 'mnsit' (did you mean 'mnist'?)"),
        ("fashion", "did you mean 'fashion_mnist'?"),
        ("folder", "did you mean 'folder:PATH'?"),
        ("folder:", "did you mean 'folder:PATH'?"),
        ("zzz", "known: affnist, celeba, cifar10, digits, faces, fashion_mnist, folder:PATH, mnist, mnist_to_affnist"),
        ("folder:/nowhere/at/all", "/nowhere/at/all is not a folder"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(spec: str, says: str) -> None:
    with pytest.raises(GencapsError) as error:
        data.load(spec)
    assert says in str(error.value)


@pytest.mark.parametrize("options", [{"valid": 1.0}, {"valid": -0.1}, {"size": 0}, {"size": 5000}])
def test_impossible_options_are_refused(options: dict) -> None:
    with pytest.raises(GencapsError, match=str(next(iter(options.values())))):
        data.load("digits", **options)


def test_rows_say_what_is_here_and_how_to_get_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_mnist(tmp_path / "mnist")
    rows = {row.name: row for row in data.rows(root=tmp_path)}
    assert list(rows) == list(loading.READERS)
    assert rows["digits"].where == "built in"
    assert rows["mnist"].where == str(tmp_path / "mnist")
    assert rows["affnist"].here
    assert rows["mnist_to_affnist"].where == str(tmp_path / "mnist")
    assert rows["cifar10"].where == "not here: gencaps data get cifar10"
    assert not rows["celeba"].here


def test_rows_agree_with_what_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    for row in data.rows():
        if row.name in ("digits", "faces"):
            monkeypatch.setattr(catalog, "FACES", (3, 2))
            splits = data.load(row.name, valid=0.0)
            assert splits.train.x.shape[1:] == (row.channels, row.size, row.size)
            assert len(splits.train.names) == row.classes
            assert splits.train.labels == row.labels
