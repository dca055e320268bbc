"""Laws of the convolutional GAN (Goodfellow et al., 2014; Radford et al., 2016)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gencaps.abilities import abilities
from gencaps.baselines.gan.config import GANConfig
from gencaps.baselines.gan.model import ConvGAN
from gencaps.engine.pretrained import from_pretrained, save_pretrained
from gencaps.errors import GencapsError
from gencaps.model import PictureInfo, Step
from gencaps.primitives.diversity import batch_diversity
from gencaps.primitives.noise import Noise
from tests.game import Match, moved, vary, weights
from tests.helpers import refused

LABELS = torch.zeros(4, dtype=torch.long)


def make(channels: int = 1, size: int = 10, **settings: Any) -> ConvGAN:
    torch.manual_seed(0)
    config = GANConfig(**{"latent": 5, "width": 4, "discriminator": 4, **settings})
    return ConvGAN(config, PictureInfo(channels, size, ("a", "b")))


def descend(loss: Tensor, part: nn.Module, rate: float = 1e-3) -> None:
    """Takes one small step down a loss, of fixed length, with one part of the model."""
    parameters = list(part.parameters())
    gradients = torch.autograd.grad(loss, parameters)
    norm = torch.stack([g.norm() for g in gradients]).norm()
    with torch.no_grad():
        for p, g in zip(parameters, gradients, strict=True):
            p -= rate * g / norm


def test_losses_by_hand_from_logits() -> None:
    model = make()
    model.paint = lambda z: z[:, :1, None, None]  # pyright: ignore[reportAttributeAccessIssue]
    model.logit = lambda x: x[:, 0, 0, 0]  # pyright: ignore[reportAttributeAccessIssue]
    odds = torch.tensor([3.0, 1.0, 1 / 3])  # probabilities 3/4, 1/2, 1/4 of being real
    x, z = odds.log()[:, None, None, None], odds.log()[:, None].expand(3, 5)
    real, fake = model.tell_apart(x, z).values()
    assert real.tolist() == pytest.approx([-math.log(3 / 4), -math.log(1 / 2), -math.log(1 / 4)])
    assert fake.tolist() == pytest.approx([-math.log(1 / 4), -math.log(1 / 2), -math.log(3 / 4)])
    assert model.deceive(x, z)["deceive"].tolist() == pytest.approx(
        [-math.log(3 / 4), -math.log(1 / 2), -math.log(1 / 4)]
    )


def test_losses_are_finite_where_the_discriminator_is_sure() -> None:
    """-log(1 - D) by way of D is infinite at a logit of 100; the loss is 100."""
    model = make()
    model.paint = lambda z: z[:, :1, None, None]  # pyright: ignore[reportAttributeAccessIssue]
    model.logit = lambda x: x[:, 0, 0, 0]  # pyright: ignore[reportAttributeAccessIssue]
    z = torch.tensor([[100.0], [-100.0]])
    real, fake = model.tell_apart(z[..., None, None], z).values()
    assert real.tolist() == pytest.approx([0.0, 100.0])
    assert fake.tolist() == pytest.approx([100.0, 0.0])
    z.requires_grad_()
    model.deceive(torch.rand(2, 1, 1, 1), z)["deceive"].sum().backward()
    assert z.grad is not None
    # the non-saturating loss: the gradient is there just where every picture is seen through
    assert z.grad[:, 0].tolist() == pytest.approx([0.0, -1.0])


def test_each_player_minimises_its_own_losses_on_the_steps_noise() -> None:
    model, x = make().eval(), torch.rand(4, 1, 10, 10)
    vary(model)
    z = Noise(3).normal(4, 5)
    real, fake = model.tell_apart(x, z).values()
    losses = model.losses(x, LABELS, Step(Noise(3), player="discriminator"))
    torch.testing.assert_close(losses.terms, {"real": real.mean(), "fake": fake.mean()})
    torch.testing.assert_close(losses.total, real.mean() + fake.mean())
    losses = model.losses(x, LABELS, Step(Noise(3), player="generator"))
    deceive = model.deceive(x, z)["deceive"].mean()
    assert losses.terms["diversity"] > 0.01  # told, but not trained
    torch.testing.assert_close(losses.terms, {"deceive": deceive, "diversity": batch_diversity(model.paint(z), x)})
    torch.testing.assert_close(losses.total, deceive)


@pytest.mark.parametrize("spectral", [False, True])
def test_generator_moves_so_that_its_pictures_look_more_real(spectral: bool) -> None:
    model, z = make(spectral=spectral).eval(), Noise(0).normal(4, 5)
    before = model.score(model.paint(z)).mean()
    descend(model.deceive(torch.rand(4, 1, 10, 10), z)["deceive"].mean(), model.generator)
    assert model.score(model.paint(z)).mean() > before


@pytest.mark.parametrize("spectral", [False, True])
def test_discriminator_moves_so_that_real_looks_more_and_made_less_real(spectral: bool) -> None:
    x, z = torch.rand(4, 1, 10, 10), Noise(0).normal(4, 5)
    for term, pictures, sign in (("real", x, 1), ("fake", None, -1)):
        model = make(spectral=spectral).eval()
        seen = model.paint(z).detach() if pictures is None else pictures
        before = model.score(seen).mean()
        descend(model.tell_apart(x, z)[term].mean(), model.discriminator)
        assert sign * (model.score(seen).mean() - before) > 0


def test_generator_waits_while_the_discriminator_moves() -> None:
    model, x = make(), torch.rand(4, 1, 10, 10)
    model.losses(x, LABELS, Step(Noise(0), player="discriminator")).total.backward()
    assert all(p.grad is None for p in model.generator.parameters())
    assert all(p.grad is not None for p in model.discriminator.parameters())
    model.zero_grad()
    model.losses(x, LABELS, Step(Noise(0), player="generator")).total.backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.generator.parameters())


@pytest.mark.parametrize("spectral", [False, True])
@pytest.mark.parametrize("player", ["discriminator", "generator"])
def test_each_player_moves_its_own_weights_alone(player: str, spectral: bool) -> None:
    model = make(spectral=spectral)
    game, x = Match(model), torch.rand(4, 1, 10, 10)
    game.step(x, 0)  # from here on the optimizers have a memory that could move weights by itself
    before = {name: weights(getattr(model, name)) for name in ("discriminator", "generator")}
    game.step(x, 1, player)
    assert [name for name in before if moved(getattr(model, name), before[name])] == [player]


def test_players_share_all_weights_out_and_the_discriminator_moves_first_at_its_own_rate() -> None:
    model = make(discriminator_rate=4.0)
    players = model.players("all")
    assert list(players) == ["discriminator", "generator"]
    assert {name: player.rate for name, player in players.items()} == {"discriminator": 4.0, "generator": 1.0}
    shared = [p for player in players.values() for p in player.parameters]
    assert len({id(p) for p in shared}) == len(shared) == len(list(model.parameters()))


def test_gradients_left_by_the_generators_turn_do_not_move_the_discriminator() -> None:
    """Two whole steps are what the players' turns are one by one on a model without any gradient left."""
    x, found = torch.rand(4, 1, 10, 10), []
    for clean in (False, True):
        model = make()
        game = Match(model)
        for seed in range(2):
            for player in ("discriminator", "generator"):
                game.step(x, seed, player)
                if clean:
                    model.zero_grad()
        found.append(weights(model))
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_a_step_names_every_term_by_its_player() -> None:
    terms = Match(make()).step(torch.rand(4, 1, 10, 10), 0)
    assert set(terms) == {
        *(f"discriminator.{term}" for term in ("loss", "real", "fake")),
        *(f"generator.{term}" for term in ("loss", "deceive", "diversity")),
    }


