"""A capsule network with dynamic routing between two layers of capsules."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from gencaps.baselines.capsnet.config import CapsNetConfig
from gencaps.errors import GencapsError
from gencaps.model import CapsuleModel, Classified, Losses, PictureInfo, Pictures, Step, averaged
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
        if pictures.labels != "classes":
            raise GencapsError(f"'{pictures.data}' has attributes, and a CapsNet takes classes: choose another set")
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

    def paint(self, pose: Float[Tensor, "batch classes dim"], active: Int[Tensor, "batch"]) -> Pictures:
        """Paints the active class's capsule, all others zeroed: section 4.1."""
        mask = F.one_hot(active, self.classes).to(pose.dtype)[..., None]
        return self.decoder((pose * mask).flatten(1)).float().sigmoid()

    def analyse(
        self, x: Pictures, y: Int[Tensor, "batch"]
    ) -> tuple[Float[Tensor, "batch"], Float[Tensor, "batch"] | None]:
        """Gives each picture's margin loss, Eq. (4), and its squared error summed over the pixels, section 4.1."""
        pose, presence = self.encode(x)
        margin = length_margin_loss(presence, F.one_hot(y, self.classes))
        if self.config.recon_weight == 0:
            return margin, None
        return margin, 2 * half_squared_error(self.paint(pose, y), x)

    def losses(self, x: Pictures, y: Int[Tensor, "batch"], step: Step) -> Losses:
        """Computes the margin loss and the weighted reconstruction."""
        margin, recon = self.analyse(x, y)
        terms = {"margin": margin} if recon is None else {"margin": margin, "recon": recon}
        return averaged(terms, {"recon": self.config.recon_weight})

    def classify(self, x: Pictures) -> Classified:
        """Reads the class of the longest capsule."""
        presence = self.encode(x).presence
        return Classified(presence, presence.argmax(1))

    def reconstruct(self, x: Pictures, noise: Noise | None = None) -> Pictures:
        """Paints a picture from its longest capsule; there is nothing random in it."""
        pose, presence = self.encode(x)
        return self.paint(pose, presence.argmax(1))
