"""How it is trained: which weights move when, what each stage sees, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gencaps.model import PictureInfo, Step
from gencaps.papers.probabilistic.config import ProbabilisticConfig
from gencaps.papers.probabilistic.model import ProbabilisticCapsules, bent
from gencaps.primitives.noise import Noise
from tests.helpers import refused
from tests.papers.probabilistic.helpers import tiny

ROAD: dict[str, Any] = {"road": "parts-first"}


def step(stage: str, progress: float = 1.0, seed: int = 0) -> Step:
    return Step(Noise(seed), "model", stage, progress)


def moving(model: ProbabilisticCapsules, stage: str) -> set[str]:
    """Names the weights that a stage's loss pulls at."""
    model.zero_grad(set_to_none=True)
    x = torch.rand(6, 1, 10, 10, generator=torch.Generator().manual_seed(1))
    model.losses(x, torch.zeros(6, dtype=torch.long), step(stage, 0.3)).total.backward()
    return {name for name, p in model.named_parameters() if p.grad is not None and p.grad.abs().max() > 0}


def listed(model: ProbabilisticCapsules, stage: str) -> set[str]:
    own = {id(p) for player in model.players(stage).values() for p in player.parameters}
    return {name for name, p in model.named_parameters() if id(p) in own}


@pytest.mark.parametrize("top", ["set", "votes"])
def test_stage_by_stage_only_the_right_weights_move(top: str) -> None:
    model = tiny(top=top, **ROAD).train()
    assert [stage.name for stage in model.stages()] == ["parts", "objects", "joint"]
    parts, objects = moving(model, "parts"), moving(model, "objects")
    assert parts <= listed(model, "parts")
    assert {n for n in objects if "dummy" not in n} <= listed(model, "objects")
    assert not parts & listed(model, "objects")
    assert any(n.startswith("recogniser.parts") for n in parts)
    assert not any(n.startswith(("recogniser.parts", "scene.templates")) for n in objects)
    assert "scene.families.0.offset" in objects
    assert listed(model, "joint") == {name for name, _ in model.named_parameters()}
    assert moving(model, "joint") >= {"scene.families.0.offset", "scene.templates.rgb_logit"}


@pytest.mark.parametrize("stage", ["objects", "joint"])
def test_a_network_that_finds_one_object_is_taught_and_teaches_nothing(stage: str) -> None:
    """The model is pulled at as if no network were there, and all of the network but the spreads of delta poses is."""
    solved, taught = (
        tiny(top=top, objects="one", twin=1.0, joint_twin=1.0, **ROAD).train() for top in ("votes", "set")
    )
    taught.load_state_dict(solved.state_dict(), strict=False)
    moving(solved, stage)
    moved = moving(taught, stage)
    pulls = {name: p.grad for name, p in solved.named_parameters()}
    for name, p in taught.named_parameters():
        if not name.startswith("recogniser.parents"):
            one, other = (torch.zeros_like(p) if g is None else g for g in (p.grad, pulls[name]))
            assert torch.allclose(one, other, atol=1e-6), name
    network = {name for name, _ in taught.named_parameters() if name.startswith("recogniser.parents")}
    spreads = {name for name in network if ".heads.2." in name}  # of poses that are deltas
    assert network - moved == spreads


def test_a_network_is_taught_in_the_unit_in_which_votes_are_told() -> None:
    from gencaps.papers.probabilistic.mixture import guessed, misplaced

    model, x = tiny(top="set", objects="one", vote_heat=7.0, **ROAD), torch.rand(3, 1, 10, 10)
    parts = model.encode(x).parts.middle()
    found, q = model.evidence(parts), model.recogniser.above(0, parts)
    assert torch.equal(found.log_prob, model.vote(parts).evidence)
    assert torch.allclose(found.terms["guess"], guessed(q, found.log_prob, 7.0))
    assert torch.allclose(found.terms["place"], misplaced(model.evidence_at(parts, q.pose), found.log_prob, 7.0))


def test_which_one_object_it_is_needs_two() -> None:
    refused(lambda: ProbabilisticConfig(capsules=(1, 4), objects="one"), "model.capsules begins with 1", "2 or more")


def test_the_papers_road_is_one_joint_stage() -> None:
    assert [stage.name for stage in tiny().stages()] == ["joint"]
    assert [stage.name for stage in tiny(poses="gaussian").stages()] == ["joint", "full"]


def test_the_joint_loss_is_minus_the_bound() -> None:
    from gencaps.papers.probabilistic.inference import random_numbers

    model, x = tiny(), torch.rand(3, 1, 10, 10)
    losses = model.losses(x, torch.zeros(3, dtype=torch.long), step("joint", seed=4))
    draws = random_numbers((3, 4), 3, Noise(4))
    assert torch.isclose(losses.total, -model.bound(x, draws, True, True).total().mean())
    assert set(losses.terms) == {"picture", "layer0", "layer1"}


