"""Laws of editing: what is wanted changes, and what is kept is the same numbers (Huang et al., 2018), section 4.1.2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from gencaps.model import PictureInfo
from gencaps.papers.variational.config import VariationalConfig
from gencaps.papers.variational.model import VariationalCapsules
from gencaps.primitives.noise import Noise

DIM, REST = 3, 1
X = torch.rand(6, 1, 8, 8, generator=torch.Generator().manual_seed(4))


def make(labels: Any = "attributes", flag: bool = False) -> VariationalCapsules:
    """A model of three attributes, or three classes, that sees different states in different pictures."""
    torch.manual_seed(1)
    config = VariationalConfig(DIM, (8,), (2,), 3, "none", (16,), flag=flag, rest=REST)
    model = VariationalCapsules(config, PictureInfo(1, 8, ("Hat", "Beard", "Smiling"), labels)).eval()
    with torch.no_grad():
        model.encoder[-1].weight *= 5  # pyright: ignore[reportIndexIssue]
    return model


def numbers(model: VariationalCapsules, paint: Callable[[], Tensor]) -> Tensor:
    """Gives the capsules that the decoder is handed: (pictures, capsules, numbers)."""
    seen: list[Tensor] = []
    hook = model.decoder.register_forward_pre_hook(lambda _, given: seen.append(given[0].detach().clone()))
    with torch.no_grad():
        paint()
    hook.remove()
    return torch.cat(seen).unflatten(1, (model.entities.count, -1))


def own(model: VariationalCapsules) -> tuple[Tensor, Tensor]:
    """Gives means and states of the pictures."""
    code = model.encode(X)
    return code.mu, model.entities.least(code.kl)


def flipped(model: VariationalCapsules, group: int) -> Tensor:
    wanted = torch.full((len(X), 3), -1)
    wanted[:, group] = 1 - own(model)[1][:, group]
    return wanted


def test_the_pictures_show_different_states() -> None:
    """Without this the laws below would be about one state only."""
    active = own(make())[1]
    assert all(0 < active[:, group].sum() < len(X) for group in range(3))
    assert len(own(make("classes"))[1].unique()) > 1


@pytest.mark.parametrize("flag", [False, True])
@pytest.mark.parametrize("labels", ["classes", "attributes"])
def test_wanting_nothing_is_the_reconstruction_to_the_last_bit(labels: str, flag: bool) -> None:
    model = make(labels, flag)
    nothing = torch.full((len(X), 1 if labels == "classes" else 3), -1)
    assert torch.equal(model.edit(X, nothing), model.reconstruct(X))
    # neither a style nor an intensity has anything to work on
    assert torch.equal(model.edit(X, nothing, Noise(0)), model.reconstruct(X))
    assert torch.equal(model.edit(X, nothing, Noise(0), intensity=0.5), model.reconstruct(X))
    # with noise it is the same sample of the posterior
    assert torch.equal(model.edit(X, nothing, None, Noise(3)), model.reconstruct(X, Noise(3)))


@pytest.mark.parametrize("flag", [False, True])
@pytest.mark.parametrize("style", [None, 7])
def test_flipping_one_attribute_leaves_the_others_numbers_alone(style: int | None, flag: bool) -> None:
    model = make(flag=flag)
    before = numbers(model, lambda: model.reconstruct(X))
    prior = torch.zeros(len(X), 7, DIM) if style is None else Noise(style).normal(len(X), 7, DIM)
    active = own(model)[1]
    for group in range(3):
        noise = None if style is None else Noise(style)
        after = numbers(model, lambda g=group, n=noise: model.edit(X, flipped(model, g), n))
        others = [place for place in range(7) if place // 2 != group or place == 6]
        assert torch.equal(after[:, others], before[:, others])
        for row, state in enumerate(active[:, group].tolist()):
            gone, came = 2 * group + state, 2 * group + 1 - state
            assert (after[row, gone] == 0).all()
            assert torch.equal(after[row, came, :DIM], prior[row, came])
            if flag:
                assert after[row, came, DIM] == 1
            assert (before[row, gone] != 0).any()


def test_several_attributes_are_set_at_once() -> None:
    model = make()
    wanted = torch.tensor([[1, -1, 0]]).expand(len(X), 3)
    before = numbers(model, lambda: model.reconstruct(X))
    after = numbers(model, lambda: model.edit(X, wanted, Noise(7)))
    prior = Noise(7).normal(len(X), 7, DIM)
    assert torch.equal(after[:, 1], prior[:, 1])
    assert (after[:, 0] == 0).all()
    assert torch.equal(after[:, 2:4], before[:, 2:4])
    assert torch.equal(after[:, 4], prior[:, 4])
    assert (after[:, 5] == 0).all()
    assert torch.equal(after[:, 6], before[:, 6])


def test_an_attribute_in_its_wanted_state_stays_without_a_style_and_is_redrawn_with_one() -> None:
    model, active = make(), own(make())[1]
    wanted = torch.full_like(active, -1)
    wanted[:, 1] = active[:, 1]
    before = numbers(model, lambda: model.reconstruct(X))
    assert torch.equal(numbers(model, lambda: model.edit(X, wanted)), before)
    after, prior = numbers(model, lambda: model.edit(X, wanted, Noise(2))), Noise(2).normal(len(X), 7, DIM)
    for row, state in enumerate(active[:, 1].tolist()):
        assert torch.equal(after[row, 2 + state], prior[row, 2 + state])
        assert (after[row, 3 - state] == 0).all()
    others = [0, 1, 4, 5, 6]
    assert torch.equal(after[:, others], before[:, others])


@pytest.mark.parametrize("flag", [False, True])
@pytest.mark.parametrize("style", [None, 7])
def test_intensity_goes_from_the_reconstruction_to_the_full_edit(style: int | None, flag: bool) -> None:
    model = make(flag=flag)
    wanted = flipped(model, 0)

    def edit(share: float) -> Tensor:
        return model.edit(X, wanted, None if style is None else Noise(style), intensity=share)

    assert torch.equal(edit(0.0), model.reconstruct(X))
    assert torch.equal(edit(1.0), model.edit(X, wanted, None if style is None else Noise(style)))
    start, end = (numbers(model, lambda s=share: edit(s)) for share in (0.0, 1.0))
    for share in (0.25, 0.5, 0.9):
        between = numbers(model, lambda s=share: edit(s))
        torch.testing.assert_close(between, (1 - share) * start + share * end)
        assert torch.equal(between[:, 2:], start[:, 2:])  # the kept capsules do not move at all
    assert not torch.equal(start, end)


def test_same_seed_same_pictures_and_another_seed_other_styles() -> None:
    model = make()
    wanted = flipped(model, 2)
    made = [model.edit(X, wanted, Noise(seed)) for seed in (5, 5, 6)]
    assert torch.equal(made[0], made[1])
    assert not torch.equal(made[0], made[2])
    twin = torch.cat([X[:1]] * 4)
    styles = model.edit(twin, wanted[:1].expand(4, 3), Noise(5))
    assert min((a - b).abs().max() for i, a in enumerate(styles) for b in styles[:i]) > 1e-5
    plain = model.edit(twin, wanted[:1].expand(4, 3))
    torch.testing.assert_close(plain, plain[:1].expand_as(plain))


def test_noise_draws_the_kept_capsules_around_their_means() -> None:
    """mu + sigma epsilon for what is kept; what is changed follows its style alone."""
    model, active = make(), own(make())[1]
    wanted = flipped(model, 0)
    means = numbers(model, lambda: model.edit(X, wanted, Noise(5)))
    drawn = numbers(model, lambda: model.edit(X, wanted, Noise(5), Noise(8)))
    assert torch.equal(drawn[:, :2], means[:, :2])
    code, epsilon = model.encode(X), Noise(8).normal(len(X), 7, DIM)
    sampled = code.mu + (0.5 * code.log_var).exp() * epsilon
    for row, states in enumerate(active.tolist()):
        for place in (2 + states[1], 4 + states[2], 6):
            torch.testing.assert_close(drawn[row, place], sampled[row, place])
            assert not torch.equal(drawn[row, place], means[row, place])
    # over many draws they centre on the means
    many = [numbers(model, lambda s=seed: model.edit(X, wanted, None, Noise(s)))[:, 6] for seed in range(400)]
    spread = (0.5 * code.log_var[:, 6]).exp()
    assert ((torch.stack(many).mean(0) - code.mu[:, 6]).abs() < 5 * spread / 20).all()


def test_editing_a_class_swaps_the_class_and_keeps_the_rest() -> None:
    model, active = make("classes"), own(make("classes"))[1]
    before = numbers(model, lambda: model.reconstruct(X))
    other = (active + 1) % 3
    after, prior = numbers(model, lambda: model.edit(X, other, Noise(3))), Noise(3).normal(len(X), 4, DIM)
    for row, (was, now) in enumerate(zip(active[:, 0].tolist(), other[:, 0].tolist(), strict=True)):
        assert (after[row, was] == 0).all()
        assert torch.equal(after[row, now], prior[row, now])
    assert torch.equal(after[:, 3], before[:, 3])


def test_resample_redraws_what_is_shown_and_keeps_its_states() -> None:
    model, active = make(), own(make())[1]
    after, prior = numbers(model, lambda: model.resample(X, Noise(2))), Noise(2).normal(len(X), 7, DIM)
    mask = model.entities.mask(active)
    assert torch.equal(after[:, :6], torch.where(mask, 1.0, 0.0)[:, :6, None] * prior[:, :6])
    # what no attribute stands for is not drawn anew
    assert torch.equal(after[:, 6], model.encode(X).mu[:, 6])


@pytest.mark.parametrize("group", [0, 1, 2])
def test_resample_only_changes_only_these_groups(group: int) -> None:
    model, active = make(), own(make())[1]
    only = (torch.arange(3) == group).expand(len(X), 3)
    before = numbers(model, lambda: model.reconstruct(X))
    after = numbers(model, lambda: model.resample(X, Noise(2), only))
    changed = (after != before).any(2)
    wanted = torch.zeros_like(changed)
    wanted[torch.arange(len(X)), 2 * group + active[:, group]] = True
    assert torch.equal(changed, wanted)


def test_a_full_walk_begins_and_ends_at_the_reconstructions() -> None:
    model, a, b = make(), X[:3], X[3:]
    walk = model.interpolate(a, b, 5)
    assert walk.shape == (3, 5, 1, 8, 8)
    torch.testing.assert_close(walk[:, 0], model.reconstruct(a))
    torch.testing.assert_close(walk[:, -1], model.reconstruct(b))
    shown = numbers(model, lambda: model.interpolate(a, b, 5)).unflatten(0, (3, 5))
    first, last = (numbers(model, lambda p=p: model.reconstruct(p)) for p in (a, b))
    torch.testing.assert_close(shown[:, 1], 0.75 * first + 0.25 * last)
    torch.testing.assert_close(shown[:, 2], 0.5 * first + 0.5 * last)


@pytest.mark.parametrize("group", [0, 1, 2])
def test_a_walk_over_some_groups_keeps_the_others_at_the_start(group: int) -> None:
    model, a, b = make(), X[:3], X[3:]
    only = (torch.arange(3) == group).expand(3, 3)
    shown = numbers(model, lambda: model.interpolate(a, b, 4, only)).unflatten(0, (3, 4))
    first, last = (numbers(model, lambda p=p: model.reconstruct(p)) for p in (a, b))
    mine = slice(2 * group, 2 * group + 2)
    for step in range(4):
        share = step / 3
        torch.testing.assert_close(shown[:, step, mine], (1 - share) * first[:, mine] + share * last[:, mine])
        others = [place for place in range(7) if place // 2 != group or place == 6]
        assert torch.equal(shown[:, step, others], first[:, others])


def test_a_walk_over_every_group_still_keeps_what_belongs_to_none() -> None:
    model, a, b = make(), X[:3], X[3:]
    shown = numbers(model, lambda: model.interpolate(a, b, 2, torch.ones(3, 3, dtype=torch.bool)))
    shown, last = shown.unflatten(0, (3, 2)), numbers(model, lambda: model.reconstruct(b))
    assert torch.equal(shown[:, 1, :6], last[:, :6])
    assert torch.equal(shown[:, 1, 6], shown[:, 0, 6])
    assert not torch.equal(shown[:, 1, 6], last[:, 6])


def test_generate_paints_the_attributes_asked_for() -> None:
    model, y = make(), torch.tensor([[0, 1, 1], [1, 0, 0]])
    shown, prior = numbers(model, lambda: model.generate(y, Noise(3))), Noise(3).normal(2, 7, DIM)
    for row, on in enumerate(([0, 3, 5, 6], [1, 2, 4, 6])):
        for place in range(7):
            wanted = prior[row, place] if place in on else torch.zeros(DIM)
            assert torch.equal(shown[row, place], wanted)
