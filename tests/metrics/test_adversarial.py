"""The generative adversarial metric, by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from gencaps.metrics.adversarial import generative_adversarial_metric, verdict
from tests.helpers import refused


def scores(*values: float) -> Tensor:
    return torch.tensor(values)


def test_two_by_two_by_hand() -> None:
    found = generative_adversarial_metric(
        gan_on_capsule_samples=scores(0.9, 0.2),  # one of two called fake: 0.5
        capsule_on_gan_samples=scores(0.1, 0.3),  # both called fake: 1
        gan_on_test=scores(0.8, 0.6),  # both called real: 1
        capsule_on_test=scores(0.7, 0.51),  # both called real: 1
    )
    assert found == (0.5, 1.0, 1.0, 1.0, 0.5, 1.0, "capsule_gan")


def test_the_ratios_have_the_gans_discriminator_above() -> None:
    found = generative_adversarial_metric(
        scores(0.1, 0.1, 0.1, 0.9), scores(0.1, 0.9, 0.9, 0.9), scores(0.9, 0.1, 0.1, 0.1), scores(0.9, 0.9, 0.1, 0.1)
    )
    assert (found.r_samples, found.r_test) == (3.0, 0.5)  # 0.75 / 0.25 and 0.25 / 0.5
    assert found.verdict == "tie"


def test_exchanging_the_models_inverts_the_ratios_and_the_verdict() -> None:
    given = [scores(0.1, 0.9), scores(0.2, 0.1), scores(0.9, 0.9), scores(0.6, 0.7)]
    one = generative_adversarial_metric(*given)
    other = generative_adversarial_metric(given[1], given[0], given[3], given[2])
    assert (one.r_samples * other.r_samples, one.r_test * other.r_test) == (1, 1)
    assert (one.verdict, other.verdict) == ("capsule_gan", "gan")


def test_a_score_of_one_half_calls_a_picture_real() -> None:
    half = scores(0.5)
    found = generative_adversarial_metric(half, scores(0.4), half, half)
    assert (found.gan_on_capsule_samples, found.gan_on_test) == (0, 1)


@pytest.mark.parametrize(
    ("r_samples", "r_test", "who"),
    [
        (0.79, 1.0, "capsule_gan"),  # the paper's MNIST
        (1.0, 0.72, "tie"),  # the paper's CIFAR-10
        (0.79, 0.72, "tie"),
        (0.79, 1.05, "capsule_gan"),
        (0.79, 0.95, "capsule_gan"),
        (0.79, 1.06, "tie"),
        (1.2, 0.94, "tie"),
        (1.2, 1.0, "gan"),
        (1.0, 1.0, "tie"),
        (math.inf, 1.0, "gan"),
        (0.0, math.inf, "tie"),
    ],
)
def test_verdict(r_samples: float, r_test: float, who: str) -> None:
    assert verdict(r_samples, r_test) == who


def test_a_wider_tolerance_lets_more_tests_be_about_one() -> None:
    assert verdict(0.8, 0.9, tolerance=0.1) == "capsule_gan"
    assert verdict(0.8, 0.9) == "tie"


def test_a_ratio_over_zero_is_infinite_and_zero_over_zero_refused() -> None:
    real, fake = scores(0.9), scores(0.1)
    assert generative_adversarial_metric(fake, real, real, real).r_samples == math.inf
    refused(lambda: generative_adversarial_metric(real, real, real, real), "0 / 0", "sample")
    refused(lambda: generative_adversarial_metric(fake, fake, fake, fake), "0 / 0", "test picture")


def test_scores_that_are_no_probabilities_are_refused() -> None:
    good = scores(0.4, 0.6)
    refused(lambda: generative_adversarial_metric(scores(-3.0, 2.0), good, good, good), "-3", "2", "logits")
    refused(lambda: generative_adversarial_metric(good, scores(math.nan), good, good), "CapsuleGAN", "not finite")
    refused(lambda: generative_adversarial_metric(good, good, scores(), scores()), "test set", "0 samples")
