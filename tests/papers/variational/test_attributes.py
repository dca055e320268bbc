"""Laws of training pairs of capsules for attributes (Huang et al., 2018), section 4.1."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from gencaps.engine.recipe import TrainConfig
from gencaps.engine.team import Team, take_step
from gencaps.model import PictureInfo, Stage, Step
from gencaps.papers.variational.config import VariationalConfig
from gencaps.papers.variational.entities import Entities
from gencaps.papers.variational.model import VariationalCapsules
from gencaps.primitives.noise import Noise
from tests.helpers import refused

PLAIN = VariationalConfig(dim=3, widths=(8, 8), strides=(2, 2), kernel=3, decoder=(16,))
RESIDUAL = VariationalConfig(
    dim=3, encoder="residual", painter="residual", widths=(6, 6), decoder=(6, 6), kernel=3, head=4
)
GAME = {"adversarial_weight": 10.0, "discriminator": 4}
NAMES = ("Hat", "Beard", "Smiling")
networks = pytest.mark.parametrize("config", [PLAIN, RESIDUAL], ids=["convolutional", "residual"])
Y = torch.tensor([[0, 1, 1], [1, 0, 1], [0, 0, 0], [1, 1, 0]])


def make(config: VariationalConfig, size: int = 16, **changes: Any) -> VariationalCapsules:
    torch.manual_seed(0)
    model = VariationalCapsules(replace(config, **changes), PictureInfo(3, size, NAMES, "attributes", "hand"))
    return model.eval()


def pictures(seed: int = 0) -> Tensor:
    return torch.rand(4, 3, 16, 16, generator=torch.Generator().manual_seed(seed))


def own(y: Tensor, rest: int) -> Tensor:
    """Marks the labels' capsules, off before on, and the rest; one by one."""
    mask = torch.zeros(len(y), 2 * y.shape[1] + rest)
    for row, states in enumerate(y.tolist()):
        for group, state in enumerate(states):
            mask[row, 2 * group + state] = 1
    mask[:, 2 * y.shape[1] :] = 1
    return mask


