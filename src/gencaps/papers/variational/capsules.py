"""Gaussian capsules and what they answer: classify, reconstruct, generate and edit."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Integer
from torch import Tensor
from torch.nn import functional as F

from gencaps.abilities import Classified, Dials
from gencaps.model import CapsuleModel, Labelling, PictureInfo, Pictures
from gencaps.papers.variational.build import make_decoder, make_encoder
from gencaps.papers.variational.config import VariationalConfig
from gencaps.papers.variational.entities import Active, Entities, changed, keep
from gencaps.primitives.gaussian import bounded_log_var, kl_to_standard_normal, sample
from gencaps.primitives.likelihoods import LIKELIHOODS
from gencaps.primitives.noise import Noise

Capsules = Float[Tensor, "batch entities dim"]
Masked = Float[Tensor, "batch entities features"]
"""Capsules as the decoder takes them: all zero but the active ones, with or without a flag."""
PerPicture = Float[Tensor, "batch"]
DOUBTED = 4.0
"""Standard deviations beyond a training picture's energy at which a picture is doubted by half."""


class Posterior(NamedTuple):
    """Each entity's Gaussian given a picture, and how far it lies from the prior."""

    mu: Capsules
    log_var: Capsules
    kl: Float[Tensor, "batch entities"]
    """Small where the entity is present."""


