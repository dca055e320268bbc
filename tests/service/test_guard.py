"""Who may ask, and on which address."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from gencaps.api import Capsules
from gencaps.cli import main
from gencaps.engine.pretrained import shipped
from gencaps.service.app import make_app
from gencaps.service.models import gather
from gencaps.service.run import check_address, is_loopback, listen
from tests.helpers import refused
from tests.service.helpers import HOST, complaint

KEY = "correct-horse-battery"


@pytest.fixture(scope="module")
def locked(models: dict[str, Capsules]) -> Iterator[Any]:
    with TestClient(make_app(models, key=KEY), base_url="http://models.example") as client:
        yield client


@pytest.mark.parametrize(
    "header", [None, "Bearer", "Bearer ", f"Bearer {KEY}x", f"Bearer {KEY[:-1]}", f"Basic {KEY}", KEY, "Bearer \u00e9"]
)
def test_without_the_key_nothing_is_told(locked: Any, header: str | None) -> None:
    headers = {} if header is None else {"authorization": header.encode()}
    for answer in (
        locked.get("/v1/models", headers=headers),
        locked.get("/metrics", headers=headers),
        locked.post("/v1/models/faces/generate", json={}, headers=headers),
        locked.post("/v1/models/nobody/generate", json={}, headers=headers),
    ):
        complaint(answer, 401, "Authorization", "Bearer")
        assert answer.headers["www-authenticate"] == "Bearer"
    assert locked.get("/healthz").status_code == 200


def test_with_the_key_all_is_told_under_any_name(locked: Any) -> None:
    headers = {"authorization": f"Bearer {KEY}"}
    assert locked.get("/v1/models", headers=headers).status_code == 200
    asked = {"classes": ["3"], "n": 1}
    assert locked.post("/v1/models/digits/generate", json=asked, headers=headers).status_code == 200


def test_keys_are_compared_in_constant_time(locked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock would be a poor witness: the comparison is asked itself."""
    import hmac

    compared = []
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append((a, b)) or False)
    complaint(locked.get("/v1/models", headers={"authorization": f"Bearer {KEY}"}), 401, "Authorization")
    assert compared == [(KEY.encode(), KEY.encode())]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "[::1", ""])
def test_without_a_key_other_names_are_refused(client: Any, host: str) -> None:
    complaint(client.get("/v1/models", headers={"host": host}), 403, "Host")


@pytest.mark.parametrize("host", ["localhost", "localhost:8765", "127.0.0.1", "[::1]:8765"])
def test_this_machine_is_known_by_its_names(client: Any, host: str) -> None:
    assert client.get("/v1/models", headers={"host": host}).status_code == 200


def test_pages_of_other_sites_may_not_ask(client: Any) -> None:
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1", "http://["):
        complaint(client.get("/v1/models", headers={"origin": origin}), 403, "Origin")
    assert client.get("/v1/models", headers={"origin": HOST}).status_code == 200


def test_an_address_that_others_reach_needs_a_key() -> None:
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.com", ""):
        refused(lambda host=host: check_address(host, None), "--api-key", "127.0.0.1")
        check_address(host, KEY)
    for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost"):
        check_address(host, None)
        assert is_loopback(host)
    refused(lambda: check_address("127.0.0.1", " "), "empty")
    refused(lambda: check_address("127.0.0.1", "\u00e9"), "ASCII")


def test_an_address_that_is_taken_is_refused() -> None:
    with listen("127.0.0.1", 0) as door:
        port = door.getsockname()[1]
        refused(lambda: listen("127.0.0.1", port), str(port), "--port")
    refused(lambda: listen("127.0.0.1", 70_000), "70000", "--port")
    refused(lambda: listen("no such host", 0), "no such host")


def test_the_command_refuses_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("GENCAPS_API_KEY", raising=False)
    for words in (
        ["--host", "0.0.0.0"],
        [str(tmp_path), "--port", "0"],
        ["--port", "99999"],
        ["nothing", "--port", "0"],
    ):
        assert main(["serve", *words]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith("gencaps: ")
        assert said.err.count("\n") == 1


def test_runs_that_are_found_are_served_and_a_broken_one_is_named(
    trained_digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = tmp_path / "runs"
    (runs / "claims").mkdir(parents=True)
    (runs / "mine").symlink_to(trained_digits)
    (runs / "claims" / "seed-0").symlink_to(trained_digits)
    (runs / "broken").mkdir()
    (runs / "broken" / "model.safetensors").write_bytes(b"no weights")
    (runs / "empty").mkdir()
    # all three are one folder, served once
    assert set(gather([str(trained_digits)], "cpu", runs)) == {*shipped(), "digits"}
    other = tmp_path / "other"
    other.mkdir()
    for name in ("a", "b"):
        shutil.copytree(trained_digits, other / name)
    assert set(gather([str(other / "a")], "cpu", other)) == {*shipped(), "a", "b"}
    assert set(gather([], "cpu", tmp_path / "nowhere")) == set(shipped())
    assert "broken is not served" in capsys.readouterr().err


def test_ids_are_the_folders_names_and_unique(trained_digits: Path, tmp_path: Path) -> None:
    (tmp_path / "My Run!").symlink_to(trained_digits)
    other = tmp_path / "digits"
    other.symlink_to(trained_digits)
    found = gather([str(trained_digits), str(other), "faces", f"{trained_digits}/"], "cpu")
    # what was asked for comes first: the studio opens with it
    rest = [name for name in sorted(shipped()) if name != "faces"]
    assert list(found) == ["digits", "digits-2", "faces", "digits-3", *rest]


def test_the_command_serves_until_it_is_told_to_stop(trained_digits: Path) -> None:
    words = [sys.executable, "-m", "gencaps", "serve", str(trained_digits), "--port", "0", "--no-browser"]
    process = subprocess.Popen([*words, "--device", "cpu"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        address = line.split("gencaps answers on ")[1].split()[0]
        with urllib.request.urlopen(f"{address}v1/models", timeout=60) as answer:
            assert b'"digits"' in answer.read()
        with socket.create_connection(("127.0.0.1", int(address.rstrip("/").rsplit(":", 1)[1])), 60) as door:
            door.sendall(b"POST /v1/models/digits/classify HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n")
        with urllib.request.urlopen(f"{address}healthz", timeout=60) as answer:
            assert answer.status == 200
        process.terminate()
        _, said = process.communicate(timeout=60)
        assert "Traceback" not in said
    finally:
        process.kill()
        process.wait()
