"""A residual network that reads classes or attributes."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from gencaps.abilities import Classified
from gencaps.baselines.resnet.config import ResNetConfig
from gencaps.model import CapsuleModel, Labelling, Losses, PictureInfo, Pictures, Step, averaged


def _convolution(channels: int, width: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(channels, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width))


class Block(nn.Module):
    """Adds what two convolutions say to what came in: relu(F(x) + x) (He et al., 2016), Eq. (1)."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(_convolution(channels, width, stride), nn.ReLU(), _convolution(width, width))
        # as published: a 1 x 1 convolution only where the shapes differ, Eq. (2)
        same = channels == width and stride == 1
        self.shortcut = (
            nn.Identity()
            if same
            else nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))
        )

    def forward(
        self, x: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch out out_height out_width"]:
        return (self.body(x) + self.shortcut(x)).relu()


class ResNet(CapsuleModel):
    """Reads the class or the attributes of a picture; it has no capsules, and paints nothing.

    (He et al., 2016), with their small first layer for small pictures (3 x 3, no pooling).
    """

    paper = "resnet"
    title = "ResNet"
    compiled = ("read",)

    def __init__(self, config: ResNetConfig, pictures: PictureInfo) -> None:
        super().__init__(config, pictures)
        self.config: ResNetConfig = config
        layers: list[nn.Module] = [_convolution(pictures.channels, config.width, config.stem_stride), nn.ReLU()]
        channels = config.width
        for stage, count in enumerate(config.blocks):
            width = config.width << stage
            for block in range(count):
                layers.append(Block(channels, width, 2 if stage and not block else 1))
                channels = width
        self.trunk = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.dropout = nn.Dropout(config.dropout)
        self.head = nn.Linear(channels, len(pictures.names))

    def features(self, x: Pictures) -> Float[Tensor, "batch features"]:
        """Gives what the last layer reads from: the averaged feature maps."""
        return self.trunk(x).float()

    def logits(self, x: Pictures) -> Float[Tensor, "batch names"]:
        """Gives the log odds of each class or attribute."""
        return self.head(self.dropout(self.trunk(x))).float()

    def read(self, x: Pictures, y: Labelling) -> Float[Tensor, "batch"]:
        """Gives the cross entropy of each picture; over attributes, their mean."""
        logits, smoothing = self.logits(x), self.config.smoothing
        if self.pictures.labels == "classes":
            return F.cross_entropy(logits, y, reduction="none", label_smoothing=smoothing)
        target = y.to(logits.dtype) * (1 - smoothing) + smoothing / 2
        return F.binary_cross_entropy_with_logits(logits, target, reduction="none").mean(1)

    def steady(self, stage: str) -> bool:
        """Says that a step is always the same work."""
        return True

    def losses(self, x: Pictures, y: Labelling, step: Step) -> Losses:
        """Computes the cross entropy."""
        return averaged({"cross_entropy": self.read(x, y)})

    def classify(self, x: Pictures) -> Classified:
        """Reads the likeliest class, or the attributes likelier there than not."""
        logits = self.logits(x)
        if self.pictures.labels == "classes":
            return Classified(logits.softmax(1), logits.argmax(1))
        return Classified(logits.sigmoid(), (logits > 0).long())