def test_without_objects_every_part_is_the_dummys() -> None:
    from gencaps.papers.probabilistic.capsules import Capsules
    from gencaps.papers.probabilistic.generative import FAR
    from tests.papers.probabilistic.helpers import random_capsules

    model, child = tiny(), random_capsules(2, 4, 0)
    nobody = Capsules(torch.zeros(2, 0), torch.zeros(2, 0, 2, 3))
    off = Capsules(torch.full((2, 3), -3 * FAR), torch.zeros(2, 3, 2, 3))
    alone, all_off = (model.scene.pairs(0, parent, child).logsumexp(1) for parent in (nobody, off))
    assert torch.allclose(alone, all_off, atol=1e-4)


def test_the_balance_falls_to_nothing_and_the_heat_to_one() -> None:
    model, x, y = tiny(top="votes", **ROAD), torch.rand(6, 1, 10, 10), torch.zeros(6, dtype=torch.long)
    last = model.losses(x, y, step("objects", 1.0))
    assert torch.isclose(last.total, last.terms["mixture"])
    first = model.losses(x, y, step("objects", 0.0))
    weight = (first.total - first.terms["mixture"]) / first.terms["uneven"]
    assert torch.isclose(weight, torch.tensor(model.config.balance), rtol=1e-3)


def test_objects_begin_as_the_first_pictures_arrangements() -> None:
    model, x = tiny(top="votes", start="pictures", **ROAD).train(), torch.rand(2, 1, 10, 10)
    y = torch.zeros(2, dtype=torch.long)
    before = model.scene.family(0).offset.clone()
    model.losses(x, y, step("objects", 0.0))
    model.begin("parts", x, Noise(0))
    assert torch.equal(model.scene.family(0).offset, before)  # not in a step, nor in another stage
    model.begin("objects", x, Noise(0))
    wanted = model.encode(x).parts.pose[[0, 1, 0]]  # two pictures, three objects
    assert torch.allclose(model.scene.family(0).offset, wanted, atol=1e-6)


def test_with_one_object_the_joint_loss_is_the_bound_with_the_mixture_for_its_top() -> None:
    from gencaps.papers.probabilistic.bound import log_q
    from gencaps.papers.probabilistic.inference import random_numbers
    from gencaps.papers.probabilistic.mixture import tempered

    model, x = tiny(top="votes", objects="one", **ROAD), torch.rand(3, 1, 10, 10)
    losses = model.losses(x, torch.zeros(3, dtype=torch.long), step("joint", seed=4))
    found = model.infer(x, random_numbers((3, 4), 3, Noise(4)), True, False)
    low = found.drawn[1]
    by_hand = (
        model.scene.log_picture(x, low) + tempered(model.vote(low).evidence, 1.0) - log_q(found.q[1], low, 1.0, True)
    )
    assert torch.isclose(losses.total, -by_hand.mean(), atol=1e-3)


def test_with_one_object_the_last_stage_draws_poses_and_keeps_the_mixture() -> None:
    from gencaps.papers.probabilistic.bound import log_q
    from gencaps.papers.probabilistic.inference import random_numbers
    from gencaps.papers.probabilistic.mixture import tempered

    model, x = tiny(top="votes", objects="one", poses="gaussian", **ROAD), torch.rand(3, 1, 10, 10)
    losses = model.losses(x, torch.zeros(3, dtype=torch.long), step("full", seed=4))
    found = model.infer(x, random_numbers((3, 4), 3, Noise(4)), False, False)
    low = found.drawn[1]
    assert not torch.allclose(low.pose, found.q[1].pose)
    by_hand = (
        model.scene.log_picture(x, low) + tempered(model.vote(low).evidence, 1.0) - log_q(found.q[1], low, 1.0, False)
    )
    assert torch.isclose(losses.total, -by_hand.mean(), atol=1e-3)


def test_poses_that_are_gaussian_at_once_are_drawn_in_every_stage() -> None:
    at_once, deltas = tiny(poses="gaussian-at-once", **ROAD), tiny(**ROAD)
    assert [stage.name for stage in at_once.stages()] == ["parts", "objects", "joint", "full"]
    x, y = torch.rand(4, 1, 10, 10), torch.zeros(4, dtype=torch.long)
    for stage in ("parts", "objects", "joint"):
        first, second = (model.losses(x, y, step(stage)).total for model in (at_once, deltas))
        assert not torch.isclose(first, second)