def by_hand(model: VariationalCapsules, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    count = 6 + model.config.rest
    mu, raw = model.encoder(x).reshape(len(x), 2, count, 3).unbind(1)
    log_var = 10 * torch.tanh(raw / 10)
    return mu, log_var, 0.5 * (mu**2 + log_var.exp() - 1 - log_var).sum(-1)


def paint(model: VariationalCapsules, capsules: Tensor, mask: Tensor) -> Tensor:
    masked = capsules * mask[..., None]
    if model.config.flag:
        masked = torch.cat([masked, mask[..., None]], -1)
    return torch.sigmoid(model.decoder(masked.flatten(1)))


@networks
@pytest.mark.parametrize("rest", [0, 2])
@pytest.mark.parametrize("flag", [False, True])
def test_total_is_put_together_by_hand(config: VariationalConfig, rest: int, flag: bool) -> None:
    """Margin + presence_weight presence + recon_weight recon + adversarial_weight adversarial, from Eq. (2) to (6)."""
    model = make(
        config, rest=rest, flag=flag, margin=3.0, down_weight=0.7, presence_weight=0.4, recon_weight=2.5, **GAME
    )
    x, mask = pictures(), own(Y, rest)
    losses = model.losses(x, Y, Step(Noise(5)))

    noise = Noise(5)
    eps, prior = noise.normal(4, 6 + rest, 3), noise.normal(4, 6 + rest, 3)
    mu, log_var, kl = by_hand(model, x)
    margin = (mask * kl + 0.7 * (1 - mask) * (3.0 - kl).clamp(min=0)).sum(1).mean()
    towards_on = kl[:, 0:6:2] - kl[:, 1:6:2]
    presence = -torch.log(torch.sigmoid(torch.where(Y == 1, towards_on, -towards_on))).sum(1).mean()
    again, made = (paint(model, z, mask) for z in (mu + (0.5 * log_var).exp() * eps, prior))
    recon = (0.5 * (again - x) ** 2).sum((1, 2, 3)).mean()
    assert model.discriminator is not None
    near = [[((v - 1) ** 2).mean() for v in model.discriminator(p)] for p in (again, made)]
    adversarial = (sum(near[0]) / len(near[0]) + sum(near[1]) / len(near[1])) / 2

    assert set(losses.terms) == {"margin", "presence", "recon", "adversarial"}
    torch.testing.assert_close(losses.terms["margin"], margin)
    torch.testing.assert_close(losses.terms["presence"], presence)
    torch.testing.assert_close(losses.terms["recon"], recon)
    torch.testing.assert_close(losses.terms["adversarial"], torch.as_tensor(adversarial))
    torch.testing.assert_close(losses.total, margin + 0.4 * presence + 2.5 * recon + 10 * adversarial)


@networks
def test_discriminators_loss_by_hand(config: VariationalConfig) -> None:
    """(D(x) - 1)^2 + D(fake)^2, where fakes are half reconstructions and half prior samples with the same labels."""
    model, x = make(config, rest=1, **GAME), pictures()
    losses = model.losses(x, Y, Step(Noise(5), player="discriminator"))
    noise, mask = Noise(5), own(Y, 1)
    eps, prior = noise.normal(4, 7, 3), noise.normal(4, 7, 3)
    mu, log_var, _ = by_hand(model, x)
    again, made = (paint(model, z, mask) for z in (mu + (0.5 * log_var).exp() * eps, prior))
    assert model.discriminator is not None

    def mean(p: Tensor, wanted: float) -> Tensor:
        return torch.stack([((v - wanted) ** 2).mean() for v in model.discriminator(p)]).mean()  # pyright: ignore[reportOptionalCall]

    real, fake = mean(x, 1), (mean(again, 0) + mean(made, 0)) / 2
    torch.testing.assert_close(losses.terms, {"real": real, "fake": fake})
    torch.testing.assert_close(losses.total, real + fake)


def verdict(model: VariationalCapsules, x: Tensor) -> float:
    assert model.discriminator is not None
    return torch.cat(model.discriminator(x), 1).mean().item()


def descend(loss: Tensor, parts: list[nn.Parameter], rate: float = 1e-2) -> None:
    gradients = torch.autograd.grad(loss, parts)
    norm = torch.stack([g.norm() for g in gradients]).norm()
    with torch.no_grad():
        for p, g in zip(parts, gradients, strict=True):
            p -= rate * g / norm


def test_discriminator_moves_real_up_to_one_and_fakes_down_to_zero() -> None:
    """At the start verdicts lie between 0 and 1; each term moves them its own way."""
    x = pictures()
    for term, sign in (("real", 1), ("fake", -1)):
        model = make(PLAIN, **GAME)
        assert model.discriminator is not None
        for look in model.discriminator.looks:
            nn.init.constant_(look.verdict.bias, 0.5)  # pyright: ignore[reportArgumentType, reportAttributeAccessIssue]
        fakes = model.generate(Y, Noise(9))
        shown = x if term == "real" else fakes
        before = verdict(model, shown)
        assert 0 < before < 1
        losses = model.losses(x, Y, Step(Noise(0), player="discriminator"))
        descend(losses.terms[term], list(model.discriminator.parameters()))
        assert sign * (verdict(model, shown) - before) > 1e-4


def test_painter_moves_so_that_its_pictures_look_more_real() -> None:
    model, x = make(PLAIN, **GAME), pictures()
    before = verdict(model, model.generate(Y, Noise(9))), verdict(model, model.reconstruct(x))
    assert max(before) < 1
    loss = model.losses(x, Y, Step(Noise(0))).terms["adversarial"]
    descend(loss, list(model.decoder.parameters()))
    assert verdict(model, model.generate(Y, Noise(9))) > before[0]
    assert verdict(model, model.reconstruct(x)) > before[1]


def test_encoder_feels_the_adversary_and_the_discriminator_feels_no_other_loss() -> None:
    model = make(PLAIN, **GAME)
    model.losses(pictures(), Y, Step(Noise(0))).terms["adversarial"].backward()
    assert all(p.grad is not None for p in model.encoder.parameters())
    model.zero_grad()
    model.losses(pictures(), Y, Step(Noise(0), player="discriminator")).total.backward()
    assert all(p.grad is None for p in [*model.encoder.parameters(), *model.decoder.parameters()])
    assert model.discriminator is not None
    assert all(p.grad is not None for p in model.discriminator.parameters())


@networks
def test_two_players_move_only_their_own_weights(config: VariationalConfig) -> None:
    """The engine's own steps, the discriminator first."""
    model = make(config, **GAME).train()
    assert list(model.players("all")) == ["discriminator", "model"]
    fabric = Fabric(accelerator="cpu", devices=1)
    team = Team.of(model, Stage("all"), TrainConfig(schedule="constant"), 10, fabric)
    wrapped = fabric.setup_module(model)
    for player in team.optimizers:
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        one = Team(team.players, {player: team.optimizers[player]}, team.schedules)
        take_step(fabric, wrapped, one, pictures(), Y, Step(Noise(0)), 0.0)
        moved = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
        own = {name for name in before if name.startswith("discriminator") == (player == "discriminator")}
        assert moved == own
    players = [p for player in model.players("all").values() for p in player.parameters]
    assert {id(p) for p in players} == {id(p) for p in model.parameters()}
    assert len(players) == len(list(model.parameters()))


def test_without_an_adversary_there_is_one_player_and_no_discriminator() -> None:
    model = make(PLAIN)
    assert model.discriminator is None
    assert list(model.players("all")) == ["model"]
    assert set(model.losses(pictures(), Y, Step(Noise(0))).terms) == {"margin", "recon"}


@pytest.mark.parametrize(("progress", "share"), [(0.0, 0.0), (0.2, 0.5), (0.4, 1.0), (1.0, 1.0)])
def test_warm_up_scales_only_the_present_capsules_kl(progress: float, share: float) -> None:
    """With a warm-up of 0.4: nothing at the start, half at 0.2, all from 0.4 on; absent capsules always count."""
    model, x = make(PLAIN, warmup=0.4, rest=1, margin=30.0, down_weight=0.7, presence_weight=1.0), pictures()
    losses = model.losses(x, Y, Step(Noise(0), progress=progress))
    mask, kl = own(Y, 1), by_hand(model, x)[2]
    absent = 0.7 * ((1 - mask) * (30.0 - kl).clamp(min=0)).sum(1)
    assert absent.min() > 1
    torch.testing.assert_close(losses.terms["margin"], (share * (mask * kl).sum(1) + absent).mean())
    full = model.losses(x, Y, Step(Noise(0), progress=1.0))
    for name in ("presence", "recon"):
        torch.testing.assert_close(losses.terms[name], full.terms[name])


def watched(model: VariationalCapsules) -> list[Tensor]:
    """Records what the decoder is given."""
    seen: list[Tensor] = []
    model.decoder.register_forward_pre_hook(lambda _, given: seen.append(given[0].detach().clone()))
    return seen


@pytest.mark.parametrize("swap", [0.0, 0.4, 0.99])
def test_swap_paints_the_marked_groups_from_the_prior(swap: float) -> None:
    model, x = make(PLAIN, swap=swap, rest=2), pictures()
    seen = watched(model)
    model.losses(x, Y, Step(Noise(3)))
    noise = Noise(3)
    eps = noise.normal(4, 8, 3)
    prior = noise.normal(4, 8, 3) if swap else eps
    drawn = noise.uniform(4, 3) < swap
    mu, log_var, _ = by_hand(model, x)
    painted, mask = mu + (0.5 * log_var).exp() * eps, own(Y, 2)
    assert len(seen) == 1
    shown = seen[0].reshape(4, 8, 3)
    for row in range(4):
        for capsule in range(8):
            group = capsule // 2
            source = prior if capsule < 6 and drawn[row, group] else painted
            wanted = source[row, capsule] if mask[row, capsule] else torch.zeros(3)
            torch.testing.assert_close(shown[row, capsule], wanted)
    if swap == 0.4:
        assert 0 < drawn.sum() < drawn.numel()
        assert not torch.equal(drawn[0], drawn[1])  # every picture has its own


def test_swap_off_draws_the_capsules_of_absent_attributes_alone() -> None:
    model, x = make(PLAIN, swap_off=0.999, rest=1, norm="none"), pictures()
    y = torch.tensor([[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]])
    posterior, draws = model.encode(x), model.draw(4, Noise(3))
    told = torch.autograd.grad(model.painting(posterior, y, draws).sum(), posterior.mu)[0]
    carries = told.abs().sum(-1) > 0  # whose posterior reaches the painting
    expected = torch.zeros(4, 7, dtype=torch.bool)
    expected[:, 6] = True  # the rest
    for row, column in y.nonzero().tolist():
        expected[row, 2 * column + 1] = True  # the on capsules of what is there
    assert torch.equal(carries, expected)


def test_swap_off_leaves_classes_alone() -> None:
    entities = Entities.of(PictureInfo(1, 8, ("a", "b")))
    assert not entities.absent(torch.tensor([[0], [1]])).any()


def test_swapped_capsules_give_the_encoder_no_gradient_of_the_painting() -> None:
    """All groups swapped: only what is always on carries the picture."""
    model, x = make(PLAIN, swap=0.999, rest=1, norm="none"), pictures()
    last = model.encoder[-1]  # pyright: ignore[reportIndexIssue]
    model.losses(x, Y, Step(Noise(0))).terms["recon"].backward()
    moved = last.bias.grad.reshape(2, 7, 3).abs().sum((0, 2)) > 0
    assert moved.tolist() == [False] * 6 + [True]


def test_swap_goes_with_the_adversary() -> None:
    model, x = make(PLAIN, swap=0.4, **GAME), pictures()
    seen = watched(model)
    model.losses(x, Y, Step(Noise(3)))
    noise = Noise(3)
    noise.normal(4, 6, 3)
    prior = noise.normal(4, 6, 3)
    torch.testing.assert_close(seen[0][4:], (prior * own(Y, 0)[..., None]).flatten(1))


def test_least_kl_mask_paints_the_lesser_of_each_pair() -> None:
    model, x = make(PLAIN, mask="least-kl"), pictures()
    seen = watched(model)
    model.losses(x, Y, Step(Noise(3)))
    mu, log_var, kl = by_hand(model, x)
    mask = own((kl[:, 1::2] < kl[:, 0::2]).long(), 0)
    wanted = (mu + (0.5 * log_var).exp() * Noise(3).normal(4, 6, 3)) * mask[..., None]
    torch.testing.assert_close(seen[0], wanted.flatten(1))


def colours(p: Tensor) -> Tensor:
    return 3 * p.mean((2, 3))


def test_perceptual_loss_compares_features_by_hand() -> None:
    torch.manual_seed(0)
    config = replace(PLAIN, perceptual_weight=1.7, recon_weight=0.3)
    model = VariationalCapsules(config, PictureInfo(3, 16, NAMES, "attributes"), features=colours).eval()
    x = pictures()
    losses = model.losses(x, Y, Step(Noise(2)))
    mu, log_var, _ = by_hand(model, x)
    again = paint(model, mu + (0.5 * log_var).exp() * Noise(2).normal(4, 6, 3), own(Y, 0))
    wanted = sum((3 * again[:, c].mean((1, 2)) - 3 * x[:, c].mean((1, 2))) ** 2 for c in range(3)) / 3
    torch.testing.assert_close(losses.terms["perceptual"], torch.as_tensor(wanted).mean())
    parts = losses.terms
    torch.testing.assert_close(losses.total, parts["margin"] + 0.3 * parts["recon"] + 1.7 * parts["perceptual"])
    losses.terms["perceptual"].backward()
    assert all(p.grad is not None for p in model.decoder.parameters())


def test_no_perceptual_loss_without_weight() -> None:
    model = VariationalCapsules(PLAIN, PictureInfo(3, 16, NAMES, "attributes"), features=colours)
    assert "perceptual" not in model.losses(pictures(), Y, Step(Noise(0))).terms


def test_a_weight_without_features_is_refused_in_training_alone() -> None:
    model = VariationalCapsules(replace(PLAIN, perceptual_weight=1.0), PictureInfo(3, 16, NAMES, "attributes"))
    refused(lambda: model.train().losses(pictures(), Y, Step(Noise(0))), "model.perceptual_weight", "features")
    assert model.eval().reconstruct(pictures()).isfinite().all()


def test_features_that_are_a_network_are_not_saved_with_the_model() -> None:
    network = torch.nn.Conv2d(3, 2, 1)
    model = VariationalCapsules(PLAIN, PictureInfo(3, 16, NAMES, "attributes"), features=network)
    assert model.features is network
    assert not any("features" in name for name in model.state_dict())


def test_shares_follow_the_labels_of_training_and_usual_is_the_majority() -> None:
    """Of the four pictures Hat is on in half, Beard in three, Smiling in one."""
    y = torch.tensor([[0, 1, 0], [1, 1, 0], [0, 1, 1], [1, 0, 0]])
    model, x = make(PLAIN, rest=1, **GAME), pictures()
    assert model.shares.tolist() == pytest.approx([0.5] * 7)
    model.losses(x, y, Step(Noise(0)))
    assert model.shares.tolist() == pytest.approx([0.5] * 7), "answers must not move the shares"
    model.train().losses(x, y, Step(Noise(0), player="discriminator"))
    assert model.shares.tolist() == pytest.approx([0.5] * 7), "a batch counts once"
    model.losses(x, y, Step(Noise(0)))
    # where they began is forgotten at once: after one batch they are its shares
    wanted = [0.5, 0.5, 0.25, 0.75, 0.75, 0.25, 1.0]
    assert model.shares.tolist() == pytest.approx(wanted)
    assert model.usual()[0, 1:].tolist() == [1, 0]
    model.losses(x, torch.zeros_like(y), Step(Noise(0)))
    # after two they are the mean of both: the second has every attribute off
    assert model.shares.tolist()[2:6] == pytest.approx([0.625, 0.375, 0.875, 0.125])
    with torch.no_grad():
        for _ in range(300):
            model.losses(x, y, Step(Noise(0)))
    assert model.shares.tolist() == pytest.approx(wanted, abs=0.01)
    assert model.usual()[0, 1:].tolist() == [1, 0]
    assert "shares" in model.state_dict()


def test_usual_class_is_the_most_frequent() -> None:
    model = VariationalCapsules(PLAIN, PictureInfo(3, 16, ("a", "b", "c"))).train()
    assert model.shares.tolist() == pytest.approx([1 / 3] * 3)
    model.losses(pictures(), torch.tensor([1, 1, 2, 0]), Step(Noise(0)))
    assert model.usual().tolist() == [[1]]


def squares(n: int) -> tuple[Tensor, Tensor]:
    """Draws two attributes as two bright squares, and a brightness that belongs to neither."""
    generator = torch.Generator().manual_seed(1)
    y = torch.randint(0, 2, (n, 2), generator=generator)
    x = 0.3 * torch.rand(n, 1, 1, 1, generator=generator).expand(n, 1, 8, 8).clone()
    for row, (a, b) in enumerate(y.tolist()):
        x[row, 0, 1:4, 1:4] += 0.6 * a
        x[row, 0, 4:7, 4:7] += 0.6 * b
    return x, y


@networks
def test_training_learns_two_attributes_and_what_each_paints(config: VariationalConfig) -> None:
    settings: dict[str, Any] = {"widths": (8,), "decoder": (16,), "recon_weight": 5.0, "flag": True, "rest": 1}
    if config.encoder == "convolutional":
        settings |= {"strides": (2,), "decoder": (32,)}
    torch.manual_seed(0)
    model = VariationalCapsules(replace(config, **settings), PictureInfo(1, 8, ("a", "b"), "attributes")).train()
    x, y = squares(48)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    first = last = 0.0
    for i in range(150):
        optimizer.zero_grad()
        losses = model.losses(x, y, Step(Noise(i)))
        losses.total.backward()
        optimizer.step()
        last = losses.total.item()
        first = first or last
    assert last < 0.5 * first
    model.eval()
    seen = model.classify(x)
    assert torch.equal(seen.label, y)
    assert torch.equal(seen.presence > 0.5, y.bool())
    kl, mask = model.encode(x).kl[:, :4], own(y, 0).bool()
    assert kl[mask].max() < kl[~mask].min()
    # what was painted from the prior shows the squares that were asked for
    asked = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])
    made = model.generate(asked.repeat_interleave(8, 0), Noise(0)).unflatten(0, (4, 8)).mean(1)[:, 0]
    a, b = made[:, 1:4, 1:4].mean((1, 2)), made[:, 4:7, 4:7].mean((1, 2))
    assert min(a[2:]) > max(a[:2]) + 0.2
    assert min(b[1], b[3]) > max(b[0], b[2]) + 0.2


