"""The poses of objects, solved: against a dense linear Gaussian, and what agreement does."""

from __future__ import annotations

import torch
from torch.distributions import MultivariateNormal

from gencaps.papers.probabilistic.capsules import Capsules, Layer
from gencaps.papers.probabilistic.layer import Bonds, frames, place
from gencaps.papers.probabilistic.mixture import (
    disagreement,
    doubt,
    each_alone,
    guessed,
    imbalance,
    log_pose_prior,
    misplaced,
    odds,
    tempered,
    vote,
)
from gencaps.papers.probabilistic.votes import Factor, solve_pose
from gencaps.primitives.pose import homogeneous

SETTINGS = {"temperature": 1.0, "off_scale": 1.0, "pose_scale": 0.7}


def bonds(parents: int = 2, children: int = 3, dummy: float = -80.0) -> Bonds:
    generator = torch.Generator().manual_seed(0)
    shape = (parents + 1, children)
    affinity = torch.zeros(shape)
    affinity[0] = dummy
    offset = 0.5 * torch.eye(2, 3) + 0.4 * torch.randn(*shape, 2, 3, generator=generator)
    return Bonds(affinity, torch.zeros(shape), offset, torch.randn(*shape, 2, 3, generator=generator))


def dense(known: Bonds, parent: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gives W, m and the noise of ``children = W a + m + noise`` with all poses as flat vectors."""
    start = place(frames(torch.zeros(1, 2, 2, 3), top=True), known.offset)[0, parent + 1].flatten()
    columns = []
    for k in range(6):
        pose = torch.zeros(1, 2, 2, 3)
        pose[0, parent].view(-1)[k] = 1.0
        columns.append(place(frames(pose, top=True), known.offset)[0, parent + 1].flatten() - start)
    return torch.stack(columns, 1), start, known.log_var[parent + 1].flatten().exp()


def test_pose_and_evidence_are_those_of_the_linear_gaussian() -> None:
    known, pose = bonds(), 0.5 * torch.eye(2, 3) + 0.3 * torch.randn(1, 3, 2, 3)
    voted = vote(Capsules(torch.full((1, 3), 60.0), pose), known, rounds=2, **SETTINGS)
    for parent in range(2):
        w, m, noise = dense(known, parent)
        precision = w.T @ (w / noise[:, None]) + torch.eye(6) / 0.7**2
        mean = torch.linalg.solve(precision, w.T @ ((pose.flatten() - m) / noise))
        assert torch.allclose(voted.pose[0, parent].flatten(), mean, atol=1e-4)
        spread = torch.linalg.inv(precision).diagonal().log()
        assert torch.allclose(voted.pose_log_var[0, parent].flatten(), spread, atol=1e-4)
        marginal = MultivariateNormal(m, noise.diag() + 0.7**2 * w @ w.T).log_prob(pose.flatten())
        presences = 3 * (-60.0)  # the logistic density of 60 about 0
        assert torch.isclose(voted.evidence[0, parent], marginal + presences, atol=1e-2)


def test_a_factor_is_that_of_the_library() -> None:
    half = torch.randn(5, 3, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    p, right = half @ half.mT + 0.1 * torch.eye(3, dtype=torch.float64), half[:, 0]
    factor = Factor.of(p, 0.1)
    assert torch.allclose(factor.solve(right), torch.linalg.solve(p, right))
    assert torch.allclose(factor.log_det(), torch.logdet(p))
    assert torch.allclose(factor.variances(), torch.linalg.inv(p).diagonal(dim1=-2, dim2=-1))
    assert torch.autograd.gradcheck(lambda p: Factor.of((p + p.mT) / 2, 0.1).solve(right), p.requires_grad_())


def test_a_factor_stays_finite_where_rounding_eats_the_prior() -> None:
    line = torch.tensor([1e4, 1.0, -1e4])
    factor = Factor.of(torch.outer(line, line) + 1e-3 * torch.eye(3), 1e-3)
    assert factor.solve(line).isfinite().all()
    assert factor.variances().isfinite().all()


def test_the_evidence_lies_below_the_likelihood_and_near_it() -> None:
    # each part may be the object's or clutter, so the posterior of the pose is a mixture of 2^4 Gaussians
    torch.manual_seed(0)
    known = bonds(parents=2, children=4, dummy=-1.0)
    child = Capsules(torch.randn(1, 4), 0.5 * torch.eye(2, 3) + 0.5 * torch.randn(1, 4, 2, 3))
    voted = vote(child, known, rounds=4, **SETTINGS)
    many, n = Capsules(*(part.expand(40_000, *part.shape[1:]) for part in child)), 40_000
    q = torch.distributions.Normal(voted.pose, 1.5 * (0.5 * voted.pose_log_var).exp())
    pose = q.sample((n,))[:, 0]
    weight = each_alone(many, pose, known, 1.0, 1.0).log_prob() + log_pose_prior(pose, 0.7)
    weight = weight - q.log_prob(pose).sum((-2, -1))
    truth = weight.logsumexp(0) - torch.tensor(float(n)).log()
    assert (voted.evidence[0] < truth).all()
    assert (voted.evidence[0] > truth - 1.0).all()


def test_a_part_without_weight_has_no_vote() -> None:
    known, pose = bonds(), torch.randn(1, 3, 2, 3)
    weight = torch.ones(1, 2, 3)
    weight[..., 2] = 0.0
    other = pose.clone()
    other[:, 2] += 5.0
    first, _ = solve_pose(weight, pose, known.offset[1:], known.log_var[1:], 1.0)
    second, _ = solve_pose(weight, other, known.offset[1:], known.log_var[1:], 1.0)
    assert torch.allclose(first, second)


def test_parts_of_one_object_find_its_pose_and_its_name() -> None:
    known = bonds(parents=2, children=6, dummy=-3.0)._replace(log_var=torch.full((3, 6, 2, 3), -6.0))
    known.log_var[0] = 0.0
    truth = 0.3 * torch.randn(1, 2, 2, 3, generator=torch.Generator().manual_seed(1))
    parts = place(frames(truth, top=True), known.offset)[:, 2]  # all six are the second object's
    parts[:, 5] += 3.0  # but one strays
    voted = vote(Capsules(torch.full((1, 6), 3.0), parts), known, rounds=4, **SETTINGS)
    assert torch.allclose(voted.pose[0, 1], truth[0, 1], atol=0.05)
    assert odds(voted.evidence)[0, 1] > 5 > 0 > odds(voted.evidence)[0, 0]


def test_moving_all_parts_moves_the_object_and_hardly_its_evidence() -> None:
    known = bonds(parents=2, children=6)
    wide = {**SETTINGS, "pose_scale": 30.0}
    parts = place(frames(torch.zeros(1, 2, 2, 3), top=True), known.offset)[:, 1]
    turn = torch.tensor([[0.0, -1.0, 0.4], [1.0, 0.0, -0.2]])
    known = known._replace(log_var=torch.full_like(known.log_var, -3.0))
    turned = (homogeneous(turn) @ homogeneous(parts))[..., :2, :]
    logit = torch.full((1, 6), 5.0)
    before, after = (vote(Capsules(logit, pose), known, rounds=2, **wide) for pose in (parts, turned))
    assert torch.allclose(after.pose[0, 0] + torch.eye(2, 3), turn, atol=1e-3)
    assert torch.allclose(before.evidence, after.evidence, atol=0.02)


def test_a_great_heat_gives_the_mean_and_a_heat_of_one_the_mixture() -> None:
    evidence = torch.tensor([[1.0, 3.0, -2.0]])
    assert torch.isclose(tempered(evidence, 1e4)[0], evidence.mean(), atol=1e-3)
    by_hand = (evidence.exp().sum() / 3).log()
    assert torch.isclose(tempered(evidence, 1.0)[0], by_hand)


def test_odds_are_the_logits_of_the_responsibilities() -> None:
    evidence = torch.randn(4, 5)
    assert torch.allclose(odds(evidence), torch.logit(evidence.softmax(1)), atol=1e-4)
    assert odds(1e4 * evidence).isfinite().all()


def test_views_that_agree_do_not_disagree_and_a_sure_one_has_no_doubt() -> None:
    evidence = torch.randn(3, 4)
    assert disagreement(evidence, evidence + 5.0, 1.0).abs().max() < 1e-5
    # (0.75 - 0.25) log 3, twice
    one, other = torch.tensor([[3.0, 1.0]]).log(), torch.tensor([[1.0, 3.0]]).log()
    assert torch.isclose(disagreement(one, other, 1.0)[0], torch.tensor(3.0).log())
    assert torch.isclose(doubt(torch.zeros(1, 4), 1.0)[0], torch.tensor(4.0).log())
    assert doubt(torch.tensor([[100.0, 0.0]]), 1.0)[0] < 1e-5


def test_imbalance_is_zero_where_objects_share_the_pictures_and_log_n_where_one_has_all() -> None:
    assert imbalance(100 * torch.eye(4), 1.0).abs() < 1e-5
    alone = torch.zeros(8, 4)
    alone[:, 2] = 200.0
    assert torch.isclose(imbalance(alone, 1.0), torch.tensor(4.0).log(), atol=1e-5)


def test_each_alone_agrees_with_the_whole_layer_where_the_others_are_off() -> None:
    from gencaps.papers.probabilistic.layer import log_children, log_parts

    known, child = bonds(dummy=-1.0), Capsules(torch.randn(2, 3), torch.randn(2, 3, 2, 3))
    pose = 0.2 * torch.randn(2, 2, 2, 3)
    for parent in range(2):
        logit = torch.full((2, 2), -60.0)
        logit[:, parent] = 60.0
        whole = log_children(log_parts(child, logit, frames(pose, top=True), known, 1.0, 0.5))
        assert torch.allclose(each_alone(child, pose, known, 1.0, 0.5).log_prob()[:, parent], whole, atol=1e-4)


def test_a_guess_is_best_where_it_is_the_responsibility() -> None:
    evidence = torch.tensor([[0.0, 2.0, -1.0]])

    def guess(logit: torch.Tensor) -> float:
        pose = torch.zeros(1, 3, 2, 3)
        return float(guessed(Layer(logit, pose, pose), evidence, 2.0)[0])

    # at its best the cross entropy is the responsibilities' own entropy
    share = (evidence / 2).softmax(1)
    assert abs(guess(evidence / 2) + float((share * share.log()).sum())) < 1e-6
    assert guess(evidence / 2) < guess(torch.zeros(1, 3)) < guess(-evidence)


def test_objects_are_misplaced_by_what_they_explain_badly_weighed_by_who_is_likely() -> None:
    # responsibilities 0.75 and 0.25 at heat 2: -(0.75 * -4 + 0.25 * -8) / 2
    evidence = 2 * torch.tensor([[3.0, 1.0]]).log().requires_grad_()
    at = torch.tensor([[-4.0, -8.0]], requires_grad=True)
    found = misplaced(at, evidence, 2.0)
    assert torch.allclose(found, torch.tensor([2.5]))
    assert torch.allclose(torch.autograd.grad(found.sum(), at)[0], torch.tensor([[-0.375, -0.125]]))
    assert not misplaced(at.detach(), evidence, 2.0).requires_grad


def test_pose_prior_by_hand() -> None:
    # six numbers, one of them at 2 scales: -6 log(0.5 sqrt(2 pi)) - 0.5 * 4
    pose = torch.zeros(1, 1, 2, 3)
    pose[0, 0, 1, 1] = 1.0
    by_hand = -6 * torch.log(0.5 * torch.tensor(2 * torch.pi).sqrt()) - 2.0
    assert torch.isclose(log_pose_prior(pose, 0.5)[0, 0], by_hand, atol=1e-5)