class GaussianCapsules(CapsuleModel):
    """Owns Gaussian capsules whose KL to N(0, I) says what a picture shows: one a class, or two an attribute.

    (Huang et al., 2018), sections 3 and 4.

    Note: departs from section 3.2 where ``flag=True``: without it a capsule at the prior's mean is all zeros, the
    same for every class, so the encoder spends KL on saying which class it is and prior samples fall into holes.
    """

    paper = "variational"
    title = "Variational capsules"

    def __init__(self, config: VariationalConfig, pictures: PictureInfo) -> None:
        super().__init__(config, pictures)
        self.config: VariationalConfig = config
        self.entities = Entities.of(pictures, config.rest)
        self.encoder = make_encoder(config, pictures, self.entities)
        self.decoder = make_decoder(config, pictures, self.entities)
        self.register_buffer("shares", torch.full((self.entities.count,), 1 / self.entities.states))
        self.shares: Float[Tensor, "entities"]
        """How often each entity was there in training: what to paint where nothing was asked for."""
        self.register_buffer("energy_moments", torch.tensor([0.0, 1.0]))
        self.energy_moments: Float[Tensor, "2"]
        """Mean and variance of the energy of training pictures."""

    def encode(self, x: Pictures) -> Posterior:
        """Maps pictures to every entity's N(mu, sigma^2) and its KL to the prior, Eq. (2)."""
        return self.gaussians(self.encoder(x))

    def gaussians(self, numbers: Float[Tensor, "batch features"]) -> Posterior:
        """Reads the encoder's numbers as Gaussians."""
        # half precision ends here: log sigma^2 is exponentiated and a KL of 0.2 is compared with one of 200
        shape = (2, self.entities.count, self.config.dim)
        mu, log_var = numbers.float().unflatten(1, shape).unbind(1)
        log_var = bounded_log_var(log_var)
        return Posterior(mu, log_var, kl_to_standard_normal(mu, log_var))

    def activate(self, capsules: Capsules, active: Active) -> Masked:
        """Leaves on the capsules that paint, in the form that the decoder takes."""
        return keep(capsules, self.entities.mask(active), self.config.flag)

    def logits(self, capsules: Masked) -> Pictures:
        """Paints all capsules, the zeroed ones too: the decoder sees entities x dim numbers."""
        return self.decoder(capsules.flatten(1)).float()

    def decode(self, capsules: Masked) -> Pictures:
        """Paints capsules as a picture with values from 0 to 1."""
        return self.logits(capsules).sigmoid()

    def prior(self, n: int, noise: Noise | None) -> Capsules:
        """Draws capsules from the prior; without noise they are its mean, the plainest style."""
        shape = (n, self.entities.count, self.config.dim)
        return torch.zeros(shape, device=self.device) if noise is None else noise.normal(*shape)

    def posterior(self, x: Pictures, noise: Noise | None = None) -> tuple[Capsules, Active]:
        """Gives the capsules of pictures, their means or a sample, and the states of least KL."""
        mu, log_var, kl = self.encode(x)
        capsules = mu if noise is None else sample(mu, log_var, noise.normal(*mu.shape))
        return capsules, self.entities.least(kl)

    # ---- how well a picture is explained ----

    @property
    def recon_share(self) -> float:
        """The weight of a picture's error: summed over its pixels, or averaged."""
        pixels = self.pictures.channels * self.pictures.size**2
        return self.config.recon_weight / (pixels if self.config.recon == "mean" else 1)

    def bound(self, kl: Float[Tensor, "batch entities"], active: Active, error: PerPicture | None) -> PerPicture:
        """Gives what it takes to explain a picture: the active capsules' KL, and the weighted error that is left."""
        spent = torch.where(self.entities.mask(active), kl, 0.0).sum(1)
        return spent if error is None else spent + self.recon_share * error

    def energy(self, x: Pictures) -> PerPicture:
        """Gives what it takes to explain a picture by the entities that it seems to show; large for foreign ones."""
        mu, _, kl = self.encode(x)
        active = self.entities.least(kl)
        if self.config.recon_weight == 0:
            return self.bound(kl, active, None)
        error = LIKELIHOODS[self.config.likelihood](self.logits(self.activate(mu, active)), x)
        return self.bound(kl, active, error)

    def doubt(self, x: Pictures) -> PerPicture:
        """Gives how likely a picture shows none of the known entities, 0 to 1.

        Presences say which entity, not whether any: they sum to one. A picture that takes ``DOUBTED`` standard
        deviations more than a training picture to explain is doubted by half.
        """
        mean, variance = self.energy_moments
        return ((self.energy(x) - mean) / variance.sqrt() - DOUBTED).sigmoid()

    # ---- answers ----

    def classify(self, x: Pictures) -> Classified:
        """Reads the states of least KL; no noise is involved."""
        kl = self.encode(x).kl
        return Classified(self.entities.presence(kl), self.entities.label(self.entities.least(kl)))

    def reconstruct(self, x: Pictures, noise: Noise | None = None) -> Pictures:
        """Paints a picture from its own entities' capsules: their means, or a sample where noise is given."""
        return self.decode(self.activate(*self.posterior(x, noise)))

    def generate(self, y: Labelling, noise: Noise) -> Pictures:
        """Paints new pictures of what is asked for from the prior, section 3.3."""
        return self.decode(self.activate(self.prior(len(y), noise), self.entities.active(y)))

    def usual(self) -> Active:
        """Gives the state of every group that was the most frequent in training."""
        return self.entities.grouped(self.shares[None]).argmax(-1)

    def edit(
        self,
        x: Pictures,
        wanted: Integer[Tensor, "batch groups"],
        style: Noise | None = None,
        noise: Noise | None = None,
        intensity: float = 1.0,
        numbers: Capsules | None = None,
    ) -> Pictures:
        """Paints pictures with some entities changed and the rest kept, section 4.1.2.

        Args:
            wanted: the new state of each group, -1 where it is kept.
            style: draws the changed capsules from the prior; without it they are the prior's mean, and an entity that
                is in its wanted state already stays as it is.
            noise: draws the kept capsules from their posterior; without it they are its mean.
            intensity: how far to go from the picture (0) to the edit (1): a line between the two capsules of a group.
            numbers: what the edit's capsules are set to by hand; not a number where they are left alone.
        """
        return self.repainted(*self.posterior(x, noise), wanted, style, intensity, numbers)

    def repainted(
        self,
        capsules: Capsules,
        active: Active,
        wanted: Integer[Tensor, "batch groups"],
        style: Noise | None,
        intensity: float = 1.0,
        numbers: Capsules | None = None,
    ) -> Pictures:
        """Paints known capsules with some of their groups changed: what ``edit`` does with a picture's."""
        after = changed(active, wanted)
        moved = (wanted >= 0) if style is not None else (after != active)
        new = torch.where(self.entities.capsules_in(moved)[..., None], self.prior(len(capsules), style), capsules)
        if numbers is not None:
            new = torch.where(numbers.isnan(), new, numbers)
        return self.decode(torch.lerp(self.activate(capsules, active), self.activate(new, after), intensity))

    @property
    def capsule_names(self) -> tuple[str, ...]:
        """Names the capsules."""
        return self.entities.titles(self.pictures.names)

    def dials(self, x: Pictures) -> Dials:
        """Gives the means of a picture's capsules, and which of them paint."""
        mu, _, kl = self.encode(x)
        shares = (-self.entities.grouped(kl)).softmax(-1).flatten(1)
        presence = F.pad(shares, (0, self.entities.rest), value=1.0)
        return Dials(mu, self.entities.mask(self.entities.least(kl)).to(mu.dtype), presence)

    def turn(self, values: Capsules, on: Float[Tensor, "batch entities"]) -> Pictures:
        """Paints capsules by hand, each as far as it is on: between 0 and 1 lies the line that an edit walks along."""
        every = torch.ones_like(on, dtype=torch.bool)
        return self.decode(on[..., None] * keep(values, every, self.config.flag))

    def resample(self, x: Pictures, noise: Noise, only: Bool[Tensor, "batch groups"] | None = None) -> Pictures:
        """Paints what each picture shows in another style, drawn from the prior; ``only`` some groups, or all."""
        capsules, active = self.posterior(x)
        return self.repainted(capsules, active, active if only is None else torch.where(only, active, -1), noise)

    def interpolate(
        self, start: Pictures, end: Pictures, steps: int, only: Bool[Tensor, "batch groups"] | None = None
    ) -> Float[Tensor, "batch steps channels height width"]:
        """Walks in a straight line between the masked means of two pictures (Figures 4, 5 and 7).

        With ``only``, the other groups stay as they are in the first picture.
        """
        first, last = (self.activate(*self.posterior(x)) for x in (start, end))
        if only is not None:
            last = torch.where(self.entities.capsules_in(only)[..., None], last, first)
        share = torch.linspace(0, 1, steps, device=first.device)[:, None, None]
        walk = torch.lerp(first[:, None], last[:, None], share)
        return self.decode(walk.flatten(0, 1)).unflatten(0, (len(start), steps))
