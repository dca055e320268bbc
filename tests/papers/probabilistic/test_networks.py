"""The amortised posterior: what its answers depend on."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gencaps.model import PictureInfo, Step
from gencaps.papers.probabilistic.capsules import Capsules
from gencaps.papers.probabilistic.config import ProbabilisticConfig
from gencaps.papers.probabilistic.model import ProbabilisticCapsules
from gencaps.papers.probabilistic.networks import ParentEncoder, PartEncoder, pooled
from gencaps.primitives.noise import Noise
from tests.papers.probabilistic.helpers import random_capsules


def encoder(norm: str = "before", top: bool = True) -> ParentEncoder:
    torch.manual_seed(0)
    return ParentEncoder(8, 16, width=128, blocks=4, heads=4, points=32, code=32, norm=norm, top=top)


def test_the_tops_outputs_vary_with_the_input() -> None:
    """The collapse found while planning: with norms after each block the outputs ignored the picture."""
    net, child = encoder(), random_capsules(64, 8, 1)
    with torch.no_grad():
        logit = net(child).presence_logit
    assert logit.std(0).mean() > 0.05 * logit.abs().mean()
    # and soon they tell two kinds of pictures apart
    wanted = (child.pose[:, 0, 0, 2] > 0).long()
    search = torch.optim.Adam(net.parameters(), 1e-3)
    for _ in range(60):
        loss = torch.nn.functional.cross_entropy(net(child).presence_logit, wanted)
        search.zero_grad()
        loss.backward()
        search.step()
    assert loss.item() < 0.3  # pyright: ignore[reportPossiblyUnboundVariable]


def test_no_step_is_so_far_that_a_head_never_answers_again() -> None:
    """The other collapse: a head whose units are all far below 0 must still vary, and learn."""
    net, child = encoder(), random_capsules(64, 8, 1)
    first = [next(head.children()) for head in net.heads]
    with torch.no_grad():
        for layer in first:
            layer.get_parameter("bias").sub_(5.0)
    found = net(child)
    for part in found:
        assert (part.std(0) > 0).all()
    for layer, part in zip(first, found, strict=True):
        (gradient,) = torch.autograd.grad(part.sum(), layer.get_parameter("weight"), retain_graph=True)
        assert gradient.abs().max() > 1e-4


def test_parents_depend_on_which_child_lies_where() -> None:
    child = random_capsules(2, 8, 1)
    swapped = Capsules(child.presence_logit[:, [1, 0, *range(2, 8)]], child.pose[:, [1, 0, *range(2, 8)]])
    net = encoder()
    assert not torch.allclose(net(child).presence_logit, net(swapped).presence_logit, atol=1e-4)


def test_where_an_absent_child_lies_means_nothing() -> None:
    child = random_capsules(2, 8, 1)
    child.presence_logit[:, 3] = -100.0
    moved = child.pose.clone()
    moved[:, 3] += 1.0
    net = encoder()
    assert torch.allclose(net(child).presence_logit, net(Capsules(child.presence_logit, moved)).presence_logit)


def test_poses_begin_at_nothing_at_the_top_and_near_the_identity_below() -> None:
    child = random_capsules(4, 8, 1)
    top, below = (encoder(top=top)(child).pose for top in (True, False))
    assert torch.allclose(below - top, torch.eye(2, 3).expand_as(top))


def test_pooling_by_hand() -> None:
    features = torch.tensor([[[[[1.0, 2.0], [3.0, 4.0]]]]])
    attention = torch.tensor([[[[0.0, -100.0], [-100.0, 0.0]]]])  # the first and the last pixel, half each
    assert torch.allclose(pooled(features, attention), torch.tensor([[[2.5, 0.0, 0.0]]]))
    only = torch.tensor([[[[-100.0, 0.0], [-100.0, -100.0]]]])  # right, above
    assert torch.allclose(pooled(features, only), torch.tensor([[[2.0, 1.0, -1.0]]]))


@pytest.mark.parametrize("channels", [1, 3])
def test_parts_begin_at_a_templates_scale_and_vary_with_the_picture(channels: int) -> None:
    torch.manual_seed(0)
    net = PartEncoder(channels, 5, (8, 8, 8, 8), 4, 0.4)
    x = torch.zeros(6, channels, 12, 12)
    for place in range(6):
        x[place, :, 2 * place : 2 * place + 2, place] = 5.0
    found = net(x)
    assert (found.pose - 0.4 * torch.eye(2, 3)).abs().mean() < 0.3
    assert found.pose.std(0).mean() > 1e-3


def squares(left: Tensor) -> Tensor:
    """Draws a bright square of 5 px on 20 px, so many pixels from the left."""
    x = torch.zeros(len(left), 1, 20, 20)
    for row, place in enumerate(left.tolist()):
        x[row, 0, 7:12, place : place + 5] = 1.0
    return x


def moved(follow: bool) -> int:
    """Counts the parts of 8 that go along with a square after 20 steps of training on squares that lie anywhere."""
    torch.manual_seed(0)
    config = ProbabilisticConfig(capsules=(2, 8), template=6, widths=(8, 8, 8, 8), features=4, follow=follow)
    model = ProbabilisticCapsules(config, PictureInfo(1, 20, ("square",)))
    search = torch.optim.Adam(model.parameters(), 0.01)
    for step in range(20):
        x = squares(torch.randint(0, 16, (32,)))
        search.zero_grad()
        model.losses(x, torch.zeros(32, dtype=torch.long), Step(Noise(step, "cpu"), stage="parts")).total.backward()
        search.step()
    with torch.no_grad():
        first, second = (model.recogniser.lowest(squares(torch.full((1,), left))).pose for left in (3, 9))
    return int(((second - first)[0, :, 0, 2] > 0.3).sum())  # 0.6 is the way of the square


def test_parts_that_follow_go_along_with_what_they_paint() -> None:
    assert moved(follow=True) >= 5
    assert moved(follow=False) <= 2
