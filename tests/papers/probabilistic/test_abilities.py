"""What a scene can do: objects move with their parts, turns are undone, and explanations add up."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch.distributions import Normal

from gencaps.papers.probabilistic import abilities
from gencaps.papers.probabilistic.abilities import Look, likeliest
from gencaps.papers.probabilistic.capsules import Capsules, Layer
from gencaps.papers.probabilistic.generative import hard
from gencaps.papers.probabilistic.layer import frames, log_children
from gencaps.papers.probabilistic.telling import motion_to
from gencaps.papers.probabilistic.turns import all_turns, turn_back, turned
from gencaps.primitives.noise import Noise
from gencaps.primitives.pose import compose
from tests.papers.probabilistic.helpers import random_capsules, tiny


def test_moving_every_object_moves_its_parts_and_leaves_clutter() -> None:
    model, x = tiny(), torch.rand(2, 1, 10, 10)
    still = torch.eye(2, 3).expand(2, 3, 2, 3).clone()
    assert torch.allclose(model.move(x, still), model.reconstruct(x), atol=1e-6)
    code = model.encode(x)
    layers = tuple(layer.middle() for layer in code.layers)
    owner = model.belongs(code).argmax(1)
    shift = still.clone()
    shift[..., 0, 2] = 0.25
    pose = layers[-1].pose.clone()
    pose[..., 0, 2] += 0.25 * (owner > 0)
    assert torch.allclose(model.move(x, shift), model.paint(Capsules(layers[-1].presence_logit, pose)), atol=1e-5)


def test_motion_takes_one_pose_to_the_other() -> None:
    start, end = (0.3 * torch.randn(2, 3, 2, 3) for _ in range(2))
    assert torch.allclose(compose(motion_to(start, end), frames(start, True)), frames(end, True), atol=1e-4)


def test_this_object_at_that_pose() -> None:
    model = tiny(size=20)
    with torch.no_grad():
        model.scene.family(0).presence.fill_(5.0)
        model.scene.family(0).affinity.fill_(5.0)
    on, pose = torch.tensor([[0.0, 1.0, 0.0]]), torch.zeros(1, 3, 2, 3)
    plain = model.arrange(on, pose)
    other = pose.clone()
    other[0, 0] += 1.0  # of an object that is not there
    assert torch.equal(model.arrange(on, other), plain)
    moved = pose.clone()
    moved[0, 1, 0, 2] = 0.2  # two pixels of twenty to the right
    assert torch.allclose(model.arrange(on, moved)[..., 2:], plain[..., :-2], atol=1e-4)


def test_samples_come_from_their_noise_and_lie_between_0_and_1() -> None:
    model = tiny()
    first, again, other = (model.sample(5, Noise(seed)) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert first.min() >= 0
    assert first.max() <= 1


def test_drawn_objects_are_there_as_often_as_the_prior_says() -> None:
    model = tiny(share=0.3, pose_scale=0.5)
    top = model.scene.draw(4000, Noise(0))[0]
    assert abs(float((top.presence_logit > 0).float().mean()) - 0.3) < 0.02
    assert abs(float(top.pose.std()) - 0.5) < 0.01


def test_a_model_of_one_object_draws_one_each_equally_often() -> None:
    on = tiny(objects="one").scene.draw(3000, Noise(0))[0].presence_logit > 0
    assert (on.sum(1) == 1).all()
    assert (on.float().mean(0) - 1 / 3).abs().max() < 0.03


def test_drawn_children_choose_a_present_parent_by_affinity() -> None:
    model = tiny(dummy=0.2)
    family = model.scene.family(0)
    with torch.no_grad():
        family.offset.zero_()
        family.dummy_offset.zero_()
        family.offset[..., 2] = torch.tensor([1.0, 2.0, 3.0])[:, None, None]  # the place tells the parent
        family.presence.fill_(50.0)
        family.dummy_presence.fill_(50.0)
        family.spread.fill_(-50.0)
        family.affinity.zero_()  # rho = 1/2
    on = torch.tensor([[True, False, True]]).expand(4000, 3)
    low = model.scene.unroll(Capsules(hard(on), torch.zeros(4000, 3, 2, 3)), Noise(0))[-1]
    near = [float(((low.pose[..., 0, 2] - place).abs() < 0.45).float().mean()) for place in (1.0, 2.0, 3.0)]
    # rho: dummy 0.2, first 0.5, third 0.5; the dummy's own scatter of 0.5 falls near 1 now and then
    assert abs(near[2] - 0.5 / 1.2) < 0.02
    assert near[1] < 0.01
    assert abs(near[0] - 0.5 / 1.2) < 0.04


def test_explanations_add_up_to_one_over_templates_and_over_objects() -> None:
    told = tiny().explain(torch.rand(2, 1, 10, 10))
    for shares in (told.templates, told.objects):
        assert torch.allclose(shares.sum(1), torch.ones(2, 10, 10), atol=1e-5)
    assert told.templates.shape[1] == 5
    assert told.objects.shape[1] == 4
    assert tiny(capsules=(2, 3, 4)).explain(torch.rand(2, 1, 10, 10)).objects.sum(1).allclose(torch.ones(2, 10, 10))


def test_turning_a_picture_and_turning_back_its_capsules_paints_it() -> None:
    torch.manual_seed(0)
    model, turn = tiny(size=13), all_turns(4, torch.zeros(()))  # quarter turns need no interpolation
    child = random_capsules(2, 4, 0, scale=0.1)
    x = model.paint(child)
    around = torch.stack([turned(x, one) for one in turn])
    assert torch.allclose(around[0], x, atol=1e-5)
    # by a quarter turn from x to y (down), what was right is below
    assert torch.allclose(around[1], torch.rot90(x, -1, (2, 3)), atol=1e-4)
    moved = Layer(child.presence_logit, compose(turn[1].expand(2, 1, 2, 3), child.pose), torch.zeros(2, 4, 2, 3))
    assert torch.allclose(model.paint(moved.middle()), around[1], atol=1e-4)
    back = turn_back(moved, turn[1], top=False)
    assert torch.allclose(back.pose, child.pose, atol=1e-5)


def test_the_variance_of_a_pose_turns_with_it() -> None:
    generator = torch.Generator().manual_seed(0)
    turn = all_turns(7, torch.zeros(()))[1]
    spread = torch.rand(1, 1, 2, 3, generator=generator)
    draws = spread * torch.randn(200_000, 1, 2, 3, generator=generator)
    back = turn_back(Layer(torch.zeros(len(draws), 1), draws, torch.zeros_like(draws)), turn, top=False)
    said = turn_back(Layer(torch.zeros(1, 1), torch.zeros(1, 1, 2, 3), 2 * spread.log()), turn, top=False)
    assert torch.allclose(back.pose.var(0, keepdim=True), said.pose_log_var.exp(), rtol=0.02)


def test_the_likeliest_side_of_each_picture_is_kept() -> None:
    """Two looks, of two sides and of one, at three pictures; a capsule's number says which side it is of."""
    sides = all_turns(3, torch.zeros(()))
    heights = torch.tensor([[5.0, 1.0, 2.0], [torch.nan, 3.0, 2.0], [0.0, 9.0, 2.0]])
    number = torch.arange(3.0)[:, None].expand(3, 3)
    looks = [
        Look((Layer(number[some, :, None], torch.zeros(n, 3, 1, 2, 3), torch.zeros(n, 3, 1, 2, 3)),), heights[some])
        for some, n in ((slice(2), 2), (slice(2, 3), 1))
    ]
    found = likeliest(looks, sides)
    assert found.layers[0].presence_logit.flatten().tolist() == [0, 2, 0]
    assert torch.equal(found.turn, sides[[0, 2, 0]])


