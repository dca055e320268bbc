"""Precision, recall, density and coverage, and the neighbours under them, against plain loops."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gencaps.metrics import neighbors as room
from gencaps.metrics.manifold import Manifold, manifold_scores
from gencaps.metrics.neighbors import nearest
from tests.helpers import refused


def draw(n: int, features: int, seed: int) -> Tensor:
    return torch.randn(n, features, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def by_loops(real: Tensor, generated: Tensor, k: int) -> Manifold:
    def sq(a: Tensor, b: Tensor) -> float:
        return float(((a - b) ** 2).sum())

    def radii(points: Tensor) -> list[float]:
        return [sorted(sq(p, q) for q in points)[k] for p in points]  # the first is the point itself

    r, g = radii(real), radii(generated)
    n, m = len(real), len(generated)
    inside = [[sq(real[i], generated[j]) <= r[i] for j in range(m)] for i in range(n)]
    return Manifold(
        precision=sum(any(inside[i][j] for i in range(n)) for j in range(m)) / m,
        recall=sum(any(sq(real[i], generated[j]) <= g[j] for j in range(m)) for i in range(n)) / n,
        density=sum(map(sum, inside)) / (k * m),
        coverage=sum(map(any, inside)) / n,
    )


@pytest.mark.parametrize("k", [1, 3, 5])
def test_scores_agree_with_plain_loops(k: int) -> None:
    real, generated = draw(30, 3, 0), 0.6 * draw(20, 3, 1) + 0.5
    found = manifold_scores(real, generated, k=k)
    assert found == pytest.approx(by_loops(real, generated, k))
    assert len({*found}) > 2  # a case where the four differ


def test_scores_of_a_line_by_hand() -> None:
    # k = 1: real balls reach [-1, 1], [0, 2], [1, 5] (around 3: its neighbour 1 is 2 away), generated ones
    # [1.5, 5.5] (around 3.5) and [3.5, 7.5]
    real = torch.tensor([[0.0], [1.0], [3.0]])
    generated = torch.tensor([[3.5], [5.5]])
    # 3.5 lies in one real ball, 5.5 in none; of the real points only 3 lies in a generated ball; one ball in three
    # holds a generated point
    assert manifold_scores(real, generated, k=1) == (0.5, 1 / 3, 0.5, 1 / 3)


def test_identical_sets_score_one() -> None:
    x = draw(40, 6, 0).float()
    found = manifold_scores(x, x.flip(0))
    assert (found.precision, found.recall, found.coverage) == (1, 1, 1)
    assert found.density == 6 / 5 * 1  # each ball holds its centre and its 5 neighbours, the last on its edge


def test_far_sets_score_zero() -> None:
    assert manifold_scores(draw(20, 4, 0), draw(20, 4, 1) + 100) == (0, 0, 0, 0)


def test_dropping_a_mode_costs_recall_and_coverage_but_not_precision() -> None:
    real = torch.cat([draw(50, 4, 0), draw(50, 4, 1) + 20])
    both = manifold_scores(real, torch.cat([draw(50, 4, 2), draw(50, 4, 3) + 20]))
    one = manifold_scores(real, draw(100, 4, 4))
    assert one.recall <= 0.5 < both.recall
    assert one.coverage <= 0.5 < both.coverage
    assert one.precision == pytest.approx(both.precision, abs=0.1)


def test_an_outlier_among_the_real_fools_precision_more_than_density() -> None:
    """(Naeem et al., 2020), Fig. 3: its ball is large and takes in whatever is generated."""
    real = torch.cat([draw(50, 4, 0), torch.full((1, 4), 10.0, dtype=torch.float64)])
    found = manifold_scores(real, draw(50, 4, 1) / 4 + 7)
    assert found.precision == 1
    assert found.density < 0.3


def test_parts_and_a_common_shift_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    real, generated = draw(30, 5, 0), draw(25, 5, 1)
    whole = manifold_scores(real, generated)
    assert manifold_scores(real + 1000, generated + 1000) == whole
    monkeypatch.setattr(room, "BYTES", 16 * 25 * 4)
    assert manifold_scores(real, generated) == whole


@pytest.mark.parametrize("k", [1, 4, 40])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_neighbours_agree_with_sorting_all_distances(k: int, dtype: torch.dtype) -> None:
    queries, points = draw(15, 7, 0).to(dtype), draw(40, 7, 1).to(dtype)
    gaps = points.double() - queries.double()[:, None]
    sq_distance, index = gaps.square().sum(-1).sort(1)
    found = nearest(queries, points, k)
    assert torch.equal(found.ids, index[:, :k])
    torch.testing.assert_close(found.sq_distance, sq_distance[:, :k], rtol=1e-14, atol=0)


def test_a_point_is_at_zero_from_itself_and_ties_go_to_the_lower_index() -> None:
    x = torch.tensor([[0.1, 0.7], [5.0, 5.0]]).repeat(20, 1)  # 20 copies of each, more than are rechecked
    found = nearest(x, x, 3)
    assert (found.sq_distance == 0).all()
    assert found.ids[::2].unique(dim=0).tolist() == [[0, 2, 4]]
    assert found.ids[1::2].unique(dim=0).tolist() == [[1, 3, 5]]


def test_neighbours_that_float32_cannot_tell_apart_are_told_apart() -> None:
    """1e-6 apart at a length of 1000: float32's product sees only noise, and the certificate says so."""
    x = torch.zeros(200, 3, dtype=torch.float64)
    x[:, 0] = 1e-6 * torch.arange(200).double()
    x[0, 1] = 1000
    _, sure = room._float32_pass(x, x, 3)
    assert not sure.any()
    assert nearest(x[50:51] + 1e-7, x, 3).ids.tolist() == [[50, 51, 49]]


def test_both_passes_agree_where_float32_is_sure() -> None:
    x = draw(300, 20, 0).float()
    fast, sure = room._float32_pass(x, x, 5)
    slow = room._float64_pass(x, x, 5)
    assert sure.all()
    assert torch.equal(fast.ids, slow.ids)
    assert torch.equal(fast.sq_distance, slow.sq_distance)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_gives_the_same_scores() -> None:
    real, generated = draw(300, 8, 0), draw(200, 8, 1) + 0.5
    assert manifold_scores(real.cuda(), generated.cuda()) == manifold_scores(real, generated)


def test_manifold_refuses_what_it_cannot_measure() -> None:
    x = draw(8, 3, 0)
    refused(lambda: manifold_scores(x, x[:5]), "generated set", "5 samples", "at least 6")
    refused(lambda: manifold_scores(x[:2], x), "real set", "2 samples")
    refused(lambda: manifold_scores(x, x[:, :2]), "same network")
    refused(lambda: manifold_scores(x * torch.inf, x), "real set", "not finite")
    refused(lambda: manifold_scores(x, x, k=0), "k is 0")
    refused(lambda: nearest(x, x, 9), "9", "8")
