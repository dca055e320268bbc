"""Laws of variational capsules (Huang et al., 2018)."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gencaps.abilities import abilities
from gencaps.errors import GencapsError
from gencaps.model import PictureInfo, Step
from gencaps.papers.variational.config import VariationalConfig
from gencaps.papers.variational.entities import keep
from gencaps.papers.variational.model import VariationalCapsules
from gencaps.primitives.noise import Noise

SMALL = VariationalConfig(dim=4, widths=(8, 8), strides=(1, 2), kernel=3, decoder=(16,))


def make(config: VariationalConfig = SMALL, channels: int = 1, size: int = 8, classes: int = 3) -> VariationalCapsules:
    torch.manual_seed(0)
    return VariationalCapsules(config, PictureInfo(channels, size, tuple(map(str, range(classes))))).eval()


def step(seed: int = 0) -> Step:
    return Step(Noise(seed))


def test_keep_zeroes_all_but_the_active_capsule() -> None:
    capsules = torch.arange(1.0, 13.0).reshape(2, 3, 2)
    kept = keep(capsules, torch.tensor([[False, False, True], [True, False, False]]))
    assert kept.tolist() == [[[0, 0], [0, 0], [5, 6]], [[7, 8], [0, 0], [0, 0]]]


def test_least_kl_is_the_class_and_the_largest_presence() -> None:
    model, x = make(), torch.rand(6, 1, 8, 8)
    kl, seen = model.encode(x).kl, model.classify(x)
    assert torch.equal(seen.label, kl.argmin(1))
    assert torch.equal(seen.presence.argmax(1), kl.argmin(1))
    # softmax(-KL): two capsules whose KLs differ by d have presences with the ratio e^d
    ratio = seen.presence[:, 0] / seen.presence[:, 1]
    torch.testing.assert_close(ratio.log(), kl[:, 1] - kl[:, 0], rtol=1e-4, atol=1e-5)


def test_decoder_sees_every_capsule_not_one() -> None:
    """The trap of 16 numbers for 160: moving the same 4 numbers to another class must change the picture."""
    model = make()
    first = next(m for m in model.decoder if isinstance(m, torch.nn.Linear))
    assert first.in_features == 3 * 4
    z = torch.ones(1, 3, 4)
    a, b = (model.decode(model.activate(z, torch.tensor([[k]]))) for k in (0, 1))
    assert (a - b).abs().max() > 1e-3


def test_answers_without_noise_do_not_depend_on_the_generator() -> None:
    """The trap of noise left on in eval."""
    model, x = make(), torch.rand(4, 1, 8, 8)
    answers = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        answers.append((model.classify(x).presence, model.reconstruct(x)))
    assert all(torch.equal(a, b) for a, b in zip(*answers, strict=True))


def test_loss_is_margin_plus_weighted_reconstruction() -> None:
    """Eq. (6), put together again from Eq. (2) to (4) written out by hand."""
    config = VariationalConfig(
        dim=4, widths=(8,), strides=(2,), decoder=(16,), margin=3.0, down_weight=0.7, recon_weight=2.5
    )
    model, x, y = make(config), torch.rand(5, 1, 8, 8), torch.tensor([0, 1, 2, 0, 1])
    losses = model.losses(x, y, step())
    mu, log_var, _ = model.encode(x)
    kl = 0.5 * (mu**2 + log_var.exp() - 1 - log_var).sum(-1)
    own = torch.eye(3)[y]
    margin = (own * kl + 0.7 * (1 - own) * (3.0 - kl).clamp(min=0)).sum(1).mean()
    eps = Noise(0).normal(5, 3, 4)
    z = (mu + (0.5 * log_var).exp() * eps) * own[..., None]
    x_hat = torch.sigmoid(model.decoder(z.flatten(1)))
    recon = (0.5 * (x_hat - x) ** 2).sum((1, 2, 3)).mean()
    torch.testing.assert_close(losses.terms["margin"], margin)
    torch.testing.assert_close(losses.terms["recon"], recon)
    torch.testing.assert_close(losses.total, margin + 2.5 * recon)


def test_averaged_reconstruction_weighs_the_same_at_every_size() -> None:
    """With ``recon='mean'`` the weight is per pixel: 64 pixels, so 2.5 / 64 of the sum."""
    config = VariationalConfig(dim=4, widths=(8,), strides=(2,), decoder=(16,), recon_weight=2.5, recon="mean")
    model, x = make(config), torch.rand(5, 1, 8, 8)
    losses = model.losses(x, torch.tensor([0, 1, 2, 0, 1]), step())
    torch.testing.assert_close(losses.total, losses.terms["margin"] + 2.5 / 64 * losses.terms["recon"])


def test_flag_tells_which_capsule_is_active() -> None:
    """At the prior's mean all capsules are zero: only the flag can say which class is meant."""
    z, y = torch.zeros(2, 3, 4), torch.tensor([[0], [2]])
    mask = torch.tensor([[True, False, False], [False, False, True]])
    assert keep(z, mask, flag=True)[..., -1].tolist() == [[1, 0, 0], [0, 0, 1]]
    plain, flagged = (make(VariationalConfig(4, (8,), (2,), decoder=(16,), flag=f)) for f in (False, True))
    assert torch.equal(*plain.decode(plain.activate(z, y)))
    assert not torch.equal(*flagged.decode(flagged.activate(z, y)))


