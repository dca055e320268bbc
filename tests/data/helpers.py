"""Writes tiny files in the formats of the data sets."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

from gencaps.data.mnist import STEMS


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def idx(array: np.ndarray) -> bytes:
    """Spells an array of bytes as an IDX file."""
    header = struct.pack(">I", 0x0800 | array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(np.uint8).tobytes()


def write_mnist(folder: Path, train: int = 20, test: int = 10, packed: bool = True) -> dict[str, np.ndarray]:
    """Writes the four IDX files with random pictures and labels 0 to 9 in turn."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {}
    for stem in STEMS:
        n = train if stem.startswith("train") else test
        if "images" in stem:
            arrays[stem] = rng(n).integers(0, 256, (n, 28, 28), dtype=np.uint8)
        else:
            arrays[stem] = (np.arange(n) % 10).astype(np.uint8)
        data = idx(arrays[stem])
        (folder / (f"{stem}.gz" if packed else stem)).write_bytes(gzip.compress(data) if packed else data)
    return arrays


def picture(seed: int = 0, size: tuple[int, int] = (40, 40), mode: str = "RGB") -> Image.Image:
    """Makes a smooth random picture."""
    small = rng(seed).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    return Image.fromarray(small).resize(size, Image.Resampling.BILINEAR).convert(mode)


def png(width: int, height: int, bits: int, kind: int, rows: bytes) -> bytes:
    """Spells a PNG byte by byte, for those that Pillow does not write."""

    def chunk(tag: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data))

    header = struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def write_classes(folder: Path, counts: dict[str, int], size: tuple[int, int] = (40, 40), mode: str = "RGB") -> Path:
    """Writes one subfolder a class with random pictures."""
    for k, (name, n) in enumerate(counts.items()):
        (folder / name).mkdir(parents=True)
        for i in range(n):
            picture(1000 * k + i, size, mode).save(folder / name / f"{i:03}.png")
    return folder


def encoded(image: Image.Image, kind: str = "JPEG") -> bytes:
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


def write_celeba(folder: Path, n: int = 12, zips: int = 0) -> Path:
    """Writes a small CelebA: as a folder of pictures, or spread over several zips."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"{i:06}.jpg" for i in range(1, n + 1)]
    signs = rng(1).integers(0, 2, (n, 3)) * 2 - 1
    rows = [f"{name} " + " ".join(f"{s:2d}" for s in row) for name, row in zip(names, signs, strict=True)]
    (folder / "list_attr_celeba.txt").write_text("\n".join([str(n), "Bald Smiling Young", *rows]) + "\n")
    # parts in turn, so that the order of the list is not that of the parts
    parts = [f"{name} {i % 3}" for i, name in enumerate(names)]
    (folder / "list_eval_partition.txt").write_text("\n".join(parts) + "\n")
    pictures = [encoded(picture(i, (178, 218))) for i in range(n)]
    if zips:
        for z in range(zips):
            with zipfile.ZipFile(folder / f"img_{z}.zip", "w", zipfile.ZIP_STORED) as archive:
                for name, data in list(zip(names, pictures, strict=True))[z::zips]:
                    archive.writestr(f"img_align_celeba/{name}", data)
    else:
        (folder / "img_align_celeba").mkdir()
        for name, data in zip(names, pictures, strict=True):
            (folder / "img_align_celeba" / name).write_bytes(data)
    return folder
