"""CapsuleGAN, and which of its kinds a config asks for."""

from __future__ import annotations

from gencaps.model import CapsuleModel
from gencaps.papers.capsule_gan.bigan import CapsuleBiGAN
from gencaps.papers.capsule_gan.conditional import ConditionalCapsuleGAN
from gencaps.papers.capsule_gan.config import CapsuleGANConfig
from gencaps.papers.capsule_gan.margin_game import MarginGame


class CapsuleGAN(MarginGame):
    """Paints pictures from noise that a capsule network cannot tell from real ones.

    The discriminator has one output capsule, whose length is the probability that a picture is real; labels are never
    looked at. (Jaiswal et al., 2018), section 4.

    Note: read literally, routing does nothing here. Coefficients are a softmax over the outputs, of which there is
    one: each is 1 whatever the votes say, and the output is the squashed sum of all votes. ``over="inputs"`` lets them
    compete for a share of the one output instead, as in (Hauser, 2020), section 2.2.
    """

    title = "CapsuleGAN"

    @classmethod
    def variant(cls, config: CapsuleGANConfig) -> type[CapsuleModel]:
        """Chooses the model that can do what the settings ask for."""
        if config.conditional:
            return ConditionalCapsuleGAN
        return CapsuleBiGAN if config.bigan else cls
