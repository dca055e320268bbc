"""The 1,797 handwritten digits of scikit-learn, 8 x 8, which travel with that package."""

from __future__ import annotations

import torch

from gencaps.data.images import ImageSet


def read() -> ImageSet:
    """Reads the digits with their grey levels 0 to 16 spread over 0 to 255.

    The test part of the UCI "Optical Recognition of Handwritten Digits" set (Alpaydin and Kaynak, 1998).
    """
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)  # float64, whole numbers 0 to 16
    x = (torch.as_tensor(pixels) * (255 / 16)).round().to(torch.uint8).view(-1, 1, 8, 8)
    y = torch.as_tensor(labels, dtype=torch.int64)
    return ImageSet("digits", x, y, tuple("0123456789"))