def test_a_twin_is_bent_and_nothing_else() -> None:
    from gencaps.data.transforms import without_affine

    field = without_affine(torch.rand(3, 2, 5, 5, dtype=torch.float64))
    line = torch.linspace(-1, 1, 5, dtype=torch.float64)
    for plane in (torch.ones(5, 5, dtype=torch.float64), line.expand(5, 5), line.expand(5, 5).mT):
        assert (field * plane).sum((2, 3)).abs().max() < 1e-12
    # and what is affine is gone altogether
    assert without_affine((2 + 3 * line - 0.5 * line[:, None]).expand(1, 2, 5, 5)).abs().max() < 1e-12
    x = torch.rand(2, 1, 10, 10)
    assert torch.allclose(bent(x, Noise(0), 0.0), x, atol=1e-5)
    assert not torch.allclose(bent(x, Noise(0), 3.0), x, atol=0.05)


def test_a_quarter_turn_of_training_pictures_leaves_the_loss_alone_where_sides_are_chosen() -> None:
    model = tiny(turns=4, turn_in_training=True, top="votes", objects="one", **ROAD)
    x, y = torch.rand(4, 1, 10, 10), torch.zeros(4, dtype=torch.long)
    for stage in ("objects", "joint"):
        first, second = (model.losses(p, y, step(stage)).total for p in (x, torch.rot90(x, 1, (2, 3))))
        assert torch.isclose(first, second, rtol=1e-3)
    before, after = (model.losses(p, y, step("parts")).total for p in (x, torch.rot90(x, 1, (2, 3))))
    assert not torch.isclose(before, after, rtol=1e-3)  # parts are learned at any angle


@pytest.mark.parametrize("top", ["set", "votes"])
def test_twins_are_weighed_where_one_object_is_on(top: str) -> None:
    settings: dict[str, Any] = {"top": top, "objects": "one", **ROAD}
    plain, twins = tiny(**settings), tiny(twin=3.0, joint_twin=3.0, sure=0.5, **settings)
    x, y = torch.rand(4, 1, 10, 10), torch.zeros(4, dtype=torch.long)
    for stage in ("objects", "joint"):
        # at its end the balance of the objects' stage is 0
        first, second = (model.losses(x, y, step(stage)) for model in (plain, twins))
        added = 3.0 * (second.terms["twin"] + 0.5 * second.terms["doubt"])
        assert torch.isclose(second.total - first.total, added, rtol=1e-3, atol=1e-2)
        assert second.terms["twin"] > 0
    assert "twin" not in twins.losses(x, y, step("parts")).terms


def test_three_layers_and_colour_train_alike() -> None:
    for top in ("set", "votes"):
        model = tiny(channels=3, capsules=(2, 3, 4), poses="gaussian", top=top, **ROAD).train()
        x = torch.rand(4, 3, 10, 10)
        for stage in model.stages():
            loss = model.losses(x, torch.zeros(4, dtype=torch.long), step(stage.name)).total
            loss.backward()
            assert loss.isfinite()
        assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
        assert len(model.encode(x).layers) == 3


def test_gradients_are_finite_on_pictures_of_nothing_and_of_everything() -> None:
    model = tiny(top="votes", **ROAD).train()
    for x in (torch.zeros(4, 1, 10, 10), torch.ones(4, 1, 10, 10)):
        for stage in model.stages():
            model.zero_grad()
            model.losses(x, torch.zeros(4, dtype=torch.long), step(stage.name, 0.0)).total.backward()
            assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_the_generative_model_has_fewer_than_30_000_numbers() -> None:
    model = ProbabilisticCapsules(ProbabilisticConfig(), PictureInfo(1, 28, tuple("0123456789")))
    # 16 x 16 pairs of 6 + 1 + 1 + 1, a dummy of 6 + 1 for each child, 16 templates of 2 x 144
    assert model.generative_parameters == 256 * 9 + 16 * 7 + 16 * 2 * 144
    assert model.generative_parameters < 30_000


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"capsules": (16,)}, ("model.capsules", "two layers")),
        ({"capsules": (0, 4)}, ("model.capsules", "at least 1")),
        ({"sigma": 0.0}, ("model.sigma", "above 0")),
        ({"spread_min": -1.0}, ("model.spread_min",)),
        ({"share": 1.0}, ("model.share", "below 1")),
        ({"heat": 0.5}, ("model.heat", "at least 1")),
        ({"cool": 2.0}, ("model.cool",)),
        ({"balance": -1.0}, ("model.balance",)),
        ({"width": 30, "heads": 4}, ("model.width", "multiple")),
        ({"turns": 0}, ("model.turns", "at least 1")),
        ({"turn_in_training": True}, ("model.turn_in_training", "model.turns")),
        ({"twin": -1.0}, ("model.twin",)),
    ],
)
def test_bad_settings_are_refused_on_one_line(settings: dict[str, object], words: tuple[str, ...]) -> None:
    refused(lambda: ProbabilisticConfig(**settings), *words)  # pyright: ignore[reportArgumentType]
