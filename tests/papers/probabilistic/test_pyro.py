"""The same two-layer model written in Pyro with s enumerated: log joint and bound agree to 1e-4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from gencaps.papers.probabilistic.capsules import Capsules, Layer
from gencaps.papers.probabilistic.inference import Inferred
from tests.papers.probabilistic.helpers import random_capsules, tiny

pyro = pytest.importorskip("pyro", reason="the oracle is written in Pyro: pip install pyro-ppl")

BATCH, PARENTS, CHILDREN = 2, 3, 4


@pytest.fixture(autouse=True)
def _exact() -> Iterator[None]:
    """Counts in float64, so that 1e-4 is 1e-4 of sums in the thousands."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def make_model(ours: Any) -> Any:
    """Writes Eq. (1) to Eq. (7) as a program; the pose's relaxed blend of Eq. (5) and (6) is a factor."""
    import pyro.distributions as dist
    from pyro.ops.indexing import Vindex

    config, known = ours.config, ours.scene.family(0)()
    temperature = torch.tensor(config.temperature)
    homogeneous = torch.tensor([[0.0, 0.0, 1.0]])

    def square(pose: torch.Tensor) -> torch.Tensor:
        return torch.cat([pose, homogeneous.expand(*pose.shape[:-2], 1, 3)], -2)

    def model(x: torch.Tensor) -> None:
        with pyro.plate("pictures", BATCH, dim=-2):
            with pyro.plate("objects", PARENTS, dim=-1):
                t0 = pyro.sample("t0", dist.RelaxedBernoulli(temperature, probs=torch.tensor(config.share)))
                prior = dist.Normal(torch.zeros(2, 3), config.pose_scale).to_event(2)
                a0 = pyro.sample("a0", prior)
            on = torch.cat([torch.ones(BATCH, 1), t0], 1)
            frame = square(torch.cat([torch.zeros(BATCH, 1, 2, 3), a0], 1)) + torch.diag(torch.tensor([1.0, 1.0, 0.0]))
            means = (frame[:, None] @ square(known.offset.transpose(0, 1)))[..., :2, :]  # batch, child, slot
            with pyro.plate("parts", CHILDREN, dim=-1):
                weights = on[:, None] * known.log_affinity.exp().T  # batch, child, slot
                s = pyro.sample("s", dist.Categorical(weights), infer={"enumerate": "parallel"})
                child = torch.arange(CHILDREN)
                gamma = known.presence_logit[s, child]
                t1 = pyro.sample("t1", dist.RelaxedBernoulli(temperature, logits=gamma))
                a1 = pyro.sample("a1", dist.Normal(torch.zeros(2, 3), 1.0).to_event(2).mask(False))
                mean = Vindex(means)[torch.arange(BATCH)[:, None], child, s]
                spread = (0.5 * known.log_var).exp()[s, child]
                near = dist.Normal(mean, spread).log_prob(a1).sum((-2, -1))
                off = dist.Normal(0.0, config.off_scale).log_prob(a1).sum((-2, -1))
                pyro.factor("pose", t1 * near + (1 - t1) * off)
        painted = ours.paint(Capsules(torch.logit(t1), a1))
        pyro.factor("picture", dist.Normal(painted, config.sigma).log_prob(x).sum())

    return model


def make_guide(q: tuple[Layer, Layer], temperature: float, deltas: bool) -> Any:
    import pyro.distributions as dist

    def poses(layer: Layer) -> Any:
        if deltas:
            return dist.Delta(layer.pose, event_dim=2)
        return dist.Normal(layer.pose, (0.5 * layer.pose_log_var).exp()).to_event(2)

    def guide(x: torch.Tensor) -> None:
        with pyro.plate("pictures", BATCH, dim=-2):
            for name, layer, size in (("objects", q[0], PARENTS), ("parts", q[1], CHILDREN)):
                end = "0" if name == "objects" else "1"
                with pyro.plate(name, size, dim=-1):
                    presence = dist.RelaxedBernoulli(torch.tensor(temperature), logits=layer.presence_logit)
                    pyro.sample(f"t{end}", presence)
                    pyro.sample(f"a{end}", poses(layer))

    return guide


def the_elbo() -> Any:
    from pyro.infer import TraceEnum_ELBO

    return TraceEnum_ELBO(max_plate_nesting=2)


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_log_joint_agrees_with_pyro(temperature: float) -> None:
    ours = tiny(temperature=temperature, pose_scale=0.6, off_scale=0.8, share=0.2)
    top, low, x = random_capsules(BATCH, PARENTS, 1), random_capsules(BATCH, CHILDREN, 2), torch.rand(BATCH, 1, 10, 10)
    values = {"t0": top.presence_logit.sigmoid(), "a0": top.pose, "t1": low.presence_logit.sigmoid(), "a1": low.pose}
    with torch.no_grad():
        fixed = pyro.condition(make_model(ours), values)
        theirs = -the_elbo().loss(fixed, lambda x: None, x)
        mine = ours.scene.log_picture(x, low) + torch.stack(ours.scene.log_layers((top, low))).sum(0)
    # Pyro's density is of t, ours of its logit: they differ by the slope of the sigmoid
    slope = sum((t * (1 - t)).log().sum() for t in (values["t0"], values["t1"]))
    assert abs(theirs - float(mine.sum() - slope)) < 1e-4


@pytest.mark.parametrize("deltas", [True, False])
def test_bound_agrees_with_pyro(deltas: bool) -> None:
    ours, x = tiny(), torch.rand(BATCH, 1, 10, 10)
    q = tuple(
        Layer(*random_capsules(BATCH, count, seed), torch.full((BATCH, count, 2, 3), -2.0))
        for count, seed in ((PARENTS, 3), (CHILDREN, 4))
    )
    guide = make_guide((q[0], q[1]), 1.0, deltas)
    with torch.no_grad():
        pyro.set_rng_seed(0)
        theirs = -the_elbo().loss(make_model(ours), guide, x)
        pyro.set_rng_seed(0)
        drawn = pyro.poutine.trace(guide).get_trace(x).nodes
        layers = tuple(Capsules(torch.logit(drawn[f"t{k}"]["value"]), drawn[f"a{k}"]["value"]) for k in (0, 1))
        mine = float(ours.bound_at(x, Inferred(q, layers), deltas).total().sum())
    assert abs(theirs - mine) < 1e-4
