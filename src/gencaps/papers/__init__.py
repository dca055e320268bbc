"""One room a paper."""

from __future__ import annotations

# the class of a room's model and of its settings; each later paper adds one line. Settings know no torch,
# so that asking for help does not wait for it.
PAPERS: dict[str, tuple[str, str]] = {
    "variational": ("model.VariationalCapsules", "config.VariationalConfig"),
    "capsule_gan": ("model.CapsuleGAN", "config.CapsuleGANConfig"),
    "product_of_experts": ("model.ProductOfExperts", "config.ProductOfExpertsConfig"),
    "probabilistic": ("model.ProbabilisticCapsules", "config.ProbabilisticConfig"),
}
