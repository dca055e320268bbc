"""Variational capsules: how the one network that classifies, reconstructs, generates and edits is trained."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.func import functional_call

from gencaps.errors import GencapsError
from gencaps.model import Labelling, Losses, PictureInfo, Pictures, Player, Step, averaged
from gencaps.papers.variational.capsules import Capsules, GaussianCapsules, Masked, PerPicture, Posterior
from gencaps.papers.variational.config import VariationalConfig
from gencaps.papers.variational.discriminator import MultiScaleDiscriminator, Verdicts, least_squares
from gencaps.papers.variational.entities import Active, Invented, invented
from gencaps.primitives.dependence import squared_correlation
from gencaps.primitives.gaussian import sample
from gencaps.primitives.likelihoods import LIKELIHOODS
from gencaps.primitives.losses import kl_margin_loss
from gencaps.primitives.noise import Noise
from gencaps.primitives.processes import mean_over_processes

Features = Callable[[Pictures], Tensor]
"""What a perceptual loss compares: features of pictures."""
FOLLOW = 0.01
"""How fast running averages follow a batch."""


class Draws(NamedTuple):
    """The random numbers of a training step."""

    noise: Capsules
    prior: Capsules
    swap: Float[Tensor, "batch groups"] | None
    chance: Float[Tensor, "batch 2"] | None


class VariationalCapsules(GaussianCapsules):
    """Trains Gaussian capsules by Eq. (6) (Huang et al., 2018).

    Note: departs from section 3.2 where ``mask='labels'``: the labels' capsules paint in training, because the
    capsule of least KL is the wrong one early on and teaches the decoder other classes' pictures.
    """

    compiled = ("analyse", "repaint", "tell_apart")
    teachers = ("discriminator",)

    def __init__(self, config: VariationalConfig, pictures: PictureInfo, features: Features | None = None) -> None:
        super().__init__(config, pictures)
        self._features = (features,)  # in a tuple, so that a network's weights do not become the model's own
        told = self.entities.count if config.told else 0
        self.discriminator = (
            MultiScaleDiscriminator(pictures.channels, pictures.size, config.discriminator, config.scales, told)
            if config.adversarial_weight > 0
            else None
        )
        weights = self.entities.weights(config.off_weight, config.rest_weight)
        self.register_buffer("kl_weights", weights, persistent=False)
        self.kl_weights: Float[Tensor, "entities"]
        self.register_buffer("batches", torch.zeros(()))
        self.batches: Float[Tensor, ""]
        """How many batches shares and moments have followed."""

    @property
    def features(self) -> Features | None:
        """What the perceptual loss compares."""
        return self._features[0]

    def players(self, stage: str) -> dict[str, Player]:
        """Lets the discriminator, where there is one, move first."""
        own = [*self.encoder.parameters(), *self.decoder.parameters()]
        if self.discriminator is None:
            return {"model": Player(own)}
        return {"discriminator": Player(list(self.discriminator.parameters())), "model": Player(own)}

    def steady(self, stage: str) -> bool:
        """Says that a step is always the same work."""
        return True

    def analyse(self, x: Pictures, y: Labelling, warm: Float[Tensor, ""]) -> tuple[Posterior, dict[str, PerPicture]]:
        """Encodes pictures; gives L_c of Eq. (3), with the present capsules' KL at a share of its weight.

        Beside it, where they are asked for, the cross entropy of the presences, and what the rest tells of the labels.

        Note: departs from Eq. (6) where ``presence_weight`` is above 0, because the margin loss is silent about a
        picture whose capsules are all on their side of the margin; and where ``blind_weight`` is: style that hides in
        the rest outlives an edit.
        """
        posterior, active = self.encode(x), self.entities.active(y)
        mask = self.entities.mask(active)
        # a present capsule's KL times warm, an absent one's as it is
        kl = torch.where(mask, warm * self.kl_weights * posterior.kl, posterior.kl)
        terms = {"margin": kl_margin_loss(kl, mask, self.config.margin, self.config.down_weight)}
        if self.config.presence_weight:
            terms["presence"] = self.entities.surprise(posterior.kl, active)
        if self.config.blind_weight and self.entities.rest:
            terms["blind"] = self.telling(posterior, mask).expand(len(x))
        return posterior, terms

    def telling(self, posterior: Posterior, mask: Bool[Tensor, "batch entities"]) -> Float[Tensor, ""]:
        """Gives how much the capsules that are always on tell about the others: squared correlations over the batch."""
        rest = self.entities.rest
        mu, log_var = (part[:, -rest:].flatten(1) for part in (posterior.mu, posterior.log_var))
        # the last of a group's states is told by the others
        shown = self.entities.grouped(mask.float())[..., 1:].flatten(1)
        return squared_correlation(torch.cat([mu, mu.square(), log_var], 1), shown)

    def painting(self, posterior: Posterior, y: Labelling, draws: Draws) -> Masked:
        """Gives the capsules that paint a training picture: a sample of the active ones, some drawn from the prior."""
        active = self.entities.least(posterior.kl) if self.config.mask == "least-kl" else self.entities.active(y)
        capsules = sample(posterior.mu, posterior.log_var, draws.noise)
        if draws.swap is not None:
            share = torch.where(self.entities.absent(active), self.config.swap_off, 0.0).clamp(min=self.config.swap)
            drawn = self.entities.capsules_in(draws.swap < share)
            capsules = torch.where(drawn[..., None], draws.prior, capsules)
        return self.activate(capsules, active)

    def invent(self, posterior: Posterior, y: Labelling, draws: Draws) -> Invented:
        """Gives the capsules of pictures that nobody saw: new ones of the same labels from the prior, and edits."""
        active = self.entities.active(y)
        if draws.chance is None:
            return Invented(draws.prior, active)
        seen = sample(posterior.mu, posterior.log_var, draws.noise).detach()
        return invented(self.entities, seen, active, draws.prior, draws.chance, self.config.edits, self.config.others)

    @property
    def invents(self) -> bool:
        """Whether training paints pictures that nobody saw, too."""
        return self.discriminator is not None or self.config.reading_weight > 0 or self.config.style_weight > 0

    def repaint(self, x: Pictures, y: Labelling, posterior: Posterior, draws: Draws) -> dict[str, PerPicture]:
        """Paints pictures from a sample of their active capsules: the error, Eq. (4), and what the adversary says.

        The adversary sees reconstructions and invented pictures, half each.

        Note: departs from section 3.2 where ``swap`` or ``swap_off`` is above 0: a share of the active capsules is
        drawn from the prior, and the rest of the picture is to be painted all the same. So no capsule paints more
        than its entity.
        """
        painting = self.painting(posterior, y, draws)
        new = self.invent(posterior, y, draws) if self.invents else None
        # in one go, so that a normalisation over the batch sees both kinds, as it will after training
        logits = self.logits(painting if new is None else torch.cat([painting, self.activate(*new)]))
        logits, made = logits[: len(x)], logits[len(x) :].sigmoid()
        terms = {"recon": LIKELIHOODS[self.config.likelihood](logits, x)}
        if self.features is not None and self.config.perceptual_weight:
            unlike = (self.features(logits.sigmoid()) - self.features(x)).flatten(1)
            terms["perceptual"] = unlike.square().mean(1)
        if new is not None and self.discriminator is not None:
            again = self.verdicts(logits.sigmoid(), self.entities.active(y))
            terms["adversarial"] = 0.5 * (
                least_squares(again, 1.0) + least_squares(self.verdicts(made, new.active), 1.0)
            )
        if new is not None and (self.config.reading_weight or self.config.style_weight):
            terms |= self.read(made, new)
        return terms

    def read(self, made: Pictures, new: Invented) -> dict[str, PerPicture]:
        """Gives how badly an encoder that stands still reads off pictures what was asked for: entities and styles.

        The cross entropy of the presences, and half the squared distance of the active capsules from the means read.

        Note: not in the paper. Without it nothing says that an invented picture shows what was asked for.
        """
        still = {name: weight.detach() for name, weight in self.encoder.named_parameters()}
        moving = {name: buffer.clone() for name, buffer in self.encoder.named_buffers()}  # running means stay its own
        seen = self.gaussians(functional_call(self.encoder, (still, moving), made))
        apart = 0.5 * (new.capsules - seen.mu).square().sum(-1)
        style = torch.where(self.entities.mask(new.active), apart, 0.0).sum(1)
        return {"reading": self.entities.surprise(seen.kl, new.active), "style": style}

    def verdicts(self, x: Pictures, active: Active) -> Verdicts:
        """Asks the discriminator about pictures, with what they are said to show where it is to be told."""
        assert self.discriminator is not None
        return self.discriminator(x, self.entities.mask(active).to(x.dtype) if self.config.told else None)

    def tell_apart(self, x: Pictures, y: Labelling, draws: Draws) -> tuple[PerPicture, PerPicture]:
        """Gives (D(x) - 1)^2 and D(fake)^2, what the discriminator minimises, Eq. (5)."""
        active = self.entities.active(y)
        with torch.no_grad():  # the painter waits while the discriminator moves
            posterior = self.encode(x)
            new = self.invent(posterior, y, draws)
            again, made = self.decode(torch.cat([self.painting(posterior, y, draws), self.activate(*new)])).chunk(2)
        real = least_squares(self.verdicts(x, active), 1.0)
        old, fresh = self.verdicts(again, active), self.verdicts(made, new.active)
        return real, 0.5 * (least_squares(old, 0.0) + least_squares(fresh, 0.0))

    def draw(self, batch: int, noise: Noise) -> Draws:
        """Draws the random numbers of a training step."""
        shape = (batch, self.entities.count, self.config.dim)
        first = noise.normal(*shape)
        swaps = self.config.swap > 0 or self.config.swap_off > 0
        prior = noise.normal(*shape) if self.invents or swaps else first
        swap = noise.uniform(batch, self.entities.groups) if swaps else None
        return Draws(first, prior, swap, noise.uniform(batch, 2) if self.invents and self.config.edits else None)

    def losses(self, x: Pictures, y: Labelling, step: Step) -> Losses:
        """Computes L_c + recon_weight L_mse + adversarial_weight L_adv (Huang et al., 2018), Eq. (6)."""
        config = self.config
        if config.perceptual_weight and self.features is None and self.training:
            raise GencapsError("model.perceptual_weight needs features: give VariationalCapsules a callable of them")
        draws = self.draw(len(x), step.noise) if config.recon_weight else None
        if step.player == "discriminator":
            real, fake = self.tell_apart(x, y, draws)  # pyright: ignore[reportArgumentType]
            return averaged({"real": real, "fake": fake})
        warm = (step.done(x) / config.warmup).clamp(max=1.0) if config.warmup else x.new_ones(())
        posterior, terms = self.analyse(x, y, warm)
        if draws is not None:
            terms |= self.repaint(x, y, posterior, draws)
        if self.training:
            self.count(y, self.bound(posterior.kl, self.entities.active(y), terms.get("recon")))
        weights = {
            "presence": config.presence_weight,
            "blind": config.blind_weight,
            "recon": self.recon_share,
            "perceptual": config.perceptual_weight,
            "adversarial": config.adversarial_weight,
            "reading": config.reading_weight,
            "style": config.style_weight,
        }
        return averaged(terms, weights)

    @torch.no_grad()
    def count(self, y: Labelling, energy: PerPicture) -> None:
        """Lets the entities' shares and the energy's moments follow a batch."""
        seen = self.entities.mask(self.entities.active(y)).float().mean(0)
        self.batches += 1
        # at first a plain mean over the batches, so that where the numbers began is forgotten at once
        weight = self.batches.reciprocal().clamp(min=FOLLOW)
        self.shares.lerp_(mean_over_processes(seen), weight)
        mean = mean_over_processes(energy.mean())
        spread = mean_over_processes((energy - mean).square().mean())
        self.energy_moments.lerp_(torch.stack([mean, spread]), weight)
