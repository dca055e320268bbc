"""Products of expert capsules: trained in stages, without labels."""

from __future__ import annotations

from typing import NamedTuple, cast

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn

from gencaps.abilities import Dials
from gencaps.errors import GencapsError
from gencaps.model import CapsuleModel, Labelling, Losses, PictureInfo, Pictures, Player, Stage, Step, averaged
from gencaps.papers.product_of_experts.autoencoder import TiedAutoencoder
from gencaps.papers.product_of_experts.config import ProductOfExpertsConfig
from gencaps.papers.product_of_experts.domain import Domain, alone, check_domain, into_half
from gencaps.papers.product_of_experts.factors import Factors
from gencaps.papers.product_of_experts.layer import ExpertLayer, contrast, mix, up
from gencaps.papers.product_of_experts.moments import moment_gap
from gencaps.papers.product_of_experts.painting import back_rule, best_alone, falls_to, paint_alone
from gencaps.papers.product_of_experts.spaces import as_drawn, fired, parted, presence, squash_onto, unsquash_from
from gencaps.primitives.likelihoods import LIKELIHOODS
from gencaps.primitives.noise import Noise
from gencaps.primitives.squash import one_for_zero, squash, unsquash

Upper = Float[Tensor, "batch capsules dim"]
Lower = Float[Tensor, "batch caps_below dim_below"]
Chains = Float[Tensor, "chains caps_below dim_below"]


class Code(NamedTuple):
    """The capsules of a picture, of the top layer."""

    pose: Upper
    """``x_j``, squashed."""
    presence: Float[Tensor, "batch capsules"]
    """``||x_j||``, the probability that the capsule is on, Eq. (5)."""
    coefficients: Float[Tensor, "batch capsules below"]
    """``c_ij``, how much of each capsule below went to it; they sum to 1 over those below."""


