"""The generator and discriminator of deep convolutional GANs, for any size that halves to 4 to 7 pixels."""

from __future__ import annotations

from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

from gencaps.errors import GencapsError

LARGEST_START = 7
"""Pixels a side of the first feature map, at most: 7 for 28, and 4 for 32 and 64 (Radford et al., 2016)."""
SMALLEST = 9
"""Pixels a side of a picture, at least; smaller ones leave nothing to learn."""


def halvings(size: int) -> int:
    """Counts how often a picture's side is halved until at most 7 pixels are left; refuses sides that do not halve."""
    if size < SMALLEST:
        raise GencapsError(f"pictures of {size} px are too small for a GAN: give --train.size 28 or more")
    count = 0
    while size > LARGEST_START:
        if size % 2:
            raise GencapsError(f"pictures of {size << count} px cannot be halved down to 4 to 7: give --train.size 32")
        size, count = size // 2, count + 1
    return count


def dcgan_generator(latent: int, width: int, channels: int, size: int, between: int = 0) -> nn.Sequential:
    """Builds latent -> first feature map -> doubled until the picture's size, ending in its logits.

    Batch normalisation and ReLU after every layer but the last (Radford et al., 2016).

    Args:
        latent: numbers in z.
        width: channels of the last hidden layer; each layer before has twice as many.
        channels: of the picture.
        size: of the picture, pixels a side.
        between: 3 x 3 convolutions that follow each feature map and keep its size.
    """
    doublings = halvings(size)
    start, wide = size >> doublings, width << (doublings - 1)
    layers: list[nn.Module] = [
        nn.Linear(latent, wide * start * start, bias=False),
        nn.Unflatten(1, (wide, start, start)),
        *_normed(wide),
    ]
    for step in range(doublings):
        here = wide >> step
        if step:
            layers += [nn.ConvTranspose2d(here * 2, here, 4, 2, 1, bias=False), *_normed(here)]
        for _ in range(between):
            layers += [nn.Conv2d(here, here, 3, 1, 1, bias=False), *_normed(here)]
    return dcgan_weights(nn.Sequential(*layers, nn.ConvTranspose2d(width, channels, 4, 2, 1)))


def _normed(channels: int) -> list[nn.Module]:
    return [nn.BatchNorm2d(channels), nn.ReLU()]


def dcgan_discriminator(
    width: int, channels: int, size: int, *, spectral: bool = False, between: int = 0
) -> nn.Sequential:
    """Builds the mirror image: halved to 4 to 7 pixels with twice the channels each time, then one logit.

    LeakyReLU(0.2), and batch normalisation after every convolution but the first (Radford et al., 2016); with
    ``spectral`` every layer's spectral norm is held at 1 instead (Miyato et al., 2018).
    """
    steps = halvings(size)
    layers = halving_layers(width, channels, steps, spectral=spectral, between=between)
    last = nn.Linear((width << (steps - 1)) * (size >> steps) ** 2, 1)
    network = nn.Sequential(*layers, nn.Flatten(), spectral_norm(last) if spectral else last, nn.Flatten(0))
    return network if spectral else dcgan_weights(network)


def halving_layers(
    width: int, channels: int, steps: int, *, spectral: bool = False, between: int = 0
) -> list[nn.Module]:
    """Lists the convolutions of a discriminator that halve a picture so many times, the first of the given width.

    Args:
        width: channels after the first halving; each after has twice as many.
        channels: of the picture.
        steps: halvings.
        spectral: holds each convolution's spectral norm at 1, instead of batch normalisation.
        between: 3 x 3 convolutions that follow each halving and keep its size, as in the discriminators of
            (Miyato et al., 2018), Table 3.
    """
    layers: list[nn.Module] = []
    for step in range(steps):
        here, there = (channels if step == 0 else width << (step - 1)), width << step
        layers += _convolution(here, there, 4, 2, normed=step > 0, spectral=spectral)
        for _ in range(between):
            layers += _convolution(there, there, 3, 1, normed=True, spectral=spectral)
    return layers


def _convolution(here: int, there: int, kernel: int, stride: int, *, normed: bool, spectral: bool) -> list[nn.Module]:
    normed = normed and not spectral
    convolution = nn.Conv2d(here, there, kernel, stride, 1, bias=not normed)
    norm = [nn.BatchNorm2d(there)] if normed else []
    return [spectral_norm(convolution) if spectral else convolution, *norm, nn.LeakyReLU(0.2)]


def dcgan_weights(network: nn.Sequential) -> nn.Sequential:
    """Draws first weights from N(0, 0.02^2) and scales from N(1, 0.02^2) (Radford et al., 2016), in place."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d | nn.Linear):
            nn.init.normal_(layer.weight, 0.0, 0.02)
        elif isinstance(layer, nn.BatchNorm2d):
            nn.init.normal_(layer.weight, 1.0, 0.02)
    return network