@pytest.mark.parametrize("settings", [{}, {"top": "votes", "objects": "one"}])
def test_sides_looked_at_together_or_one_by_one_are_the_same(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, x = tiny(turns=5, seed=3, **settings), torch.rand(6, 1, 10, 10)
    found = []
    for at_once in (1, 12, 100):
        monkeypatch.setattr(abilities, "LOOKS", at_once)
        found.append(model.encode(x))
    for other in found[1:]:
        assert torch.equal(other.turn, found[0].turn)
        for a, b in zip(other.layers, found[0].layers, strict=True):
            assert all(torch.allclose(part, same, atol=1e-4) for part, same in zip(a, b, strict=True))


def test_a_model_that_looks_from_all_sides_explains_no_picture_worse() -> None:
    one, four = tiny(), tiny(turns=4)
    four.load_state_dict(one.state_dict())
    x = torch.rand(5, 1, 10, 10)

    seen = four.encode(x)
    assert (four.log_joint(x, *seen) >= one.log_joint(x, one.encode(x).layers) - 1e-3).all()


@pytest.mark.parametrize("settings", [{}, {"top": "votes", "objects": "one"}])
def test_a_turned_picture_has_the_same_scene_and_another_turn(settings: dict[str, Any]) -> None:
    """Objects and parts are told in the scene's frame, so that a turn of the picture leaves them alone."""
    model, x = tiny(turns=4, seed=3, **settings), torch.rand(4, 1, 10, 10)
    first, second = model.encode(x), model.encode(torch.rot90(x, -1, (2, 3)))
    for one, other in zip(first.layers, second.layers, strict=True):
        assert torch.allclose(one.pose, other.pose, atol=1e-3)
        assert torch.allclose(one.presence_logit, other.presence_logit, atol=1e-3)
    quarter = all_turns(4, x)[1].expand(4, 2, 3)
    assert torch.allclose(compose(second.turn, quarter), first.turn, atol=1e-5)
    pictures = (model.reconstruct(torch.rot90(x, -1, (2, 3))), torch.rot90(model.reconstruct(x), -1, (2, 3)))
    assert torch.allclose(*pictures, atol=1e-3)


def test_the_prior_of_turns_keeps_pictures_upright_and_costs_twice_its_weight_upside_down() -> None:
    even, steep = tiny(turns=4, seed=3), tiny(turns=4, seed=3, turn_prior=1e5)
    x = torch.rand(8, 1, 10, 10)
    assert not torch.equal(even.encode(x).turn, torch.eye(2, 3).expand(8, 2, 3))
    assert torch.equal(steep.encode(x).turn, torch.eye(2, 3).expand(8, 2, 3))
    q, half = even.encode(x).layers, all_turns(4, x)[2]
    gentle = tiny(turns=4, seed=3, turn_prior=7.0)
    assert torch.allclose(even.log_joint(x, q, half) - gentle.log_joint(x, q, half), torch.tensor(14.0), atol=1e-2)


@pytest.mark.parametrize("turns", [1, 4])
def test_refining_one_object_climbs_its_own_bound_and_solves_it_again(turns: int) -> None:
    torch.manual_seed(0)
    model, x = tiny(top="votes", objects="one", turns=turns), torch.rand(3, 1, 10, 10)
    before, after = model.encode(x), model.refine(x, 60)
    assert torch.equal(before.turn, after.turn)
    assert (model.log_joint(x, *after) > model.log_joint(x, *before)).all()
    assert torch.allclose(after.objects.pose, model.vote(after.parts.middle()).pose)


def test_refining_one_object_that_a_network_found_climbs_the_pose_of_every_object() -> None:
    torch.manual_seed(0)
    model, x = tiny(top="set", objects="one", dummy=1e-6), torch.rand(3, 1, 10, 10)
    with torch.no_grad():
        model.scene.family(0).offset[2] += 2.0
    before, after = model.encode(x), model.refine(x, 200)
    assert (model.log_joint(x, *after) > model.log_joint(x, *before)).all()
    first = model.evidence_at(before.layers[1].middle(), before.objects.pose)
    assert (first.softmax(1)[:, 2] < 1e-20).all()  # an object that looks like nothing that there is
    parts = after.layers[1].middle()
    evidence = model.evidence_at(parts, after.objects.pose)
    assert (evidence - model.evidence_at(parts, before.objects.pose) > 5).all()


def test_refining_one_object_that_a_network_found_tells_the_posterior_of_which_one_it_is() -> None:
    model, x = tiny(top="set", objects="one", vote_heat=7.0), torch.rand(3, 1, 10, 10)
    after = model.refine(x, 20)
    posterior = model.evidence_at(after.layers[1].middle(), after.objects.pose).div(7.0).softmax(1)
    assert torch.allclose(after.presence, posterior, atol=1e-5)


@pytest.mark.parametrize("objects", ["one", "several"])
def test_refining_the_top_alone_leaves_the_parts_alone_and_explains_no_worse(objects: str) -> None:
    torch.manual_seed(0)
    model, x = tiny(top="set", objects=objects), torch.rand(3, 1, 10, 10)
    before, after = model.encode(x), model.refine(x, 100, layers=1)
    assert all(torch.equal(one, other) for one, other in zip(before.parts, after.parts, strict=True))
    assert not torch.allclose(before.objects.pose, after.objects.pose, atol=0.01)
    assert (model.log_joint(x, *after) > model.log_joint(x, *before)).all()


def test_an_object_that_is_not_there_does_not_pull_at_the_parts() -> None:
    """Each pose is climbed by its own object's evidence, the parts by that of what is there alone."""
    x, found = torch.rand(2, 1, 10, 10), []
    for away in (1.0, 1.2):  # not so far that its parts would rather be nobody's
        model = tiny(top="set", objects="one", dummy=1e-30)
        with torch.no_grad():
            model.scene.family(0).offset[2] += away
        after = model.refine(x, 10)
        assert (model.presence(after)[:, 2] < 1e-20).all()
        found.append(after.parts.pose)
    assert torch.allclose(*found, atol=1e-5)


def test_every_step_of_refining_is_told() -> None:
    told: list[int] = []
    tiny().refine(torch.rand(1, 1, 10, 10), 4, each=lambda: told.append(1))
    assert len(told) == 4


def test_where_objects_are_solved_nothing_of_the_top_is_left_to_refine() -> None:
    model, x = tiny(top="votes", objects="one"), torch.rand(3, 1, 10, 10)
    for one, other in zip(model.encode(x).layers, model.refine(x, 5, layers=1).layers, strict=True):
        assert all(torch.equal(part, same) for part, same in zip(one, other, strict=True))


def test_of_one_object_that_a_network_found_the_presences_are_shares_of_one() -> None:
    model, x = tiny(top="set", objects="one"), torch.rand(3, 1, 10, 10)
    code = model.encode(x)
    assert torch.allclose(code.presence.sum(1), torch.ones(3), atol=1e-5)
    logit = model.recogniser.above(0, code.layers[1].middle()).presence_logit
    assert torch.allclose(code.presence, logit.softmax(1), atol=1e-5)


def test_the_likelihood_of_one_object_that_a_network_found_has_which_one_summed_out() -> None:
    model, x = tiny(top="set", objects="one"), torch.rand(2, 1, 10, 10)
    top, low = (layer.middle() for layer in model.encode(x).layers)
    alone = []
    for i, pose in enumerate(top.pose.unbind(1)):
        on = torch.full((2, top.pose.shape[1]), -60.0)
        on[:, i] = 60.0
        prior = Normal(0, model.config.pose_scale).log_prob(pose).sum((1, 2))
        alone.append(prior + log_children(model.scene.pairs(0, Capsules(on, top.pose), low)))
    wanted = model.scene.log_picture(x, low) + torch.stack(alone).logsumexp(0) - math.log(len(alone))
    assert torch.allclose(model.log_joint(x, model.encode(x).layers), wanted, atol=1e-3)


@pytest.mark.parametrize("top", ["votes", "set"])
def test_who_is_there_is_told_by_the_model_and_not_softened(top: str) -> None:
    model, x = tiny(top=top, objects="one"), torch.rand(3, 1, 10, 10)
    code = model.encode(x)
    evidence = model.evidence_of(code.layers[1].middle(), code.objects.pose)
    assert torch.allclose(model.presence(code), evidence.softmax(1))
    assert torch.allclose(model.explain(x).presence, evidence.softmax(1))
    assert not torch.allclose(model.presence(code), code.presence, atol=0.01)


@pytest.mark.parametrize("top", ["votes", "set"])
def test_whose_part_a_template_is_adds_up_to_one_where_there_is_one_object(top: str) -> None:
    for capsules in ((3, 4), (2, 3, 4)):
        model = tiny(top=top, objects="one", capsules=capsules)
        code = model.encode(torch.rand(2, 1, 10, 10))
        belongs = model.belongs(code)
        assert (belongs >= 0).all()
        own = model.alone(code.layers[1].middle(), code.objects.pose).belongs()
        assert torch.allclose(model.whose(code)[0][:, 1:], model.presence(code)[..., None] * own)
        assert torch.allclose(belongs.sum(1), torch.ones(2, 4), atol=1e-5)


def test_reconstruction_after_refine_is_nearer() -> None:
    model, x = tiny(), torch.rand(2, 1, 10, 10)
    before, after = ((model.reconstruct(x, refine=steps) - x).square().mean() for steps in (0, 60))
    assert after < before