class ProductOfExperts(CapsuleModel):
    """Explains pictures by capsules whose lengths are probabilities of firing; labels are never looked at.

    (Hauser, 2020). Stage ``autoencoder`` learns filters; ``experts`` learns W by contrastive divergence with
    dynamic routing as its mixing step; ``back`` learns U, by which capsules paint.
    """

    paper = "product_of_experts"
    title = "Product of expert capsules"
    compiled = ("rebuild", "learn_experts", "learn_back")

    def __init__(self, config: ProductOfExpertsConfig, pictures: PictureInfo) -> None:
        super().__init__(config, pictures)
        self.config: ProductOfExpertsConfig = config
        self.autoencoder = TiedAutoencoder(
            pictures.channels,
            pictures.size,
            (config.filters[0], config.filters[1]),
            config.kernel,
            config.stride,
            config.slope,
            config.dropout,
            config.primary_dim,
        )
        layers, below, dim = [], self.autoencoder.capsules, config.primary_dim
        for capsules in config.capsules:
            settings = config.iterations, config.back_iterations, config.scale, config.chains, config.line
            layers.append(ExpertLayer(below, dim, capsules, config.dim, *settings))
            below, dim = capsules, config.dim
        self.layers = nn.ModuleList(layers)
        self.factors = Factors(config.capsules[0], config.line) if config.alone == "inferred" else None

    # --- training

    def stages(self) -> tuple[Stage, ...]:
        """Lists the filters, then the W of each layer from below, then the U of each. (Hauser, 2020), section 4.1."""
        config, places = self.config, range(1, len(self.layers) + 1)
        return (
            Stage("autoencoder", config.autoencoder_epochs),
            *(Stage(_named("experts", place), config.experts_epochs) for place in places),
            *(Stage(_named("back", place), config.back_epochs) for place in places),
        )

    def players(self, stage: str) -> dict[str, Player]:
        """Lets each stage move its own weights alone: what earlier ones learned is held fixed."""
        kind, place = _parted(stage)
        if kind == "autoencoder":
            return {"model": Player(list(self.autoencoder.parameters()))}
        layer, config = self._layer(place), self.config
        if kind == "experts":
            return {"model": Player([layer.weight], config.experts_rate, config.experts_optimizer)}
        return {"model": Player([layer.back], config.back_rate, config.back_optimizer)}

    def steady(self, stage: str) -> bool:
        """Says that a step of any stage is always the same work."""
        return True

    def _layer(self, place: int) -> ExpertLayer:
        return cast("ExpertLayer", self.layers[place])

    def losses(self, x: Pictures, y: Labelling, step: Step) -> Losses:
        """Computes the loss of the stage; labels are not looked at."""
        kind, place = _parted(step.stage)
        if kind == "autoencoder":
            return averaged({"recon": self.rebuild(x)})
        with torch.no_grad():
            below = self.below(x, place)
        if kind == "experts":
            return self._experts(below, place, step.noise)
        layer = self._layer(place)
        with torch.no_grad():
            above = layer.encode(below).v
            one = self._alone(unsquash(below), above, layer) if self.config.alone_weight > 0 else None
            layer.follow(above if one is None else one)
        noise = None if one is None else step.noise.normal(len(x), 1, self.config.dim)
        terms = averaged(self.learn_back(x, below, above, one, noise, place), {"alone": self.config.alone_weight})
        return _decayed(terms, layer.back, self.config.decay)

    def rebuild(self, x: Pictures) -> Float[Tensor, "batch"]:
        """Gives the error of each picture after the autoencoder with dropout. (Hauser, 2020), section 4.1."""
        logits = self.autoencoder.logits(self.autoencoder.code(x, dropping=True))
        return LIKELIHOODS[self.config.likelihood](logits.float(), x)

    def _experts(self, below: Lower, place: int, noise: Noise) -> Losses:
        """Computes ``F(x) - F(x~)``, Eq. (18), and what else W learns by."""
        layer, config = self._layer(place), self.config
        start = layer.chains if config.chains else below
        uniform = None
        if config.firing == "sampled":
            uniform = noise.uniform(len(start), config.mixing, config.capsules[place]).transpose(0, 1)
        data, model, gap, mixed = self.learn_experts(below, start, uniform, place)
        if config.chains:
            layer.chains.copy_(mixed)
        terms = {"free_energy": data.mean(), "free_energy_model": model.mean(), "moment": gap}
        total = terms["free_energy"] - terms["free_energy_model"] + config.moment_weight * gap
        return _decayed(Losses(total, terms), layer.weight, config.decay)

    def learn_experts(
        self, below: Lower, start: Chains, uniform: Tensor | None, place: int
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Gives ``F(x)``, ``F(x~)``, the gap of the moments, and x~, which mixing made from ``start``."""
        layer, config = self._layer(place), self.config
        c = layer.coefficients(below)
        z = up(below, layer.weight, c)
        with torch.no_grad():
            c_model = layer.coefficients(start) if config.chains else c
            known = None if config.chains else z
            mixed = mix(start, layer.weight, c_model, config.mixing, uniform, known, config.line)
        data, model = contrast(z, mixed, layer.weight, c_model, config.line)
        gap = moment_gap(z, config.line) if config.moment_weight > 0 else data.new_zeros(())
        return data, model, gap, mixed

    def _alone(self, z: Lower, above: Upper, layer: ExpertLayer) -> Upper:
        """Keeps of each picture's capsules the one that by itself is to paint it; the others become zero."""
        if self.factors is not None:
            return squash_onto(self.factors(z, layer.back, layer.share_alone), self.config.line)
        which = best_alone(z, above, layer.back, layer.share_alone)
        return above * falls_to(which, above.shape[1]).unsqueeze(-1)

    def learn_back(
        self, x: Pictures, below: Lower, above: Upper, one: Upper | None, noise: Tensor | None, place: int
    ) -> dict[str, Float[Tensor, "batch"]]:
        """Gives what U learns by: the paper's rule or an error, and the error of what one capsule paints alone."""
        layer, config = self._layer(place), self.config
        z, e = unsquash(below), layer.back_coefficients(above)
        if config.target == "rule":
            terms = {"rule": back_rule(z, above, layer.back, e)}
        else:
            terms = {config.target: self._error(up(above, layer.back, e), z, x, place)}
        if one is not None and noise is not None:
            # about as new ones are drawn: of that length, mostly noise, in the half of the sphere that training visits
            line, share = config.line, config.alone_noise
            kept = (1 - share) * as_drawn(unsquash_from(one, line), line)
            drawn = into_half(kept + share * noise * (one != 0), layer.mean_direction.expand_as(kept), line)
            painted = paint_alone(squash_onto(drawn, line), layer.back, layer.share_alone)
            terms["alone"] = self._error(painted, z, x, place)
        return terms

    def _error(self, painted: Lower, z: Lower, x: Pictures, place: int) -> Float[Tensor, "batch"]:
        """Gives the error of capsules painted from above, as capsules or as pictures."""
        if self.config.target == "pictures":
            return LIKELIHOODS[self.config.likelihood](self.logits(squash(painted), place), x)
        return 0.5 * (painted - z).square().sum((1, 2))

    # --- answers

    def below(self, x: Pictures, place: int) -> Lower:
        """Gives the squashed capsules that a layer sees, the first cut from the code. (Hauser, 2020), section 4.1."""
        # autocast codes in half precision; capsules need at least single
        working = torch.promote_types(self._layer(0).weight.dtype, torch.float32)
        capsules = squash(self.autoencoder.cut(self.autoencoder.code(x)).to(working))
        for lower in range(place):
            capsules = self._layer(lower).encode(capsules).v
        return capsules

    def logits(self, below: Lower, place: int) -> Pictures:
        """Paints the squashed capsules below a layer, before the sigmoid: unsquash, join, deconvolve."""
        for lower in reversed(range(place)):
            below = self._layer(lower).route_back(below).v
        return self.autoencoder.logits(self.autoencoder.join(unsquash(below))).float()

    def paint(self, pose: Upper) -> Pictures:
        """Paints squashed capsules of the top layer, values 0 to 1. (Hauser, 2020), section 4.1."""
        return self.logits(pose, len(self.layers)).sigmoid()

    def encode(self, x: Pictures) -> Code:
        """Gives the capsules of the top layer, their lengths and their coefficients."""
        top = len(self.layers) - 1
        pose, coefficients = self._layer(top).encode(self.below(x, top))
        return Code(pose, presence(pose, self.config.line), coefficients)

    def reconstruct(self, x: Pictures, noise: Noise | None = None) -> Pictures:
        """Paints a picture from all its capsules; with noise each fires wholly or not at all, as its length says."""
        pose, likely, _ = self.encode(x)
        if noise is not None:
            line, fires = self.config.line, noise.uniform(*likely.shape) < likely
            pose = squash_onto(as_drawn(unsquash_from(pose, line), line), line) * fires.unsqueeze(-1)
        return self.paint(pose)

    @property
    def experts(self) -> int:
        """How many capsules there are to draw from: those of the top layer."""
        return self.config.capsules[-1]

    def draw(self, capsule: Integer[Tensor, "batch"], noise: Noise, domain: Domain = "restricted") -> Pictures:
        """Paints from one capsule each, drawn from N(0, I), the others zero. (Hauser, 2020), section 4.2.

        A capsule with a place is drawn as it is where it fires: by the few numbers of its sphere it might not.

        Args:
            capsule: which capsule, 0 to capsules - 1.
            noise: the random numbers.
            domain: the whole sphere of directions, or the half that training visits.
        """
        check_domain(domain)
        z = noise.normal(len(capsule), self.config.dim)
        if domain == "restricted":
            z = into_half(z, self._layer(-1).mean_direction[capsule], self.config.line)
        return self.paint(alone(self._whole(z), capsule, self.experts))

    def _whole(self, z: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        """Gives capsules that are on, to paint from: squashed, (Hauser, 2020), Eq. (4); with a place, fired."""
        return fired(z, self.config.line) if self.config.line else squash(z)

    def sample(self, n: int, noise: Noise) -> Pictures:
        """Paints n new pictures, from each capsule in turn, in the restricted domain."""
        return self.draw(torch.arange(n, device=self.device) % self.experts, noise)

    def explore(self, capsule: int, steps: int, reach: float = 3.0) -> Float[Tensor, "dim steps channels height width"]:
        """Walks through one capsule's mean training direction along each of its axes, ``reach`` to either side."""
        dim, device = self.config.dim, self.device
        middle = as_drawn(self._layer(-1).mean_direction[capsule], self.config.line)
        shift = (
            torch.linspace(-reach, reach, steps, device=device)[None, :, None] * torch.eye(dim, device=device)[:, None]
        )
        z = (middle + shift).flatten(0, 1)
        if self.config.line:  # nowhere on the walk without a direction, which would turn it off
            a, t = parted(z, self.config.line)
            z = torch.cat([torch.where(a.any(-1, keepdim=True), a, parted(middle, self.config.line)[0]), t], -1)
        which = torch.full((len(z),), capsule, device=device)
        return self.paint(alone(self._whole(z), which, self.experts)).unflatten(0, (dim, steps))

    @property
    def capsule_names(self) -> tuple[str, ...]:
        """Names the capsules of the top layer by their number."""
        return tuple(f"capsule {j}" for j in range(self.experts))

    def dials(self, x: Pictures) -> Dials:
        """Gives the capsules of the top layer before squashing, which may be of any length.

        A capsule with a place has a direction and a place, and is on as far as it is there.
        """
        pose, presence, _ = self.encode(x)
        if self.config.line:
            return Dials(pose / one_for_zero(presence).unsqueeze(-1), presence, presence)
        return Dials(unsquash(pose), torch.ones_like(presence), presence)

    def turn(self, values: Upper, on: Float[Tensor, "batch capsules"]) -> Pictures:
        """Paints capsules by hand, each as far as it is on."""
        return self.paint(on[..., None] * self._whole(values))

    def interpolate(
        self, start: Pictures, end: Pictures, steps: int, only: Tensor | None = None
    ) -> Float[Tensor, "batch steps channels height width"]:
        """Walks in a straight line between two pictures' capsules before squashing."""
        if only is not None:
            raise GencapsError("a product of experts has no capsules for single attributes: walk in all of them")
        line, share = self.config.line, torch.linspace(0, 1, steps, device=start.device)[:, None, None]
        first, last = (unsquash_from(self.encode(x).pose, line)[:, None] for x in (start, end))
        walk = squash_onto(torch.lerp(first, last, share), line)
        return self.paint(walk.flatten(0, 1)).unflatten(0, (len(start), steps))


def _named(kind: str, place: int) -> str:
    """Names a stage of a layer; the first, the only one in the paper, needs no number."""
    return kind if place == 1 else f"{kind}-{place}"


def _parted(stage: str) -> tuple[str, int]:
    """Parts a stage's name into its kind and the place of its layer, from 0."""
    kind, _, place = stage.partition("-")
    return kind, int(place or 1) - 1


def _decayed(losses: Losses, weight: Tensor, decay: float) -> Losses:
    """Adds the l2 pull of a weight."""
    return losses if decay == 0 else losses._replace(total=losses.total + 0.5 * decay * weight.square().sum())
