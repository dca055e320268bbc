"""What the papers compare with, on the same engine and data: one room a rival."""

from __future__ import annotations

# the class of a rival's model and of its settings, as in gencaps.papers
RIVALS: dict[str, tuple[str, str]] = {
    "capsnet": ("model.CapsNet", "config.CapsNetConfig"),
    "gan": ("model.ConvGAN", "config.GANConfig"),
    "vae": ("model.VAE", "config.VAEConfig"),
    "resnet": ("model.ResNet", "config.ResNetConfig"),
}
