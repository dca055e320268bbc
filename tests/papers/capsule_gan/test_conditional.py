"""Laws of the CapsuleGAN that is asked for a class."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from gencaps.engine.pretrained import build
from gencaps.model import PictureInfo, Step
from gencaps.papers.capsule_gan.config import CapsuleGANConfig
from gencaps.primitives.losses import length_margin_loss
from gencaps.primitives.noise import Noise
from tests.helpers import refused
from tests.papers.capsule_gan.helpers import make, pictures

ASKED = torch.tensor([0, 1, 2, 2])


def test_the_class_stands_beside_z_as_a_one_among_zeros() -> None:
    model = make("conditional")
    code = model.codes(ASKED, Noise(3))
    torch.testing.assert_close(code[:, :5], Noise(3).normal(4, 5))
    assert code[:, 5:].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]


def test_the_asked_class_reaches_the_generator() -> None:
    model = make("conditional").eval()
    found = [model.generate(torch.full((2,), k), Noise(0)) for k in range(3)]
    assert all(one.shape == (2, 1, 20, 20) for one in found)
    assert not torch.allclose(found[0], found[1])
    assert not torch.allclose(found[1], found[2])
    torch.testing.assert_close(found[1], model.paint(model.codes(torch.ones(2, dtype=torch.long), Noise(0))))


def test_the_asked_class_reaches_the_discriminator_by_its_capsule() -> None:
    """Eq. (2) over K capsules: T is the class for real pictures, nothing for made ones, the asked class for G."""
    model, x = make("conditional").eval(), pictures()
    z = model.codes(ASKED, Noise(0))
    fake = model.paint(z)
    on_real, on_fake, wanted = model.lengths(x), model.lengths(fake), F.one_hot(ASKED, 3)
    assert on_real.shape == (4, 3)
    terms = model.tell_apart(x, z)
    torch.testing.assert_close(terms["real"], length_margin_loss(on_real, wanted))
    torch.testing.assert_close(terms["fake"], length_margin_loss(on_fake, torch.zeros(4, 3)))
    torch.testing.assert_close(model.deceive(x, z)["deceive"], length_margin_loss(on_fake, wanted))


def test_losses_by_hand_from_lengths_of_three_capsules() -> None:
    model, x = make("conditional"), pictures(2)
    model.lengths = lambda x: torch.tensor([[0.5, 0.3, 0.1]] * 2)
    z = model.codes(torch.tensor([1, 0]), Noise(0))
    terms = {**model.tell_apart(x, z), **model.deceive(x, z)}
    # class 1: (0.9 - 0.3)^2 = 0.36; the first is too long: 0.5 (0.5 - 0.1)^2 = 0.08; the last is short enough
    # class 0: (0.9 - 0.5)^2 = 0.16; 0.5 (0.3 - 0.1)^2 = 0.02
    assert terms["real"].tolist() == terms["deceive"].tolist() == pytest.approx([0.44, 0.18])
    # a made picture: 0.5 (0.4^2 + 0.2^2) = 0.1
    assert terms["fake"].tolist() == pytest.approx([0.1, 0.1])


def test_training_asks_for_the_classes_of_its_pictures() -> None:
    model, x = make("conditional").eval(), pictures()
    for player in ("discriminator", "generator"):
        here, there = (model.losses(x, y, Step(Noise(0), player=player)).total for y in (ASKED, (ASKED + 1) % 3))
        assert here != there


def test_samples_are_of_every_class_alike() -> None:
    code = make("conditional").draw(3000, Noise(0))
    assert torch.equal(code[:, 5:].sum(1), torch.ones(3000))
    torch.testing.assert_close(code[:, 5:].mean(0), torch.full((3,), 1 / 3), atol=0.03, rtol=0)


def test_a_walk_stays_within_its_class() -> None:
    model, seen = make("conditional").eval(), []
    model.generator.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    assert model.walk(6, 4, Noise(2)).shape == (6, 4, 1, 20, 20)
    classes = seen[0].unflatten(0, (6, 4))[..., 5:]
    assert torch.equal(classes, classes[:, :1].expand(-1, 4, -1))
    assert len(classes[:, 0].unique(dim=0)) > 1


def test_attributes_are_refused() -> None:
    info = PictureInfo(3, 32, ("Hat", "Beard"), "attributes", "faces")
    refused(lambda: build("capsule_gan", CapsuleGANConfig(conditional=True), info), "'faces'", "attributes")
    build("capsule_gan", CapsuleGANConfig(latent=2, width=2), info)  # the others look at no labels
