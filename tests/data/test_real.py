"""The real sets, where they are: what every user of them knows to be true."""

from __future__ import annotations

from pathlib import Path

import torch

from gencaps import data
from gencaps.data import affnist, celeba
from gencaps.data.images import counts


def test_mnist_is_mnist(real_data: Path) -> None:
    splits = data.load("mnist", root=real_data)
    assert [len(part) for part in splits] == [54_000, 6_000, 10_000]
    assert counts(splits.test)["5"] == 892
    whole = data.load("mnist", root=real_data, valid=0.0).train
    assert whole.y[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert abs(whole.x.float().mean().item() / 255 - 0.1307) < 1e-4


def test_fashion_mnist_is_even(real_data: Path) -> None:
    splits = data.load("fashion_mnist", root=real_data, valid=0.0)
    assert set(counts(splits.train).values()) == {6_000}
    assert set(counts(splits.test).values()) == {1_000}
    assert abs(splits.train.x.float().mean().item() / 255 - 0.2860) < 1e-4


def test_cifar10_has_the_known_channel_means(real_data: Path) -> None:
    splits = data.load("cifar10", root=real_data, valid=0.0)
    assert set(counts(splits.train).values()) == {5_000}
    means = splits.train.x.float().mean((0, 2, 3)) / 255
    assert torch.allclose(means, torch.tensor([0.4914, 0.4822, 0.4465]), atol=2e-4)


def test_affnist_keeps_every_digit_whole(real_data: Path) -> None:
    plain = data.load("mnist", root=real_data, valid=0.0).test[:2000]
    moved = affnist.regenerate(plain, 0)
    before, after = (part.x.sum((1, 2, 3), dtype=torch.int64).float() for part in (plain, moved))
    ratio = after / before
    # scale runs from 0.8^2 to 1.2^2; a digit cut by the border would lose more
    assert 0.60 < ratio.min() < ratio.max() < 1.50
    assert abs(float(ratio.mean()) - 1.0) < 0.02  # E[sx] E[sy] = 1


def test_celeba_lists_give_the_majority_rule(real_data: Path) -> None:
    folder = real_data / "celeba"
    names, values = celeba.read_attributes(folder / celeba.ATTRIBUTES_FILE)
    partition = celeba.read_partition(folder / celeba.PARTITION_FILE)
    test, train = (torch.tensor([values[f].tolist() for f, part in partition.items() if part == k]) for k in (2, 0))
    assert len(names) == 40
    rule = (train.float().mean(0) > 0.5).long()
    accuracy = (test == rule).float().mean().item()
    assert abs(accuracy - 0.8036) < 5e-4


def test_celeba_pictures_come_from_their_zips(real_data: Path, tmp_path: Path) -> None:
    source, folder = real_data / "celeba", tmp_path / "celeba"
    folder.mkdir()
    for path in source.iterdir():
        if path.suffix == ".zip" or path.is_dir():
            (folder / path.name).symlink_to(path)
    partition = celeba.read_partition(source / celeba.PARTITION_FILE)
    chosen = [f for k in range(3) for f in [f for f, part in partition.items() if part == k][:40]]
    lines = (source / celeba.ATTRIBUTES_FILE).read_text().splitlines()
    rows = [line for line in lines[2:] if line.split()[0] in set(chosen)]
    (folder / celeba.ATTRIBUTES_FILE).write_text("\n".join([str(len(rows)), lines[1], *rows]))
    (folder / celeba.PARTITION_FILE).write_text("\n".join(f"{f} {partition[f]}" for f in chosen))
    splits = data.load("celeba", root=tmp_path, size=32)
    assert [len(part) for part in splits] == [40, 40, 40]
    mean = splits.train.x.float().mean((0, 2, 3)) / 255
    # skin: redder than green, greener than blue
    assert mean[0] > mean[1] > mean[2]
