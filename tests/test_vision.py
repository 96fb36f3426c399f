"""The digits, their patches, and the transformer that reads them."""

import pytest
import torch
import torch.nn.functional as F

from attention import VisionTransformer, digits, patches


def test_the_digits_are_those_of_the_source():
    images, labels = digits()
    assert images.shape == (1797, 8, 8) and images.min() == 0 and images.max() == 1
    counts = torch.bincount(labels).tolist()
    assert counts == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    first = (16 * images[0]).int().tolist()
    assert first[0] == [0, 0, 5, 13, 9, 1, 0, 0] and first[7] == [0, 0, 6, 13, 10, 0, 0, 0]


@pytest.mark.parametrize("shape, size", [((2, 4, 6), 2), ((1, 6, 3), 3), ((3, 2, 5), 1)])
def test_patches_are_squares_row_by_row(shape, size):
    images = torch.randn(shape)
    wanted = F.unfold(images[:, None], size, stride=size).mT
    assert torch.equal(patches(images, size), wanted)


def test_the_class_token_stands_first_and_weights_sum_to_one():
    torch.manual_seed(0)
    model = VisionTransformer(8, 2, 3, classes=4)
    images = torch.rand(5, 8, 8)
    logits, weights = model(images, return_weights=True)
    assert logits.shape == (5, 4) and [w.shape for w in weights] == [(5, 2, 17, 17)] * 3
    torch.testing.assert_close(torch.stack(weights).sum(-1), torch.ones(3, 5, 2, 17))
    torch.testing.assert_close(model(images), logits)
    with torch.no_grad():
        model.summary += torch.randn(8)  # into every image's token 0, and nowhere else
    assert not torch.allclose(model(images), logits)


def test_only_the_positions_tell_where_a_patch_was():
    torch.manual_seed(0)
    model = VisionTransformer(8, 2, 2)
    images = torch.rand(2, 8, 8)
    turned = images.roll(2, dims=2)  # each patch one column further
    assert not torch.allclose(model(images), model(turned), atol=1e-3)
    with torch.no_grad():
        model.positions.zero_()
    torch.testing.assert_close(model(images), model(turned))
