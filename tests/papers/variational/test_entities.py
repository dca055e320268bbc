"""Laws of which capsules stand for what: one a class, or two an attribute."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gencaps.model import PictureInfo
from gencaps.papers.variational.entities import Entities, changed, keep
from tests.helpers import refused

KINDS = [Entities(1, 4, "classes"), Entities(1, 4, "classes", 2), Entities(3, 2, "attributes")]
KINDS += [Entities(3, 2, "attributes", 2)]
kinds = pytest.mark.parametrize("entities", KINDS, ids=lambda e: f"{e.labels}+{e.rest}")


def every_state(entities: Entities) -> torch.Tensor:
    return torch.cartesian_prod(*[torch.arange(entities.states)] * entities.groups).reshape(-1, entities.groups)


def test_pictures_say_how_many_groups_and_states_there_are() -> None:
    classes = PictureInfo(1, 8, ("a", "b", "c"))
    attributes = PictureInfo(1, 8, ("a", "b", "c"), "attributes")
    assert Entities.of(classes) == Entities(1, 3, "classes", 0)
    assert Entities.of(attributes, 2) == Entities(3, 2, "attributes", 2)
    assert Entities.of(classes).count == 3
    assert Entities.of(classes, 2).count == 5
    assert Entities.of(attributes).count == 6
    assert Entities.of(attributes, 2).count == 8


def test_one_attribute_is_enough_and_one_class_is_not() -> None:
    assert Entities.of(PictureInfo(1, 8, ("a",), "attributes")).count == 2
    refused(lambda: Entities.of(PictureInfo(1, 8, (), "attributes", "mine")), "'mine'", "no attributes")
    refused(lambda: Entities.of(PictureInfo(1, 8, ("a",), "classes", "mine")), "'mine'", "1 class", "at least 2")


@kinds
def test_mask_has_one_active_capsule_a_group_and_all_of_the_rest(entities: Entities) -> None:
    active = every_state(entities)
    mask = entities.mask(active)
    assert mask.shape == (entities.states**entities.groups, entities.count)
    for states, row in zip(active.tolist(), mask.tolist(), strict=True):
        wanted = {group * entities.states + state for group, state in enumerate(states)}
        wanted |= set(range(entities.groups * entities.states, entities.count))
        assert {place for place, on in enumerate(row) if on} == wanted
    assert len({tuple(row) for row in mask.tolist()}) == len(active)


def test_mask_of_attributes_by_hand() -> None:
    """Off before on: states 0 1 1 of three attributes are capsules 0, 3 and 5; number 6 is always on."""
    mask = Entities(3, 2, "attributes", 1).mask(torch.tensor([[0, 1, 1]]))
    assert mask.long().tolist() == [[1, 0, 0, 1, 0, 1, 1]]
    assert Entities(1, 4, "classes", 1).mask(torch.tensor([[2]])).long().tolist() == [[0, 0, 1, 0, 1]]


@kinds
def test_least_reads_back_the_states_of_a_mask(entities: Entities) -> None:
    """Capsules of KL 1 where active and 2 elsewhere, and the rest's at 0: they must not count."""
    active = every_state(entities)
    kl = 2.0 - entities.mask(active).float()
    kl[:, entities.groups * entities.states :] = 0.0
    assert torch.equal(entities.least(kl), active)
    assert torch.equal(entities.active(entities.label(active)), active)


def test_labels_have_the_shape_of_what_they_name() -> None:
    classes, attributes = Entities(1, 4, "classes"), Entities(3, 2, "attributes")
    y = torch.tensor([3, 0], dtype=torch.uint8)
    assert classes.active(y).tolist() == [[3], [0]]
    assert classes.active(y).dtype == torch.long
    assert classes.label(torch.tensor([[3], [0]])).tolist() == [3, 0]
    y = torch.tensor([[1, 0, 1]], dtype=torch.uint8)
    assert attributes.active(y).tolist() == [[1, 0, 1]]
    assert attributes.active(y).dtype == torch.long
    assert attributes.label(torch.tensor([[1, 0, 1]])).tolist() == [[1, 0, 1]]


@pytest.mark.parametrize("rest", [0, 2])
def test_presence_of_classes_is_softmax_of_minus_kl(rest: int) -> None:
    """KLs 1, 2, 4: e^-1, e^-2, e^-4 over their sum; the rest's small KLs take no share."""
    kl = torch.tensor([[1.0, 2.0, 4.0] + [0.0] * rest])
    parts = [math.exp(-1), math.exp(-2), math.exp(-4)]
    found = Entities(1, 3, "classes", rest).presence(kl)
    assert found.shape == (1, 3)
    assert found[0].tolist() == pytest.approx([part / sum(parts) for part in parts])


@pytest.mark.parametrize("rest", [0, 2])
def test_presence_of_an_attribute_is_sigmoid_of_kl_off_minus_kl_on(rest: int) -> None:
    kl = torch.tensor([[5.0, 2.0, 1.0, 4.5] + [0.0] * rest])
    found = Entities(2, 2, "attributes", rest).presence(kl)
    assert found.shape == (1, 2)
    assert found[0].tolist() == pytest.approx([1 / (1 + math.exp(-3.0)), 1 / (1 + math.exp(3.5))])


