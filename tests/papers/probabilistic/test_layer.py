"""Children given their parents: brute force over s, the limits of the relaxation, and who follows whom."""

from __future__ import annotations

import itertools
import math

import torch
from torch.distributions import Normal

from gencaps.papers.probabilistic.capsules import Capsules
from gencaps.papers.probabilistic.layer import (
    frames,
    log_children,
    log_choice,
    log_pose,
    log_presence,
    place,
    whose,
)
from tests.papers.probabilistic.helpers import random_capsules, tiny


def square(pose: torch.Tensor) -> torch.Tensor:
    return torch.cat([pose, torch.tensor([[0.0, 0.0, 1.0]])])


def test_the_sum_over_s_is_that_over_every_assignment_of_children_to_parents() -> None:
    model, parent, child = tiny(), random_capsules(2, 3, 1), random_capsules(2, 4, 2)
    pairs = model.scene.pairs(0, parent, child).detach()
    for b in range(2):
        joint = [
            sum(float(pairs[b, i, j]) for j, i in enumerate(assigned))
            for assigned in itertools.product(range(4), repeat=4)  # slot 0 is the dummy
        ]
        assert math.isclose(float(log_children(pairs)[b]), float(torch.tensor(joint).logsumexp(0)), abs_tol=1e-4)
    assert torch.allclose(whose(pairs).sum(1), torch.ones(2, 4))
    # Bayes by hand: p(s = i given the rest) is the pair's share of the sum
    by_hand = pairs.exp()[0, 2, 1] / pairs.exp()[0, :, 1].sum()
    assert torch.isclose(whose(pairs)[0, 2, 1], by_hand)


def test_choice_by_hand() -> None:
    # t = (1/2, 1/4), rho = (0.1 of the dummy, 0.4, 0.8): weights 0.1, 0.2, 0.2
    logit = torch.tensor([[0.0, -math.log(3.0)]])
    chosen = log_choice(logit, torch.tensor([[0.1], [0.4], [0.8]]).log()).exp()
    assert torch.allclose(chosen[0, :, 0], torch.tensor([0.2, 0.4, 0.4]))


def test_the_dummy_takes_all_children_where_no_parent_is_there() -> None:
    chosen = log_choice(torch.full((1, 2), -200.0), torch.zeros(3, 4)).exp()
    assert torch.allclose(chosen[0, 0], torch.ones(4))
    assert chosen.isfinite().all()


def test_presence_is_the_relaxed_bernoulli_of_torch() -> None:
    y, gamma = torch.tensor([[0.7]]), torch.tensor([[-0.2], [1.5]])
    t = y.sigmoid()
    for temperature in (0.5, 1.0, 2.0):
        theirs = torch.distributions.RelaxedBernoulli(torch.tensor(temperature), logits=gamma).log_prob(t)
        ours = log_presence(y, gamma, temperature)[0] - torch.log(t * (1 - t))  # to the density of t itself
        assert torch.allclose(ours, theirs, atol=1e-5)


def test_a_childs_place_is_its_parents_frame_times_its_offset() -> None:
    parent, offset = random_capsules(2, 3, 3).pose, torch.randn(4, 5, 2, 3)
    means = place(frames(parent, top=True), offset)
    by_hand = (torch.eye(3) + torch.cat([parent[1, 2], torch.zeros(1, 3)])) @ square(offset[3, 4])
    assert torch.allclose(means[1, 3, 4], by_hand[:2], atol=1e-6)
    assert torch.allclose(means[:, 0], offset[0].expand(2, -1, -1, -1))  # the dummy stands at the identity
    below = place(frames(parent, top=False), offset)
    assert torch.allclose(below[1, 3, 4], (square(parent[1, 2]) @ square(offset[3, 4]))[:2], atol=1e-6)


def test_presences_of_0_and_1_give_the_hard_model() -> None:
    pose, mean, log_var = torch.randn(1, 1, 2, 3), torch.randn(1, 2, 1, 2, 3), torch.randn(2, 1, 2, 3)
    on = log_pose(Capsules(torch.full((1, 1), 40.0), pose), mean, log_var, 0.7)
    by_hand = Normal(mean[0, 1, 0], (0.5 * log_var[1, 0]).exp()).log_prob(pose[0, 0]).sum()
    assert torch.isclose(on[0, 1, 0], by_hand, atol=1e-5)
    off = log_pose(Capsules(torch.full((1, 1), -40.0), pose), mean, log_var, 0.7)
    assert torch.allclose(off, Normal(0.0, 0.7).log_prob(pose).sum().expand(1, 2, 1), atol=1e-5)
    # hard parents: rho_i / (rho_i + rho_0) where parent i alone is on
    chosen = log_choice(torch.tensor([[40.0, -40.0]]), torch.tensor([[0.1], [0.3], [0.9]]).log()).exp()
    assert torch.allclose(chosen[0, :, 0], torch.tensor([0.25, 0.75, 0.0]), atol=1e-6)


def test_children_follow_their_parents_pose() -> None:
    model = tiny()
    top = Capsules(torch.tensor([[40.0, -40.0, -40.0]]), torch.zeros(1, 3, 2, 3))
    moved = top.pose.clone()
    moved[0, 0, 0, 2] = 0.3  # to the right
    before, after = (model.scene.unroll(Capsules(top.presence_logit, pose))[-1].pose for pose in (top.pose, moved))
    assert torch.allclose(
        after - before, torch.tensor([[0.0, 0.0, 0.3], [0.0, 0.0, 0.0]]).expand(1, 4, 2, 3), atol=1e-6
    )


def test_gradients_are_finite_at_bad_points() -> None:
    model = tiny()
    for logit in (-1e4, 0.0, 1e4):
        for size in (0.0, 1e3):
            parent = Capsules(torch.full((1, 3), logit), torch.full((1, 3, 2, 3), size))
            child = Capsules(torch.full((1, 4), logit), torch.full((1, 4, 2, 3), -size))
            inputs = [part.requires_grad_() for part in (*parent, *child)]
            log_children(model.scene.pairs(0, parent, child)).sum().backward()
            assert all(part.grad is not None and part.grad.isfinite().all() for part in inputs)
