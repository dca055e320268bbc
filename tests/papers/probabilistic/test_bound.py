"""The bound: below log p(X) with Gaussian poses, tighter after free-form inference, exact where q is."""

from __future__ import annotations

import torch
from torch.distributions import Normal, RelaxedBernoulli

from gencaps.papers.probabilistic.bound import Draws, bound_of, log_marginal, log_q, sample_layer
from gencaps.papers.probabilistic.capsules import Capsules, Layer
from gencaps.papers.probabilistic.inference import Inferred, random_numbers
from gencaps.papers.probabilistic.layer import log_children
from gencaps.papers.probabilistic.mixture import tempered
from gencaps.papers.probabilistic.model import ProbabilisticCapsules
from gencaps.primitives.noise import Noise
from tests.papers.probabilistic.helpers import random_capsules, tiny

ONE = {"capsules": (1, 1), "sigma": 1.0, "poses": "gaussian", "spread_min": 0.3, "spread": 0.4}


def log_p(model: ProbabilisticCapsules, x: torch.Tensor, top: Capsules, low: Capsules) -> torch.Tensor:
    return model.scene.log_picture(x, low) + torch.stack(model.scene.log_layers((top, low))).sum(0)


def estimated(model: ProbabilisticCapsules, x: torch.Tensor, n: int) -> float:
    """Estimates log p(X) by importance, with proposals of torch's own that know nothing of q."""
    on = Normal(model.scene.family(0).offset[0, 0], 0.6)
    a0, a1 = model.config.pose_scale * torch.randn(n, 1, 2, 3), on.sample((n, 1))
    relaxed = RelaxedBernoulli(torch.tensor(1.0), logits=torch.zeros(n, 1))
    t0, t1 = (torch.as_tensor(relaxed.sample()).clamp(1e-6, 1 - 1e-6) for _ in range(2))
    slopes = torch.stack([(t * (1 - t)).log() + relaxed.log_prob(t) for t in (t0, t1)]).sum(0)
    proposal = slopes[:, 0] + Normal(0, model.config.pose_scale).log_prob(a0).sum((1, 2, 3))
    proposal = proposal + on.log_prob(a1).sum((1, 2, 3))
    joint = log_p(model, x.expand(n, -1, -1, -1), Capsules(torch.logit(t0), a0), Capsules(torch.logit(t1), a1))
    return float(log_marginal((joint - proposal)[:, None])[0])


def mean_bound(model: ProbabilisticCapsules, x: torch.Tensor, q: tuple[Layer, ...], n: int = 4000) -> float:
    many = tuple(Layer(*(part.expand(n, *part.shape[1:]) for part in layer)) for layer in q)
    draws = random_numbers(model.config.capsules, n, Noise(1))
    drawn = tuple(sample_layer(layer, draw, 1.0, False) for layer, draw in zip(many, draws, strict=True))
    return float(model.bound_at(x.expand(n, -1, -1, -1), Inferred(many, drawn), False).total().mean())


