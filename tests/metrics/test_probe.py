"""The linear probe beside scikit-learn's logistic regression."""

from __future__ import annotations

import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from gencaps.metrics.probe import STEEPNESS, LinearProbe
from tests.helpers import refused


def blobs(n: int, classes: int, width: int, seed: int) -> tuple[Tensor, Tensor]:
    """Overlapping classes on features of very different sizes."""
    g = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % classes
    x = torch.randn(n, width, generator=g) + torch.randn(classes, width, generator=g)[y]
    return x * torch.logspace(-3, 3, width) + torch.linspace(-50, 50, width), y


def reference(x: Tensor, y: Tensor, c: float) -> tuple[StandardScaler, LogisticRegression]:
    scaler = StandardScaler().fit(x.double().numpy())
    model = LogisticRegression(C=c, tol=1e-9, max_iter=20_000).fit(scaler.transform(x.double().numpy()), y.numpy())
    return scaler, model


@pytest.mark.parametrize("c", [0.01, 1.0, 30.0])
def test_probe_is_scikit_learns_logistic_regression(c: float) -> None:
    x, y = blobs(500, 4, 6, seed=1)
    probe = LinearProbe.fit(x[:300], y[:300], 4, c=c)
    scaler, model = reference(x[:300], y[:300], c)
    assert probe.gradient <= STEEPNESS
    # scikit-learn leaves the sum of the biases free, as the probe does; both start from zero, where it stays
    assert torch.allclose(probe.weight, torch.tensor(model.coef_), rtol=1e-3, atol=1e-4)
    assert torch.allclose(probe.bias, torch.tensor(model.intercept_), rtol=1e-3, atol=1e-4)
    theirs = torch.tensor(model.predict(scaler.transform(x[300:].double().numpy())))
    assert torch.equal(probe.predict(x[300:]), theirs)
    assert probe.accuracy(x[300:], y[300:]) == (theirs == y[300:]).double().mean().item()


def test_probe_reads_digits_as_scikit_learn_does_to_a_tenth_of_a_percent() -> None:
    pixels, labels = load_digits(return_X_y=True)
    x, y = torch.tensor(pixels, dtype=torch.float32), torch.tensor(labels)
    probe = LinearProbe.fit(x[:1000], y[:1000], 10)
    scaler, model = reference(x[:1000], y[:1000], 1.0)
    theirs = torch.tensor(model.predict(scaler.transform(x[1000:].double().numpy())))
    # 797 digits: less than 0.1 % may be read differently, so none
    assert (probe.predict(x[1000:]) != theirs).double().mean().item() <= 0.001
    assert abs(probe.accuracy(x[1000:], y[1000:]) - (theirs == y[1000:]).double().mean().item()) <= 0.001
    assert torch.allclose(probe.weight, torch.tensor(model.coef_), atol=1e-4)


def test_of_two_classes_scikit_learns_c_is_twice_this_one() -> None:
    x, y = blobs(200, 2, 3, seed=2)
    probe = LinearProbe.fit(x, y, 2, c=0.5)
    # w = w_1 - w_0 with w_0 = -w_1: 1/2 (|w_0|^2 + |w_1|^2) = 1/4 |w|^2
    _, model = reference(x, y, 1.0)
    assert torch.allclose(probe.weight[1] - probe.weight[0], torch.tensor(model.coef_[0]), rtol=1e-3, atol=1e-4)


def test_the_gradient_of_the_printed_objective_vanishes_at_the_probe() -> None:
    x, y = blobs(60, 3, 4, seed=3)
    probe = LinearProbe.fit(x, y, 3, c=2.0)
    z = (x.double() - probe.mean) / probe.scale
    weight, bias = probe.weight.clone().requires_grad_(), probe.bias.clone().requires_grad_()
    loss = 2.0 * torch.nn.functional.cross_entropy(z @ weight.T + bias, y, reduction="sum") + weight.square().sum() / 2
    loss.backward()
    assert weight.grad is not None
    assert bias.grad is not None
    assert weight.grad.abs().max() < 1e-5
    assert bias.grad.abs().max() < 1e-5
    # any other step leads up
    assert loss < 2.0 * torch.nn.functional.cross_entropy(z @ weight.T * 1.01 + bias, y, reduction="sum") + (
        (weight * 1.01).square().sum() / 2
    )


