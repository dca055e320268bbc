"""The stages, and what a trained product of experts answers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gencaps.abilities import abilities
from gencaps.engine.recipe import make_recipe
from gencaps.model import Step
from gencaps.papers.product_of_experts.config import ProductOfExpertsConfig
from gencaps.papers.product_of_experts.model import ProductOfExperts
from gencaps.primitives.noise import Noise
from gencaps.primitives.squash import direction, length
from tests.helpers import refused
from tests.papers.product_of_experts.helpers import algorithm_1, model

STAGES = ("autoencoder", "experts", "back")
BEST: dict[str, Any] = {"target": "pictures", "alone_weight": 0.5, "alone_noise": 0.5, "moment_weight": 0.1}
INFERRED: dict[str, Any] = {"target": "capsules", "alone_weight": 1.0, "alone": "inferred", "line": 2}


def take_steps(made: ProductOfExperts, x: torch.Tensor, y: torch.Tensor, stage: str, steps: int = 2) -> None:
    """Trains as the engine does, in small."""
    (player,) = made.players(stage).values()
    mover = torch.optim.SGD(player.parameters, 0.1)
    for number in range(steps):
        torch.manual_seed(number)
        mover.zero_grad()
        made.losses(x, y, Step(Noise(number), stage=stage)).total.backward()
        mover.step()


def pictures(n: int = 6, channels: int = 1, size: int = 8) -> torch.Tensor:
    """Draws pictures."""
    return torch.rand(n, channels, size, size, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    "settings", [{}, BEST, INFERRED, {"target": "capsules", "decay": 1e-3}, {"chains": 7, "firing": "sampled"}]
)
@pytest.mark.parametrize("stage", STAGES)
def test_each_stage_moves_its_own_weights_alone(stage: str, settings: dict[str, Any]) -> None:
    made = model(**settings)
    before = {name: p.detach().clone() for name, p in made.named_parameters()}
    take_steps(made, pictures(), torch.arange(6), stage)
    moved = {name for name, p in made.named_parameters() if not torch.equal(p, before[name])}
    own = {"autoencoder": "autoencoder.", "experts": "layers.0.weight", "back": "layers.0.back"}[stage]
    assert moved == {name for name in before if name.startswith(own)}


class Looks(TorchDispatchMode):
    """Notes operations that bring a tensor's value to the host."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket in (torch.ops.aten._local_scalar_dense, torch.ops.aten.nonzero, torch.ops.aten.equal):
            self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    "settings",
    [{}, BEST, INFERRED, {"target": "capsules", "decay": 1e-3}, {"chains": 7, "firing": "sampled", "mixing": 2}],
)
def test_a_step_never_looks_at_a_value_nor_at_how_far_training_is(settings: dict[str, Any]) -> None:
    for name in STAGES:
        found = []
        for progress in (0.0, float("nan")):
            made = model(**settings)
            assert made.steady(name)
            torch.manual_seed(0)
            with Looks() as looks:
                losses = made.losses(pictures(), torch.arange(6), Step(Noise(0), stage=name, progress=progress))
                losses.total.backward()
            assert looks.seen == []
            found.append(losses.total.detach())
        assert torch.equal(*found)


def test_labels_are_never_seen() -> None:
    trained = []
    for y in (torch.arange(6), torch.tensor([5, 0, 3, 3, 1, 2])):
        made = model(**BEST)
        for stage in made.stages():
            take_steps(made, pictures(), y, stage.name)
        trained.append(made.state_dict())
    assert all(torch.equal(trained[0][name], trained[1][name]) for name in trained[0])


@pytest.mark.parametrize("settings", [{}, {"mixing": 3}, {"chains": 4, "firing": "sampled"}, BEST])
def test_the_loss_of_the_experts_is_the_contrast(settings: dict[str, Any]) -> None:
    made = model(**settings)
    losses = made.losses(pictures(), torch.arange(6), Step(Noise(0), stage="experts"))
    gap = made.config.moment_weight * losses.terms["moment"]
    torch.testing.assert_close(losses.total, losses.terms["free_energy"] - losses.terms["free_energy_model"] + gap)
    assert losses.terms["free_energy"] < 0


@pytest.mark.parametrize("mixing", [1, 2])
def test_a_step_of_the_experts_is_algorithm_1(mixing: int) -> None:
    # nothing but W_ij learns from c, x and x~: were one of them not held fixed, this would not be the paper's step
    made = model(mixing=mixing, scale=2.0).double()
    x = pictures(3).double()
    layer: Any = made.layers[0]
    made.losses(x, torch.arange(3), Step(Noise(0), stage="experts")).total.backward()
    wanted = algorithm_1(made.below(x, 0).detach(), layer.weight.detach(), mixing)
    assert wanted.abs().max() > 1e-3
    torch.testing.assert_close(-layer.weight.grad, wanted, rtol=1e-7, atol=1e-9)


