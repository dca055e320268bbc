from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gencaps.data.images import ImageSet
from gencaps.data.transforms import (
    affine,
    bending,
    horizontal_flip,
    place_on_canvas,
    random_affine,
    resize,
    rotate,
    rotated,
)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def bytes_(*shape: int, seed: int = 0) -> Tensor:
    return (noise(*shape, seed=seed) * 256).to(torch.uint8)


def at(x: Tensor) -> tuple[int, int]:
    """Gives (row, column) of the brightest pixel of one picture."""
    return divmod(int(x.flatten().argmax()), x.shape[-1])


@pytest.mark.parametrize("quarter", [-2, -1, 0, 1, 2, 3])
@pytest.mark.parametrize("side", [8, 9])
def test_quarter_turns_equal_rot90(quarter: int, side: int) -> None:
    x = bytes_(3, 2, side, side)
    turned = rotate(x, torch.full((3,), 90.0 * quarter))
    assert torch.equal(turned, torch.rot90(x, quarter, (2, 3)))


def test_each_picture_turns_by_its_own_angle() -> None:
    x = noise(2, 1, 9, 9)
    turned = rotate(x, torch.tensor([0.0, 90.0]))
    assert torch.allclose(turned[0], x[0], atol=1e-5)
    assert torch.allclose(turned[1], torch.rot90(x[1], 1, (1, 2)), atol=1e-5)


def test_a_turn_keeps_its_shape_on_oblong_pictures() -> None:
    # a dot 3 to the right of the centre of an 11 x 21 picture goes 3 up, not 3 * 11 / 21
    x = torch.zeros(1, 1, 11, 21)
    x[0, 0, 5, 13] = 1
    assert at(rotate(x, torch.tensor([90.0]))) == (2, 10)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float64, torch.bfloat16])
def test_zero_ranges_are_the_identity(dtype: torch.dtype) -> None:
    x = bytes_(4, 3, 10, 7).to(dtype)
    same = random_affine(x, noise(4, 4, seed=1), degrees=0.0, scale=(1.0, 1.0), translate=0.0)
    assert same.dtype == dtype
    assert torch.allclose(same.double(), x.double(), atol=0.0 if dtype == torch.uint8 else 2e-3)


def test_the_middle_of_the_ranges_is_no_turn_and_no_shift() -> None:
    x = bytes_(2, 1, 8, 8)
    u = torch.full((2, 4), 0.5)
    assert torch.equal(random_affine(x, u, degrees=45.0, scale=(0.5, 2.0), translate=0.25), x)


def test_random_numbers_move_in_the_named_direction() -> None:
    x = torch.zeros(1, 1, 16, 16)
    x[0, 0, 8, 8] = 1
    # u = 1 is a shift by the whole of translate: 0.25 of 16 pixels
    assert at(random_affine(x, torch.tensor([[0.5, 0.5, 1.0, 0.5]]), translate=0.25)) == (8, 12)
    assert at(random_affine(x, torch.tensor([[0.5, 0.5, 0.5, 0.0]]), translate=0.25)) == (4, 8)


def test_scale_above_one_enlarges() -> None:
    x = torch.zeros(1, 1, 20, 20)
    x[0, 0, 8:12, 8:12] = 1
    large = affine(x, scale=torch.tensor([[2.0, 2.0]]))
    assert large.sum() == pytest.approx(64, rel=0.02)  # 4 x 4 becomes 8 x 8
    wide = affine(x, scale=torch.tensor([[2.0, 1.0]]))
    assert (wide[0, 0].amax(0) > 0.4).sum() == 8
    assert (wide[0, 0].amax(1) > 0.4).sum() == 4


def test_shear_moves_lower_rows_to_the_right() -> None:
    x = torch.zeros(1, 1, 21, 21)
    x[0, 0, :, 10] = 1
    sheared = affine(x, shear=torch.tensor([0.5]))
    assert int(sheared[0, 0, 18].argmax()) == 14  # 8 below the centre, 0.5 * 8 to the right
    assert int(sheared[0, 0, 2].argmax()) == 6


def test_the_order_is_scale_shear_turn_shift() -> None:
    # (4, 0) from the centre -> x1.5 -> (6, 0) -> turned a quarter to the left -> 6 up -> 2 right
    x = torch.zeros(1, 1, 31, 31)
    x[0, 0, 15, 19] = 1
    moved = affine(
        x,
        scale=torch.full((1, 2), 1.5),
        degrees=torch.tensor([90.0]),
        shift=torch.tensor([[2.0, 0.0]]),
    )
    assert at(moved) == (9, 17)


