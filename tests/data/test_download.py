from __future__ import annotations

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gencaps.data import download
from gencaps.data.download import Source, fetch, locate, obtain
from gencaps.errors import GencapsError
from tests.data.helpers import rng, write_mnist

BODY = rng().bytes(200_000)


class Server(ThreadingHTTPServer):
    files: dict[str, bytes]
    asked: list[str]


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        name = self.path.rsplit("/", 1)[-1]
        assert isinstance(self.server, Server)
        self.server.asked.append(name)
        cut = "/cut/" in self.path
        data = self.server.files.get(name)
        if data is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        # the line goes dead in the middle
        self.wfile.write(data[: len(data) // 2] if cut else data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as running:
        running.files, running.asked = {}, []
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def address(server: Server, path: str = "/") -> str:
    return f"http://127.0.0.1:{server.server_address[1]}{path}"


def sha256(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def toy(*mirrors: str) -> Source:
    return Source(mirrors, {"toy.bin": sha256(BODY)})


def everything_below(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("progress", [False, True])
def test_a_download_is_whole_and_asked_for_once(server: Server, cache: Path, progress: bool) -> None:
    server.files["toy.bin"] = BODY
    for _ in range(2):
        folder = fetch("toy", source=toy(address(server)), progress=progress)
        assert (folder / "toy.bin").read_bytes() == BODY
    assert server.asked == ["toy.bin"]
    assert everything_below(cache) == ["toy.bin"]


@pytest.mark.parametrize(
    ("path", "sent", "says"),
    [
        ("/", None, "answered 404"),
        ("/", b"something else", "another checksum"),
        ("/cut/", BODY, "cut the transfer off"),
    ],
    ids=["missing", "wrong", "interrupted"],
)
def test_a_failed_download_is_told_in_one_line_and_leaves_nothing(
    server: Server, cache: Path, path: str, sent: bytes | None, says: str
) -> None:
    if sent is not None:
        server.files["toy.bin"] = sent
    with pytest.raises(GencapsError, match=says) as error:
        fetch("toy", source=toy(address(server, path)))
    assert "\n" not in str(error.value)
    assert address(server) in str(error.value)
    assert str(cache / "toy") in str(error.value)
    assert everything_below(cache) == []


def test_the_known_sets_refuse_other_files(server: Server, cache: Path) -> None:
    for file in download.SOURCES["mnist"].files:
        server.files[file] = b"not MNIST"
    with pytest.raises(GencapsError, match=r"could not download mnist .*another checksum"):
        fetch("mnist", mirror=address(server))
    assert everything_below(cache) == []


def test_a_server_that_is_not_there_is_told(cache: Path) -> None:
    with pytest.raises(GencapsError, match="cannot be reached"):
        fetch("mnist", mirror="http://127.0.0.1:9/")
    assert everything_below(cache) == []


def test_the_second_mirror_is_tried(server: Server) -> None:
    server.files["toy.bin"] = BODY
    folder = fetch("toy", source=toy(address(server, "/cut/"), address(server)))
    assert (folder / "toy.bin").read_bytes() == BODY


def test_what_arrived_is_kept_when_a_later_file_fails(server: Server, cache: Path) -> None:
    server.files["toy.bin"] = BODY
    source = Source((address(server),), {"toy.bin": sha256(BODY), "more.bin": sha256(b"more")})
    with pytest.raises(GencapsError, match="404"):
        fetch("toy", source=source)
    assert everything_below(cache) == ["toy.bin"]
    server.files["more.bin"] = b"more"
    fetch("toy", source=source)
    assert server.asked.count("toy.bin") == 1


def archive(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return file.getvalue()


def test_only_the_named_members_of_an_archive_are_unpacked(server: Server, cache: Path) -> None:
    packed = archive({"box/a.bin": b"a", "box/b.bin": b"b", "../evil.bin": b"x", "box/readme.html": b"h"})
    server.files["box.tar.gz"] = packed
    source = Source((address(server),), {"box.tar.gz": sha256(packed)}, ("box/a.bin", "box/b.bin"))
    folder = fetch("toy", source=source)
    assert (folder / "box" / "b.bin").read_bytes() == b"b"
    assert everything_below(cache.parent) == ["a.bin", "b.bin"]


def test_an_archive_that_lacks_a_member_leaves_nothing_unpacked(server: Server, cache: Path) -> None:
    packed = archive({"box/a.bin": b"a"})
    server.files["box.tar.gz"] = packed
    source = Source((address(server),), {"box.tar.gz": sha256(packed)}, ("box/a.bin", "box/b.bin"))
    with pytest.raises(GencapsError, match="could not unpack"):
        fetch("toy", source=source)
    assert everything_below(cache) == ["box.tar.gz"]  # whole and checked; kept for another try


def test_a_cache_that_cannot_be_written_is_told(server: Server, tmp_path: Path, monkeypatch) -> None:
    server.files["toy.bin"] = BODY
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("GENCAPS_CACHE", str(tmp_path / "file"))
    with pytest.raises(GencapsError, match=r"cannot write .*; set GENCAPS_CACHE"):
        fetch("toy", source=toy(address(server)))


def test_files_are_looked_for_in_root_then_in_the_variable_then_in_the_cache(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert locate("mnist") is None
    write_mnist(cache / "mnist")
    assert locate("mnist") == cache / "mnist"
    write_mnist(tmp_path / "data" / "mnist")
    monkeypatch.setenv("GENCAPS_DATA", str(tmp_path / "data"))
    assert locate("mnist") == tmp_path / "data" / "mnist"
    write_mnist(tmp_path / "root" / "mnist")
    assert locate("mnist", tmp_path / "root") == tmp_path / "root" / "mnist"
    (tmp_path / "data" / "mnist" / "train-labels-idx1-ubyte.gz").unlink()  # not whole: passed over
    assert obtain("mnist") == cache / "mnist"


def test_celeba_is_fetched_by_hand() -> None:
    with pytest.raises(GencapsError, match=r"by hand.*mmlab.*GENCAPS_DATA/celeba"):
        fetch("celeba")