def test_persistent_chains_go_on_from_step_to_step() -> None:
    made = model(chains=4, firing="sampled")
    layer: Any = made.layers[0]
    seen = [layer.chains.clone()]
    for number in range(2):
        made.losses(pictures(), torch.arange(6), Step(Noise(number), stage="experts"))
        seen.append(layer.chains.clone())
    assert seen[0].shape == (4, 8, 4)  # 2 x 2 x 8 / 4 capsules
    assert not torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[1], seen[2])


def test_a_second_layer_is_stacked_and_paints() -> None:
    made = model(capsules=(5, 3))
    assert [stage.name for stage in made.stages()] == ["autoencoder", "experts", "experts-2", "back", "back-2"]
    x = pictures()
    before = {name: p.detach().clone() for name, p in made.named_parameters()}
    for stage in made.stages():
        take_steps(made, x, torch.arange(6), stage.name)
    assert not any(torch.equal(p, before[name]) for name, p in made.named_parameters())
    code = made.encode(x)
    assert code.pose.shape == (6, 3, 3)
    assert code.coefficients.shape == (6, 3, 5)
    assert made.reconstruct(x).shape == x.shape
    assert made.sample(4, Noise(0)).shape == (4, 1, 8, 8)


def test_encode_gives_lengths_as_presences_and_coefficients_that_sum_to_one() -> None:
    made, x = model(), pictures()
    pose, presence, coefficients = made.encode(x)
    assert pose.shape == (6, 5, 3)
    torch.testing.assert_close(presence, length(pose))
    torch.testing.assert_close(coefficients.sum(2), torch.ones(6, 5))


@pytest.mark.parametrize("settings", [{}, {**BEST, "firing": "sampled", "mixing": 2}])
def test_capsules_with_a_place_on_a_line_train_and_paint(settings: dict[str, Any]) -> None:
    made, x = model(line=2, **settings), pictures(4)
    before = {name: p.detach().clone() for name, p in made.named_parameters()}
    for stage in made.stages():
        assert made.losses(x, torch.arange(4), Step(Noise(0), stage=stage.name)).total.isfinite()
        take_steps(made, x, torch.arange(4), stage.name)
    assert not any(torch.equal(p, before[name]) for name, p in made.named_parameters())
    pose, presence, _ = made.encode(x)
    torch.testing.assert_close(presence, length(pose[..., :1]))
    walk = made.interpolate(x[:2], x[2:], 3)
    torch.testing.assert_close(walk[:, 0], made.reconstruct(x[:2]), atol=1e-4, rtol=1e-3)
    assert made.sample(7, Noise(0)).isfinite().all()
    assert made.explore(1, 5).shape == (3, 5, 1, 8, 8)
    layer: Any = made.layers[0]
    assert (layer.mean_direction[:, 1:] == 0).all()
    assert layer.mean_direction[:, 0].any()


@pytest.mark.parametrize(("channels", "size"), [(1, 28), (3, 32)])
def test_other_sizes_and_colours_train_and_paint(channels: int, size: int) -> None:
    made = model(size, channels, kernel=9)
    x = pictures(2, channels, size)
    for stage in made.stages():
        take_steps(made, x, torch.arange(2), stage.name, 1)
    assert made.reconstruct(x).shape == made.sample(2, Noise(0)).shape == x.shape


def test_drawing_paints_one_capsule_with_the_others_zero() -> None:
    made, seen = model(), []
    made.paint = lambda pose: seen.append(pose) or torch.zeros(len(pose), 1, 8, 8)  # type: ignore
    made.draw(torch.tensor([2, 4]), Noise(3), "full")
    (pose,) = seen
    z = Noise(3).normal(2, 3)
    torch.testing.assert_close(direction(pose[0, 2]), direction(z[0]))
    torch.testing.assert_close(length(pose[1, 4]), z[1].square().sum() / (1 + z[1].square().sum()))
    assert pose.count_nonzero() == 6


@pytest.mark.parametrize("line", [1, 2])
def test_a_drawn_capsule_with_a_place_fires_however_short_its_direction(line: int) -> None:
    made, seen = model(line=line), []
    made.paint = lambda pose: seen.append(pose) or torch.zeros(len(pose), 1, 8, 8)  # type: ignore
    made.draw(torch.tensor([2, 4]), Noise(3), "full")
    (pose,) = seen
    z = Noise(3).normal(2, 3)
    torch.testing.assert_close(pose[0, 2], torch.cat([direction(z[0, : 3 - line]), z[0, 3 - line :]]))
    assert pose.count_nonzero() == 6


