"""How much a linear classifier can read off features: the linear probe."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, Integer
from torch import Tensor

from gencaps.errors import GencapsError
from gencaps.metrics.checks import refuse_labels, refuse_shape, refuse_uneven, refuse_unlike, refuse_unusable
from gencaps.metrics.classification import accuracy

STEEPNESS = 1e-8
"""The fit ends where no entry of the mean objective's gradient is larger."""
ROUNDING = 64
"""Rounding errors of a network's output, in units of the last place: a feature that varies less is constant."""


@dataclass(frozen=True, eq=False)
class LinearProbe:
    """Reads classes off standardised features: argmax_k w_k . (x - mean) / scale + b_k."""

    weight: Float[Tensor, "classes features"]
    bias: Float[Tensor, "classes"]
    mean: Float[Tensor, "features"]
    """Mean of each training feature."""
    scale: Float[Tensor, "features"]
    """Standard deviation (over n) of each training feature, 1 where the feature is constant but for rounding."""
    gradient: float
    """Largest entry of the gradient where the fit ended: above STEEPNESS, it was cut short by ``iterations``."""

    @classmethod
    def fit(
        cls,
        features: Float[Tensor, "n features"],
        y: Integer[Tensor, "n"],
        classes: int,
        *,
        c: float = 1.0,
        iterations: int = 1000,
    ) -> LinearProbe:
        """Fits multinomial logistic regression on all samples at once, in float64 on the features' device.

        min over W, b of C sum_i -log softmax(W x_i + b)[y_i] + 1/2 ||W||^2, as scikit-learn's
        ``LogisticRegression(C=c)``, by L-BFGS from zero: the same features give the same probe.

        Note: of two classes scikit-learn fits one weight vector; its C is then twice this one.

        Args:
            features: the training latents x; they alone give the mean and the scale.
            y: labels 0 to classes - 1, each of which must occur.
            c: C, the inverse strength of the penalty; the bias is not penalised.
            iterations: L-BFGS steps at most.
        """
        _refuse_training(features, y, classes, c)
        x = features.detach().double()
        mean = x.mean(0)
        # what varies in its last digits alone is a constant that was rounded: it must not be blown up and read
        spread = x.std(0, correction=0)
        varies = spread > ROUNDING * torch.finfo(features.dtype).eps * x.abs().amax(0)
        scale = torch.where(varies, spread, 1.0)
        x = (x - mean) / scale * varies
        weight, bias, gradient = _minimise(x, F.one_hot(y.to(x.device).long(), classes).double(), c, iterations)
        return cls(weight, bias, mean, scale, gradient)

    def logits(self, features: Float[Tensor, "n features"]) -> Float[Tensor, "n classes"]:
        """Gives w_k . (x - mean) / scale + b_k."""
        refuse_unlike(features, self.weight)
        refuse_unusable(features, "the probed set")
        x = (features.detach().to(self.mean) - self.mean) / self.scale
        return x @ self.weight.T + self.bias

    def predict(self, features: Float[Tensor, "n features"]) -> Int[Tensor, "n"]:
        """Gives the class with the largest logit."""
        return self.logits(features).argmax(1)

    def accuracy(self, features: Float[Tensor, "n features"], y: Integer[Tensor, "n"]) -> float:
        """Gives the share of samples whose class is read right."""
        return accuracy(self.predict(features), y.to(self.mean.device))


def _refuse_training(features: Float[Tensor, "n features"], y: Integer[Tensor, "n"], classes: int, c: float) -> None:
    """Refuses what no probe of this many classes can be fitted on."""
    if not 0 < c < float("inf"):
        raise GencapsError(f"a probe cannot be fitted with C = {c:g}; give a number above 0")
    refuse_shape(features, "n features", "the features of the probe's training set")
    refuse_shape(y, "n", "the labels of the probe's training set")
    refuse_uneven(features, y, "the features of the probe's training set", "its labels")
    refuse_unusable(features, "the probe's training set", max(classes, 1))
    refuse_labels(y, classes, "the probe's training set")
    missing = sorted(set(range(classes)) - set(y.unique().tolist()))
    if missing:
        named = ", ".join(map(str, missing[:10])) + (", ..." if len(missing) > 10 else "")
        raise GencapsError(
            f"the probe's training set has {classes - len(missing)} of {classes} classes; pass samples of {named} too"
        )


def _minimise(
    x: Float[Tensor, "n features"], truth: Float[Tensor, "n classes"], c: float, iterations: int
) -> tuple[Float[Tensor, "classes features"], Float[Tensor, "classes"], float]:
    """Minimises mean cross entropy + ||W||^2 / (2 C n): the objective of ``fit`` over C n, whose size knows no n."""
    n = len(x)
    weight, bias = x.new_zeros(truth.shape[1], x.shape[1]), x.new_zeros(truth.shape[1])
    shrink = 1 / (c * n)

    def objective() -> Float[Tensor, ""]:
        # gradients by hand: features made in inference mode cannot enter autograd
        logits = x @ weight.T + bias
        log_sum = logits.logsumexp(1, keepdim=True)
        error = ((logits - log_sum).exp() - truth) / n
        weight.grad, bias.grad = error.T @ x + shrink * weight, error.sum(0)
        return (log_sum.sum() - (logits * truth).sum()) / n + 0.5 * shrink * weight.square().sum()

    search = torch.optim.LBFGS(
        [weight, bias],
        max_iter=iterations,
        max_eval=iterations * 25,
        tolerance_grad=STEEPNESS,
        # only the gradient ends the fit; small steps far from the optimum must not
        tolerance_change=0.0,
        history_size=20,
        line_search_fn="strong_wolfe",
    )
    search.step(objective)
    objective()
    steepest = max(float(part.grad.abs().max()) for part in (weight, bias) if part.grad is not None)
    weight.grad = bias.grad = None
    return weight, bias, steepest
