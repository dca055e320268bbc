"""Finds the files of a public set, or fetches them from where their authors publish them."""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gencaps.data import affnist, celeba, cifar, mnist
from gencaps.data.cache import cache_folder
from gencaps.data.progress import DownloadBar
from gencaps.errors import GencapsError


@dataclass(frozen=True)
class Source:
    """Where a set is published and how to know that it arrived whole."""

    mirrors: tuple[str, ...]
    """Addresses that the file names are appended to, tried in this order."""
    files: dict[str, str]
    """File names and their checksums, as ``sha256:...`` or ``md5:...``."""
    unpack: tuple[str, ...] = ()
    """Members to take out of a fetched tar archive; empty where the files are used as they come."""


SOURCES = {
    "mnist": Source(
        (
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "http://yann.lecun.com/exdb/mnist/",
        ),
        {
            "train-images-idx3-ubyte.gz": "sha256:440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "train-labels-idx1-ubyte.gz": "sha256:3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "t10k-images-idx3-ubyte.gz": "sha256:8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "t10k-labels-idx1-ubyte.gz": "sha256:f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        },
    ),
    # checksums as Zalando publishes them
    "fashion_mnist": Source(
        (
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        ),
        {
            "train-images-idx3-ubyte.gz": "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "train-labels-idx1-ubyte.gz": "md5:25c81989df183df01b3e8a0aad5dffbe",
            "t10k-images-idx3-ubyte.gz": "md5:bef4ecab320f06d8554ea6380940ec79",
            "t10k-labels-idx1-ubyte.gz": "md5:bb300cfdad3c16e7a12a480ee83cd310",
        },
    ),
    "cifar10": Source(
        ("https://www.cs.toronto.edu/~kriz/",),
        {"cifar-10-binary.tar.gz": "md5:c32a1d4ab5d03f1284b67883e8d87530"},
        unpack=tuple(f"cifar-10-batches-bin/{stem}.bin" for stem in cifar.TRAIN + cifar.TEST),
    ),
}

IS_HERE: dict[str, Callable[[Path], bool]] = {
    "mnist": mnist.is_here,
    "fashion_mnist": mnist.is_here,
    "cifar10": cifar.is_here,
    "celeba": celeba.is_here,
    "affnist": affnist.is_here,
}


def locate(name: str, root: Path | None = None) -> Path | None:
    """Finds the folder of a set: in ``root``, else in ``$GENCAPS_DATA``, then in the user's cache."""
    chosen = root or os.environ.get("GENCAPS_DATA")
    places = [Path(os.path.expanduser(chosen))] if chosen else []
    for place in (*places, cache_folder()):
        if IS_HERE[name](place / name):
            return place / name
    return None


def _fetch_file(url: str, checksum: str, target: Path, progress: bool) -> None:
    """Downloads one file beside its place, checks it, then moves it there; leaves nothing half."""
    import pooch

    pooch.get_logger().setLevel("WARNING")
    shown = DownloadBar(target.name) if progress else None
    # pooch's own types know no bar but tqdm's
    downloader: Any = pooch.HTTPDownloader(chunk_size=2**16, timeout=30)
    downloader.progressbar = shown or False
    try:
        pooch.retrieve(url, checksum, fname=target.name, path=target.parent, downloader=downloader)
    finally:
        if shown:
            shown.close()


def _reason(error: Exception) -> str:
    """Tells a failed download in a few words."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"answered {response.status_code} {response.reason}"
    if isinstance(error, ValueError) and "hash" in str(error):
        return "sent a file with another checksum"
    words = {
        "ConnectionError": "cannot be reached",
        "ConnectTimeout": "does not answer",
        "ReadTimeout": "stopped answering",
        "ChunkedEncodingError": "cut the transfer off",
    }
    kind = type(error).__name__
    return words.get(kind) or f"{kind} ({error!s:.100})".replace("\n", " ")


def _unpack(archive: Path, members: tuple[str, ...], folder: Path) -> None:
    """Takes the named members out of a tar archive: all of them, or none."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=".unpack-") as scratch, tarfile.open(archive) as tar:
        for member in members:
            source = tar.extractfile(member)
            if source is None:
                raise KeyError(f"{member} is not a file")
            (Path(scratch) / member).parent.mkdir(parents=True, exist_ok=True)
            with source, (Path(scratch) / member).open("wb") as target:
                shutil.copyfileobj(source, target)
        for top in {member.split("/", 1)[0] for member in members}:
            shutil.rmtree(folder / top, ignore_errors=True)
            os.replace(Path(scratch) / top, folder / top)


def fetch(name: str, *, mirror: str | None = None, source: Source | None = None, progress: bool = False) -> Path:
    """Downloads a set into the user's cache and returns its folder; files already there and whole are kept.

    Args:
        name: ``mnist``, ``fashion_mnist`` or ``cifar10``; for ``celeba`` the error says how to get it.
        mirror: an address to use instead of the authors' own.
        source: files and checksums to use instead of the known ones.
    """
    if name == "celeba":
        raise GencapsError(celeba.BY_HAND)
    source = source or SOURCES[name]
    folder = cache_folder() / name
    reasons: list[str] = []
    for base in (mirror,) if mirror else source.mirrors:
        try:
            for file, checksum in source.files.items():
                _fetch_file(base.rstrip("/") + "/" + file, checksum, folder / file, progress)
            break
        except Exception as error:  # requests, pooch and the system each raise their own kinds
            if isinstance(error, PermissionError | NotADirectoryError | FileExistsError):
                raise GencapsError(
                    f"cannot write {folder}: {error.strerror}; set GENCAPS_CACHE to another folder"
                ) from None
            reasons.append(f"{base} {_reason(error)}")
    else:
        raise GencapsError(
            f"could not download {name} ({'; '.join(reasons)}); try again later, or put its files into {folder} by hand"
        )
    if source.unpack:
        archive = folder / next(iter(source.files))
        try:
            _unpack(archive, source.unpack, folder)
        except (tarfile.TarError, KeyError, EOFError, zlib.error, OSError) as error:
            raise GencapsError(f"could not unpack {archive}: {error}; free some space or delete it") from None
        archive.unlink(missing_ok=True)
    return folder


def obtain(name: str, root: Path | None = None, *, progress: bool = False) -> Path:
    """Gives the folder of a set, downloading it where it is not yet here."""
    return locate(name, root) or fetch(name, progress=progress)
