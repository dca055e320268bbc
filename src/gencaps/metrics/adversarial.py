"""Two GANs against each other: each one's samples before the other's discriminator."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from jaxtyping import Float
from torch import Tensor

from gencaps.errors import GencapsError
from gencaps.metrics.checks import refuse_shape, refuse_uneven, refuse_unusable

THRESHOLD = 0.5
"""A score at or above it calls a picture real."""
ABOUT_ONE = 0.05
"""How far from 1 ``r_test`` may lie to be called about 1."""

Verdict = Literal["capsule_gan", "gan", "tie"]


class AdversarialMetric(NamedTuple):
    """The four accuracies, the two ratios, and who wins."""

    gan_on_capsule_samples: float
    """``A(D_GAN(G_CapsuleGAN(z)))``: the share called fake."""
    capsule_on_gan_samples: float
    """``A(D_CapsuleGAN(G_GAN(z)))``: the share called fake."""
    gan_on_test: float
    """``A(D_GAN(x_test))``: the share called real."""
    capsule_on_test: float
    """``A(D_CapsuleGAN(x_test))``: the share called real."""
    r_samples: float
    r_test: float
    verdict: Verdict


def generative_adversarial_metric(
    gan_on_capsule_samples: Float[Tensor, "samples"],
    capsule_on_gan_samples: Float[Tensor, "samples_2"],
    gan_on_test: Float[Tensor, "test"],
    capsule_on_test: Float[Tensor, "test"],
    *,
    tolerance: float = ABOUT_ONE,
) -> AdversarialMetric:
    """Pits two GANs against each other by the generative adversarial metric of (Im et al., 2016).

    ``r_samples = A(D_GAN(G_CapsuleGAN(z))) / A(D_CapsuleGAN(G_GAN(z)))``, (Jaiswal et al., 2018), Eq. (4), and
    ``r_test = A(D_GAN(x_test)) / A(D_CapsuleGAN(x_test))``, Eq. (5), where the accuracy ``A`` is the share of
    samples called fake and of test pictures called real. A ratio over zero is infinite; zero over zero is refused.

    Args:
        gan_on_capsule_samples: ``D_GAN(G_CapsuleGAN(z))``, the probability of "real", 0 to 1.
        capsule_on_gan_samples: ``D_CapsuleGAN(G_GAN(z))``.
        gan_on_test: ``D_GAN(x_test)``.
        capsule_on_test: ``D_CapsuleGAN(x_test)``.
        tolerance: how far from 1 ``r_test`` may lie.
    """
    on_capsule = _share_fake(gan_on_capsule_samples, "the GAN on CapsuleGAN's samples")
    on_gan = _share_fake(capsule_on_gan_samples, "CapsuleGAN on the GAN's samples")
    gan_test = 1 - _share_fake(gan_on_test, "the GAN on the test set")
    capsule_test = 1 - _share_fake(capsule_on_test, "CapsuleGAN on the test set")
    refuse_uneven(gan_on_test, capsule_on_test, "the GAN's scores of the test set", "CapsuleGAN's")
    r_samples = _ratio(on_capsule, on_gan, "calls a single sample of the other fake")
    r_test = _ratio(gan_test, capsule_test, "calls a single test picture real")
    who = verdict(r_samples, r_test, tolerance)
    return AdversarialMetric(on_capsule, on_gan, gan_test, capsule_test, r_samples, r_test, who)


def verdict(r_samples: float, r_test: float, tolerance: float = ABOUT_ONE) -> Verdict:
    """Says who wins: CapsuleGAN when ``r_samples < 1`` and ``r_test`` is about 1, (Jaiswal et al., 2018), Sec. 5.3.

    The GAN when ``r_samples > 1`` and ``r_test`` is about 1; else they tie: discriminators that do not know real
    pictures equally well cannot judge samples.
    """
    if not (r_samples >= 0 and r_test >= 0 and tolerance >= 0):  # so written, a NaN is refused too
        raise GencapsError(
            f"r_samples {r_samples:g} and r_test {r_test:g} within {tolerance:g} have no verdict; give each at least 0"
        )
    # 1.05 - 1 is a little more than 0.05 in binary; the edges named in the docs belong to the range
    if abs(r_test - 1) > tolerance + 1e-9 or r_samples == 1:
        return "tie"
    return "capsule_gan" if r_samples < 1 else "gan"


def _share_fake(scores: Float[Tensor, "n"], name: str) -> float:
    refuse_shape(scores, "n", f"the scores of {name}")
    refuse_unusable(scores, name, what="scores")
    low, high = scores.min().item(), scores.max().item()
    if low < 0 or high > 1:
        raise GencapsError(
            f"the scores of {name} run from {low:g} to {high:g}; give probabilities of real from 0 to 1, not logits"
        )
    return (scores < THRESHOLD).double().mean().item()


def _ratio(gan: float, capsule: float, neither: str) -> float:
    if capsule > 0:
        return gan / capsule
    if gan > 0:
        return math.inf
    raise GencapsError(f"neither discriminator {neither}, so the ratio is 0 / 0; train both further")
