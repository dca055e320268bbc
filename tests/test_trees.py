"""A parse as a tree: each part hangs from whoever most surely has it."""

from __future__ import annotations

from itertools import pairwise

import torch

from gencaps.abilities import Parsed
from gencaps.trees import CELL, _layout, trees


def parsed() -> Parsed:
    """One picture: three templates (the second is off), two objects; the first template is the second object's."""
    painted = torch.rand(1, 3, 1, 4, 4)
    # slots: nobody's, object 0, object 1; columns: templates
    whose = torch.tensor([[[0.1, 0.0, 0.8], [0.2, 0.5, 0.1], [0.7, 0.5, 0.1]]])
    presence = (torch.tensor([[0.3, 0.9]]), torch.tensor([[0.99, 0.2, 0.6]]))
    return Parsed(painted.sum(1), presence, (whose,), (torch.rand(1, 2, 1, 4, 4), painted))


def test_a_part_hangs_from_its_likeliest_parent_and_absent_ones_are_left_out() -> None:
    (tree,) = trees(parsed(), ["three.png"])
    assert tree.text().splitlines() == [
        "three.png",
        "├─ object 1  90 %",
        "│  └─ template 0  99 %, its part: 70 %",
        "└─ nobody's",
        "   └─ template 2  60 %, its part: 80 %",
    ]


def test_middle_capsules_hang_from_objects() -> None:
    first = parsed()
    up = torch.tensor([[[0.1, 0.2], [0.9, 0.8]]])  # one object above the two
    deep = Parsed(
        first.picture,
        (torch.ones(1, 1), *first.presence),
        (up, *first.whose),
        (first.painted[0][:, :1], *first.painted),
    )
    (tree,) = trees(deep, ["x"])
    assert [child.name for child in tree.children] == ["object 0", "nobody's"]
    assert tree.children[0].children[0].name == "capsule 1.1"


def test_a_tree_of_nothing_is_the_picture_alone() -> None:
    first = parsed()
    empty = first._replace(presence=(first.presence[0], torch.zeros(1, 3)))
    (tree,) = trees(empty, ["x"])
    assert tree.children == ()
    assert tree.text() == "x"
    assert tree.image().size[0] > 0


def test_no_two_nodes_are_drawn_over_each_other() -> None:
    (tree,) = trees(parsed(), ["x"])
    root, width = _layout(tree, 0.0, 0)
    spots = list(root.all())
    assert len(spots) == 5
    for level in range(3):
        xs = sorted(spot.x for spot in spots if spot.level == level)
        assert all(b - a >= CELL for a, b in pairwise(xs))
        assert xs[-1] + CELL <= width
