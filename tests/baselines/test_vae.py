"""Laws of the variational autoencoder (Kingma & Welling, 2013)."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn
from torch.distributions import Bernoulli, Normal, kl_divergence

from gencaps.abilities import abilities
from gencaps.baselines.vae.config import VAEConfig
from gencaps.baselines.vae.model import VAE
from gencaps.errors import GencapsError
from gencaps.model import PictureInfo, Step
from gencaps.primitives.noise import Noise


def make(channels: int = 1, size: int = 6, **settings: Any) -> VAE:
    torch.manual_seed(0)
    config = VAEConfig(**{"latent": 4, "hidden": (16, 8), **settings})
    model = VAE(config, PictureInfo(channels, size, ("a", "b"))).eval()
    last = model.encoder[-1]
    assert isinstance(last, nn.Linear)
    with torch.no_grad():  # a posterior that is far from the prior
        last.weight.mul_(20)
    return model


def posterior(model: VAE, x: torch.Tensor) -> Normal:
    mu, log_var = model.encode(x)
    return Normal(mu, (0.5 * log_var).exp())


@pytest.mark.parametrize("channels", [1, 3])
def test_bound_is_minus_the_elbo_of_torch_distributions(channels: int) -> None:
    model, x, eps = make(channels), torch.rand(5, channels, 6, 6), torch.randn(5, 4)
    q = posterior(model, x)
    p = Bernoulli(logits=model.decoder(q.mean + q.stddev * eps), validate_args=False)
    recon, kl = model.bound(x, eps)
    torch.testing.assert_close(recon, -p.log_prob(x).sum((1, 2, 3)))
    torch.testing.assert_close(kl, kl_divergence(q, Normal(0.0, 1.0)).sum(1))
    assert (kl > 0.1).all()


def test_bound_with_squared_error_is_a_gaussian_of_unit_width_but_for_its_constant() -> None:
    model, x, eps = make(likelihood="mse"), torch.rand(5, 1, 6, 6), torch.randn(5, 4)
    q = posterior(model, x)
    p = Normal(torch.sigmoid(model.decoder(q.mean + q.stddev * eps)), 1.0)
    constant = 36 * 0.5 * math.log(2 * math.pi)
    torch.testing.assert_close(model.bound(x, eps)[0], -p.log_prob(x).sum((1, 2, 3)) - constant, rtol=1e-4, atol=1e-4)


def test_loss_never_lies_below_minus_the_evidence() -> None:
    """log p(x), estimated with many weighted samples, is at least the averaged bound."""
    model, x = make(size=4, latent=1, hidden=(8,)), torch.rand(1, 1, 4, 4).round()
    x = x.expand(4000, 1, 4, 4)
    with torch.no_grad():
        recon, kl = model.bound(x, Noise(1).normal(4000, 1))
        z = Noise(2).normal(4000, 1)
        p = Bernoulli(logits=model.decoder(z)).log_prob(x).sum((1, 2, 3))
    evidence = torch.logsumexp(p, 0) - math.log(4000)
    assert (recon + kl).mean() > -evidence


@pytest.mark.parametrize("weight", [0.0, 1.0, 4.0])
def test_kl_weight_multiplies_the_kl_alone(weight: float) -> None:
    model, x, y = make(kl_weight=weight), torch.rand(5, 1, 6, 6), torch.zeros(5, dtype=torch.long)
    losses = model.losses(x, y, Step(Noise(3)))
    recon, kl = model.bound(x, Noise(3).normal(5, 4))
    torch.testing.assert_close(losses.terms, {"recon": recon.mean(), "kl": kl.mean()})
    torch.testing.assert_close(losses.total, recon.mean() + weight * kl.mean())


def test_labels_are_never_looked_at() -> None:
    model, x = make(), torch.rand(5, 1, 6, 6)
    totals = {model.losses(x, torch.full((5,), k), Step(Noise(0))).total.item() for k in (0, 1)}
    assert len(totals) == 1


def test_first_half_of_the_code_is_the_mean_and_the_second_the_log_variance() -> None:
    model = make(latent=2)
    last = model.encoder[-1]
    assert isinstance(last, nn.Linear)
    with torch.no_grad():
        last.weight.zero_()
        last.bias.copy_(torch.tensor([1.0, 2.0, -3.0, 50.0]))
    code = model.encode(torch.rand(1, 1, 6, 6))
    assert code.mu.tolist() == [[1.0, 2.0]]
    # 10 tanh(-0.3) and 10 tanh(5): held below 10
    torch.testing.assert_close(code.log_var, torch.tensor([[-2.9131, 9.9991]]), atol=1e-4, rtol=0)


def test_reconstruction_without_noise_paints_the_mean_and_draws_nothing() -> None:
    model, x = make(), torch.rand(3, 1, 6, 6)
    expected = torch.sigmoid(model.decoder(model.encode(x).mu))
    for seed in (1, 2):
        torch.manual_seed(seed)
        assert torch.equal(model.reconstruct(x), expected)


def test_reconstruction_with_noise_paints_a_sample_of_the_posterior() -> None:
    model, x = make(), torch.rand(3, 1, 6, 6)
    q = posterior(model, x)
    painted = model.reconstruct(x, Noise(5))
    torch.testing.assert_close(painted, model.decode(q.mean + q.stddev * Noise(5).normal(3, 4)))
    assert torch.equal(painted, model.reconstruct(x, Noise(5)))
    assert not torch.equal(painted, model.reconstruct(x, Noise(6)))


def test_samples_are_painted_from_the_prior_by_the_seed_alone() -> None:
    model = make(3)
    made = model.sample(7, Noise(2))
    assert made.shape == (7, 3, 6, 6)
    torch.testing.assert_close(made, torch.sigmoid(model.decoder(Noise(2).normal(7, 4))))
    assert not torch.equal(made, model.sample(7, Noise(3)))


def test_a_walk_is_straight_from_reconstruction_to_reconstruction() -> None:
    model, a, b = make(), torch.rand(2, 1, 6, 6), torch.rand(2, 1, 6, 6)
    walk = model.interpolate(a, b, 5)
    assert walk.shape == (2, 5, 1, 6, 6)
    torch.testing.assert_close(walk[:, 0], model.reconstruct(a))
    torch.testing.assert_close(walk[:, -1], model.reconstruct(b))
    quarter = 0.75 * model.encode(a).mu + 0.25 * model.encode(b).mu
    torch.testing.assert_close(walk[:, 1], model.decode(quarter))


def test_training_explains_pictures_by_their_codes() -> None:
    model, x, y = make(hidden=(64,)), torch.rand(8, 1, 6, 6).round(), torch.zeros(8, dtype=torch.long)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    found = []
    for i in range(300):
        optimizer.zero_grad()
        losses = model.losses(x, y, Step(Noise(i)))
        losses.total.backward()
        optimizer.step()
        found.append((losses.total.item(), losses.terms["kl"].item()))
    total, kl = torch.tensor(found[-20:]).mean(0).tolist()
    # without a code, no painting beats the pixels' own shares of white; telling 8 pictures apart takes ln 8
    white = x.mean(0)
    blind = -(torch.xlogy(white, white) + torch.xlogy(1 - white, 1 - white)).sum().item()
    assert total < 0.5 * blind
    assert kl > math.log(8)


@pytest.mark.parametrize(("channels", "size", "hidden"), [(1, 28, (16,)), (3, 32, ()), (1, 40, (8, 8, 8))])
@pytest.mark.parametrize("likelihood", ["mse", "bernoulli"])
def test_any_size_channels_and_depth(channels: int, size: int, hidden: tuple[int, ...], likelihood: str) -> None:
    model = make(channels, size, hidden=hidden, likelihood=likelihood)
    x, y = torch.rand(2, channels, size, size), torch.tensor([0, 1])
    assert model.reconstruct(x).shape == x.shape
    model.losses(x, y, Step(Noise(0))).total.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_hidden_layers_are_mirrored() -> None:
    model = make(hidden=(16, 8))
    widths = [[m.out_features for m in part if isinstance(m, nn.Linear)] for part in (model.encoder, model.decoder)]
    assert widths == [[16, 8, 2 * 4], [8, 16, 36]]


def test_extreme_pictures_give_finite_losses_and_gradients() -> None:
    model, y = make(), torch.tensor([0, 1])
    for scale in (0.0, 1.0, 1e3):
        model.zero_grad()
        losses = model.losses(torch.full((2, 1, 6, 6), scale), y, Step(Noise(0)))
        losses.total.backward()
        assert losses.total.isfinite()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_abilities_are_found_by_protocol() -> None:
    assert abilities(make()) == ("encode", "reconstruct", "sample", "interpolate")


@pytest.mark.parametrize(("field", "value"), [("latent", 0), ("hidden", (8, 0)), ("kl_weight", -1.0)])
def test_impossible_settings_are_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(GencapsError, match=f"model.{field} is"):
        VAEConfig(**{field: value})  # pyright: ignore[reportArgumentType]
