"""The settings of products of expert capsules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gencaps.errors import GencapsError, refuse_below, refuse_up_to_zero


@dataclass(frozen=True)
class ProductOfExpertsConfig:
    """Products of expert capsules; the defaults are the sizes and rules of section 4.1 (Hauser, 2020)."""

    filters: tuple[int, ...] = (128, 128)
    """Filters in the two banks of the autoencoder."""
    kernel: int = 9
    """Side of the filters; two of them must fit into a picture."""
    stride: int = 2
    """Step of the second bank."""
    slope: float = 0.2
    """Slope of the leaky ReLU below 0."""
    dropout: float = 0.1
    """Share of the features that is left out while the autoencoder is trained."""
    likelihood: Literal["mse", "bernoulli"] = "bernoulli"
    """Error of a painted picture: half squared, or Bernoulli cross entropy."""
    primary_dim: int = 8
    """Numbers in each of the first capsules, into which the features are cut."""
    capsules: tuple[int, ...] = (20,)
    """Capsules of each layer above; the paper has one layer, more are stacked on it."""
    dim: int = 16
    """Numbers in each of those capsules."""
    line: int = 0
    """Numbers of those that are not on the sphere: n of S^m x R^n x (0, 1), the paper's own wish; it has 0."""
    iterations: int = 3
    """Rounds of routing on the way up."""
    back_iterations: int = 3
    """Rounds of routing on the way back."""
    scale: float = 1.0
    """Length of the first capsules before squashing, about; it decides whether capsules wake."""
    mixing: int = 1
    """Steps of mixing: k of CD-k; Algorithm 1 takes 1."""
    chains: int = 0
    """Chains that go on from step to step (persistent contrastive divergence); 0 starts each at the data."""
    firing: Literal["lengths", "sampled"] = "lengths"
    """What mixing hands down: the capsules' lengths (Algorithm 1), or whether each fired."""
    decay: float = 0.0
    """l2 pull of W and U towards 0."""
    moment_weight: float = 0.0
    """Weight of what brings the capsules' directions to the second moment of the N(0, I) that new ones are drawn
    from; the paper has none."""
    target: Literal["rule", "capsules", "pictures"] = "rule"
    """What U learns by: the paper's update rule, or the squared error of capsules, or the error of pictures."""
    alone_weight: float = 0.0
    """Weight of the error of the one capsule that by itself paints a picture best, as each paints when drawn from."""
    alone: Literal["encoded", "inferred"] = "encoded"
    """What that capsule paints from: what W made of it, and the best wins; or, with line one less than dim, what it
    needs by itself, inferred from U and evened out to N(0, I), and each capsule wins as often."""
    alone_noise: float = 0.0
    """Share of noise in that capsule before squashing, 0 to 1: new ones are noise alone, so at 1 a capsule paints the
    mean of its pictures whatever is drawn, at 0 only pictures' own directions are learned."""
    experts_optimizer: Literal["adam", "adamw", "sgd"] = "sgd"
    """How W moves."""
    experts_rate: float = 1.0
    """Multiplies the learning rate for W."""
    back_optimizer: Literal["adam", "adamw", "sgd"] = "sgd"
    """How U moves."""
    back_rate: float = 1.0
    """Multiplies the learning rate for U."""
    autoencoder_epochs: int | None = None
    """Epochs of the first stage; null takes train.epochs, as below."""
    experts_epochs: int | None = None
    """Epochs of each layer's W."""
    back_epochs: int | None = None
    """Epochs of each layer's U."""

    def __post_init__(self) -> None:
        refuse_below(self, 1, "filters", "kernel", "stride", "primary_dim", "capsules", "dim", "iterations")
        refuse_below(self, 1, "back_iterations", "mixing", *(n for n in _EPOCHS if getattr(self, n) is not None))
        refuse_below(
            self, 0, "slope", "dropout", "chains", "decay", "line", "moment_weight", "alone_weight", "alone_noise"
        )
        if len(self.filters) != 2:
            raise GencapsError(f"model.filters is {self.filters}; give one number for each of the two banks")
        if self.filters[1] % self.primary_dim:
            raise GencapsError(
                f"model.filters ends in {self.filters[1]}, which capsules of {self.primary_dim} do not divide: "
                f"give a multiple of model.primary_dim"
            )
        if not self.capsules:
            raise GencapsError("model.capsules is empty; give the capsules of at least one layer")
        if self.dropout >= 1:
            raise GencapsError(f"model.dropout is {self.dropout}; it must be below 1")
        if self.alone_noise > 1:
            raise GencapsError(f"model.alone_noise is {self.alone_noise}; it is a share, from 0 to 1")
        refuse_up_to_zero(self, "scale", "experts_rate", "back_rate")
        if self.line >= self.dim:
            raise GencapsError(
                f"model.line is {self.line}; give at most {self.dim - 1}, model.dim less one, for a direction"
            )
        if self.line > 0 and len(self.capsules) > 1:
            raise GencapsError("model.line is for one layer of capsules: set it to 0, or stack none")
        if self.alone == "inferred" and self.line != self.dim - 1:
            raise GencapsError(f"model.alone is 'inferred', which needs model.line {self.dim - 1}; it is {self.line}")
        if self.alone_weight > 0 and len(self.capsules) > 1:
            raise GencapsError("model.alone_weight is for one layer of capsules: set it to 0, or stack none")


_EPOCHS = ("autoencoder_epochs", "experts_epochs", "back_epochs")
