"""A capsule network with dynamic routing between two layers of capsules."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from gencaps.abilities import Classified
from gencaps.baselines.capsnet.config import CapsNetConfig
from gencaps.errors import GencapsError
from gencaps.model import CapsuleModel, Labelling, Losses, PictureInfo, Pictures, Step, averaged
from gencaps.primitives.layers import DenseCapsules, PrimaryCapsules
from gencaps.primitives.likelihoods import half_squared_error
from gencaps.primitives.losses import length_margin_loss
from gencaps.primitives.networks import dense_decoder
from gencaps.primitives.noise import Noise
from gencaps.primitives.squash import length


class Code(NamedTuple):
    """A picture's class capsules and their lengths."""

    pose: Float[Tensor, "batch classes dim"]
    presence: Float[Tensor, "batch classes"]


class CapsNet(CapsuleModel):
    """Owns one capsule a class, whose length says how surely the class is there.

    Convolution, primary capsules, class capsules by dynamic routing, and a decoder that paints the picture from the
    labelled capsule as a regulariser. (Sabour et al., 2017), sections 3 and 4.
    """

    paper = "capsnet"
    title = "CapsNet with dynamic routing"
    compiled = ("analyse",)

    def __init__(self, config: CapsNetConfig, pictures: PictureInfo) -> None:
        super().__init__(config, pictures)
        self.config: CapsNetConfig = config
        self.classes = len(pictures.names)
        left = pictures.size - config.kernel + 1
        if left < config.kernel:
            raise GencapsError(
                f"two convolutions of model.kernel {config.kernel} do not fit pictures of {pictures.size} px: "
                f"give --model.kernel {max(1, (pictures.size + 1) // 2)} or less"
            )
        self.convolution = nn.Conv2d(pictures.channels, config.channels, config.kernel)
        self.primary = PrimaryCapsules(
            config.channels, config.capsules, config.primary_dim, config.kernel, config.stride
        )
        count = self.primary.count(left, left)
        self.routed = DenseCapsules(count, config.primary_dim, self.classes, config.dim, config.iterations)
        self.decoder = dense_decoder(self.classes * config.dim, config.decoder, pictures.channels, pictures.size)

    def encode(self, x: Pictures) -> Code:
        """Routes a picture's primary capsules to the classes; a capsule's length is its class's presence."""
        # routing keeps float32, but the first layers may run in half precision
        pose = self.routed(self.primary(self.convolution(x).relu()).float())
        return Code(pose, length(pose))

    def target(self, y: Labelling) -> Bool[Tensor, "batch classes"]:
        """Marks the capsules of what labels name: one of a class, any number of attributes (MultiMNIST, section 6)."""
        return y.bool() if y.ndim == 2 else F.one_hot(y, self.classes).bool()

    def paint(self, pose: Float[Tensor, "batch classes dim"], mask: Bool[Tensor, "batch classes"]) -> Pictures:
        """Paints the marked capsules, all others zeroed: section 4.1."""
        return self.decoder((pose * mask[..., None]).flatten(1)).float().sigmoid()

    def analyse(self, x: Pictures, y: Labelling) -> tuple[Float[Tensor, "batch"], Float[Tensor, "batch"] | None]:
        """Gives each picture's margin loss, Eq. (4), and its squared error summed over the pixels, section 4.1."""
        pose, presence = self.encode(x)
        mask = self.target(y)
        margin = length_margin_loss(presence, mask)
        if self.config.recon_weight == 0:
            return margin, None
        return margin, 2 * half_squared_error(self.paint(pose, mask), x)

    def steady(self, stage: str) -> bool:
        """Says that a step is always the same work."""
        return True

    def losses(self, x: Pictures, y: Labelling, step: Step) -> Losses:
        """Computes the margin loss and the weighted reconstruction."""
        margin, recon = self.analyse(x, y)
        terms = {"margin": margin} if recon is None else {"margin": margin, "recon": recon}
        return averaged(terms, {"recon": self.config.recon_weight})

    def classify(self, x: Pictures) -> Classified:
        """Reads the class of the longest capsule, or the attributes whose capsules are longer than a half."""
        presence = self.encode(x).presence
        return Classified(presence, self.label(presence))

    def label(self, presence: Float[Tensor, "batch classes"]) -> Labelling:
        """Chooses by the capsules' lengths."""
        return presence.argmax(1) if self.pictures.labels == "classes" else (presence > 0.5).long()

    def reconstruct(self, x: Pictures, noise: Noise | None = None) -> Pictures:
        """Paints a picture from what it shows; there is nothing random in it."""
        pose, presence = self.encode(x)
        return self.paint(pose, self.target(self.label(presence)))