def test_settings_of_attributes_that_make_no_sense_are_refused_by_name() -> None:
    refused(lambda: replace(PLAIN, rest=-1), "model.rest", "at least 0")
    refused(lambda: replace(PLAIN, swap=1.0), "model.swap", "below 1")
    refused(lambda: replace(PLAIN, swap=-0.1), "model.swap")
    refused(lambda: replace(PLAIN, swap_off=1.0), "model.swap_off", "below 1")
    refused(lambda: replace(PLAIN, warmup=1.5), "model.warmup", "0 to 1")
    refused(lambda: replace(PLAIN, adversarial_weight=1.0, recon_weight=0.0), "model.adversarial_weight", "recon")
    for name in ("presence_weight", "warmup", "adversarial_weight", "perceptual_weight", "down_weight"):
        refused(lambda name=name: replace(PLAIN, **{name: -1.0}), f"model.{name}", "negative")
    for name in ("head", "discriminator", "scales"):
        refused(lambda name=name: replace(PLAIN, **{name: 0}), f"model.{name}", "at least 1")


def test_rest_weight_multiplies_the_kl_of_the_rest_alone() -> None:
    x = pictures()
    plain, heavy = (make(PLAIN, rest=2, rest_weight=weight) for weight in (1.0, 3.0))
    heavy.load_state_dict(plain.state_dict())
    one, three = (model.losses(x, Y, Step(Noise(0))).terms["margin"] for model in (plain, heavy))
    of_rest = plain.encode(x).kl[:, -2:].sum(1).mean()
    torch.testing.assert_close(three - one, 2 * of_rest, rtol=1e-4, atol=1e-5)


