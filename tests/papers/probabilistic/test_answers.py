"""A scene behind the API: capsules of every layer, refining, explaining, and what is refused."""

from __future__ import annotations

from typing import Any

import torch

from gencaps.api import Capsules
from gencaps.primitives.noise import Noise
from tests.helpers import refused
from tests.papers.probabilistic.helpers import tiny


def test_capsules_of_every_layer_come_back_by_name() -> None:
    model = Capsules(tiny(turns=3))
    x = torch.rand(2, 1, 10, 10)
    for code in (model.encode(x), model.refine(x, 2)):
        assert code.objects.presence_logit.shape == (2, 3)
        assert code.parts.pose.shape == (2, 4, 2, 3)
        assert not code.objects.pose.requires_grad


def test_an_explanation_is_four_coloured_pictures_in_a_row() -> None:
    told = Capsules(tiny()).explain(torch.rand(2, 1, 10, 10))
    assert told.pictures.shape == (8, 3, 10, 10)
    assert told.columns == 4
    assert told.pictures[2].std(0).max() > 0.01  # coloured, not grey
    assert told.pictures.min() >= 0
    assert told.pictures.max() <= 1


def test_refined_reconstructions_are_nearer_and_bad_steps_are_refused() -> None:
    model, x = Capsules(tiny()), torch.rand(2, 1, 10, 10)
    before, after = ((model.reconstruct(x, refine=n).pictures - x).square().mean() for n in (0, 60))
    assert after < before
    refused(lambda: model.reconstruct(x, refine=-1), "refine is -1")
    refused(lambda: model.reconstruct(x, refine=3, sample=True), "choose one")
    refused(lambda: model.refine(x, 10**9), "refine is 1000000000")
    for layers in (0, 3):
        refused(lambda layers=layers: model.refine(x, 2, layers=layers), f"layers is {layers}", "1 to 2")


def test_objects_alone_can_be_refined() -> None:
    model, x = Capsules(tiny()), torch.rand(2, 1, 10, 10)
    before, after = model.encode(x), model.refine(x, 20, layers=1)
    assert torch.equal(before.parts.pose, after.parts.pose)
    assert not torch.equal(before.objects.pose, after.objects.pose)


def test_moving_an_object_to_the_right_moves_what_it_painted() -> None:
    model, x = Capsules(tiny(size=20)), torch.rand(2, 1, 20, 20)
    told = model.model.belongs(model.encode(x))  # pyright: ignore[reportCallIssue]
    which = told[:, 1:].sum(2).argmax(1)[0].item()
    still, moved = (model.move(x[:1], int(which), right=shift).pictures for shift in (0.0, 0.3))
    assert torch.allclose(still, model.reconstruct(x[:1]).pictures, atol=1e-5)
    assert not torch.allclose(moved, still, atol=1e-3)
    assert torch.allclose(model.move(x[:1], turn=360.0).pictures, still, atol=1e-3)
    assert len(model.move(x, scale=0.5, steps=3).pictures) == 6


def test_an_object_turns_about_its_own_middle() -> None:
    """Where an object's parts lie at its frame's origin, a turn leaves them there."""
    scene = tiny(size=20, capsules=(1, 2))
    x = torch.rand(1, 1, 20, 20)
    code = scene.encode(x)
    middle = code.on_canvas()[0].pose[0, 0, :, 2]
    quarter = torch.tensor([[[0.0, -1.0, 0.0], [1.0, 0.0, 0.0]]])
    seen: list[torch.Tensor] = []
    scene.move = lambda x, motion: seen.append(motion) or x  # pyright: ignore[reportAttributeAccessIssue]
    scene.moved(x, torch.tensor([0]), quarter)
    (motion,) = seen
    assert torch.allclose(motion[0, 0, :, :2] @ middle + motion[0, 0, :, 2], middle, atol=1e-6)


def test_a_parse_shows_what_painted_the_picture() -> None:
    kinds: list[dict[str, Any]] = [
        {},
        {"top": "votes", "objects": "one"},
        {"capsules": (2, 3, 4)},
        {"channels": 3},
    ]
    for settings in kinds:
        scene = tiny(**settings)
        x = torch.rand(2, scene.pictures.channels, 10, 10)
        parsed = scene.parse(x)
        lowest = parsed.painted[-1].sum(1)
        ground = scene.explain(x).templates[:, -1:]
        assert torch.allclose(lowest, parsed.picture * (1 - ground), atol=1e-5)
        assert (parsed.painted[0].sum(1) <= lowest + 1e-5).all()
        assert Capsules(scene).parse(x)[1].name == "picture 1"


def test_objects_are_put_where_they_are_wanted() -> None:
    model = Capsules(tiny(size=20))
    assert model.place().labels == ["object 0", "object 1", "object 2"]
    plain, moved = (model.place(1, right=shift).pictures for shift in (0.0, 0.2))
    assert torch.allclose(moved[..., 2:], plain[..., :-2], atol=1e-4)  # two pixels of twenty
    assert model.templates().pictures.shape == (4, 1, 5, 5)
    refused(lambda: model.place([]), "no object was named")
    refused(lambda: model.move(torch.rand(1, 1, 20, 20), 9), "no object '9'")


def test_plain_scenes_have_every_part_where_its_object_expects_it() -> None:
    scene = tiny(objects="one")
    noisy, plain = (scene.scene.draw(4, Noise(3), plain=plain) for plain in (False, True))
    assert torch.equal(noisy[0].pose, plain[0].pose)  # the same objects
    expected = scene.scene.unroll(plain[0])[-1]
    assert torch.equal(plain[-1].pose, expected.pose)
    assert not torch.allclose(noisy[-1].pose, expected.pose, atol=0.05)
    model = Capsules(scene)
    made = model.generate(n=4, seed=3, plain=True)
    assert torch.allclose(made.pictures, scene.paint(plain[-1]))
    assert not torch.allclose(made.pictures, model.generate(n=4, seed=3).pictures, atol=0.05)
    refused(lambda: model.generate(["3"], plain=True), "beside plain")
