from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gencaps.primitives.pose import compose, from_parameters, identity, invert, middles, over, warp


def _poses(*shape: int, seed: int = 0) -> torch.Tensor:
    noise = torch.randn(*shape, 2, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return identity(shape, dtype=torch.float64) + 0.3 * noise


def _pictures(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _square(pose: torch.Tensor) -> torch.Tensor:
    """The pose as a 3 x 3 matrix of homogeneous coordinates: an independent route."""
    bottom = torch.tensor([0.0, 0.0, 1.0], dtype=pose.dtype).expand(*pose.shape[:-2], 1, 3)
    return torch.cat([pose, bottom], -2)


def _pose(rows: list[list[float]]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def test_composition_and_inverse_are_those_of_3_x_3_matrices() -> None:
    a, b = _poses(4, 5), _poses(4, 5, seed=1)
    torch.testing.assert_close(_square(compose(a, b)), _square(a) @ _square(b))
    torch.testing.assert_close(_square(invert(a)), torch.linalg.inv(_square(a)))


def test_the_inner_pose_is_applied_first() -> None:
    enlarge, move = _pose([[2, 0, 0], [0, 2, 0]]), _pose([[1, 0, 1], [0, 1, 0]])
    torch.testing.assert_close(compose(enlarge, move), _pose([[2, 0, 2], [0, 2, 0]]))  # moved, then enlarged
    torch.testing.assert_close(compose(move, enlarge), _pose([[2, 0, 1], [0, 2, 0]]))


def test_poses_form_a_group() -> None:
    a, b, c = (_poses(6, seed=seed) for seed in range(3))
    one = identity((6,), dtype=torch.float64)
    torch.testing.assert_close(compose(a, one), a)
    torch.testing.assert_close(compose(one, a), a)
    torch.testing.assert_close(compose(a, invert(a)), one)
    torch.testing.assert_close(compose(invert(a), a), one)
    torch.testing.assert_close(compose(compose(a, b), c), compose(a, compose(b, c)))
    torch.testing.assert_close(invert(compose(a, b)), compose(invert(b), invert(a)))


def test_composition_broadcasts_parents_over_parts() -> None:
    parents, parts = _poses(4, 1), _poses(3, seed=1)
    assert compose(parents, parts).shape == (4, 3, 2, 3)
    torch.testing.assert_close(compose(parents, parts)[2, 1], compose(parents[2, 0], parts[1]))


@pytest.mark.parametrize("size", [0.0, 1e-30, 1e-8, 1e-4])
def test_the_inverse_of_a_flat_pose_is_finite(size: float) -> None:
    pose = torch.tensor([[[size, 0.0, 0.5], [0.0, size, 0.5]], [[1.0, 1.0, 0.0], [1.0, 1.0 + size, 0.0]]])
    pose.requires_grad_()
    picture = torch.ones(2, 1, 4, 4, requires_grad=True)
    back, painted = invert(pose), warp(picture, pose, (6, 6))
    (back.sum() + painted.sum()).backward()
    for tensor in (back, painted, pose.grad, picture.grad):
        assert tensor is not None
        assert torch.isfinite(tensor).all()


def test_the_inverse_keeps_the_sign_of_a_small_determinant() -> None:
    mirror = _pose([[1e-4, 0, 0], [0, -1e-4, 0]])  # det -1e-8, taken as -1e-6
    torch.testing.assert_close(invert(mirror), _pose([[100, 0, 0], [0, -100, 0]]))
    torch.testing.assert_close(invert(mirror, least_det=1e-9), _pose([[1e4, 0, 0], [0, -1e4, 0]]))


def test_parameters_give_the_poses_worked_by_hand() -> None:
    angle, scale = torch.tensor(math.pi / 2), torch.tensor([2.0, 3.0])
    zero, none = torch.tensor(0.0), torch.zeros(2)
    one = torch.ones(2)
    # a quarter turn takes x to y and y to -x
    torch.testing.assert_close(
        from_parameters(angle, scale, zero, torch.tensor([5.0, 6.0])),
        torch.tensor([[0.0, -3.0, 5.0], [2.0, 0.0, 6.0]]),
    )
    torch.testing.assert_close(
        from_parameters(zero, one, torch.tensor(0.5), none), torch.tensor([[1.0, 0.5, 0.0], [0.0, 1.0, 0.0]])
    )
    torch.testing.assert_close(from_parameters(zero, one, zero, none), identity())


def test_parameters_scale_then_shear_then_turn_then_move() -> None:
    angle, scale, shear, move = (
        torch.tensor(0.4),
        torch.tensor([1.5, 0.7]),
        torch.tensor(0.3),
        torch.tensor([0.1, -0.2]),
    )
    zero, none, one = torch.tensor(0.0), torch.zeros(2), torch.ones(2)
    steps = [
        from_parameters(zero, one, zero, move),
        from_parameters(angle, one, zero, none),
        from_parameters(zero, one, shear, none),
        from_parameters(zero, scale, zero, none),
    ]
    whole = compose(steps[0], compose(steps[1], compose(steps[2], steps[3])))
    torch.testing.assert_close(from_parameters(angle, scale, shear, move), whole)


@pytest.mark.parametrize(("channels", "height", "width"), [(1, 5, 5), (3, 4, 7)])
def test_the_identity_paints_the_picture_as_it_is(channels: int, height: int, width: int) -> None:
    picture = _pictures(2, channels, height, width)
    torch.testing.assert_close(warp(picture, identity((2,), dtype=torch.float64), (height, width)), picture)


@pytest.mark.parametrize("size", [(4, 9), (1, 1), (7, 2)])
def test_the_middles_of_pixels_are_torchs_grid(size: tuple[int, int]) -> None:
    pose = torch.randn(3, 2, 3, dtype=torch.float64)
    grid = torch.nn.functional.affine_grid(pose, [3, 1, *size], align_corners=False)
    assert torch.allclose(middles(pose, size), grid, atol=1e-12)


def test_a_pose_moves_the_picture_the_way_it_points() -> None:
    # 4 pixels span -1 to 1, so +1 in x is two pixels to the right; the other two columns are empty
    picture = _pictures(1, 1, 4, 4)
    right = warp(picture, _pose([[1, 0, 1], [0, 1, 0]])[None], (4, 4))
    torch.testing.assert_close(right[..., 2:], picture[..., :2])
    assert (right[..., :2] == 0).all()
    down = warp(picture, _pose([[1, 0, 0], [0, 1, 0.5]])[None], (4, 4))  # +0.5 in y is one pixel down
    torch.testing.assert_close(down[..., 1:, :], picture[..., :3, :])
    assert (down[..., 0, :] == 0).all()


def test_a_scale_below_one_shrinks_the_picture() -> None:
    painted = warp(torch.ones(1, 1, 8, 8, dtype=torch.float64), _pose([[0.5, 0, 0], [0, 0.5, 0]])[None], (8, 8))
    torch.testing.assert_close(painted[0, 0, 2:6, 2:6], torch.ones(4, 4, dtype=torch.float64))
    assert painted[0, 0, 0].sum() == painted[0, 0, :, 7].sum() == 0


def test_a_quarter_turn_is_clockwise() -> None:
    picture = _pictures(1, 2, 5, 5)
    parameters = (torch.tensor([math.pi / 2]), torch.ones(1, 2), torch.zeros(1), torch.zeros(1, 2))
    turned = warp(picture, from_parameters(*(x.double() for x in parameters)), (5, 5))
    torch.testing.assert_close(turned, torch.rot90(picture, -1, (2, 3)), atol=1e-6, rtol=0)


def test_painting_twice_is_painting_with_the_composed_pose() -> None:
    # whole pixels and quarter turns, where bilinear reading is exact; the picture stays inside the canvas
    picture = torch.zeros(1, 1, 8, 8, dtype=torch.float64)
    picture[..., 3:5, 3:6] = _pictures(1, 1, 2, 3)
    a, b = _pose([[0, -1, 0], [1, 0, 0]])[None], _pose([[1, 0, 0.25], [0, 1, -0.5]])[None]
    torch.testing.assert_close(
        warp(warp(picture, b, (8, 8)), a, (8, 8)), warp(picture, compose(a, b), (8, 8)), atol=1e-12, rtol=0
    )


def test_warp_takes_any_batch_and_canvas() -> None:
    picture, pose = _pictures(3, 4, 2, 6, 5), _poses(3, 4)
    painted = warp(picture, pose, (9, 7))
    assert painted.shape == (3, 4, 2, 9, 7)
    torch.testing.assert_close(painted[1, 2], warp(picture[1, 2], pose[1, 2], (9, 7)))


def test_a_pose_far_away_paints_nothing() -> None:
    pose = torch.tensor([[1.0, 0.0, 1e30], [0.0, 1.0, -1e30]], requires_grad=True)
    painted = warp(torch.ones(1, 4, 4), pose, (4, 4))
    painted.sum().backward()
    assert (painted == 0).all()
    assert pose.grad is not None
    assert torch.isfinite(pose.grad).all()


def test_gradients_agree_with_finite_differences() -> None:
    a, b, picture = _poses(2).requires_grad_(), _poses(2, seed=1).requires_grad_(), _pictures(2, 1, 3, 3)
    alpha = _pictures(2, 3, 1, 2, 2, seed=1).requires_grad_()
    layers = _pictures(2, 3, 2, 2, 2).requires_grad_()
    assert torch.autograd.gradcheck(compose, (a, b))
    assert torch.autograd.gradcheck(invert, (a,))
    assert torch.autograd.gradcheck(lambda x, p: warp(x, p, (4, 4)), (picture.requires_grad_(), a))
    assert torch.autograd.gradcheck(over, (layers, alpha))


def test_over_gives_the_numbers_worked_by_hand() -> None:
    # on black: 0.5 of 0.8 is 0.4; over it 0.25 of 1.0: 0.25 + 0.75 * 0.4
    layers = torch.tensor([0.8, 1.0]).view(1, 2, 1, 1, 1)
    alpha = torch.tensor([0.5, 0.25]).view(1, 2, 1, 1, 1)
    torch.testing.assert_close(over(layers, alpha), torch.tensor([0.55]).view(1, 1, 1, 1))
    flipped = over(layers.flip(1), alpha.flip(1))  # 0.25; over it 0.4: 0.4 + 0.5 * 0.25
    torch.testing.assert_close(flipped, torch.tensor([0.525]).view(1, 1, 1, 1))


def test_over_agrees_with_the_papers_two_formulas() -> None:
    # (Smith et al., 2021), Sec. 2.1: with both alphas, on a ground of alpha 1
    layers, alpha = _pictures(2, 4, 3, 5, 5), _pictures(2, 4, 1, 5, 5, seed=1)
    colour, cover = torch.zeros_like(layers[:, 0]), torch.ones_like(alpha[:, 0])
    for i in range(4):
        out = alpha[:, i] + cover * (1 - alpha[:, i])
        colour = (layers[:, i] * alpha[:, i] + colour * cover * (1 - alpha[:, i])) / out
        cover = out
    torch.testing.assert_close(over(layers, alpha), colour)


def test_an_opaque_layer_hides_and_an_absent_one_does_not_show() -> None:
    layers, alpha = _pictures(2, 3, 3, 4, 4), _pictures(2, 3, 1, 4, 4, seed=1)
    opaque = alpha.clone()
    opaque[:, 2] = 1
    torch.testing.assert_close(over(layers, opaque), layers[:, 2])
    absent = alpha.clone()
    absent[:, 1] = 0
    torch.testing.assert_close(over(layers, absent), over(layers[:, [0, 2]], alpha[:, [0, 2]]))
    assert (over(layers, torch.zeros_like(alpha)) == 0).all()  # the ground is black, not 0 / 0


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 3), max_size=2), st.integers(1, 4), st.integers(1, 3), st.integers(1, 5))
def test_over_takes_any_batch_layers_and_channels(batch: list[int], layers: int, channels: int, side: int) -> None:
    rgb = _pictures(*batch, layers, channels, side, side + 1)
    alpha = _pictures(*batch, layers, 1, side, side + 1, seed=1)
    painted = over(rgb, alpha)
    assert painted.shape == (*batch, channels, side, side + 1)
    assert ((painted >= 0) & (painted <= 1)).all()
