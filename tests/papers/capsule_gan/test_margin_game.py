"""Laws of the margin game (Jaiswal et al., 2018), Eq. (2) and (3)."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gencaps import data
from gencaps.engine.evaluate import pixels
from gencaps.model import Step
from gencaps.primitives.diversity import batch_diversity
from gencaps.primitives.noise import Noise
from gencaps.primitives.squash import length, squash
from tests.game import Match, moved, vary, weights
from tests.papers.capsule_gan.helpers import KINDS, make, pictures

LABELS = torch.tensor([0, 1, 2, 0])
PARTS = {"plain": (), "conditional": (), "bigan": ("encoder",)}


def stubbed() -> Any:
    """A model whose pictures are one pixel, painted as z says, and as long as their pixel."""
    model = make()
    model.paint = lambda z: z[:, :1, None, None]
    model.lengths = lambda x: x[:, 0, 0]
    return model


def test_losses_by_hand_from_lengths() -> None:
    model = stubbed()
    lengths = torch.tensor([0.0, 0.1, 0.5, 0.9, 1.0])
    x, z = lengths[:, None, None, None], lengths[:, None].expand(5, 5)
    real, fake = model.tell_apart(x, z).values()
    short = [0.81, 0.64, 0.16, 0.0, 0.0]  # (0.9 - length)^2
    assert real.tolist() == pytest.approx(short, abs=1e-7)
    assert fake.tolist() == pytest.approx([0.0, 0.0, 0.08, 0.32, 0.405], abs=1e-7)  # 0.5 (length - 0.1)^2
    # no lambda for the generator: it wants what is wanted of real pictures
    assert model.deceive(x, z)["deceive"].tolist() == pytest.approx(short, abs=1e-7)


def test_lambda_decides_how_long_a_capsule_is_that_cannot_tell() -> None:
    """Real and painted alike: the loss is least where m+ - l = lambda (l - m-)."""
    for down_weight, undecided in ((0.5, 0.95 / 1.5), (1.0, 0.5)):
        model = make(down_weight=down_weight)
        lengths = torch.linspace(0, 1, 3001)[:, None]
        terms = model.margins(lengths, lengths, torch.ones_like(lengths))
        least = lengths[(terms["real"] + terms["fake"]).argmin()].item()
        assert least == pytest.approx(undecided, abs=1e-3)


class Toy(nn.Module):
    """One weight: as a discriminator a capsule of one number, w x; as a generator the logit w z."""

    def __init__(self, weight: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(weight))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * x[:, :1, None, None] if x.ndim == 2 else squash(self.weight * x.flatten(1))[:, None]


def test_the_players_gradients_by_hand_on_a_toy() -> None:
    model = make()
    model.discriminator, model.generator = Toy(1.0), Toy(math.log(3))
    x, z = torch.ones(2, 1, 1, 1), torch.ones(2, 1)  # the same picture twice
    d, g = model.discriminator.weight, model.generator.weight

    terms = model.tell_apart(x, z)
    # real: D sees 1, n = w = 1, length n^2 / (1 + n^2) = 1/2, its slope 2 n / (1 + n^2)^2 = 1/2
    # L = (0.9 - 0.5)^2; dL/dw = -2 x 0.4 x 1/2 = -0.4
    # fake: G paints sigmoid(ln 3) = 3/4, D sees 1/2, n = w / 2, length 1/5, slope 1 / 1.25^2 = 0.64
    # L = 0.5 (0.2 - 0.1)^2; dL/dw = 2 x 0.5 x 0.1 x 0.64 x 1/2 = 0.032
    for name, wanted in (("real", -0.4), ("fake", 0.032)):
        (found,) = torch.autograd.grad(terms[name].mean(), d, retain_graph=True)
        assert found.item() == pytest.approx(wanted, abs=1e-6)

    # L = (0.9 - 0.2)^2; dL/dlength = -1.4; dlength/dpixel = 0.64 x 2 w = 1.28; dpixel/dlogit = 3/4 x 1/4; z = 1
    (found,) = torch.autograd.grad(model.deceive(x, z)["deceive"].mean(), g)
    assert found.item() == pytest.approx(-1.4 * 1.28 * 0.1875, abs=1e-5)


def test_beyond_its_margins_the_discriminator_rests_and_the_generator_does_not() -> None:
    """That is what keeps a strong discriminator from leaving the generator without a gradient."""
    model = stubbed()
    real, fake = torch.tensor([[0.95], [0.9]]), torch.tensor([[0.05], [0.1]], requires_grad=True)
    terms = model.tell_apart(real[..., None, None], fake)
    assert [term.tolist() for term in terms.values()] == [[0.0, 0.0], [0.0, 0.0]]
    model.deceive(real[..., None, None], fake)["deceive"].sum().backward()
    assert fake.grad is not None
    assert fake.grad.flatten().tolist() == pytest.approx([-1.7, -1.6])  # -2 (0.9 - 0.05), -2 (0.9 - 0.1)


def test_each_player_minimises_its_own_losses_on_the_steps_noise() -> None:
    model, x, z = make().eval(), pictures(), Noise(3).normal(4, 5)
    vary(model)
    real, fake = model.tell_apart(x, z).values()
    losses = model.losses(x, LABELS, Step(Noise(3), player="discriminator"))
    torch.testing.assert_close(losses.terms, {"real": real.mean(), "fake": fake.mean()})
    torch.testing.assert_close(losses.total, real.mean() + fake.mean())
    losses = model.losses(x, LABELS, Step(Noise(3), player="generator"))
    deceive = model.deceive(x, z)["deceive"].mean()
    assert losses.terms["diversity"] > 0.01  # told, but not trained
    torch.testing.assert_close(losses.terms, {"deceive": deceive, "diversity": batch_diversity(model.paint(z), x)})
    torch.testing.assert_close(losses.total, deceive)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("player", ["discriminator", "generator"])
def test_each_player_moves_its_own_weights_alone(kind: str, player: str) -> None:
    model, x = make(kind), pictures()
    with torch.no_grad():  # to lengths above 0.1: below it an encoder would rest
        model.discriminator.routed.weight.mul_(4)
    match = Match(model)
    match.step(x, 0, y=LABELS)  # from here on the optimizers have a memory that could move weights by itself
    before = {name: weights(getattr(model, name)) for name in ("discriminator", "generator", *PARTS[kind])}
    match.step(x, 1, player, y=LABELS)
    own = {"discriminator"} if player == "discriminator" else {"generator", *PARTS[kind]}
    assert {name for name in before if moved(getattr(model, name), before[name])} == own


@pytest.mark.parametrize("kind", KINDS)
def test_the_others_wait_while_the_discriminator_moves(kind: str) -> None:
    model = make(kind)
    model.losses(pictures(), LABELS, Step(Noise(0), player="discriminator")).total.backward()
    for part in ("generator", *PARTS[kind]):
        assert all(p.grad is None for p in getattr(model, part).parameters())
    assert all(p.grad is not None for p in model.discriminator.parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_players_share_all_weights_out_and_the_discriminator_moves_first_at_its_own_rate(kind: str) -> None:
    model = make(kind, discriminator_rate=4.0)
    players = model.players("all")
    assert list(players) == ["discriminator", "generator"]
    assert {name: player.rate for name, player in players.items()} == {"discriminator": 4.0, "generator": 1.0}
    shared = [p for player in players.values() for p in player.parameters]
    assert len({id(p) for p in shared}) == len(shared) == len(list(model.parameters()))


def test_the_plain_one_never_looks_at_labels() -> None:
    x, model = pictures(), make().eval()
    found = [model.losses(x, LABELS * label, Step(Noise(0), player="discriminator")).total for label in (0, 1)]
    assert torch.equal(*found)


def test_discriminator_sees_pictures_from_minus_one_to_one() -> None:
    model, seen = make().eval(), []
    model.discriminator.register_forward_pre_hook(lambda _, given: seen.append(given[0].unique().tolist()))
    model.score(torch.zeros(1, 1, 20, 20))
    model.score(torch.ones(1, 1, 20, 20))
    assert seen == [[-1.0], [1.0]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spectral", [False, True])
@pytest.mark.parametrize("over", ["outputs", "inputs"])
def test_score_is_the_length_of_the_longest_capsule_within_0_and_1(kind: str, spectral: bool, over: str) -> None:
    model = make(kind, spectral=spectral, over=over).eval()
    x = torch.cat([pictures(6), torch.zeros(1, 1, 20, 20), torch.ones(1, 1, 20, 20)])
    score = model.score(x)
    assert score.shape == (8,)
    assert score.min() > 0
    assert score.max() < 1
    if kind != "bigan":
        torch.testing.assert_close(score, length(model.discriminator(2 * x - 1)).max(1).values)


def test_samples_are_a_function_of_the_noise_seed() -> None:
    model = make().eval()
    made = model.sample(6, Noise(3))
    torch.testing.assert_close(made, torch.sigmoid(model.generator(Noise(3).normal(6, 5))))
    torch.manual_seed(9)
    assert torch.equal(made, model.sample(6, Noise(3)))
    assert not torch.equal(made, model.sample(6, Noise(4)))


def energy_distance(a: Tensor, b: Tensor) -> float:
    """Gives 2 E|a - b| - E|a - a'| - E|b - b'|, which is 0 for equal distributions alone (Szekely and Rizzo, 2013)."""
    a, b = a.flatten(1), b.flatten(1)
    return (2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()


@pytest.mark.parametrize(
    ("kind", "over"), [("plain", "outputs"), ("plain", "inputs"), ("conditional", "outputs"), ("bigan", "inputs")]
)
def test_a_hundred_steps_on_the_digits_move_samples_towards_the_data(kind: str, over: str) -> None:
    digits = data.load("digits", size=20).train
    x, y = pixels(digits.x), digits.y
    settings = {"latent": 16, "width": 16, "discriminator": 8, "capsules": 4, "primary_dim": 8, "dim": 16}
    model, y = make(kind, over=over, **settings), y % 3  # the tiny model knows three classes
    match = Match(model, learning_rate=2e-3)
    away = []
    for step in range(101):
        if step in (0, 100):
            with torch.no_grad():
                away.append(energy_distance(model.eval().sample(300, Noise(0)), x[:300]))
            model.train()
        chosen = torch.randperm(len(x), generator=torch.Generator().manual_seed(step))[:64]
        match.step(x[chosen], step, y=y[chosen])
    assert away[1] < away[0] / 2
