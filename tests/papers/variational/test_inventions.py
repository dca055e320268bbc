"""Laws of pictures that nobody saw: which are painted, and who teaches the decoder to paint them (not in the paper)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from gencaps.model import PictureInfo, Step
from gencaps.papers.variational.config import VariationalConfig
from gencaps.papers.variational.entities import Entities, invented
from gencaps.papers.variational.model import VariationalCapsules
from gencaps.primitives.noise import Noise
from tests.helpers import refused

PAIRS = Entities(3, 2, "attributes", rest=1)
CLASSES = Entities(1, 4, "classes")
SMALL = {"dim": 3, "widths": (6, 6), "strides": (2, 2), "kernel": 3, "decoder": (16,)}


def capsules(entities: Entities, n: int) -> tuple[Tensor, Tensor]:
    """Seen ones are all 1, those from the prior all 2."""
    return torch.ones(n, entities.count, 2), torch.full((n, entities.count, 2), 2.0)


def make(**changes: Any) -> VariationalCapsules:
    torch.manual_seed(0)
    config = VariationalConfig(**(SMALL | changes))
    return VariationalCapsules(config, PictureInfo(1, 8, ("a", "b", "c"), "attributes", "hand"))


X = torch.rand(5, 1, 8, 8, generator=torch.Generator().manual_seed(1))
Y = torch.tensor([[0, 1, 1], [1, 0, 1], [0, 0, 0], [1, 1, 0], [1, 1, 1]])


def test_an_edit_changes_one_group_and_keeps_every_other_capsule() -> None:
    """Second number 0.5 of three pairs is the second pair: 0.5 x 3 = 1.5."""
    active = torch.tensor([[0, 1, 1], [1, 0, 1]])
    seen, prior = capsules(PAIRS, 2)
    made = invented(PAIRS, seen, active, prior, torch.tensor([[0.2, 0.5], [0.2, 0.99]]), 0.3)
    assert made.active.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert made.capsules[..., 0].tolist() == [[1, 1, 2, 2, 1, 1, 1], [1, 1, 1, 1, 2, 2, 1]]


def test_what_is_no_edit_is_all_new_with_the_same_labels() -> None:
    active = torch.tensor([[0, 1, 1]])
    seen, prior = capsules(PAIRS, 1)
    made = invented(PAIRS, seen, active, prior, torch.tensor([[0.3, 0.5]]), 0.3)
    assert torch.equal(made.active, active)
    assert torch.equal(made.capsules, prior)


def test_an_edited_class_is_each_of_the_others_in_turn() -> None:
    active = torch.tensor([[2], [2], [2]])
    seen, prior = capsules(CLASSES, 3)
    made = invented(CLASSES, seen, active, prior, torch.tensor([[0.0, 0.1], [0.0, 0.5], [0.0, 0.9]]), 1.0)
    assert made.active.tolist() == [[3], [0], [1]]
    assert torch.equal(made.capsules, prior)


def test_an_edit_towards_the_next_picture_changes_all_in_which_they_differ() -> None:
    """0.1 lies below 0.5 x 0.4 and goes towards the next picture, the last one's next is the first; 0.3 changes one."""
    active = torch.tensor([[0, 1, 1], [1, 0, 1], [0, 0, 0]])
    seen, prior = capsules(PAIRS, 3)
    made = invented(PAIRS, seen, active, prior, torch.tensor([[0.1, 0.5], [0.3, 0.99], [0.1, 0.0]]), 0.5, 0.4)
    assert made.active.tolist() == [[1, 0, 1], [1, 0, 0], [0, 1, 1]]
    assert made.capsules[..., 0].tolist() == [[2, 2, 2, 2, 1, 1, 1], [1, 1, 1, 1, 2, 2, 1], [1, 1, 2, 2, 2, 2, 1]]


def test_every_edit_is_as_likely_as_any_other() -> None:
    n = 6000
    active = torch.zeros(n, 3, dtype=torch.long)
    seen, prior = capsules(PAIRS, n)
    made = invented(PAIRS, seen, active, prior, Noise(0).uniform(n, 2), 0.5)
    shares = made.active.float().mean(0)
    assert shares.tolist() == pytest.approx([1 / 6] * 3, abs=0.02)  # four standard deviations


