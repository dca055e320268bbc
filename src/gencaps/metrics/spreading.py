"""Label spreading: labels of a few points reach the others along a graph of neighbours."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from gencaps.errors import GencapsError
from gencaps.metrics.checks import refuse_fractions, refuse_shape, refuse_unlike, refuse_unusable
from gencaps.metrics.neighbors import nearest

UNLABELLED = -1


class Spread(NamedTuple):
    """What label spreading gives each point. A row of zeros is a point that no label reached."""

    distributions: Float[Tensor, "n classes"]
    labels: Int[Tensor, "n"]
    """The likeliest class; the lowest class that has labels where none reached, as scikit-learn has it."""
    iterations: int


def spread_labels(
    x: Float[Tensor, "n features"],
    y: Int[Tensor, "n_labels"],
    classes: int,
    *,
    neighbors: int = 7,
    alpha: float = 0.2,
    iterations: int = 30,
    tolerance: float = 1e-3,
) -> Spread:
    """Spreads labels over a graph of nearest neighbours: ``F <- alpha S F + (1 - alpha) Y``, rows then scaled to sum 1.

    (Zhou et al., 2004), Sec. 2, step 3. The same as scikit-learn's ``LabelSpreading(kernel="knn")``, whose graph is
    kept: ``W_ij = 1`` where j is among the nearest of i, not made symmetric, ``S_ij = W_ij / sqrt(d_i d_j)`` off
    the diagonal, ``d_j`` counting the points that have j as a neighbour (1 where none has). Of equally far points
    (copies, pixels of few levels) the lower index is the neighbour; scikit-learn takes whichever its heap kept.

    Note: departs from (Zhou et al., 2004), Eq. (1): neighbours instead of a Gaussian kernel, whose n x n matrix
    does not fit in memory at 60,000 points. In float64, on the device of ``x``.

    Args:
        x: the points.
        y: their classes, -1 for a point without one.
        classes: how many classes there are.
        neighbors: nearest points of each, itself counted as the first.
        alpha: the share that a point takes from its neighbours, between 0 and 1.
        iterations: rounds at most.
        tolerance: stops when a round changes all distributions together by less.
    """
    refuse_shape(x, "n features", "the features of the points")
    refuse_unusable(x, "the points")
    _refuse(y, len(x), classes, alpha)  # before the long search
    ids = nearest(x, x, neighbors).ids
    return spread_over(ids, y, classes, alpha=alpha, iterations=iterations, tolerance=tolerance)


def spread_over(
    ids: Int[Tensor, "n neighbors"],
    y: Int[Tensor, "n_labels"],
    classes: int,
    *,
    alpha: float = 0.2,
    iterations: int = 30,
    tolerance: float = 1e-3,
) -> Spread:
    """Spreads labels over a graph that is known: ``ids`` are the nearest points of each, itself the first."""
    _refuse(y, len(ids), classes, alpha)
    y = y.to(ids.device)
    graph = _graph(ids)
    given = F.one_hot(y.clamp(min=0).long(), classes).double() * (y >= 0)[:, None]
    spread, before, rounds = given, torch.zeros_like(given), 0
    while rounds < iterations and (spread - before).abs().sum() >= tolerance:
        spread, before, rounds = alpha * _pass_on(graph, spread) + (1 - alpha) * given, spread, rounds + 1
    distributions = _normalised(spread)
    return Spread(distributions, _likeliest(distributions, y), rounds)


def predict_labels(
    spread: Spread,
    x: Float[Tensor, "n features"],
    y: Int[Tensor, "n_labels"],
    new: Float[Tensor, "m features_new"],
    *,
    neighbors: int = 7,
) -> Spread:
    """Predicts new points by the summed distributions of their nearest points, as scikit-learn does.

    Args:
        spread: what ``spread_labels(x, y, ...)`` gave.
        x: the points that labels were spread over.
        y: their classes as given, -1 for none.
        new: the points to predict; they do not change the others.
        neighbors: nearest points asked, as many as in the spreading.
    """
    refuse_unlike(x, new)
    return predict_from(spread, nearest(new, x, neighbors).ids, y)


def predict_from(spread: Spread, ids: Int[Tensor, "m neighbors"], y: Int[Tensor, "n_labels"]) -> Spread:
    """Predicts new points whose nearest points are known."""
    distributions = _normalised(F.embedding_bag(ids, spread.distributions, mode="sum"))
    return Spread(distributions, _likeliest(distributions, y), 0)


class _Graph(NamedTuple):
    ids: Int[Tensor, "n neighbors"]
    weight: Float[Tensor, "n neighbors"]


def _graph(ids: Int[Tensor, "n neighbors"]) -> _Graph:
    others = ids != torch.arange(len(ids), device=ids.device)[:, None]
    degree = torch.bincount(ids[others], minlength=len(ids)).clamp(min=1).double().sqrt()
    return _Graph(ids, others.double() / degree[:, None] / degree[ids])


def _pass_on(graph: _Graph, spread: Float[Tensor, "n classes"]) -> Float[Tensor, "n classes"]:
    """Multiplies by S: every row has equally many neighbours, so no sparse matrix is needed."""
    return F.embedding_bag(graph.ids, spread, mode="sum", per_sample_weights=graph.weight)


def _normalised(spread: Float[Tensor, "n classes"]) -> Float[Tensor, "n classes"]:
    total = spread.sum(1, keepdim=True)
    return spread / total.where(total != 0, 1.0)


def _likeliest(distributions: Float[Tensor, "n classes"], y: Int[Tensor, "n_labels"]) -> Int[Tensor, "n"]:
    reached = distributions.sum(1) > 0
    return distributions.argmax(1).where(reached, y[y >= 0].min().to(distributions.device).long())


def _refuse(y: Tensor, points: int, classes: int, alpha: float) -> None:
    refuse_shape(y, "n", "the labels of the points")
    refuse_fractions(y, "the labels of the points")
    if points != len(y):
        raise GencapsError(f"{points} points have {len(y)} labels; give one each, -1 for none")
    low, high = int(y.min()), int(y.max())
    if low < UNLABELLED or high >= classes:
        raise GencapsError(f"labels run from {low} to {high}; with {classes} classes give -1 (none) to {classes - 1}")
    if high < 0:
        raise GencapsError("no point has a label, so there is nothing to spread; give at least one")
    if not 0 < alpha < 1:
        raise GencapsError(f"alpha is {alpha}; give a share between 0 and 1, neither included")
