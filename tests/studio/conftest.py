"""A service with a model of each system, and a browser that looks at it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed: the service is an extra")
pytest.importorskip("playwright", reason="playwright is not installed: pip install 'gencaps[dev]'")

if TYPE_CHECKING:
    from gencaps.api import Capsules

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


class Served(NamedTuple):
    """A service, and its models as Python has them."""

    address: str
    models: dict[str, Capsules]
    folder: Path
    """Where every model lies under its id."""


@contextmanager
def serving(models: list[str], **variables: str) -> Iterator[str]:
    """Runs ``gencaps serve`` on a free port; gives its address."""
    command = [sys.executable, "-m", "gencaps", "serve", *models, "--port", "0", "--no-browser", "--device", "cpu"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **variables})
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert "http://" in said, said
        yield said.split("answers on ")[1].split()[0]
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="session")
def served(trained_digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serves the trained digits and, as they are before training, the systems of which none is trained here."""
    import torch

    from gencaps.api import Capsules, load
    from gencaps.engine.pretrained import build
    from gencaps.engine.recipe import make_recipe
    from gencaps.model import PictureInfo

    folder = tmp_path_factory.mktemp("models")
    (folder / "digits").symlink_to(trained_digits)
    models = {"digits": load(trained_digits, "cpu"), "faces": load("faces", "cpu")}
    for paper in ("product_of_experts", "probabilistic", "capsule_gan"):
        torch.manual_seed(0)
        size = 28 if paper == "capsule_gan" else 8
        info = PictureInfo(1, size, tuple("0123456789"), "classes", "digits")
        config = make_recipe(paper, preset="small", data="digits").model
        model: Any = build(paper, config, info)
        if paper == "product_of_experts":  # as if it had learned: its capsules draw unlike pictures, on one side each
            model.layers[-1].mean_direction.normal_()
            model.layers[-1].back.data *= 20
        if paper == "capsule_gan":
            for weight in model.generator.parameters():
                weight.data *= 3
        models[paper] = Capsules(model)
        models[paper].save_pretrained(folder / paper)
    given = [str(folder / name) for name in models if name != "faces"]
    # the id is the folder's name, which for the run is that of what the link points at
    with serving(given) as address:
        yield Served(address, models, folder)


@pytest.fixture(scope="package")  # while its driver lives, this thread can run no event loop of its own
def browser() -> Iterator[Any]:
    """Chromium; tests are skipped by name where there is none."""
    from playwright.sync_api import sync_playwright

    path = os.environ.get("GENCAPS_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("there is no chromium: apt-get install chromium, or name one in GENCAPS_CHROMIUM")
    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield found
        found.close()


Opener = Any
"""Opens a page; ``expected`` lists words of faults that a test provokes."""


@pytest.fixture
def look(served: Served, browser: Any) -> Iterator[Opener]:
    """Opens the studio; holds to the end that nothing failed in the page and no other host was asked."""
    faults: list[str] = []
    contexts = []

    def open_page(model: str = "digits", panel: str = "analyse", rest: str = "", **options: Any) -> Any:
        options = {"viewport": {"width": 1080, "height": 900}, "accept_downloads": True, **options}
        context = browser.new_context(**options)
        contexts.append(context)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: faults.append(f"error: {error}"))
        page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)

        def watch(request: Any) -> None:
            scheme, host = urlsplit(request.url)[:2]
            if scheme not in ("data", "blob") and host != urlsplit(served.address).netloc:
                faults.append(f"asked another host: {request.url}")

        page.on("request", watch)
        page.goto(f"{served.address}#model={model}&panel={panel}{rest}")
        page.wait_for_selector("main[aria-busy=false]")
        return page

    open_page.expected = ()  # pyright: ignore[reportFunctionMemberAccess]
    yield open_page
    for context in contexts:
        context.close()
    expected = open_page.expected  # pyright: ignore[reportFunctionMemberAccess]
    assert not [fault for fault in faults if not any(words in fault for words in expected)]
