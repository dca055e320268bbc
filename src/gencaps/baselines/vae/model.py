"""A variational autoencoder of dense layers."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gencaps.baselines.vae.config import VAEConfig
from gencaps.errors import GencapsError
from gencaps.model import CapsuleModel, Labelling, Losses, PictureInfo, Pictures, Step, averaged
from gencaps.primitives.gaussian import bounded_log_var, kl_to_standard_normal, sample
from gencaps.primitives.likelihoods import LIKELIHOODS
from gencaps.primitives.networks import dense_decoder, dense_layers
from gencaps.primitives.noise import Noise

Latent = Float[Tensor, "batch latent"]


class Posterior(NamedTuple):
    """What the encoder says of a picture's z: N(mu, sigma^2)."""

    mu: Latent
    log_var: Latent


class VAE(CapsuleModel):
    """Explains a picture by a few numbers z ~ N(0, I) and a dense decoder; labels are never looked at.

    (Kingma & Welling, 2013). (Smith et al., 2021), Table 1, fit their linear classifier to mu and sigma.
    """

    paper = "vae"
    title = "Variational autoencoder"
    compiled = ("bound",)

    def __init__(self, config: VAEConfig, pictures: PictureInfo) -> None:
        super().__init__(config, pictures)
        self.config: VAEConfig = config
        inputs = pictures.channels * pictures.size**2
        self.encoder = nn.Sequential(nn.Flatten(), *dense_layers(inputs, (*config.hidden, 2 * config.latent)))
        self.decoder = dense_decoder(config.latent, config.hidden[::-1], pictures.channels, pictures.size)

    def encode(self, x: Pictures) -> Posterior:
        """Maps pictures to N(mu, sigma^2)."""
        mu, log_var = self.encoder(x).float().chunk(2, 1)
        return Posterior(mu, bounded_log_var(log_var))

    def decode(self, z: Latent) -> Pictures:
        """Paints z, values 0 to 1."""
        return self.decoder(z).float().sigmoid()

    def bound(self, x: Pictures, noise: Latent) -> tuple[Float[Tensor, "batch"], Float[Tensor, "batch"]]:
        """Gives -log p(x given z) at a sampled z, and the KL to the prior: together minus the bound."""
        mu, log_var = self.encode(x)
        logits = self.decoder(sample(mu, log_var, noise)).float()
        return LIKELIHOODS[self.config.likelihood](logits, x), kl_to_standard_normal(mu, log_var)

    def steady(self, stage: str) -> bool:
        """Says that a step is always the same work."""
        return True

    def losses(self, x: Pictures, y: Labelling, step: Step) -> Losses:
        """Computes minus the evidence lower bound."""
        recon, kl = self.bound(x, step.noise.normal(len(x), self.config.latent))
        return averaged({"recon": recon, "kl": kl}, {"kl": self.config.kl_weight})

    def reconstruct(self, x: Pictures, noise: Noise | None = None) -> Pictures:
        """Paints a picture from its posterior's mean, or from a sample of it where noise is given."""
        mu, log_var = self.encode(x)
        return self.decode(mu if noise is None else sample(mu, log_var, noise.normal(*mu.shape)))

    def sample(self, n: int, noise: Noise) -> Pictures:
        """Paints n new pictures from the prior."""
        return self.decode(noise.normal(n, self.config.latent))

    def interpolate(
        self, start: Pictures, end: Pictures, steps: int, only: Tensor | None = None
    ) -> Float[Tensor, "batch steps channels height width"]:
        """Walks in a straight line between two pictures' means."""
        if only is not None:
            raise GencapsError("a VAE has no capsules for single attributes: walk in all of them")
        share = torch.linspace(0, 1, steps, device=start.device)[:, None]
        walk = torch.lerp(self.encode(start).mu[:, None], self.encode(end).mu[:, None], share)
        return self.decode(walk.flatten(0, 1)).unflatten(0, (len(start), steps))
