"""Routing between capsules as an encoder of Gaussians."""

from __future__ import annotations

import torch

from gencaps.model import PictureInfo, Step
from gencaps.papers.variational.config import VariationalConfig
from gencaps.papers.variational.model import VariationalCapsules
from gencaps.papers.variational.networks import RoutedEncoder
from gencaps.primitives.noise import Noise

CONFIG = VariationalConfig(dim=4, widths=(8, 8), strides=(1, 2), kernel=3, decoder=(16,), encoder="routed", flag=True)


def make(size: int = 8, classes: int = 3) -> VariationalCapsules:
    torch.manual_seed(0)
    return VariationalCapsules(CONFIG, PictureInfo(1, size, tuple(map(str, range(classes))))).eval()


def test_scale_and_shift_of_an_entity_move_its_own_gaussian_alone() -> None:
    model, x = make(), torch.rand(2, 1, 8, 8)
    assert isinstance(model.encoder, RoutedEncoder)
    before = model.encode(x)
    with torch.no_grad():
        model.encoder.shift[1, 2] += 0.5  # a mean of the second entity
        model.encoder.shift[2, 4 + 3] += 0.25  # a log variance of the third
    after = model.encode(x)
    mu, log_var = after.mu - before.mu, after.log_var - before.log_var
    torch.testing.assert_close(mu[:, 1, 2], torch.full((2,), 0.5))
    assert mu.abs().sum().item() == mu[:, 1, 2].abs().sum().item()
    assert (log_var[:, 2, 3] > 0.2).all()
    assert (log_var != 0).sum() == 2


def test_training_tells_classes_and_gradients_are_finite() -> None:
    model = make()
    x = torch.zeros(6, 1, 8, 8)
    y = torch.tensor([0, 1, 2, 0, 1, 2])
    for i, k in enumerate(y.tolist()):
        x[i, 0, 2 * k : 2 * k + 2] = 1.0  # a bar, higher or lower
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for i in range(120):
        optimizer.zero_grad()
        model.losses(x, y, Step(Noise(i))).total.backward()
        assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)
        optimizer.step()
    model.eval()
    assert torch.equal(model.classify(x).label, y)


def test_a_black_picture_gives_finite_numbers() -> None:
    model = make(size=12, classes=5)
    seen = model.encode(torch.zeros(1, 1, 12, 12))
    assert seen.kl.shape == (1, 5)
    assert seen.kl.isfinite().all()
