"""Each panel does its main act, and shows the numbers and pixels of the Python API."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.studio.conftest import Opener, Served
from tests.studio.helpers import alike, as_image, given, pixels, shown, slide, until_alike

AGAIN, EDITED = "img[alt='Painted again from its capsules']", "img[alt='The edited picture']"
MOVED, STEP = "img[alt='The picture with the object moved']", "img[alt='A step of the walk']"


def percents(page: Any, label: str) -> list[float]:
    numbers = page.locator(f"dl[aria-label='{label}'] .number")
    numbers.first.wait_for()
    texts = numbers.all_inner_texts()
    return [float(text.removesuffix(" %")) for text in texts]


@pytest.mark.parametrize(
    ("model", "panels"),
    [
        ("digits", ["Analyse", "Generate", "Edit", "Interpolate"]),
        ("faces", ["Analyse", "Generate", "Edit", "Interpolate"]),
        ("probabilistic", ["Analyse", "Generate", "Explain"]),
        ("product_of_experts", ["Analyse", "Generate", "Edit", "Interpolate", "Capsules"]),
        ("capsule_gan", ["Analyse", "Generate", "Interpolate"]),
    ],
)
def test_panels_are_those_that_the_model_can_fill(look: Opener, model: str, panels: list[str]) -> None:
    page = look(model)
    assert page.get_by_role("tab").all_inner_texts() == panels
    for panel in panels:
        page.get_by_role("tab", name=panel).click()
        assert len(page.locator("main .lead").inner_text()) > 40
        assert page.title().startswith(panel)


def test_analyse_shows_presences_and_the_picture_painted_again(look: Opener, served: Served) -> None:
    page, digits = look(), served.models["digits"]
    page.get_by_role("button", name="Example 4: 3").click()
    picture = as_image(given(page))
    wanted = digits.classify(picture)
    page.wait_for_function("src => document.querySelector('main img.large').dataset.of === src.split(',')[1]",
                           arg=page.locator("section.well figure img").get_attribute("src"))  # fmt: skip
    assert page.locator(".answer").inner_text() == wanted.label[0]
    assert percents(page, "What the picture shows") == pytest.approx((100 * wanted.presence[0]).tolist(), abs=0.11)
    assert alike(shown(page, AGAIN), digits.reconstruct(picture).pictures[0])


def test_analyse_shows_which_capsules_fired(look: Opener, served: Served) -> None:
    page, experts = look("product_of_experts"), served.models["product_of_experts"]
    page.wait_for_selector("text=Which capsules fired")
    wanted = experts.encode(as_image(given(page))).presence[0]
    assert percents(page, "How strongly each capsule fired") == pytest.approx((100 * wanted).tolist(), abs=0.11)


def test_analyse_says_how_real_a_picture_looks(look: Opener, served: Served) -> None:
    page = look("capsule_gan")
    page.wait_for_function("() => document.querySelector('dl .number').textContent.includes('%')")
    wanted = 100 * float(served.models["capsule_gan"].score(as_image(given(page)))[0])
    assert percents(page, "How real the picture looks") == pytest.approx([wanted], abs=0.2)


def test_a_drawing_is_analysed_while_it_grows(look: Opener, served: Served) -> None:
    page = look()
    before = given(page)
    page.get_by_role("button", name="Draw").click()
    box = page.locator("canvas.pad").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 20, steps=8)
    # the pointer is still down: the picture is there already, a bar from top to bottom in the middle
    drawn = before
    for _ in range(100):
        drawn = given(page)
        if drawn[:, 3:5].min() > 100 and drawn[:, [0, 7]].max() < 30:
            break
        page.wait_for_timeout(50)
    assert drawn[:, 3:5].min() > 100
    assert drawn[:, [0, 7]].max() < 30
    assert not np.array_equal(drawn, before)
    page.mouse.up()

    def painted_again() -> bool:
        # the last strokes may still be on their way: what is shown must come to fit what was drawn
        wanted = served.models["digits"].reconstruct(as_image(given(page))).pictures[0]
        return alike(shown(page, AGAIN), wanted)

    assert any(painted_again() or page.wait_for_timeout(50) for _ in range(200))


def test_a_file_is_opened_and_what_is_no_picture_is_refused(look: Opener, b: Path, tmp_path: Path) -> None:
    page = look()
    page.set_input_files("input[type=file]", str(b))
    wanted = np.asarray(Image.open(b)).astype(int)
    page.wait_for_function("() => document.querySelectorAll('.pick[aria-pressed=true]').length <= 1")
    for _ in range(100):
        if np.array_equal(given(page), wanted):
            break
        page.wait_for_timeout(50)
    assert np.array_equal(given(page), wanted)
    look.expected = ("status of 415",)
    page.set_input_files("input[type=file]", [{"name": "x.png", "mimeType": "image/png", "buffer": b"no picture"}])
    page.wait_for_selector("#status.bad")
    assert "is no PNG, JPEG or WebP" in page.locator("#status").inner_text()
    assert np.array_equal(given(page), wanted)  # the last good picture stays


def test_generate_paints_the_classes_chosen_and_takes_one_along(look: Opener, served: Served) -> None:
    page, digits = look(panel="generate"), served.models["digits"]
    page.get_by_role("button", name="3", exact=True).click()
    page.get_by_label("Seed").fill("5")
    page.get_by_label("Seed").press("Enter")
    wanted = digits.generate(["3"], n=6, seed=5).pictures
    until_alike(page, ".grid .pick img", wanted[0])
    sources = [image.get_attribute("src") for image in page.locator(".grid .pick img").all()]
    assert len(sources) == 6
    assert all(alike(pixels(source), one) for source, one in zip(sources, wanted, strict=True))
    page.get_by_role("button", name="Take along: 3 2").click()
    page.locator("main").get_by_role("button", name="Edit").click()
    assert alike(given(page), wanted[1])


def test_generate_paints_attributes(look: Opener, served: Served) -> None:
    page = look("faces", "generate")
    page.get_by_role("radiogroup", name="Hat").get_by_text("on", exact=True).click()
    wanted = served.models["faces"].generate(attributes={"Hat": 1}, n=12, seed=0).pictures
    until_alike(page, ".grid .pick img", wanted[0])


def test_edit_switches_an_attribute_by_any_intensity(look: Opener, served: Served) -> None:
    page, faces = look("faces", "edit"), served.models["faces"]
    bare = faces.generate(attributes={"Hat": 0}, n=1, seed=5).pictures
    file = io.BytesIO()
    faces.generate(attributes={"Hat": 0}, n=1, seed=5).sheet().save(file, "PNG")
    page.set_input_files("input[type=file]", [{"name": "f.png", "mimeType": "image/png", "buffer": file.getvalue()}])
    until_alike(page, "section.well figure img", bare[0])
    picture = as_image(given(page))
    page.get_by_role("radiogroup", name="Hat").get_by_text("on", exact=True).click()
    until_alike(page, EDITED, faces.edit(picture, "Hat=1").pictures[0])
    assert faces.classify(as_image(shown(page, EDITED))).presence[0][faces.names.index("Hat")] > 0.9
    slide(page, "Intensity", 0.4)
    until_alike(page, EDITED, faces.edit(picture, "Hat=1", intensity=0.4).pictures[0])
    slide(page, "Intensity", 1)
    plain = faces.edit(picture, "Hat=1").pictures[0]
    until_alike(page, EDITED, plain)
    before = page.locator(EDITED).get_attribute("src")
    page.get_by_role("button", name="Other style of Hat").click()
    page.wait_for_function("src => document.querySelector('img[alt=\"The edited picture\"]').src !== src", arg=before)
    assert page.get_by_label("Capsule", exact=True).input_value() == "Hat on"
    labels = [f"Hat on, number {place}" for place in range(8)]
    style = {f"Hat on.{place}": float(page.get_by_label(labels[place]).input_value()) for place in range(8)}
    until_alike(page, EDITED, faces.edit(picture, "Hat=1", turn=style).pictures[0])
    # another attribute is switched: the hat keeps its style
    page.get_by_role("radiogroup", name="Smiling").get_by_text("on", exact=True).click()
    until_alike(page, EDITED, faces.edit(picture, {"Hat": 1, "Smiling": 1}, turn=style).pictures[0])
    page.get_by_role("radiogroup", name="Smiling").get_by_text("keep", exact=True).click()
    page.get_by_role("radiogroup", name="Hat").get_by_text("keep", exact=True).click()
    until_alike(page, EDITED, faces.reconstruct(picture).pictures[0])


def test_edit_follows_the_sliders_of_a_capsule(look: Opener, served: Served) -> None:
    page, digits = look(panel="edit"), served.models["digits"]
    picture = as_image(given(page))
    until_alike(page, EDITED, digits.reconstruct(picture).pictures[0])
    capsule = page.get_by_label("Capsule", exact=True).input_value()
    for value in (-2.0, 0.5, 2.5):
        slide(page, f"{capsule}, number 2", value)
    until_alike(page, EDITED, digits.turn(picture, {f"{capsule}.2": 2.5}).pictures[0])
    assert page.evaluate("performance.getEntriesByName('edit').length") >= 1
    page.get_by_label("Class to become").select_option("7")
    until_alike(page, EDITED, digits.edit(picture, "7").pictures[0])


def test_interpolate_walks_and_gives_a_gif(look: Opener, served: Served) -> None:
    page, digits = look(panel="interpolate"), served.models["digits"]
    start, end = (as_image(given(page, title)) for title in ("From this picture", "To this picture"))
    walk = digits.interpolate(start, end, steps=10).pictures
    until_alike(page, ".walk .pick:last-child img", walk[-1])
    slide(page, "Along the walk", 1)
    assert alike(shown(page, STEP), walk[-1])
    slide(page, "Along the walk", 0.32)
    assert alike(shown(page, STEP), walk[3])
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download GIF").click()
    moving: Any = Image.open(saved.value.path())
    assert (saved.value.suggested_filename, moving.format, moving.n_frames) == ("walk.gif", "GIF", 10)
    page.get_by_role("button", name="Turn round").click()
    until_alike(page, ".walk .pick:first-child img", digits.interpolate(end, start, steps=10).pictures[0])


def test_interpolate_walks_between_new_pictures_of_a_gan(look: Opener, served: Served) -> None:
    page = look("capsule_gan", "interpolate")
    walk = served.models["capsule_gan"].walk(1, steps=10, seed=0).pictures
    until_alike(page, ".walk .pick:last-child img", walk[-1])


def test_explain_colours_by_painter_and_a_dragged_object_takes_its_parts_along(look: Opener, served: Served) -> None:
    page, scene = look("probabilistic", "explain"), served.models["probabilistic"]
    picture = as_image(given(page))
    coloured = scene.explain(picture).pictures
    for alt, wanted in zip(("Painted again", "Coloured by template", "Coloured by object"), coloured[1:], strict=True):
        until_alike(page, f"img[alt='{alt}']", wanted)
    page.wait_for_selector("button[data-object][aria-pressed=true]")
    page.locator("button[data-object]").nth(1).click()
    page.locator(MOVED).focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    object_ = int(page.locator("button[data-object][aria-pressed=true]").get_attribute("data-object"))
    until_alike(page, MOVED, scene.move(picture, object_, right=0.3).pictures[0])
    page.locator(MOVED).scroll_into_view_if_needed()
    box = page.locator(MOVED).bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0], middle[1] - box["height"] / 4, steps=5)
    page.mouse.up()
    until_alike(page, MOVED, scene.move(picture, object_, right=0.3, down=-0.5).pictures[0])
    assert "0.30 right, -0.50 down" in page.locator("main output").inner_text()


def test_capsules_shows_what_each_draws_and_walks_along_axes(look: Opener, served: Served) -> None:
    page, experts = look("product_of_experts", "capsules"), served.models["product_of_experts"]
    drawn = experts.generate(domain="restricted", n=6, seed=0).pictures
    alone = "section[aria-label='What each capsule draws'] .strip"
    until_alike(page, f"{alone} img", drawn[0])
    last = page.locator(alone).last.locator("img").last.get_attribute("src")
    assert alike(pixels(last), drawn[-1])
    page.get_by_role("button", name="capsule 2", exact=True).click()
    page.wait_for_selector("text=Along the axes of capsule 2")
    until_alike(page, "section[aria-label='Walks'] img", experts.explore(2, steps=7).pictures[0])
    page.get_by_text("all directions").click()
    full = experts.generate(domain="full", n=6, seed=0).pictures
    changed = next(k for k in range(len(full)) if not torch.allclose(full[k], drawn[k], atol=0.05))
    for _ in range(100):
        if alike(pixels(page.locator(f"{alone} img").nth(changed).get_attribute("src")), full[changed]):
            return
        page.wait_for_timeout(50)
    raise AssertionError("all directions were never drawn from")