def test_no_reconstruction_means_no_gradient_to_the_decoder() -> None:
    model = make(VariationalConfig(dim=4, widths=(8,), strides=(2,), decoder=(16,), recon_weight=0.0))
    model.losses(torch.rand(4, 1, 8, 8), torch.tensor([0, 1, 2, 0]), step()).total.backward()
    assert all(p.grad is None for p in model.decoder.parameters())
    assert all(p.grad is not None for p in model.encoder.parameters())


def test_mask_in_training_follows_labels_or_least_kl() -> None:
    """Which capsule gets the reconstruction's gradient: the label's, or that of least KL (the paper)."""
    x = torch.rand(1, 1, 8, 8)
    for mask in ("labels", "least-kl"):
        config = VariationalConfig(dim=4, widths=(8,), strides=(2,), decoder=(16,), norm="none", mask=mask)
        model = make(config)
        kl = model.encode(x).kl[0]
        label = int(kl.argmax())  # a label that is not the least
        last = list(model.encoder.children())[-1]
        assert isinstance(last, torch.nn.Linear)
        model.losses(x, torch.tensor([label]), step()).terms["recon"].backward()
        assert last.bias.grad is not None
        means = last.bias.grad.unflatten(0, (2, 3, 4))[0].abs().sum(1)
        moved = set(means.nonzero()[:, 0].tolist())
        assert moved == {label if mask == "labels" else int(kl.argmin())}


def test_training_pulls_the_own_kl_down_and_pushes_the_others_up() -> None:
    model, x = make(), torch.rand(6, 1, 8, 8)
    y = torch.tensor([0, 1, 2, 0, 1, 2])
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for i in range(150):
        optimizer.zero_grad()
        model.losses(x, y, step(i)).total.backward()
        optimizer.step()
    model.eval()
    kl, own = model.encode(x).kl, torch.eye(3).bool()[y]
    assert kl[own].max() < kl[~own].min()
    assert torch.equal(model.classify(x).label, y)


def test_generate_paints_the_class_asked_from_its_own_noise() -> None:
    model, y = make(), torch.tensor([0, 0, 2])
    made = model.generate(y, Noise(3))
    eps = Noise(3).normal(3, 3, 4)
    expected = torch.sigmoid(model.decoder((eps * torch.eye(3)[y][..., None]).flatten(1)).float())
    torch.testing.assert_close(made, expected)
    assert torch.equal(made, model.generate(y, Noise(3)))
    assert not torch.equal(made, model.generate(y, Noise(4)))


def test_interpolation_starts_and_ends_at_the_reconstructions() -> None:
    model, a, b = make(), torch.rand(2, 1, 8, 8), torch.rand(2, 1, 8, 8)
    walk = model.interpolate(a, b, 5)
    assert walk.shape == (2, 5, 1, 8, 8)
    torch.testing.assert_close(walk[:, 0], model.reconstruct(a))
    torch.testing.assert_close(walk[:, -1], model.reconstruct(b))


def test_resample_keeps_the_class_and_changes_the_style() -> None:
    model, x = make(), torch.rand(1, 1, 8, 8).expand(4, 1, 8, 8)
    label = model.classify(x).label
    made = model.resample(x, Noise(0))
    torch.testing.assert_close(made, model.generate(label, Noise(0)))
    assert (made[0] - made[1]).abs().max() > 1e-4


@settings(max_examples=12, deadline=None)
@given(
    size=st.integers(8, 40),
    channels=st.sampled_from([1, 3]),
    classes=st.integers(2, 12),
    norm=st.sampled_from(["batch", "group", "none"]),
    likelihood=st.sampled_from(["mse", "bernoulli"]),
)
def test_any_size_channels_and_classes(size: int, channels: int, classes: int, norm: str, likelihood: str) -> None:
    config = VariationalConfig(3, (4, 6), (1, 2), 3, norm, (8,), likelihood=likelihood)  # pyright: ignore[reportArgumentType]
    model, x = make(config, channels, size, classes), torch.rand(2, channels, size, size)
    assert model.reconstruct(x).shape == x.shape
    assert model.classify(x).presence.shape == (2, classes)
    assert model.losses(x, torch.tensor([0, classes - 1]), step()).total.isfinite()


def test_a_thousand_classes() -> None:
    model = make(classes=1000)
    assert model.classify(torch.rand(2, 1, 8, 8)).presence.shape == (2, 1000)
    assert model.generate(torch.tensor([999]), Noise(0)).shape == (1, 1, 8, 8)


def test_extreme_pictures_give_finite_losses_and_gradients() -> None:
    model = make()
    for scale in (0.0, 1.0, 1e6):
        model.zero_grad()
        x = torch.full((2, 1, 8, 8), scale)
        losses = model.losses(x, torch.tensor([0, 1]), step())
        losses.total.backward()
        assert losses.terms["margin"].isfinite()
        assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


def test_abilities_are_found_by_protocol() -> None:
    assert abilities(make()) == (
        "classify",
        "encode",
        "reconstruct",
        "generate",
        "edit",
        "resample",
        "interpolate",
        "turn",
    )


def test_one_class_is_refused() -> None:
    with pytest.raises(GencapsError, match="at least 2"):
        VariationalCapsules(SMALL, PictureInfo(1, 8, ("a",)))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("dim", 0),
        ("kernel", 4),
        ("margin", 0.0),
        ("recon_weight", -1.0),
        ("widths", (8, 0, 8)),
        ("strides", (1,)),
    ],
)
def test_impossible_settings_are_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(GencapsError, match=f"model.{field}"):
        VariationalConfig(**{field: value})  # pyright: ignore[reportArgumentType]
