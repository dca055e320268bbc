"""Pictures in, (x, y) out: every set by its name, the same each time. Knows no model."""

from __future__ import annotations

from gencaps.data.batches import Batch, Batches, iterate
from gencaps.data.catalog import Row, describe, get, rows
from gencaps.data.images import ImageSet, Splits, counts
from gencaps.data.loading import load
from gencaps.data.splits import split_record

__all__ = [
    "Batch",
    "Batches",
    "ImageSet",
    "Row",
    "Splits",
    "counts",
    "describe",
    "get",
    "iterate",
    "load",
    "rows",
    "split_record",
]