def test_labels_are_never_looked_at() -> None:
    x, found = torch.rand(4, 1, 10, 10), []
    for label in (0, 1):
        model = make().eval()
        found.append(model.losses(x, LABELS + label, Step(Noise(0), player="discriminator")).total)
    assert torch.equal(*found)


def test_discriminator_sees_pictures_from_minus_one_to_one() -> None:
    model, x = make().eval(), torch.rand(3, 1, 10, 10)
    torch.testing.assert_close(model.logit(x), model.discriminator(2 * x - 1))
    black, white = [], []
    model.discriminator.register_forward_pre_hook(lambda _, given: (black if not black else white).append(given[0]))
    model.logit(torch.zeros(1, 1, 10, 10))
    model.logit(torch.ones(1, 1, 10, 10))
    assert (black[0].unique().tolist(), white[0].unique().tolist()) == ([-1.0], [1.0])


def test_score_is_the_probability_of_the_logit() -> None:
    model, x = make().eval(), torch.rand(6, 1, 10, 10)
    score, logit = model.score(x), model.logit(x)
    assert score.shape == (6,)
    torch.testing.assert_close((score / (1 - score)).log(), logit, atol=1e-5, rtol=1e-4)
    sure = torch.tensor([1000.0, -1000.0])
    model.logit = lambda x: sure  # pyright: ignore[reportAttributeAccessIssue]
    assert model.score(x[:2]).tolist() == [1.0, 0.0]


