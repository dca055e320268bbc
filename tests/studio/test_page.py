"""The page as a whole: links, copies, keyboard, screen readers, phones, the dark, keys."""

from __future__ import annotations

import re
import shlex
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from gencaps.cli import main
from tests.studio.conftest import Opener, Served, serving
from tests.studio.helpers import as_image, given, shown, slide, until_alike
from tests.studio.test_panels import EDITED

PANELS = [
    ("faces", "analyse"), ("digits", "analyse"), ("faces", "generate"), ("digits", "generate"), ("faces", "edit"),
    ("digits", "edit"), ("faces", "interpolate"), ("capsule_gan", "interpolate"), ("probabilistic", "explain"),
    ("product_of_experts", "capsules"),
]  # fmt: skip


def copied(page: Any, button: str) -> str:
    page.get_by_role("button", name=button).click()
    page.wait_for_selector("pre.code:not([hidden])")
    text = page.locator("pre.code").inner_text()
    assert page.evaluate("navigator.clipboard.readText()").strip() == text.strip()
    return text


def test_a_link_brings_everything_back(look: Opener, served: Served) -> None:
    page, faces = look("faces", "edit"), served.models["faces"]
    page.get_by_role("button", name="Example 5").click()
    picture = given(page)
    page.get_by_role("radiogroup", name="Beard").get_by_text("off", exact=True).click()
    slide(page, "Intensity", 0.6)
    wanted = faces.edit(as_image(picture), "Beard=0", intensity=0.6).pictures[0]
    until_alike(page, EDITED, wanted)
    link = copied(page, "Copy link")
    other = look("digits")
    other.goto("about:blank")
    other.goto(link)
    other.wait_for_selector(EDITED)
    assert np.array_equal(given(other), picture)
    until_alike(other, EDITED, wanted)
    assert other.get_by_label("Intensity").input_value() == "0.6"


def test_a_broken_link_opens_the_page_all_the_same(look: Opener) -> None:
    page = look("nothing", "nowhere", "&settings=%7B")
    assert page.get_by_role("tab").first.get_attribute("aria-selected") == "true"


@pytest.mark.parametrize("model", ["digits", "faces"])
def test_copied_python_and_commands_do_what_is_shown(
    look: Opener, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if model == "digits":
        (tmp_path / "digits").symlink_to(served.folder / "digits")
    page = look(model, "edit")
    as_image(given(page)).save("picture.png")
    if model == "digits":
        page.get_by_label("Class to become").select_option("7")
    else:
        page.get_by_role("radiogroup", name="Smiling").get_by_text("on", exact=True).click()
    slide(page, "Intensity", 0.8)
    wish: Any = "7" if model == "digits" else {"Smiling": 1}
    wanted = served.models[model].edit("picture.png", wish, intensity=0.8).pictures[0]
    until_alike(page, EDITED, wanted)
    exec(copied(page, "Copy as Python"), {})
    assert np.abs(np.asarray(Image.open("edited.png")).astype(int) - shown(page, EDITED)).max() <= 1
    Path("edited.png").unlink()
    command = shlex.split(copied(page, "Copy as command"))
    assert command[0] == "gencaps"
    assert main(command[1:]) == 0
    assert Path("edited.png").exists()


@pytest.mark.parametrize(("model", "panel"), PANELS)
def test_every_panel_copies_python_and_commands_that_run(
    look: Opener, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, panel: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if model != "faces":
        (tmp_path / model).symlink_to(served.folder / model)
    page = look(model, panel)
    page.wait_for_timeout(300)
    for name in ("picture.png", "from.png", "to.png"):
        served.models[model].generate(n=1, seed=1).images()[0].save(name)
    exec(copied(page, "Copy as Python"), {})
    for line in copied(page, "Copy as command").splitlines():
        assert main(shlex.split(line)[1:]) == 0, line


@pytest.mark.parametrize(("model", "panel"), PANELS)
def test_every_control_has_a_name_and_nothing_is_cut_off_on_a_phone(look: Opener, model: str, panel: str) -> None:
    page = look(model, panel, viewport={"width": 360, "height": 740})
    page.wait_for_timeout(500)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    names = "one.getAttribute('aria-label') || one.textContent.trim() || one.labels?.[0]?.textContent.trim()"
    controls = "[...document.querySelectorAll('button, input, select')]"
    unnamed = page.evaluate(f"{controls}.filter((one) => !({names})).map((one) => one.outerHTML)")
    assert not unnamed
    assert page.evaluate("[...document.images].every((one) => one.hasAttribute('alt'))")


def test_the_keyboard_reaches_everything(look: Opener) -> None:
    page = look()
    page.get_by_role("tab", name="Analyse").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tab-generate"
    assert page.get_by_role("tab", name="Generate").get_attribute("aria-selected") == "true"
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert page.locator("[role=group] [aria-pressed=true]").first.inner_text() == "0"


def test_light_and_dark_follow_the_system(look: Opener) -> None:
    inks = []
    for scheme in ("light", "dark"):
        page = look(color_scheme=scheme)
        inks.append(page.evaluate("getComputedStyle(document.documentElement).color"))
    assert inks[0] == "rgb(27, 35, 39)"
    assert inks[1] == "rgb(232, 237, 239)"


def test_the_page_may_load_nothing_from_elsewhere(served: Served) -> None:
    with urllib.request.urlopen(served.address) as answer:
        policy, text = answer.headers["content-security-policy"], answer.read().decode()
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in text.replace("HTTP API", "")


def test_a_service_with_a_key_asks_for_it(browser: Any) -> None:
    with serving([], GENCAPS_API_KEY="0123456789abcdef") as address:
        page = browser.new_page()
        page.goto(address)
        page.get_by_label("This service asks for its API key").fill("0123456789abcdef")
        page.get_by_role("button", name="Go on").click()
        page.wait_for_selector("[role=tab]")
        assert "faces" in page.locator("#model").inner_text()
        page.close()


def test_pictures_of_the_guide_are_there_and_small() -> None:
    docs = Path(__file__).parents[2] / "docs"
    named = re.findall(r"\]\((studio/[^)]+)\)", (docs / "studio.md").read_text())
    assert len(named) >= 6
    for name in named:
        assert (docs / name).stat().st_size < 200_000