def test_off_weight_multiplies_the_kl_of_what_is_off_alone() -> None:
    x = pictures()
    plain, heavy = (make(PLAIN, rest=1, off_weight=weight, down_weight=0.0) for weight in (1.0, 3.0))
    kl = plain.encode(x).kl
    off = torch.where(Y == 0, kl[:, 0:6:2], 0.0).sum(1)
    step = Step(Noise(0))
    extra = heavy.losses(x, Y, step).terms["margin"] - plain.losses(x, Y, step).terms["margin"]
    torch.testing.assert_close(extra, 2 * off.mean())


def test_classes_have_no_off_capsule() -> None:
    classes = PictureInfo(1, 8, ("a", "b", "c"))
    model = VariationalCapsules(replace(PLAIN, off_weight=5.0, rest_weight=2.0, rest=1), classes)
    assert model.kl_weights.tolist() == [1, 1, 1, 2]


def test_what_the_rest_tells_is_measured_by_means_squares_and_variances() -> None:
    """Squared correlations of the rest's mu, mu^2 and log sigma^2 with each attribute, by numpy."""
    model, x = make(PLAIN, rest=2, blind_weight=3.0, norm="none"), torch.cat([pictures(0), pictures(1)])
    with torch.no_grad():
        model.encoder[-1].weight.mul_(100)  # pyright: ignore[reportIndexIssue, reportCallIssue]  (so that they vary)
    y = torch.tensor([[0, 1, 1], [1, 0, 1], [0, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1], [0, 1, 0], [0, 0, 0]])
    losses = model.losses(x, y, Step(Noise(0)))
    mu, log_var, _ = by_hand(model, x)
    mu, log_var = (part[:, 6:].flatten(1) for part in (mu, log_var))
    numbers = torch.cat([mu, mu**2, log_var], 1).detach().double().numpy()
    told = (np.corrcoef(numbers.T, y.double().numpy().T)[:18, 18:] ** 2).sum()
    assert 1 < told < 15
    assert losses.terms["blind"].item() == pytest.approx(told, rel=0.01)
    others = losses.terms["margin"] + losses.terms["recon"]
    torch.testing.assert_close(losses.total, others + 3 * losses.terms["blind"])


def test_blindness_moves_the_rest_alone() -> None:
    model, x = make(PLAIN, rest=1, blind_weight=1.0, norm="none"), pictures()
    last = model.encoder[-1]  # pyright: ignore[reportIndexIssue]
    model.losses(x, Y, Step(Noise(0))).terms["blind"].backward()
    moved = last.weight.grad.reshape(2, 7, 3, -1).abs().sum((0, 2, 3)) > 0
    assert moved.tolist() == [False] * 6 + [True]


def test_without_a_rest_there_is_nothing_to_blind() -> None:
    assert "blind" not in make(PLAIN, blind_weight=1.0).losses(pictures(), Y, Step(Noise(0))).terms
