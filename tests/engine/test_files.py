"""Files that are whole or not there."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from gencaps.errors import GencapsError
from gencaps.files import remedy, write_atomically


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def failing(error: BaseException) -> object:
    def fail(*_: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize(("content", "stored"), [("Grüße\n", "Grüße\n".encode()), (b"\x00\xff\r\n", b"\x00\xff\r\n")])
def test_content_arrives_byte_for_byte(tmp_path: Path, content: str | bytes, stored: bytes) -> None:
    path = tmp_path / "file"
    write_atomically(path, content)
    assert path.read_bytes() == stored
    assert names(tmp_path) == ["file"]


def test_a_shorter_file_takes_the_whole_place_of_a_longer_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, "long " * 1000)
    write_atomically(path, "short")
    assert path.read_text() == "short"


def test_others_may_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, "x")
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.replace", "pathlib.Path.chmod"])
def test_a_write_that_fails_keeps_the_old_file_and_leaves_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "file"
    write_atomically(path, "old")
    monkeypatch.setattr(step, failing(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(GencapsError) as caught:
        write_atomically(path, "new")
    monkeypatch.undo()
    assert str(caught.value) == f"cannot write {path}: No space left on device; free some space and try again"
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file"]


def test_ctrl_c_in_a_write_keeps_the_old_file_and_leaves_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_atomically(path, "old")
    monkeypatch.setattr(os, "fsync", failing(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, "new")
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file"]


def test_a_first_write_that_fails_leaves_nothing_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", failing(OSError(errno.EIO, "Input/output error")))
    with pytest.raises(GencapsError, match="Input/output error"):
        write_atomically(tmp_path / "file", "new")
    assert names(tmp_path) == []


def test_a_missing_folder_and_a_folder_in_the_way_are_refused(tmp_path: Path) -> None:
    with pytest.raises(GencapsError, match=r"cannot write .*none/file: .*; check the path$"):
        write_atomically(tmp_path / "none" / "file", "x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(GencapsError, match=r"cannot write .*folder: "):
        write_atomically(tmp_path / "folder", "x")
    assert names(tmp_path) == ["folder"]


def test_a_reader_never_meets_half_a_file(tmp_path: Path) -> None:
    path, contents = tmp_path / "file", (b"a" * 300_000, b"b" * 200_000)
    write_atomically(path, contents[0])
    done = threading.Event()

    def write() -> None:
        try:
            for i in range(60):
                write_atomically(path, contents[i % 2])
        finally:
            done.set()

    writer, met = threading.Thread(target=write), {path.read_bytes()}
    writer.start()
    while not done.is_set():
        met.add(path.read_bytes())
    writer.join()
    assert met <= set(contents)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EFBIG, "free some space"),
        (errno.EACCES, "that you may write to"),
        (errno.EROFS, "that you may write to"),
        (errno.ENOENT, "check the path"),
    ],
)
def test_the_remedy_fits_the_fault(number: int, said: str) -> None:
    assert said in remedy(OSError(number, os.strerror(number)))
