"""A memory-mapped cache of decoded pictures: written once, then read as if it were memory."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from gencaps.data.progress import bar
from gencaps.errors import GencapsError

VERSION = 1
"""Raised when the way pictures are cropped or scaled changes, so that old caches are not used."""
CHUNK = 1024
"""Pictures decoded between two writes."""


def cache_folder() -> Path:
    """Names the folder for downloads and decoded pictures: ``$GENCAPS_CACHE``, else the platform's."""
    chosen = os.environ.get("GENCAPS_CACHE")
    if chosen:
        return Path(os.path.expanduser(chosen))
    import pooch

    return Path(pooch.os_cache("gencaps"))


def _digest(parts: Iterable[object]) -> str:
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:16]


def _stamps(sources: Iterable[Path]) -> Iterator[str]:
    """Yields path, size in bytes and time of change of each source."""
    for path in sources:
        try:
            stat = path.stat()
        except OSError as error:
            raise GencapsError(f"{path} cannot be read: {error.strerror or error}") from None
        yield f"{path} {stat.st_size} {stat.st_mtime_ns}"


def _open(path: Path, shape: tuple[int, ...]) -> UInt8[Tensor, "n channels height width"] | None:
    """Maps a finished cache file, or gives None where there is none or it is not whole."""
    try:
        # copy-on-write, because torch has no read-only tensors; nothing ever writes
        array = np.load(path, mmap_mode="c", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return torch.from_numpy(array) if array.shape == shape and array.dtype == np.uint8 else None


def _decode_all(
    decode: Callable[[int], np.ndarray], n: int, advance: Callable[[int], None], threads: int | None
) -> Iterator[np.ndarray]:
    """Decodes pictures 0 to n - 1 in order, a chunk at a time, on a pool of threads.

    Those that cannot be read are gathered over their chunk and named together.
    """

    def attempt(i: int) -> np.ndarray | GencapsError:
        try:
            return decode(i)
        except GencapsError as error:
            return error

    pool = ThreadPoolExecutor(threads or os.cpu_count() or 1)
    try:
        for start in range(0, n, CHUNK):
            results = list(pool.map(attempt, range(start, min(start + CHUNK, n))))
            wrong = [result for result in results if isinstance(result, GencapsError)]
            if wrong:
                more = f" (and {len(wrong) - 1} more near it)" if len(wrong) > 1 else ""
                raise GencapsError(f"{wrong[0]}{more}")
            yield np.stack([result for result in results if isinstance(result, np.ndarray)])
            advance(len(results))
    finally:
        pool.shutdown(cancel_futures=True)


def memory_map(
    name: str,
    sources: Iterable[Path],
    shape: tuple[int, int, int, int],
    decode: Callable[[int], np.ndarray],
    *,
    detail: object = "",
    progress: bool = False,
    threads: int | None = None,
) -> UInt8[Tensor, "n channels height width"]:
    """Decodes every picture once into a file and maps that file into memory.

    The file's name carries the sources' sizes and times, so a changed source is decoded anew and the old
    file goes. It is written under another name and renamed when whole: an interrupted build leaves nothing.

    Args:
        name: begins the file's name, such as ``celeba``.
        sources: the files that the pictures are decoded from.
        shape: (pictures, channels, height, width) of the whole.
        decode: gives the pixels (channels, height, width) of picture i; called from several threads.
        detail: anything else that the pixels depend on, such as the order of the pictures.
    """
    stamps = list(_stamps(sources))
    identity = _digest([name, shape, detail, *(stamp.rsplit(" ", 2)[0] for stamp in stamps)])
    folder = cache_folder() / "pictures"
    path = folder / f"{name}-{shape[-1]}px-{identity}-{_digest([VERSION, *stamps])}.npy"
    found = _open(path, shape)
    if found is not None:
        return found
    remedy = "free some space or set GENCAPS_CACHE to another folder"
    part: Path | None = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        handle, part_name = tempfile.mkstemp(".part", path.stem + ".", folder)
        part = Path(part_name)
        # written as a plain stream: a full disk is an error here, but kills a process that writes to a map
        with os.fdopen(handle, "wb") as file, bar(f"decoding {name}", shape[0], progress) as advance:
            header = {"descr": "|u1", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for pixels in _decode_all(decode, shape[0], advance, threads):
                file.write(np.ascontiguousarray(pixels, np.uint8).data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        raise GencapsError(f"cannot write the cache {folder}: {error.strerror or error}; {remedy}") from None
    finally:
        if part is not None:
            part.unlink(missing_ok=True)
    for old in folder.glob(f"{name}-{shape[-1]}px-{identity}-*.npy"):
        if old != path:
            with contextlib.suppress(OSError):
                old.unlink()
    found = _open(path, shape)
    if found is None:
        raise GencapsError(f"{path} cannot be read back; {remedy}")
    return found


def _sweep(folder: Path, older_s: float = 86_400) -> None:
    """Removes what processes killed more than a day ago left half-written."""
    for part in folder.glob("*.part"):
        with contextlib.suppress(OSError):
            if time.time() - part.stat().st_mtime > older_s:
                part.unlink()
