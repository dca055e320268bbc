"""Whether the data of a claim is at hand, without loading it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from gencaps.data import celeba
from gencaps.data.download import locate
from gencaps.reproduce.claims import Book, Claim


@cache
def celeba_pictures(folder: Path | None) -> int:
    """Counts the training pictures that CelebA's partition lists; 0 where it is not here."""
    if folder is None:
        return 0
    return sum(part == 0 for part in celeba.read_partition(folder / celeba.PARTITION_FILE).values())


def lacking(book: Book, claim: Claim) -> str | None:
    """Says what a claim needs that is not at hand; sets that download themselves always are."""
    if all(run.data != "celeba" for run in book.training(claim)):
        return None
    here = celeba_pictures(locate("celeba"))
    if here == claim.pictures or (claim.pictures is None and here):
        return None
    return claim.needs or celeba.BY_HAND


def all_lacking(book: Book) -> dict[str, str]:
    """Lists the claims whose data is not at hand, with what each needs."""
    found = {claim.id: lacking(book, claim) for claim in book.claims.values()}
    return {name: text for name, text in found.items() if text is not None}
