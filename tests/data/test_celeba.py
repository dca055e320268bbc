from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gencaps.data import celeba
from gencaps.errors import GencapsError
from tests.data.helpers import picture, rng, write_celeba


@pytest.mark.parametrize("zips", [0, 1, 3])
def test_the_official_parts_come_with_their_own_attributes(tmp_path: Path, zips: int) -> None:
    write_celeba(tmp_path / "celeba", zips=zips)
    splits = celeba.read(tmp_path / "celeba", size=16)
    assert [len(part) for part in splits] == [4, 4, 4]
    signs = torch.from_numpy(rng(1).integers(0, 2, (12, 3))).to(torch.uint8)  # as the helper wrote them
    for k, part in enumerate(splits):
        assert torch.equal(part.y, signs[k::3])
    assert splits.train.names == ("Bald", "Smiling", "Young")
    assert splits.train.labels == "attributes"


def test_pictures_are_the_centred_square(tmp_path: Path) -> None:
    write_celeba(tmp_path, zips=2)
    found = celeba.read(tmp_path, size=32).valid.x[0]  # the second picture of the list
    square = picture(1, (178, 218)).crop((0, 20, 178, 198)).resize((32, 32), 2)
    expected = torch.tensor(list(square.tobytes())).view(32, 32, 3).permute(2, 0, 1)
    assert (found.float() - expected).abs().mean() < 4  # it went through JPEG


def test_folder_and_zips_give_the_same_pictures(tmp_path: Path) -> None:
    one = celeba.read(write_celeba(tmp_path / "a"), size=16)
    two = celeba.read(write_celeba(tmp_path / "b", zips=3), size=16)
    for left, right in zip(one, two, strict=True):
        assert torch.equal(left.x, right.x)


def test_a_second_reading_decodes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_celeba(tmp_path)
    first = celeba.read(folder, size=16)
    monkeypatch.setattr(celeba, "read_picture", None)
    assert torch.equal(celeba.read(folder, size=16).test.x, first.test.x)


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        ("list_attr_celeba.txt", "12\n", "13\n", "promises 13 pictures but lists 12"),
        ("list_attr_celeba.txt", "12\n", "", "does not begin with a count"),
        ("list_attr_celeba.txt", " Young", "", "line 3: not a file name and 2 values"),
        ("list_eval_partition.txt", "000002.jpg 1", "000002.jpg 7", "line 2"),
        ("list_eval_partition.txt", "000002.jpg", "999999.jpg", "lists 999999.jpg"),
    ],
)
def test_a_wrong_list_is_named(tmp_path: Path, file: str, old: str, new: str, says: str) -> None:
    folder = write_celeba(tmp_path)
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1))
    with pytest.raises(GencapsError, match=f"{file}.*{says}"):
        celeba.read(folder, size=16)


def test_missing_pictures_are_counted(tmp_path: Path) -> None:
    folder = write_celeba(tmp_path)
    for name in ("000003.jpg", "000004.jpg"):
        (folder / "img_align_celeba" / name).unlink()
    with pytest.raises(GencapsError, match=r"lacks 2 of the pictures .*first: 000004.jpg"):
        celeba.read(folder, size=16)  # 4 is in the first part, 3 in the last
