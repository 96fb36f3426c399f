"""Images as sequences: a transformer that reads patches, and small digits to train it on."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn

from . import _checks as check
from .blocks import EncoderBlock

_DIGITS = Path(__file__).with_name("digits.gz")  # 65 columns: 64 pixels from 0 to 16, the digit


@cache
def digits() -> tuple[Tensor, Tensor]:
    """1,797 handwritten digits: images (1797, 8, 8) with ink from 0 to 1, and labels (1797,).

    In the order of the source, so that neighbours may be by one writer. The test part of Alpaydin
    and Kaynak 1998, *Optical Recognition of Handwritten Digits*, UCI Machine Learning Repository
    (CC BY 4.0), as scikit-learn has it in `load_digits`.

    >>> images, labels = digits()
    >>> images.shape, labels[:5].tolist()
    (torch.Size([1797, 8, 8]), [0, 1, 2, 3, 4])
    """
    columns = torch.frombuffer(bytearray(gzip.decompress(_DIGITS.read_bytes())), dtype=torch.uint8)
    columns = columns.view(65, -1)
    return columns[:64].T.reshape(-1, 8, 8) / 16, columns[64].long()


def patches(images: Tensor, size: int = 2) -> Tensor:
    """Cut images into squares, row by row: (B, height, width) to (B, n, size * size).

    TypeError or ValueError if images are not three-dimensional, or the size does not divide height
    and width. Dosovitskiy et al. 2021, section 3.1.

    >>> patches(torch.arange(16.0).view(1, 4, 4))[0, 1]
    tensor([2., 3., 6., 7.])
    """
    check.count("size", size)
    if not isinstance(images, Tensor):
        raise TypeError(f"images must be a tensor (B, height, width); got {check.kind(images)}")
    if images.ndim != 3:
        raise ValueError(f"images must be (B, height, width); got {check.shape(images)}")
    if images.shape[1] % size or images.shape[2] % size:
        raise ValueError(f"size must divide height and width {check.shape(images)}; got {size}")
    cut = images.unflatten(2, (-1, size)).unflatten(1, (-1, size))  # (B, rows, size, columns, size)
    return cut.transpose(2, 3).flatten(3).flatten(1, 2)


class VisionTransformer(nn.Module):
    """Patches by a linear layer, a class token and learned positions before them, then blocks.

    The class token's last state names the digit. Dosovitskiy et al. 2021 (ViT), section 3.1.

    >>> model = VisionTransformer(d_model=8, num_heads=2, num_layers=1)
    >>> model(torch.zeros(5, 8, 8)).shape
    torch.Size([5, 10])
    """

    def __init__(
        self, d_model: int = 32, num_heads: int = 2, num_layers: int = 2, *,
        image: int = 8, patch: int = 2, classes: int = 10,
    ):  # fmt: skip
        super().__init__()
        counts = dict(d_model=d_model, num_layers=num_layers, image=image, patch=patch)
        for name, count in (counts | {"classes": classes}).items():
            check.count(name, count)
        if image % patch:
            raise ValueError(f"patch must divide image = {image}; got {patch}")
        self.image, self.patch = image, patch
        self.look = nn.Linear(patch * patch, d_model)
        self.summary = nn.Parameter(torch.zeros(d_model))  # the class token
        self.positions = nn.Parameter(0.1 * torch.randn(1 + (image // patch) ** 2, d_model))
        self.blocks = nn.ModuleList(EncoderBlock(d_model, num_heads) for _ in range(num_layers))
        self.norm = nn.LayerNorm(d_model)
        self.name = nn.Linear(d_model, classes)

    def forward(
        self, images: Tensor, *, return_weights: bool = False
    ) -> Tensor | tuple[Tensor, list[Tensor]]:
        """images (B, image, image) to logits (B, classes); with weights, one (B, h, n, n) a layer.

        Token 0 is the class token, then come the patches, row by row.
        """
        cut = patches(images, self.patch)
        if images.shape[1:] != (self.image, self.image):
            wanted = f"(B, {self.image}, {self.image})"
            raise ValueError(f"images must be {wanted}; got {check.shape(images)}")
        x = self.look(cut)  # (B, n - 1, d_model)
        first = self.summary.expand(len(x), 1, -1)  # the class token
        x = torch.cat([first, x], dim=1) + self.positions  # (B, n, d_model)
        weights = []
        for block in self.blocks:
            x, seen = block(x, need_weights=return_weights)
            weights.append(seen)
        logits = self.name(self.norm(x[:, 0]))  # (B, classes)
        return (logits, weights) if return_weights else logits