@pytest.mark.parametrize("line", [0, 2])
def test_dials_left_alone_paint_the_picture_that_all_capsules_paint(line: int) -> None:
    made, x = model(line=line, scale=20.0), pictures(4)
    values, on, presence = made.dials(x)
    torch.testing.assert_close(presence, made.encode(x).presence)
    torch.testing.assert_close(made.turn(values, on), made.reconstruct(x), atol=1e-4, rtol=1e-3)


def test_the_restricted_domain_is_the_full_one_flipped_where_training_never_was() -> None:
    made = model()
    take_steps(made, pictures(), torch.arange(6), "back")
    seen: list[torch.Tensor] = []
    made.paint = lambda pose: seen.append(pose) or torch.zeros(len(pose), 1, 8, 8)  # type: ignore
    which = torch.arange(5).repeat(40)
    for domain in ("full", "restricted"):
        made.draw(which, Noise(0), domain)
    full, half = seen
    side = torch.einsum("bjd,jd->b", half, made.layers[0].mean_direction)
    assert (side >= 0).all()
    flipped = (full != half).any(2).any(1)
    assert 0 < flipped.sum() < 200
    assert torch.equal(half[flipped], -full[flipped])


def test_samples_come_from_each_capsule_in_turn() -> None:
    made = model()
    torch.testing.assert_close(made.sample(7, Noise(0)), made.draw(torch.tensor([0, 1, 2, 3, 4, 0, 1]), Noise(0)))


def test_a_sheet_of_samples_has_a_column_for_each_capsule() -> None:
    from gencaps.api import Capsules

    made = Capsules(model()).generate(n=12)
    assert (made.columns, made.labels) == (5, ["", "", ""])


def test_a_walk_of_a_capsule_with_a_place_never_turns_it_off() -> None:
    made, seen = model(line=2), []
    take_steps(made, pictures(), torch.arange(6), "back")
    made.paint = lambda pose: seen.append(pose) or torch.zeros(len(pose), 1, 8, 8)  # type: ignore
    made.explore(1, 7)  # one of whose steps leads exactly to 0
    torch.testing.assert_close(length(seen[0][:, 1, :1]), torch.ones(21))


def test_a_walk_has_a_row_for_each_axis_and_meets_in_the_middle() -> None:
    made = model()
    take_steps(made, pictures(), torch.arange(6), "back")
    walk = made.explore(1, 5)
    assert walk.shape == (3, 5, 1, 8, 8)
    torch.testing.assert_close(walk[0, 2], walk[1, 2])
    assert not torch.allclose(walk[0, 0], walk[1, 0])


def test_a_walk_between_pictures_begins_and_ends_at_their_reconstructions() -> None:
    made, x = model(), pictures(4)
    walk = made.interpolate(x[:2], x[2:], 3)
    torch.testing.assert_close(walk[:, 0], made.reconstruct(x[:2]), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(walk[:, 2], made.reconstruct(x[2:]), atol=1e-5, rtol=1e-4)
    refused(lambda: made.interpolate(x, x, 2, torch.ones(4, 1, dtype=torch.bool)), "no capsules for single attributes")


def test_abilities() -> None:
    assert abilities(model()) == ("encode", "reconstruct", "sample", "draw", "explore", "interpolate", "turn")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"filters": (8,)}, ("model.filters", "two banks")),
        ({"filters": (8, 12)}, ("12", "model.primary_dim")),
        ({"capsules": ()}, ("model.capsules is empty",)),
        ({"capsules": (0,)}, ("model.capsules", "at least 1")),
        ({"dropout": 1.0}, ("model.dropout is 1.0", "below 1")),
        ({"alone_noise": 1.5}, ("model.alone_noise is 1.5", "share")),
        ({"alone": "inferred"}, ("model.alone is 'inferred'", "model.line 15")),
        ({"scale": 0.0}, ("model.scale is 0.0", "above 0")),
        ({"mixing": 0}, ("model.mixing is 0",)),
        ({"chains": -1}, ("model.chains is -1",)),
        ({"line": 16}, ("model.line is 16", "at most 15")),
        ({"line": -1}, ("model.line is -1",)),
        ({"line": 1, "capsules": (4, 2)}, ("model.line", "one layer")),
        ({"back_epochs": 0}, ("model.back_epochs is 0",)),
        ({"capsules": (4, 2), "alone_weight": 1.0}, ("model.alone_weight", "one layer")),
    ],
)
def test_bad_settings_are_refused_in_one_line(settings: dict[str, Any], words: tuple[str, ...]) -> None:
    refused(lambda: ProductOfExpertsConfig(**settings), *words)


def test_a_wrong_word_in_a_recipe_is_refused_with_the_nearest() -> None:
    wrong = {"model": {"target": "picture"}}
    refused(lambda: make_recipe("product_of_experts", overrides=wrong), "model.target", "picture")
