"""Variational capsules for classes: one network that classifies, reconstructs and generates."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from gencaps.errors import GencapsError
from gencaps.model import CapsuleModel, Classified, Losses, PictureInfo, Pictures, Step, averaged
from gencaps.papers.variational.config import VariationalConfig
from gencaps.papers.variational.networks import convolutional_encoder
from gencaps.primitives.gaussian import bounded_log_var, kl_to_standard_normal, sample
from gencaps.primitives.likelihoods import LIKELIHOODS
from gencaps.primitives.losses import kl_margin_loss
from gencaps.primitives.networks import dense_decoder
from gencaps.primitives.noise import Noise

Capsules = Float[Tensor, "batch entities dim"]
Masked = Float[Tensor, "batch entities features"]
"""Capsules as the decoder takes them: all zero but the active ones, with or without a flag."""


class Posterior(NamedTuple):
    """Each entity's Gaussian given a picture, and how far it lies from the prior."""

    mu: Capsules
    log_var: Capsules
    kl: Float[Tensor, "batch entities"]
    """Small where the entity is present."""


def keep(capsules: Capsules, active: Int[Tensor, "batch"], flag: bool = False) -> Masked:
    """Zeroes every capsule but the active one: M ⊙ C (Huang et al., 2018), section 3.2.

    With ``flag`` each capsule gets one number more, 1 where it is active and 0 elsewhere.
    """
    mask: Bool[Tensor, "batch entities"] = F.one_hot(active, capsules.shape[1]).bool()
    if flag:
        capsules = F.pad(capsules, (0, 1), value=1.0)
    return torch.where(mask[..., None], capsules, 0.0)


class VariationalCapsules(CapsuleModel):
    """Owns one Gaussian capsule a class; the class of least KL to N(0, I) is the one that a picture shows.

    (Huang et al., 2018), sections 3 and 4.2.

    Note: departs from section 3.2 where ``mask='labels'``: the label's capsule paints in training, because the
    capsule of least KL is the wrong one early on and teaches the decoder other classes' pictures.

    Note: departs from section 3.2 where ``flag=True``: without it a capsule at the prior's mean is all zeros, the
    same for every class, so the encoder spends KL on saying which class it is and prior samples fall into holes.
    """

    paper = "variational"
    title = "Variational capsules"
    compiled = ("analyse", "repaint")

    def __init__(self, config: VariationalConfig, pictures: PictureInfo) -> None:
        super().__init__(config, pictures)
        self.config: VariationalConfig = config
        if pictures.labels != "classes":
            raise GencapsError(
                f"'{pictures.data}' has attributes, and variational capsules take classes so far: "
                "choose a set with one class a picture"
            )
        self.entities = len(pictures.names)
        if self.entities < 2:
            raise GencapsError(f"'{pictures.data}' has {self.entities} class; a classifier needs at least 2")
        self.encoder = convolutional_encoder(
            pictures.channels,
            pictures.size,
            config.widths,
            config.strides,
            config.kernel,
            config.norm,
            2 * self.entities * config.dim,
        )
        features = self.entities * (config.dim + config.flag)
        self.decoder = dense_decoder(features, config.decoder, pictures.channels, pictures.size)

    def encode(self, x: Pictures) -> Posterior:
        """Maps pictures to every entity's N(mu, sigma^2) and its KL to the prior, Eq. (2)."""
        # half precision ends here: log sigma^2 is exponentiated and a KL of 0.2 is compared with one of 200
        mu, log_var = self.encoder(x).float().unflatten(1, (2, self.entities, self.config.dim)).unbind(1)
        log_var = bounded_log_var(log_var)
        return Posterior(mu, log_var, kl_to_standard_normal(mu, log_var))

    def activate(self, capsules: Capsules, active: Int[Tensor, "batch"]) -> Masked:
        """Leaves on the capsules that paint, in the form that the decoder takes."""
        return keep(capsules, active, self.config.flag)

    def logits(self, capsules: Masked) -> Pictures:
        """Paints all capsules, the zeroed ones too: the decoder sees entities x dim numbers."""
        return self.decoder(capsules.flatten(1)).float()

    def decode(self, capsules: Masked) -> Pictures:
        """Paints capsules as a picture with values from 0 to 1."""
        return self.logits(capsules).sigmoid()

    def analyse(self, x: Pictures, y: Int[Tensor, "batch"]) -> tuple[Posterior, Float[Tensor, "batch"]]:
        """Encodes pictures and weighs every capsule's KL against the label: L_c of Eq. (3), one value a picture."""
        posterior = self.encode(x)
        target = F.one_hot(y, self.entities).to(posterior.kl.dtype)
        return posterior, kl_margin_loss(posterior.kl, target, self.config.margin, self.config.down_weight)

    def repaint(
        self, x: Pictures, y: Int[Tensor, "batch"], posterior: Posterior, noise: Capsules
    ) -> Float[Tensor, "batch"]:
        """Paints pictures from a sample of their active capsules and gives the error: Eq. (4), one value a picture."""
        active = posterior.kl.argmin(1) if self.config.mask == "least-kl" else y
        capsules = self.activate(sample(posterior.mu, posterior.log_var, noise), active)
        return LIKELIHOODS[self.config.likelihood](self.logits(capsules), x)

    def losses(self, x: Pictures, y: Int[Tensor, "batch"], step: Step) -> Losses:
        """Computes L_c + recon_weight L_mse (Huang et al., 2018), Eq. (6), without the adversary."""
        posterior, margin = self.analyse(x, y)
        terms = {"margin": margin}
        if self.config.recon_weight > 0:
            terms["recon"] = self.repaint(x, y, posterior, step.noise.normal(*posterior.mu.shape))
        share = 1 / x[0].numel() if self.config.recon == "mean" else 1.0
        return averaged(terms, {"recon": self.config.recon_weight * share})

    def classify(self, x: Pictures) -> Classified:
        """Reads the class of least KL; the presence is softmax(-KL) over the classes. No noise is involved."""
        kl = self.encode(x).kl
        return Classified((-kl).softmax(1), kl.argmin(1))

    def reconstruct(self, x: Pictures, noise: Noise | None = None) -> Pictures:
        """Paints a picture from its own class's capsule: its mean, or a sample where noise is given."""
        mu, log_var, kl = self.encode(x)
        capsules = mu if noise is None else sample(mu, log_var, noise.normal(*mu.shape))
        return self.decode(self.activate(capsules, kl.argmin(1)))

    def generate(self, y: Int[Tensor, "batch"], noise: Noise) -> Pictures:
        """Paints new pictures of the classes asked for from the prior, section 3.3."""
        return self.decode(self.activate(noise.normal(len(y), self.entities, self.config.dim), y))

    def resample(self, x: Pictures, noise: Noise) -> Pictures:
        """Paints the class that each picture shows in another style, drawn from the prior."""
        return self.generate(self.classify(x).label, noise)

    def interpolate(
        self, start: Pictures, end: Pictures, steps: int
    ) -> Float[Tensor, "batch steps channels height width"]:
        """Walks in a straight line between the masked means of two pictures (Figure 7)."""
        first, last = (self.activate(p.mu, p.kl.argmin(1)) for p in (self.encode(start), self.encode(end)))
        share = torch.linspace(0, 1, steps, device=first.device)[:, None, None]
        walk = torch.lerp(first[:, None], last[:, None], share)
        return self.decode(walk.flatten(0, 1)).unflatten(0, (len(start), steps))