def test_padding_repeats_the_border_where_asked() -> None:
    x = torch.full((1, 1, 8, 8), 200, dtype=torch.uint8)
    u = torch.tensor([[0.9, 0.5, 1.0, 0.0]])
    assert (random_affine(x, u, 30.0, (0.8, 0.8), 0.3, padding="border") == 200).all()
    assert (random_affine(x, u, 30.0, (0.8, 0.8), 0.3) == 0).any()


def test_flip_mirrors_those_below_one_half() -> None:
    x = bytes_(2, 3, 4, 5)
    flipped = horizontal_flip(x, torch.tensor([0.49, 0.5]))
    assert torch.equal(flipped[0], x[0].flip(-1))
    assert torch.equal(flipped[1], x[1])


def test_placing_keeps_every_pixel_and_reaches_all_corners() -> None:
    x = bytes_(4, 2, 3, 3).clamp(min=1)
    u = torch.tensor([[0.0, 0.0], [0.999, 0.0], [0.0, 0.999], [0.999, 0.999]])
    placed = place_on_canvas(x, u, 8)
    assert placed.dtype == torch.uint8
    for picture, original, (top, left) in zip(placed, x, [(0, 0), (5, 0), (0, 5), (5, 5)], strict=True):
        assert torch.equal(picture[:, top : top + 3, left : left + 3], original)
        assert int((picture > 0).sum()) == 18


def test_a_canvas_of_the_same_size_changes_nothing() -> None:
    x = bytes_(3, 1, 6, 6)
    assert torch.equal(place_on_canvas(x, noise(3, 2), 6), x)


def test_resizing_keeps_flat_pictures_and_averages_fine_ones() -> None:
    flat = torch.full((2, 3, 12, 12), 77, dtype=torch.uint8)
    assert (resize(flat, 5) == 77).all()
    checks = ((torch.arange(32)[:, None] + torch.arange(32)) % 2 * 255).to(torch.uint8).expand(1, 1, 32, 32)
    assert (resize(checks, 4).float() - 127.5).abs().max() < 4
    assert resize(flat, 12) is flat


def test_a_rotated_set_is_fixed_by_its_seed_and_keeps_its_labels() -> None:
    x = bytes_(6, 1, 12, 12)
    whole = ImageSet("mnist", x, torch.arange(6), tuple("012345"))
    first, again, other = (rotated(whole, 30.0, seed) for seed in (1, 1, 2))
    assert torch.equal(first.x, again.x)
    assert not torch.equal(first.x, other.x)
    assert torch.equal(first.y, whole.y)
    assert torch.equal(rotated(whole, 0.0, 1).x, x)
    assert first.name == "rotated mnist"
    assert "30 degrees" in first.notes[-1]


def test_turns_stay_exact_under_autocast() -> None:
    # bf16 coordinates would be off by a quarter of a pixel at this width
    x = bytes_(1, 1, 64, 64)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(rotate(x, torch.tensor([90.0])), torch.rot90(x, 1, (2, 3)))


def test_knots_in_the_middle_bend_nothing() -> None:
    assert torch.equal(bending(torch.full((2, 2, 4, 4), 0.5), 3.0, (9, 7)), torch.zeros(2, 2, 9, 7))


def test_bending_is_bicubic_between_the_knots() -> None:
    u = torch.rand(3, 2, 5, 5, generator=torch.Generator().manual_seed(0))
    wanted = torch.nn.functional.interpolate((2 * u - 1) * 1.5, (28, 20), mode="bicubic", align_corners=True)
    torch.testing.assert_close(bending(u, 1.5, (28, 20)), wanted, rtol=1e-5, atol=1e-5)


def test_knots_that_agree_shift_the_whole_picture() -> None:
    """Every pixel is fetched from 2 further right and 2 further up, so a dot comes from the right to the left."""
    u = torch.stack([torch.ones(4, 4), torch.zeros(4, 4)])[None]
    field = bending(u, 2.0, (11, 11))
    torch.testing.assert_close(field, torch.tensor([2.0, -2.0]).reshape(1, 2, 1, 1).expand(1, 2, 11, 11))
    x = torch.zeros(1, 1, 11, 11)
    x[0, 0, 5, 5] = 1
    assert at(affine(x, bend=field)) == (7, 3)


def test_a_bend_is_smooth_and_passes_through_its_knots() -> None:
    u = noise(1, 2, 4, 4)
    field = bending(u, 1.5, (31, 31))
    torch.testing.assert_close(field[..., ::10, ::10], (2 * u - 1) * 1.5, atol=1e-5, rtol=0)
    assert field.diff(dim=-1).abs().max() < 1.5 * 2 * 2 / 10  # twice the straight line's slope between two knots