def test_reading_by_hand() -> None:
    """Cross entropy of what the encoder reads off the invented picture; half the squared distance of what paints it."""
    model = make(reading_weight=0.7, style_weight=0.3, edits=0.5, rest=1, flag=True).eval()
    losses = model.losses(X, Y, Step(Noise(4)))
    noise = Noise(4)
    eps, prior, chance = noise.normal(5, 7, 3), noise.normal(5, 7, 3), noise.uniform(5, 2)
    mu, log_var, _ = model.encode(X)
    entities = Entities(3, 2, "attributes", 1)
    new = invented(entities, mu + (0.5 * log_var).exp() * eps, Y, prior, chance, 0.5)
    assert (new.active != Y).any()
    painted = model.decode(model.activate(new.capsules, new.active))
    seen, _, kl = model.encode(painted)
    towards_on = kl[:, 0:6:2] - kl[:, 1:6:2]
    reading = -torch.log(torch.sigmoid(torch.where(new.active == 1, towards_on, -towards_on))).sum(1).mean()
    apart = 0.5 * ((new.capsules - seen) ** 2).sum(-1)
    own = torch.cat([torch.nn.functional.one_hot(new.active, 2).flatten(1), torch.ones(5, 1)], 1)
    style = (apart * own).sum(1).mean()
    torch.testing.assert_close(losses.terms["reading"], reading)
    torch.testing.assert_close(losses.terms["style"], style)
    rest = losses.terms["margin"] + losses.terms["recon"]
    torch.testing.assert_close(losses.total, rest + 0.7 * reading + 0.3 * style)


@pytest.mark.parametrize("term", ["reading", "style"])
def test_the_encoder_stands_still_while_it_reads(term: str) -> None:
    model = make(reading_weight=1.0, style_weight=1.0, edits=0.5).train()
    before = {name: buffer.clone() for name, buffer in model.encoder.named_buffers()}
    posterior = model.encode(X)
    after = {name: buffer.clone() for name, buffer in model.encoder.named_buffers()}
    assert any(not torch.equal(before[name], after[name]) for name in before)  # a usual look moves the running means
    model.repaint(X, Y, posterior, model.draw(5, Noise(0)))[term].mean().backward()
    assert all(weight.grad is None or not weight.grad.any() for weight in model.encoder.parameters())
    assert any(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in model.decoder.parameters())
    assert all(torch.equal(buffer, after[name]) for name, buffer in model.encoder.named_buffers())


def test_following_the_reading_makes_inventions_readable() -> None:
    """A decoder that goes down the reading's slope is read better, by an encoder that knows the pictures."""
    model = make(reading_weight=1.0, flag=True).train()
    draws = model.draw(5, Noise(2))
    optimizer = torch.optim.Adam(model.decoder.parameters(), 0.01)
    history = []
    for _ in range(30):
        loss = model.repaint(X, Y, model.encode(X), draws)["reading"].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    assert history[-1] < 0.5 * history[0]


def test_a_told_adversary_judges_the_picture_with_its_labels() -> None:
    model = make(adversarial_weight=1.0, told=True, discriminator=4).eval()
    assert model.discriminator is not None
    verdict = torch.cat(model.verdicts(X, Y), 1)
    other = torch.cat(model.verdicts(X, 1 - Y), 1)
    assert (verdict - other).abs().min() > 0
    silent = make(adversarial_weight=1.0, discriminator=4).eval()
    assert torch.equal(torch.cat(silent.verdicts(X, Y), 1), torch.cat(silent.verdicts(X, 1 - Y), 1))


def test_the_adversary_is_told_what_an_edit_shows_not_what_the_picture_showed() -> None:
    model = make(adversarial_weight=1.0, told=True, discriminator=4, edits=1.0).eval()
    told: list[Tensor] = []
    assert model.discriminator is not None
    model.discriminator.register_forward_pre_hook(lambda module, inputs: told.append(inputs[1]))
    model.losses(X, Y, Step(Noise(3), player="discriminator"))
    real, again, made = (shown[:, 1::2].long() for shown in told)
    assert torch.equal(real, Y)
    assert torch.equal(again, Y)
    assert ((made != Y).sum(1) == 1).all()


def test_edits_draw_the_same_numbers_for_both_players() -> None:
    """The discriminator sees the very pictures that the painter is judged by."""
    model = make(adversarial_weight=1.0, discriminator=4, edits=0.5).eval()
    seen: list[Tensor] = []
    model.decoder.register_forward_hook(lambda module, inputs, out: seen.append(out.detach()))
    for player in ("discriminator", "model"):
        model.losses(X, Y, Step(Noise(3), player=player))
    torch.testing.assert_close(seen[0], seen[1])


@pytest.mark.parametrize("name", ["reading_weight", "style_weight"])
def test_a_second_teacher_needs_a_painter(name: str) -> None:
    refused(lambda: replace(VariationalConfig(recon_weight=0.0), **{name: 1.0}), f"model.{name}", "recon_weight")
    refused(lambda: replace(VariationalConfig(), **{name: -1.0}), f"model.{name} is -1.0")


@pytest.mark.parametrize("share", [-0.1, 1.1])
@pytest.mark.parametrize("name", ["edits", "others"])
def test_edits_are_shares(name: str, share: float) -> None:
    refused(lambda: replace(VariationalConfig(), **{name: share}), f"model.{name} is {share}", "0 to 1")


@pytest.mark.parametrize("others", [0.0, 1.0])
def test_a_model_edits_towards_the_next_picture_where_its_settings_say_so(others: float) -> None:
    model = make(reading_weight=1.0, edits=1.0, others=others)
    new = model.invent(model.encode(X), Y, model.draw(5, Noise(2)))
    assert torch.equal(new.active, Y.roll(-1, 0)) == bool(others)
