"""The convolutional autoencoder whose code becomes the first capsules."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from gencaps.errors import GencapsError
from gencaps.model import Pictures

Code = Float[Tensor, "batch features rows columns"]
Capsules = Float[Tensor, "batch capsules dim"]


class TiedAutoencoder(nn.Module):
    """Codes a picture by two banks of filters and paints it again with the same filters transposed.

    (Hauser, 2020), section 4.1: 9 x 9 filters, 128 of them in each bank, the second with stride 2 (28 to 20 to 6
    pixels a side), leaky ReLU, dropout, sigmoid at the output.

    Args:
        channels: of the pictures.
        size: their pixels a side.
        filters: in each of the two banks.
        kernel: side of the filters.
        stride: step of the second bank.
        slope: of the leaky ReLU below 0.
        dropout: share of the features that is left out in training.
        dim: numbers in a capsule, into which the code's features are cut.
    """

    def __init__(
        self,
        channels: int,
        size: int,
        filters: tuple[int, int],
        kernel: int,
        stride: int,
        slope: float,
        dropout: float,
        dim: int,
    ) -> None:
        super().__init__()
        self.slope, self.dropout, self.stride, self.dim = slope, dropout, stride, dim
        inner = size - kernel + 1
        self.side = (inner - kernel) // stride + 1
        if inner < kernel:
            raise GencapsError(
                f"model.kernel is {kernel}, and two such filters do not fit into pictures of {size} px: "
                f"give at most {(size + 1) // 2}"
            )
        self.rest = (inner - kernel) % stride
        self.features = filters[1]
        self.first = nn.Parameter(torch.empty(filters[0], channels, kernel, kernel))
        self.second = nn.Parameter(torch.empty(filters[1], filters[0], kernel, kernel))
        for bank in (self.first, self.second):
            nn.init.kaiming_uniform_(bank, a=math.sqrt(5))
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(n)) for n in (*filters, filters[0], channels))

    @property
    def capsules(self) -> int:
        """How many capsules a picture's code is cut into: 6 x 6 x 128 / 8 = 576 in the paper."""
        return self.features // self.dim * self.side**2

    def _drop(self, features: Tensor, dropping: bool) -> Tensor:
        return F.dropout(features, self.dropout) if dropping and self.dropout else features

    def code(self, x: Pictures, dropping: bool = False) -> Code:
        """Gives the features of pictures; dropping leaves some out, as training does."""
        hidden = F.leaky_relu(F.conv2d(x, self.first, self.biases[0]), self.slope)
        hidden = self._drop(hidden, dropping)
        code = F.leaky_relu(F.conv2d(hidden, self.second, self.biases[1], self.stride), self.slope)
        return self._drop(code, dropping)

    def logits(self, code: Code) -> Pictures:
        """Paints features with the same filters transposed, before the sigmoid."""
        hidden = F.conv_transpose2d(code, self.second, self.biases[2], self.stride, output_padding=self.rest)
        return F.conv_transpose2d(F.leaky_relu(hidden, self.slope), self.first, self.biases[3])

    def cut(self, code: Code) -> Capsules:
        """Cuts features into capsules: the numbers of one capsule come from one position."""
        by_kind = code.unflatten(1, (-1, self.dim))
        return by_kind.permute(0, 1, 3, 4, 2).flatten(1, 3)

    def join(self, capsules: Capsules) -> Code:
        """Joins capsules to features again: undoes ``cut``."""
        by_kind = capsules.unflatten(1, (-1, self.side, self.side))
        return by_kind.permute(0, 1, 4, 2, 3).flatten(1, 2)
