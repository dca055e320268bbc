"""Laws of the CapsuleGAN with an encoder (Donahue et al., 2017)."""

from __future__ import annotations

import pytest
import torch

from gencaps.model import Step
from gencaps.papers.capsule_gan.bigan import Code
from gencaps.primitives.noise import Noise
from tests.helpers import refused
from tests.papers.capsule_gan.helpers import make, pictures


def test_the_discriminator_sees_real_pictures_with_their_code_and_painted_ones_with_their_z() -> None:
    model, x, z = make("bigan").eval(), pictures(), Noise(0).normal(4, 5)
    pairs = [(2 * x - 1, model.encode(x).z), (2 * model.paint(z) - 1, z)]
    for losses in (model.tell_apart, model.deceive):
        seen = []
        hook = model.discriminator.register_forward_pre_hook(lambda _, given, seen=seen: seen.append(given))
        losses(x, z)
        hook.remove()
        assert len(seen) == 2
        for picture, code in pairs:
            assert any(torch.allclose(picture, a) and torch.allclose(code, b) for a, b in seen)


def test_losses_by_hand_from_lengths_of_pairs() -> None:
    model = make("bigan")
    model.paint = lambda z: z[:, :1, None, None]
    model.encode = lambda x: Code(x.new_full((len(x), 5), 0.25))
    model.lengths = lambda x, z: x[:, 0, 0] * z[:, 1:2]  # of the picture and of its code
    x, z = torch.full((2, 1, 1, 1), 2.0), torch.tensor([[0.5, 0.6, 0, 0, 0]] * 2)
    terms = model.tell_apart(x, z)
    # (x, E(x)): 2 x 0.25 = 0.5, (0.9 - 0.5)^2 = 0.16; (G(z), z): 0.5 x 0.6 = 0.3, 0.5 (0.3 - 0.1)^2 = 0.02
    assert terms["real"].tolist() == pytest.approx([0.16, 0.16])
    assert terms["fake"].tolist() == pytest.approx([0.02, 0.02])
    # the labels swapped, and no lambda: (0.9 - 0.3)^2 = 0.36 and (0.5 - 0.1)^2 = 0.16
    terms = model.deceive(x, z)
    assert terms["deceive"].tolist() == pytest.approx([0.36, 0.36])
    assert terms["encode"].tolist() == pytest.approx([0.16, 0.16])
    # painted again x is 0.25 in place of 2: (2 - 0.25)^2, which counts ten times
    assert terms["cycle"].tolist() == pytest.approx([3.0625, 3.0625])
    assert model.weights == {"diversity": 0.0, "cycle": 10.0}
    model.codes = lambda y, noise: z
    total = model.losses(x, torch.zeros(2, dtype=torch.long), Step(Noise(0), player="generator")).total
    assert total.item() == pytest.approx(0.36 + 0.16 + 30.625)
    assert "cycle" not in make("bigan", cycle_weight=0.0).deceive(pictures(), Noise(0).normal(4, 5))


def test_the_verdict_is_about_the_pair() -> None:
    model, x, z = make("bigan").eval(), pictures(), torch.randn(4, 5)
    assert not torch.allclose(model.lengths(x, z), model.lengths(x, z.flip(0)))
    assert not torch.allclose(model.lengths(x, z), model.lengths(x.flip(0), z))
    torch.testing.assert_close(model.score(x), model.lengths(x, model.encode(x).z)[:, 0])


def test_a_reconstruction_is_painted_from_the_code() -> None:
    model, x = make("bigan").eval(), pictures()
    z = model.encode(x).z
    assert z.shape == (4, 5)
    assert not torch.allclose(z[0], z[1])
    torch.testing.assert_close(model.reconstruct(x), model.paint(z))
    assert torch.equal(model.reconstruct(x), model.reconstruct(x, Noise(0)))


def test_a_walk_between_pictures_is_straight_in_z() -> None:
    model, x = make("bigan").eval(), pictures()
    a, b = x[:2], x[2:]
    walk = model.interpolate(a, b, 5)
    assert walk.shape == (2, 5, 1, 20, 20)
    torch.testing.assert_close(walk[:, 0], model.reconstruct(a))
    torch.testing.assert_close(walk[:, -1], model.reconstruct(b))
    torch.testing.assert_close(walk[:, 1], model.paint(0.75 * model.encode(a).z + 0.25 * model.encode(b).z))
    refused(lambda: model.interpolate(a, b, 3, torch.ones(2, 1, dtype=torch.bool)), "attributes")


def test_the_encoder_learns_to_undo_the_generator_where_codes_must_agree() -> None:
    """The gradient of the encoder's loss pulls D(x, E(x)) down, that of the generator's D(G(z), z) up."""
    model, x, z = make("bigan").eval(), pictures(), Noise(0).normal(4, 5)
    for term, part, pair, sign in (
        ("encode", model.encoder, lambda: model.lengths(x, model.encode(x).z), -1),
        ("deceive", model.generator, lambda: model.lengths(model.paint(z), z), 1),
    ):
        # at these first weights lengths lie below 0.1, where the encoder may rest: make them longer
        with torch.no_grad():
            model.discriminator.routed.weight.mul_(4 if term == "encode" else 1)
        before = pair().mean().item()
        parameters = list(part.parameters())
        gradients = torch.autograd.grad(model.deceive(x, z)[term].mean(), parameters)
        norm = torch.stack([g.norm() for g in gradients]).norm()
        with torch.no_grad():
            for p, g in zip(parameters, gradients, strict=True):
                p -= 1e-2 * g / norm
        assert sign * (pair().mean().item() - before) > 0
