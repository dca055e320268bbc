"""Label spreading, against scikit-learn's, a solved system and numbers worked by hand."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import Tensor

from gencaps.metrics.neighbors import merged, nearest
from gencaps.metrics.spreading import predict_labels, spread_labels
from gencaps.primitives.noise import Noise
from tests.helpers import refused


def blobs(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """2,500 points in 64 dimensions around ten middles, so wide that a third of them stands nearer to another."""
    generator = torch.Generator().manual_seed(0)
    true = torch.randint(10, (2500,), generator=generator)
    middles = torch.randn(10, 64, generator=generator, dtype=dtype)
    return middles[true] + 2 * torch.randn(2500, 64, generator=generator, dtype=dtype), true


def digits() -> tuple[Tensor, Tensor]:
    from sklearn.datasets import load_digits

    pixels, true = load_digits(return_X_y=True)
    return torch.from_numpy(pixels).float() / 16, torch.from_numpy(true)


def some(true: Tensor, labelled: int) -> Tensor:
    kept = torch.randperm(len(true), generator=torch.Generator().manual_seed(1))[:labelled]
    return torch.full_like(true, -1).index_put((kept,), true[kept])


def sklearns(x: Tensor, y: Tensor, **settings: float):
    from sklearn.semi_supervised import LabelSpreading

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # reaching max_iter, as ours does then
        return LabelSpreading(kernel="knn", **{"n_neighbors": 7, "alpha": 0.2, **settings}).fit(x.numpy(), y.numpy())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("neighbors", "alpha", "iterations"), [(7, 0.2, 30), (3, 0.9, 30), (10, 0.8, 3)])
def test_blobs_get_scikit_learns_labels(dtype: torch.dtype, neighbors: int, alpha: float, iterations: int) -> None:
    x, true = blobs(dtype)
    x, new, y = x[:2000], x[2000:], some(true[:2000], 100)
    theirs = sklearns(x, y, n_neighbors=neighbors, alpha=alpha, max_iter=iterations)
    ours = spread_labels(x, y, 10, neighbors=neighbors, alpha=alpha, iterations=iterations)
    torch.testing.assert_close(
        ours.distributions, torch.from_numpy(theirs.label_distributions_), rtol=1e-12, atol=1e-14
    )
    assert ours.labels.tolist() == theirs.transduction_.tolist()
    assert ours.iterations == theirs.n_iter_
    predicted = predict_labels(ours, x, y, new, neighbors=neighbors)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 0 / 0 where no label reached
        assert predicted.labels.tolist() == theirs.predict(new.numpy()).tolist()
    assert len(predicted.labels.unique()) >= 8  # a case where labels differ


def test_digits_get_scikit_learns_labels() -> None:
    x, true = digits()
    # their pixels have 17 levels, so that some neighbours are equally far and scikit-learn takes any of them
    x = x + 1e-4 * torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
    x, new, y = x[:1500], x[1500:], some(true[:1500], 100)
    theirs = sklearns(x, y)
    ours = spread_labels(x, y, 10)
    assert ours.labels.tolist() == theirs.transduction_.tolist()
    assert predict_labels(ours, x, y, new).labels.tolist() == theirs.predict(new.numpy()).tolist()
    assert (ours.labels == true[:1500]).double().mean() > 0.85


def test_where_digits_have_other_neighbours_these_are_equally_far() -> None:
    from sklearn.neighbors import NearestNeighbors

    x, _ = digits()
    theirs = torch.from_numpy(NearestNeighbors(n_neighbors=7).fit(x.numpy()).kneighbors(x.numpy())[1])
    ours = nearest(x, x, 8)
    other = (ours.ids[:, :7].sort(1).values != theirs.sort(1).values).any(1)
    assert 0 < other.sum() < 20
    assert torch.equal(ours.sq_distance[other, 6], ours.sq_distance[other, 7])


def test_two_points_by_hand() -> None:
    # each has the other as its neighbour: F = (1 - a) / (1 - a^2) [[1, a], [a, 1]], which to sum 1 is 1 / (1 + a)
    x, y = torch.tensor([[0.0], [1.0]]), torch.tensor([0, 1])
    found = spread_labels(x, y, 2, neighbors=2, tolerance=1e-14)
    torch.testing.assert_close(
        found.distributions, torch.tensor([[1, 0.2], [0.2, 1]], dtype=torch.float64) / 1.2, rtol=1e-12, atol=0
    )


def test_a_labelled_point_heeds_its_neighbours_by_alpha() -> None:
    x, y = torch.tensor([[0.0], [1.0]]), torch.tensor([0, 1])
    for alpha in (0.01, 0.5, 0.99):
        kept = spread_labels(x, y, 2, neighbors=2, alpha=alpha, iterations=5000, tolerance=1e-14).distributions[0, 0]
        assert kept.item() == pytest.approx(1 / (1 + alpha), rel=1e-9)


def test_spreading_ends_at_the_solved_system() -> None:
    """F* = (1 - alpha) (I - alpha S)^-1 Y, (Zhou et al., 2004), Eq. (4), with S written down entry by entry."""
    x, true = blobs(torch.float64)
    x, y, n = x[:60], some(true[:60], 20), 60
    w = torch.zeros(n, n, dtype=torch.float64)
    for i in range(n):
        for j in torch.cdist(x[i : i + 1], x)[0].argsort()[1:5].tolist():
            w[i, j] = 1
    d = w.sum(0).clamp(min=1)
    s = w / (d[:, None] * d).sqrt()
    given = torch.zeros(n, 10, dtype=torch.float64)
    for i, label in enumerate(y.tolist()):
        if label >= 0:
            given[i, label] = 1
    expected = torch.linalg.solve(torch.eye(n, dtype=torch.float64) - 0.6 * s, given)
    expected = expected / expected.sum(1, keepdim=True).clamp(min=1e-300)
    found = spread_labels(x, y, 10, neighbors=5, alpha=0.6, iterations=2000, tolerance=1e-15)
    torch.testing.assert_close(found.distributions, expected, rtol=1e-9, atol=1e-12)


def test_points_that_no_label_reaches_stay_without_as_scikit_learn_has_it() -> None:
    x = torch.cat([torch.arange(10.0), 1000 + torch.arange(10.0)])[:, None].repeat(1, 20)
    y = torch.full((20,), -1).index_put((torch.tensor([0, 5]),), torch.tensor([2, 1]))
    found, theirs = spread_labels(x, y, 4, neighbors=3), sklearns(x, y, n_neighbors=3)
    assert (found.distributions[10:] == 0).all()
    assert (found.distributions[:10].sum(1) - 1).abs().max() < 1e-12
    assert found.labels.tolist() == theirs.transduction_.tolist()
    assert found.labels[10:].tolist() == [1] * 10  # the lowest class with a label, not class 0
    predicted = predict_labels(found, x, y, x[15:16] + 0.1, neighbors=3)
    assert (predicted.distributions == 0).all()
    assert predicted.labels.tolist() == [1]


def test_spreading_does_not_depend_on_order_or_on_names_of_classes() -> None:
    x, true = blobs()
    x, y = x[:300], some(true[:300], 50)
    found = spread_labels(x, y, 10)
    order = torch.randperm(300, generator=torch.Generator().manual_seed(2))
    shuffled = spread_labels(x[order], y[order], 10)
    torch.testing.assert_close(shuffled.distributions, found.distributions[order])
    renamed = spread_labels(x, (9 - y).where(y >= 0, -1), 10)
    torch.testing.assert_close(renamed.distributions, found.distributions.flip(1))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_spreads_the_same_labels() -> None:
    x, true = blobs()
    x, new, y = x[:2000], x[2000:], some(true[:2000], 100)
    here, there = spread_labels(x, y, 10), spread_labels(x.cuda(), y.cuda(), 10)
    torch.testing.assert_close(there.distributions.cpu(), here.distributions, rtol=1e-12, atol=1e-14)
    assert there.labels.tolist() == here.labels.tolist()
    predicted = predict_labels(there, x.cuda(), y.cuda(), new.cuda())
    assert predicted.labels.tolist() == predict_labels(here, x, y, new).labels.tolist()


def test_spreading_refuses_what_it_cannot_use() -> None:
    x, y = torch.arange(8.0)[:, None], torch.tensor([0, 1, -1, -1, -1, -1, -1, -1])
    refused(lambda: spread_labels(x, y[:5], 2), "8 points", "5 labels")
    refused(lambda: spread_labels(x, y.clamp(max=-1), 2), "no point has a label")
    refused(lambda: spread_labels(x, y * 3, 2), "-3", "3", "-1")
    refused(lambda: spread_labels(x, y, 1), "0", "1 classes")
    refused(lambda: spread_labels(x, y, 2, neighbors=9), "9 neighbours", "8")
    refused(lambda: spread_labels(x, y, 2, alpha=1.0), "alpha is 1.0")
    refused(lambda: spread_labels(x * torch.nan, y, 2), "not finite")
    refused(lambda: spread_labels(x[:0], y[:0], 2), "0 samples")
    found = spread_labels(x, y, 2)
    refused(lambda: predict_labels(found, x, y, torch.zeros(3, 2)), "same network")
    refused(lambda: predict_labels(found, x, y, torch.zeros(0, 1)), "0 samples")


@pytest.mark.parametrize("k", [2, 5])
def test_the_nearest_of_two_sets_are_those_of_each_put_together(k: int) -> None:
    noise = Noise(3)
    a, b, queries = noise.normal(k, 2), noise.normal(30, 2), noise.normal(20, 2)
    b[4:7] = a[0]  # as far as each other: the lower index first
    queries[:3] = a[0]
    found = merged(nearest(queries, a, k), nearest(queries, b, k), len(a), k)
    wanted = nearest(queries, torch.cat([a, b]), k)
    assert torch.equal(found.ids, wanted.ids)
    assert torch.equal(found.sq_distance, wanted.sq_distance)