@torch.no_grad()
def test_bound_lies_below_the_likelihood_and_is_tighter_after_refine() -> None:
    model = tiny(size=4, **ONE)
    x = torch.rand(1, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    truth = estimated(model, x, 200_000)
    first = mean_bound(model, x, model.encode(x).layers)
    refined = mean_bound(model, x, model.refine(x, 400, rate=0.03).layers)
    assert first < refined < truth + 0.05  # the estimate's own error
    assert truth - refined < 0.5 * (truth - first)


def estimated_of_one(model: ProbabilisticCapsules, x: torch.Tensor, n: int) -> float:
    """Estimates log p(X) of the model in which exactly one object is on, which one drawn too."""
    at = Normal(model.scene.family(0).offset[:, 0].mean(0), 0.8)
    a0, a1 = model.config.pose_scale * torch.randn(n, 2, 2, 3), at.sample((n, 1))
    y = torch.logit(torch.rand(n, 1))  # a logistic draw
    proposal = (y - 2 * torch.nn.functional.softplus(y))[:, 0] + at.log_prob(a1).sum((1, 2, 3))
    on = torch.where(torch.rand(n, 1) < 0.5, torch.tensor([40.0, -40.0]), torch.tensor([-40.0, 40.0]))
    low = Capsules(y, a1)
    joint = model.scene.log_picture(x.expand(n, -1, -1, -1), low) + log_children(
        model.scene.pairs(0, Capsules(on, a0), low)
    )
    return float(log_marginal((joint - proposal)[:, None])[0])


@torch.no_grad()
def test_bound_of_one_object_lies_below_the_likelihood_and_is_tighter_after_refine() -> None:
    torch.manual_seed(0)
    model = tiny(size=4, **{**ONE, "capsules": (2, 1), "top": "votes", "objects": "one", "pose_scale": 0.5})
    x = torch.rand(1, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    truth = estimated_of_one(model, x, 200_000)

    def mean(q: tuple[Layer, ...], n: int = 4000) -> float:
        many = Layer(*(part.expand(n, *part.shape[1:]) for part in q[1]))
        drawn = sample_layer(many, random_numbers((1,), n, Noise(1))[0], 1.0, False)
        nobody = Layer(*(part[:, :0] for part in many))
        inferred = Inferred((nobody, many), (nobody.middle(), drawn))
        mixture = tempered(model.vote(drawn).evidence, 1.0)
        return float(model.bound_of_one(x.expand(n, -1, -1, -1), inferred, mixture, False).total().mean())

    first, refined = mean(model.encode(x).layers), mean(model.refine(x, 400, rate=0.03).layers)
    assert first < refined < truth + 0.05  # the estimate's own error
    assert truth - refined < 0.5 * (truth - first)


def test_a_draw_without_noise_is_the_middle() -> None:
    q = Layer(*random_capsules(2, 3, 0), torch.zeros(2, 3, 2, 3))
    drawn = sample_layer(q, Draws(torch.full((2, 3), 0.5), torch.zeros(2, 3, 2, 3)), 1.0, deltas=False)
    assert torch.allclose(drawn.presence_logit, q.presence_logit, atol=1e-6)
    assert torch.equal(drawn.pose, q.pose)


def test_log_q_agrees_with_torch_distributions() -> None:
    q = Layer(*random_capsules(2, 3, 0), torch.randn(2, 3, 2, 3))
    drawn = random_capsules(2, 3, 1)
    t = drawn.presence_logit.sigmoid()
    presences = RelaxedBernoulli(torch.tensor(0.8), logits=q.presence_logit).log_prob(t) + (t * (1 - t)).log()
    assert torch.allclose(log_q(q, drawn, 0.8, True), presences.sum(1), atol=1e-4)
    poses = Normal(q.pose, (0.5 * q.pose_log_var).exp()).log_prob(drawn.pose).sum((1, 2, 3))
    assert torch.allclose(log_q(q, drawn, 0.8, False), presences.sum(1) + poses, atol=1e-4)


def test_the_bound_adds_what_p_gives_and_takes_what_q_gives() -> None:
    one = torch.ones(2)
    bound = bound_of(7 * one, (2 * one, 3 * one), (10 * one, 20 * one))
    assert torch.equal(bound.total(), torch.full((2,), -18.0))  # 7 + 2 - 10 + 3 - 20


def test_refine_climbs_for_each_picture_as_if_it_were_alone() -> None:
    model, x = tiny(), torch.rand(3, 1, 10, 10)
    still = [p.clone() for p in model.parameters()]

    def deterministic(pictures: torch.Tensor) -> torch.Tensor:
        from gencaps.papers.probabilistic.refine import climb

        def objective(q: tuple[Layer, ...]) -> torch.Tensor:
            top, low = (layer.middle() for layer in q)
            return log_p(model, pictures, top, low)

        return climb(objective, model.encode(pictures).layers, 5, 0.05)[1].pose

    assert torch.allclose(deterministic(x)[1:2], deterministic(x[1:2]), atol=1e-5)
    assert all(torch.equal(a, b) for a, b in zip(still, model.parameters(), strict=True))
    assert all(p.grad is None for p in model.parameters())


def test_a_climb_comes_to_rest_where_its_objective_is_noisy() -> None:
    from gencaps.papers.probabilistic.refine import climb

    noise = torch.Generator().manual_seed(0)

    def objective(q: tuple[Layer, ...]) -> torch.Tensor:
        (layer,) = q
        shaken = layer.pose + 0.5 * torch.randn(layer.pose.shape, generator=noise)
        return -(shaken - 1).square().sum((1, 2, 3))

    start = Layer(torch.zeros(50, 4), torch.zeros(50, 4, 2, 3), torch.zeros(50, 4, 2, 3))
    (found,) = climb(objective, (start,), 200, 0.05)
    assert (found.pose - 1).square().mean().sqrt() < 0.07  # 0.053; at one size of step 0.108
