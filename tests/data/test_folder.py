from __future__ import annotations

from pathlib import Path

import pytest
import torch
from PIL import Image

from gencaps import data
from gencaps.data import folder
from gencaps.data.images import counts
from gencaps.errors import GencapsError
from tests.data.helpers import picture, write_classes


def test_a_subfolder_is_a_class(tmp_path: Path) -> None:
    write_classes(tmp_path / "pets", {"cat": 10, "dog": 5})
    splits = folder.read(tmp_path / "pets")
    assert splits.train.names == ("cat", "dog")
    assert counts(splits.train) == {"cat": 8, "dog": 4}
    assert counts(splits.test) == {"cat": 2, "dog": 1}  # a fifth of each
    assert splits.train.x.shape == (12, 3, 32, 32)


def test_pictures_keep_their_labels(tmp_path: Path) -> None:
    for name, colour in (("blue", "#0000ff"), ("red", "#ff0000")):
        (tmp_path / name).mkdir()
        for i in range(6):
            Image.new("RGB", (40, 50), colour).save(tmp_path / name / f"{i}.png")
    for part in folder.read(tmp_path):
        for x, y in zip(part.x, part.y, strict=True):
            assert x[:, 16, 16].tolist() == ([0, 0, 255], [255, 0, 0])[int(y)]


def test_the_test_part_is_fixed_by_the_seed(tmp_path: Path) -> None:
    write_classes(tmp_path / "pets", {"cat": 20, "dog": 20})
    one, same, other = (folder.read(tmp_path / "pets", seed=seed).test.x for seed in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_given_parts_are_honoured(tmp_path: Path) -> None:
    for part, n in (("train", 4), ("valid", 2), ("test", 3)):
        write_classes(tmp_path / part, {"cat": n, "dog": n})
    splits = data.load(f"folder:{tmp_path}", valid=0.5)
    assert [len(part) for part in splits] == [8, 4, 6]
    (tmp_path / "valid").rename(tmp_path / "other")
    assert [len(part) for part in data.load(f"folder:{tmp_path}", valid=0.25)] == [6, 2, 6]


def test_a_class_called_train_is_a_class(tmp_path: Path) -> None:
    write_classes(tmp_path, {"bus": 5, "train": 5})
    assert folder.read(tmp_path).train.names == ("bus", "train")


def test_a_part_may_lack_a_class_but_not_have_another(tmp_path: Path) -> None:
    write_classes(tmp_path / "train", {"cat": 3, "dog": 3})
    write_classes(tmp_path / "test", {"dog": 2})
    splits = folder.read(tmp_path)
    assert splits.test.y.tolist() == [1, 1]
    write_classes(tmp_path / "test", {"elk": 1})
    with pytest.raises(GencapsError, match=r"test/elk is a class that the training part does not have"):
        folder.read(tmp_path)


@pytest.mark.parametrize(
    ("sides", "size"),
    [([8], 32), ([33], 32), ([63], 32), ([64], 64), ([100], 64), ([900], 128), ([64, 64, 500], 64)],
)
def test_the_size_follows_the_median_shorter_side(sides: list[int], size: int) -> None:
    assert folder.default_size(sides) == size


def test_grey_pictures_give_one_channel_unless_one_has_colour(tmp_path: Path) -> None:
    write_classes(tmp_path / "a", {"x": 3, "y": 3}, mode="L")
    assert folder.read(tmp_path / "a").train.x.shape[1] == 1
    picture().save(tmp_path / "a" / "x" / "colour.png")
    assert folder.read(tmp_path / "a").train.x.shape[1] == 3


def test_a_new_picture_is_seen(tmp_path: Path) -> None:
    write_classes(tmp_path / "a", {"x": 3, "y": 3})
    assert sum(map(len, folder.read(tmp_path / "a"))) == 6
    picture(99).save(tmp_path / "a" / "x" / "new.png")
    assert sum(map(len, folder.read(tmp_path / "a"))) == 7


def test_other_files_and_hidden_ones_are_passed_over(tmp_path: Path) -> None:
    write_classes(tmp_path, {"x": 3, "y": 3})
    (tmp_path / "x" / "notes.txt").write_text("hello")
    (tmp_path / "x" / ".hidden.png").write_text("hello")
    (tmp_path / ".git").mkdir()
    assert sum(map(len, folder.read(tmp_path))) == 6


def test_conversions_are_said(tmp_path: Path) -> None:
    write_classes(tmp_path, {"x": 3, "y": 3})
    picture(mode="CMYK").save(tmp_path / "x" / "a.jpg")
    picture(mode="CMYK").save(tmp_path / "x" / "b.jpg")
    picture().save(tmp_path / "y" / "m.gif", save_all=True, append_images=[picture(1)])
    notes = folder.read(tmp_path).train.notes
    assert any(note.startswith("2 x CMYK converted to RGB (first: ") and "a.jpg" in note for note in notes)
    assert any("first taken" in note and "m.gif" in note for note in notes)


def write_attributes(base: Path, header: str, rows: list[str]) -> Path:
    base.mkdir(parents=True, exist_ok=True)
    for i, row in enumerate(rows):
        picture(i).save(base / row.split(",")[0])
    (base / "attributes.csv").write_text("\n".join([header, *rows]) + "\n")
    return base


def test_a_csv_gives_attributes_in_any_spelling(tmp_path: Path) -> None:
    rows = ["a.png,1,0", "b.png,-1,1", "c.png,true,FALSE", "d.png, Yes ,no", "e.png,0,1"]
    splits = folder.read(write_attributes(tmp_path, "file,Hat,Beard", rows))
    assert splits.train.labels == "attributes"
    assert splits.train.names == ("Hat", "Beard")
    found = torch.cat([splits.train.y, splits.test.y])
    expected = torch.tensor([[1, 0], [0, 1], [1, 0], [1, 0], [0, 1]])
    assert sorted(found.tolist()) == sorted(expected.tolist())
    assert len(splits.test) == 1


def test_a_csv_with_parts_of_its_own(tmp_path: Path) -> None:
    for part in ("train", "test"):
        write_attributes(tmp_path / part, "file,Hat", ["a.png,1", "b.png,0"])
    assert [len(part) for part in data.load(f"folder:{tmp_path}", valid=0.0)] == [2, 0, 2]
    write_attributes(tmp_path / "test", "file,Shoe", ["a.png,1"])
    with pytest.raises(GencapsError, match=r"other attributes than train/: Shoe"):
        folder.read(tmp_path)


@pytest.mark.parametrize(
    ("header", "row", "says"),
    [
        ("file,Hat", "a.png,maybe", r"line 2, Hat: 'maybe' is not 0/1"),
        ("file,Hat", "a.png,1,0", "line 2: 2 values for 1 attributes"),
        ("file,Hat,Hat", "a.png,1,0", "names an attribute twice"),
        ("file", "a.png", "needs a header"),
    ],
)
def test_a_wrong_csv_is_named_with_its_line(tmp_path: Path, header: str, row: str, says: str) -> None:
    write_attributes(tmp_path, header, [row])
    with pytest.raises(GencapsError, match=f"attributes.csv.*{says}"):
        folder.read(tmp_path)


def test_a_row_without_its_picture_is_named(tmp_path: Path) -> None:
    write_attributes(tmp_path, "file,Hat", ["a.png,1", "b.png,0"])
    (tmp_path / "b.png").unlink()
    with pytest.raises(GencapsError, match=r"line 3: .*b.png does not exist"):
        folder.read(tmp_path)