@kinds
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_presence_is_highest_where_kl_is_least(entities: Entities, seed: int) -> None:
    kl = 9 * torch.rand(5, entities.count, generator=torch.Generator().manual_seed(seed))
    presence, label = entities.presence(kl), entities.label(entities.least(kl))
    seen = presence.argmax(1) if entities.labels == "classes" else (presence > 0.5).long()
    assert torch.equal(seen, label)


@pytest.mark.parametrize("rest", [0, 2])
def test_surprise_is_cross_entropy_summed_over_attributes(rest: int) -> None:
    """KLs off/on 5/2 and 1/4.5: states on, on cost -log s(3) - log s(-3.5); off, off the opposite."""

    def cost(x: float) -> float:
        return math.log1p(math.exp(-x))

    kl = torch.tensor([[5.0, 2.0, 1.0, 4.5] + [0.0] * rest]).expand(4, -1)
    active = torch.tensor([[1, 1], [0, 0], [1, 0], [0, 1]])
    wanted = [cost(3) + cost(-3.5), cost(-3) + cost(3.5), cost(3) + cost(3.5), cost(-3) + cost(-3.5)]
    found = Entities(2, 2, "attributes", rest).surprise(kl, active)
    assert found.tolist() == pytest.approx(wanted)


def test_surprise_of_classes_is_minus_log_presence() -> None:
    entities, kl, y = Entities(1, 3, "classes", 1), 5 * torch.rand(6, 4), torch.tensor([0, 1, 2, 2, 1, 0])
    presence = entities.presence(kl)
    torch.testing.assert_close(entities.surprise(kl, y[:, None]), -presence[torch.arange(6), y].log())


@kinds
def test_surprise_pulls_the_own_kl_down_and_the_others_up(entities: Entities) -> None:
    active = every_state(entities)
    kl = torch.full((len(active), entities.count), 3.0, requires_grad=True)
    entities.surprise(kl, active).sum().backward()
    assert kl.grad is not None
    own = entities.mask(active)
    rest = torch.arange(entities.count) >= entities.groups * entities.states
    assert (kl.grad[own & ~rest] > 0).all()
    assert (kl.grad[~own] < 0).all()
    assert (kl.grad[:, rest] == 0).all()


@pytest.mark.parametrize("rest", [0, 2])
def test_capsules_in_marks_exactly_those_of_the_groups(rest: int) -> None:
    groups = torch.tensor([[True, False, True], [False, True, False], [False] * 3, [True] * 3])
    found = Entities(3, 2, "attributes", rest).capsules_in(groups).long().tolist()
    wanted = [[1, 1, 0, 0, 1, 1], [0, 0, 1, 1, 0, 0], [0] * 6, [1] * 6]
    assert found == [row + [0] * rest for row in wanted]
    found = Entities(1, 4, "classes", rest).capsules_in(torch.tensor([[True], [False]]))
    assert found.long().tolist() == [[1] * 4 + [0] * rest, [0] * (4 + rest)]


def test_grouped_lays_out_by_group_then_state() -> None:
    found = Entities(3, 2, "attributes", 1).grouped(torch.arange(7.0)[None])
    assert found.tolist() == [[[0, 1], [2, 3], [4, 5]]]


def test_changed_keeps_the_present_state_where_nothing_is_wanted() -> None:
    active = torch.tensor([[0, 1, 1], [1, 0, 0]])
    wanted = torch.tensor([[-1, -1, 0], [0, 0, 1]])
    assert changed(active, wanted).tolist() == [[0, 1, 0], [0, 0, 1]]
    assert torch.equal(changed(active, torch.full_like(active, -1)), active)
    small = changed(active, wanted.to(torch.int8))
    assert small.dtype == torch.long
    assert small.tolist() == [[0, 1, 0], [0, 0, 1]]


def test_keep_with_flags_by_hand() -> None:
    capsules = torch.arange(1.0, 9.0).reshape(1, 4, 2)
    mask = torch.tensor([[True, False, False, True]])
    assert keep(capsules, mask).tolist() == [[[1, 2], [0, 0], [0, 0], [7, 8]]]
    assert keep(capsules, mask, flag=True).tolist() == [[[1, 2, 1], [0, 0, 0], [0, 0, 0], [7, 8, 1]]]


def test_keep_stops_the_gradient_of_absent_capsules() -> None:
    """Even where an absent capsule is not a number, the present ones' gradients are."""
    capsules = torch.tensor([[[1.0, 2.0], [math.inf, math.nan]]], requires_grad=True)
    kept = keep(capsules, torch.tensor([[True, False]]), flag=True)
    kept.sum().backward()
    assert kept.tolist() == [[[1, 2, 1], [0, 0, 0]]]
    assert capsules.grad is not None
    assert capsules.grad.tolist() == [[[1, 1], [0, 0]]]
