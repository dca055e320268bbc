"""The settings of variational capsules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gencaps.errors import GencapsError, refuse_below, refuse_up_to_zero


@dataclass(frozen=True)
class VariationalConfig:
    """Variational capsules; the defaults are the network for classes of section 4.2 (Huang et al., 2018)."""

    dim: int = 16
    """Numbers in a capsule."""
    widths: tuple[int, ...] = (256, 256, 256)
    """Channels of the encoder's convolutions, or of its residual stages."""
    strides: tuple[int, ...] = (1, 2, 2)
    """Strides of the convolutions; the residual encoder halves at every stage instead."""
    kernel: int = 5
    """Side of the convolutions' filters; odd."""
    norm: Literal["batch", "group", "none"] = "batch"
    """Normalisation after each convolution; the paper's is batch."""
    decoder: tuple[int, ...] = (512, 1024)
    """Widths of the dense decoder's hidden layers, or channels of the other decoders' stages."""
    margin: float = 20.0
    """m in Eq. (3): the KL beyond which an absent capsule is left in peace."""
    down_weight: float = 0.5
    """lambda in Eq. (3): the weight of the absent capsules."""
    recon_weight: float = 1.0
    """alpha in Eq. (6): the weight of the reconstruction; 0 trains the encoder alone."""
    recon: Literal["sum", "mean"] = "sum"
    """Whether the error is added up over the pixels (the paper) or averaged: then one weight fits every size."""
    likelihood: Literal["mse", "bernoulli"] = "mse"
    """Half squared error, Eq. (4), or Bernoulli cross entropy."""
    mask: Literal["least-kl", "labels"] = "labels"
    """Which capsules paint in training: those of least KL (the paper) or the labels'."""
    flag: bool = False
    """Hands the decoder a 1 beside each active capsule, so that one near 0 still says which it is."""
    rest: int = 0
    """Capsules that are always on, for what no entity stands for (a background, a light); the paper has none."""
    rest_weight: float = 1.0
    """Weight of those capsules' KL; above 1 an entity's style is cheaper to keep in its own capsule."""
    off_weight: float = 1.0
    """Weight of the KL of an absent attribute's off capsule: above 1, absence has little style, and what is there
    whatever the attributes is left to the rest."""
    blind_weight: float = 0.0
    """Weight of what those capsules tell about the entities: above 0, they hold what is there in any case alone."""
    swap: float = 0.0
    """Share of the active capsules that are drawn from the prior in training, so that each comes to paint its own
    entity alone."""
    swap_off: float = 0.0
    """The same of the capsules of absent attributes alone: absence paints nothing, and presence keeps its style."""
    encoder: Literal["convolutional", "routed", "residual"] = "convolutional"
    """Plain convolutions (section 4.2), routing between capsules on top of them, or residual stages and one group of
    filters an attribute (section 4.1)."""
    painter: Literal["dense", "convolutional", "residual"] = "dense"
    """The decoder: dense (section 4.2), doubling convolutions, or residual stages (section 4.1)."""
    head: int = 256
    """Channels that each attribute has to itself in the residual encoder."""
    presence_weight: float = 0.0
    """Weight of the cross entropy of the presences softmax(-KL); the paper has none."""
    warmup: float = 0.0
    """Share of training over which the present capsules' KL grows to its full weight."""
    adversarial_weight: float = 0.0
    """beta in Eq. (6): the weight of the adversary; 0 trains without one."""
    discriminator: int = 64
    """Channels of the discriminator's first layer."""
    scales: int = 2
    """Sizes at which the discriminator looks at a picture, each half of the one before."""
    told: bool = False
    """Tells the discriminator what a picture is said to show; the paper's is not told."""
    edits: float = 0.0
    """Share of edits (what changes state is drawn from the prior) among the invented pictures that the adversary and
    the encoder read; the remaining ones are all new, from the prior."""
    others: float = 0.0
    """Share of those edits that change all in which another picture of the batch differs, rather than one entity: more
    is learnt from each, and what goes together in pictures goes together there."""
    reading_weight: float = 0.0
    """Weight of the decoder's second teacher: the encoder, which must read off an invented picture what was asked."""
    style_weight: float = 0.0
    """Weight of the same for the capsules: their style must be read off an invented picture."""
    perceptual_weight: float = 0.0
    """Weight of the perceptual loss, for a model that was given features."""

    def __post_init__(self) -> None:
        refuse_below(self, 1, "dim", "kernel", "head", "discriminator", "scales", "widths", "strides", "decoder")
        refuse_below(self, 0, "rest")
        if self.kernel % 2 == 0:
            raise GencapsError(f"model.kernel is {self.kernel}; it must be odd")
        if self.encoder != "residual" and (len(self.widths) != len(self.strides) or not self.widths):
            raise GencapsError(
                f"model.widths has {len(self.widths)} entries and model.strides {len(self.strides)}; "
                "give each convolution one of both"
            )
        if self.painter != "dense" and not self.decoder:
            raise GencapsError(f"model.decoder is empty; a {self.painter} painter needs the channels of its stages")
        refuse_up_to_zero(self, "margin")
        for name in _WEIGHTS:
            if getattr(self, name) < 0:
                raise GencapsError(f"model.{name} is {getattr(self, name)}; it must not be negative")
        for name in ("swap", "swap_off"):
            if not 0 <= getattr(self, name) < 1:
                raise GencapsError(f"model.{name} is {getattr(self, name)}; it must be from 0 to below 1")
        for name in ("edits", "others"):
            if not 0 <= getattr(self, name) <= 1:
                raise GencapsError(f"model.{name} is {getattr(self, name)}; it is a share, from 0 to 1")
        if self.warmup > 1:
            raise GencapsError(f"model.warmup is {self.warmup}; it is a share of training, from 0 to 1")
        for name in ("adversarial_weight", "reading_weight", "style_weight"):
            if getattr(self, name) > 0 and self.recon_weight == 0:
                raise GencapsError(f"model.{name} needs a reconstruction: raise model.recon_weight above 0")


_WEIGHTS = (
    "down_weight",
    "recon_weight",
    "presence_weight",
    "rest_weight",
    "off_weight",
    "blind_weight",
    "warmup",
    "adversarial_weight",
    "reading_weight",
    "style_weight",
    "perceptual_weight",
)
