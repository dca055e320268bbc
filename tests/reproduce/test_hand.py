"""Whether the data of a claim is at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from gencaps.reproduce.claims import Book, book
from gencaps.reproduce.hand import all_lacking, celeba_pictures, lacking
from tests.data.helpers import write_celeba
from tests.helpers import refused
from tests.reproduce.helpers import cited, entry, small_book

FACES = '[runs.faces]\nsystem = "resnet"\npreset = "celeba"\ndata = "celeba"\nseeds = 1\n'


def known() -> Book:
    """Claims of 4 pictures, of 5, of any number, of the digits, and of other authors."""
    return small_book(
        FACES,
        entry("variational.four", runs=["faces"], pictures=4, needs="four faces"),
        entry("variational.five", runs=["tiny", "faces"], pictures=5, needs="five faces"),
        entry("variational.any", runs=["faces"]),
        entry("variational.digits"),
        cited("variational.cited"),
    )


@pytest.fixture
def celeba(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ten faces: four for training, three and three for the other parts."""
    monkeypatch.setenv("GENCAPS_DATA", str(tmp_path))
    return write_celeba(tmp_path / "celeba", n=10)


def test_claims_of_as_many_pictures_are_at_hand(celeba: Path) -> None:
    assert celeba_pictures(celeba) == 4
    assert all_lacking(known()) == {"variational.five": "five faces"}


def test_without_celeba_every_claim_on_it_says_what_it_needs() -> None:
    found = all_lacking(known())
    assert list(found) == ["variational.four", "variational.five", "variational.any"]
    assert found["variational.four"] == "four faces"
    assert "https://mmlab.ie.cuhk.edu.hk" in found["variational.any"]


def test_a_list_without_pictures_is_not_at_hand(celeba: Path) -> None:
    for path in (celeba / "img_align_celeba").iterdir():
        path.unlink()
    (celeba / "img_align_celeba").rmdir()
    claims = known()
    assert lacking(claims, claims.claims["variational.four"]) == "four faces"


def test_a_damaged_list_is_named(celeba: Path) -> None:
    (celeba / "list_eval_partition.txt").write_text("000001.jpg zero\n")
    refused(lambda: all_lacking(known()), "list_eval_partition.txt", "line 1")


def test_all_of_celeba_and_its_subset_are_told_apart(celeba: Path) -> None:
    """With four pictures neither is at hand; everything else in the book downloads itself."""
    found = all_lacking(book())
    assert "variational.celeba.recon.average" in found
    assert {book().claims[name].pictures for name in found} == {162_770, 37_540}
    assert {run.data for name in found for run in book().training(book().claims[name])} == {"celeba"}
