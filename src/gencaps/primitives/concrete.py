"""The Concrete distribution for two states (a relaxed Bernoulli), in logit space, where nothing saturates."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional


def sample_logit(
    logit: Float[Tensor, "*shape"], temperature: float | Float[Tensor, ""], uniform: Float[Tensor, "*shape"]
) -> Float[Tensor, "*shape"]:
    """Draws the logit of a relaxed Bernoulli: ``(logit + log U - log(1 - U)) / temperature``.

    ``sigmoid`` of it lies in (0, 1), above one half with probability ``sigmoid(logit)``, and tends to a hard
    0 or 1 as the temperature tends to 0. (Maddison et al., 2017), Appendix B.

    Args:
        logit: log odds of being on (``log alpha``).
        temperature: ``lambda``, above 0.
        uniform: ``U``, drawn from [0, 1] by the caller; 0 and 1 themselves are moved inside.
    """
    limits = torch.finfo(uniform.dtype)
    uniform = uniform.clamp(limits.tiny, 1 - limits.eps)
    return (logit + torch.log(uniform) - torch.log1p(-uniform)) / temperature


def log_prob_logit(
    sample_logit: Float[Tensor, "*shape"],
    logit: Float[Tensor, "*shape"],
    temperature: float | Float[Tensor, ""],
) -> Float[Tensor, "*shape"]:
    """Gives the log density of a relaxed Bernoulli's logit ``y``.

    ``log lambda - d - 2 log(1 + exp(-d))`` with ``d = lambda y - logit``: a logistic density, finite at any
    logit. (Maddison et al., 2017), Appendix B.

    Note: this is the density of ``y`` itself. The density of ``sigmoid(y)`` differs by the slope of the
    sigmoid, which cancels in any difference of two such terms (a KL divergence, a bound).

    Args:
        sample_logit: ``y``, as drawn by the function ``sample_logit``.
        logit: log odds of being on (``log alpha``).
        temperature: ``lambda``, above 0.
    """
    d = temperature * sample_logit - logit
    log_temperature = torch.log(temperature * d.new_ones(()))  # made on the device: a copy to it could not be recorded
    return log_temperature - d - 2 * functional.softplus(-d)