def test_samples_are_a_function_of_the_noise_seed() -> None:
    model = make().eval()
    made = model.sample(6, Noise(3))
    torch.testing.assert_close(made, torch.sigmoid(model.generator(Noise(3).normal(6, 5))))
    torch.manual_seed(9)
    assert torch.equal(made, model.sample(6, Noise(3)))
    assert not torch.equal(made, model.sample(6, Noise(4)))
    assert made.min() >= 0
    assert made.max() <= 1


@pytest.mark.parametrize("spectral", [False, True])
@pytest.mark.parametrize(("size", "channels"), [(28, 1), (32, 3), (64, 3), (40, 1)])
def test_sizes_that_halve_are_painted_and_judged(size: int, channels: int, spectral: bool) -> None:
    model = make(channels, size, width=2, discriminator=2, spectral=spectral).eval()
    made = model.sample(3, Noise(0))
    assert made.shape == (3, channels, size, size)
    assert model.score(made).shape == (3,)


@pytest.mark.parametrize(("size", "remedy"), [(8, "--train.size 28"), (30, "--train.size 32")])
def test_other_sizes_are_refused_with_one_that_works(size: int, remedy: str) -> None:
    refused(lambda: make(size=size), f"{size} px", remedy)
    make(size=int(remedy.split()[1]))


def test_spectral_norm_is_held_at_one_in_every_layer() -> None:
    model = make(size=20, spectral=True)
    game = Match(model, learning_rate=1e-3)
    for seed in range(40):
        game.step(torch.rand(4, 1, 20, 20), seed)
    layers = [m for m in model.eval().discriminator.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert len(layers) == 3
    for layer in layers:
        original = layer.get_parameter("parametrizations.weight.original")
        largest = torch.linalg.svdvals(layer.weight.detach().flatten(1))[0].item()
        assert largest == pytest.approx(1.0, abs=0.03)
        assert abs(torch.linalg.svdvals(original.detach().flatten(1))[0].item() - 1) > 0.05


def test_a_bounded_discriminator_comes_back_from_its_file(tmp_path: Path) -> None:
    model = make(spectral=True)
    Match(model).step(torch.rand(4, 1, 10, 10), 0)
    x = torch.rand(3, 1, 10, 10)
    back = from_pretrained(save_pretrained(model.eval(), tmp_path / "gan"), torch.device("cpu"))
    assert isinstance(back, ConvGAN)
    assert torch.equal(back.eval().score(x), model.score(x))
    assert torch.equal(back.sample(2, Noise(0)), model.sample(2, Noise(0)))


def test_playing_teaches_the_discriminator_to_tell_and_the_generator_to_follow() -> None:
    """All pictures are white: what is made grows bright."""
    model = make()
    game, white = Match(model, learning_rate=5e-3), torch.ones(16, 1, 10, 10)
    before = model.eval().sample(16, Noise(0)).mean()
    model.train()
    for seed in range(60):
        game.step(white, seed)
    after = model.eval().sample(16, Noise(0)).mean()
    assert before < 0.6
    assert after > 0.8


def test_abilities_are_found_by_protocol() -> None:
    assert abilities(make()) == ("sample", "walk", "score")


@pytest.mark.parametrize(
    ("field", "value"),
    [("latent", 0), ("width", 0), ("discriminator", 0), ("discriminator_rate", 0.0), ("discriminator_rate", -1.0)],
)
def test_impossible_settings_are_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(GencapsError, match=f"model.{field} is"):
        GANConfig(**{field: value})  # pyright: ignore[reportArgumentType]