def test_unit_and_origin_of_a_feature_change_no_reading() -> None:
    x, y = blobs(120, 3, 4, seed=4)
    moved = x.double() * torch.tensor([2.0, -3.0, 0.5, 100.0]) + 7
    a, b = LinearProbe.fit(x.double(), y, 3), LinearProbe.fit(moved, y, 3)
    assert torch.allclose(a.logits(x.double()), b.logits(moved), atol=1e-5)


def test_only_training_latents_give_mean_and_scale() -> None:
    x, y = blobs(90, 3, 4, seed=5)
    probe = LinearProbe.fit(x, y, 3)
    assert torch.allclose(probe.mean, x.double().mean(0))
    assert torch.allclose(probe.scale, x.double().std(0, correction=0))
    # a sample is read alike alone and among others
    assert torch.equal(probe.predict(x[:1]), probe.predict(x)[:1])


def test_a_constant_feature_weighs_nothing() -> None:
    x, y = blobs(91, 3, 2, seed=6)
    # 0.1 cannot be written in binary: its mean is rounded, its computed variance above zero
    with_constant = torch.cat([x.double(), torch.full((91, 1), 0.1, dtype=torch.float64)], 1)
    probe, plain = LinearProbe.fit(with_constant, y, 3), LinearProbe.fit(x.double(), y, 3)
    assert probe.weight[:, 2].tolist() == [0, 0, 0]
    assert probe.scale[2] == 1
    assert torch.allclose(probe.weight[:, :2], plain.weight, atol=1e-6)
    elsewhere = with_constant + torch.tensor([0.0, 0.0, 1000.0])
    assert torch.equal(probe.predict(elsewhere), probe.predict(with_constant))


def test_the_last_digits_of_a_constant_are_not_read() -> None:
    y = torch.arange(90) % 3
    told = 5.0 + 1e-6 * y[:, None].float()  # in the last places of float32, and in them alone, stands the class
    assert len(told.unique()) == 3
    assert LinearProbe.fit(told, y, 3).accuracy(told, y) < 0.4
    assert LinearProbe.fit(1000 * (told - 5), y, 3).accuracy(1000 * (told - 5), y) == 1


def test_the_same_features_give_the_same_probe_in_inference_mode_too() -> None:
    x, y = blobs(90, 3, 4, seed=7)
    first = LinearProbe.fit(x, y, 3)
    with torch.inference_mode():
        made_there = x.clone()
        second = LinearProbe.fit(made_there, y, 3)
    third = LinearProbe.fit(made_there, y.to(torch.uint8), 3)
    assert torch.equal(first.weight, second.weight)
    assert torch.equal(first.weight, third.weight)
    assert not first.weight.requires_grad


def test_a_fit_cut_short_says_so() -> None:
    x, y = blobs(90, 3, 4, seed=8)
    assert LinearProbe.fit(x, y, 3, iterations=2).gradient > STEEPNESS


def test_probe_refuses_what_it_cannot_be_fitted_on() -> None:
    x, y = blobs(30, 3, 4, seed=9)
    hole = x.clone()
    hole[2, 1] = float("nan")
    refused(lambda: LinearProbe.fit(hole, y, 3), "training set", "1 value", "not finite")
    refused(lambda: LinearProbe.fit(x[:2], y[:2], 3), "2 samples", "at least 3")
    refused(lambda: LinearProbe.fit(x, y, 2), "0 to 2", "2 classes")
    refused(lambda: LinearProbe.fit(x, y, 5), "3 of 5 classes", "3, 4")
    refused(lambda: LinearProbe.fit(x, y, 3, c=0.0), "C = 0")
    refused(lambda: LinearProbe.fit(x, y, 0), "0 classes")
    probe = LinearProbe.fit(x, y, 3)
    refused(lambda: probe.predict(hole), "probed set", "not finite")
    refused(lambda: probe.predict(x[:, :3]), "3 features", "other 4")
