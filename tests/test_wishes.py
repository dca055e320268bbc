"""How wishes are read: what a user may write, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gencaps.model import PictureInfo
from gencaps.wishes import as_states, group_of, marked, read_wishes
from tests.helpers import refused

NAMES = ("Eyeglasses", "Smiling", "Hat", "Long_Hair", "5_o_Clock_Shadow")
FACES = PictureInfo(3, 32, NAMES, "attributes", "faces")
CLOTHES = PictureInfo(1, 28, ("T-shirt/top", "Bag", "Ankle boot", "7"), "classes", "clothes")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("Eyeglasses=1", {0: 1}),
        ("Eyeglasses=0", {0: 0}),
        ("Eyeglasses=1, smiling=off", {0: 1, 1: 0}),
        ("  HAT = On ,long hair=no, ", {2: 1, 3: 0}),
        ("long-hair=yes", {3: 1}),
        ("LONG_HAIR=true", {3: 1}),
        ("5 o clock shadow=FALSE", {4: 0}),
        ("Hat=1,Hat=1", {2: 1}),
        ("Hat=1,hat=on", {2: 1}),
        ({"Hat": True}, {2: 1}),
        ({"Hat": False, "smiling": 1}, {2: 0, 1: 1}),
        ({"long hair": "off", "Eyeglasses": "1"}, {3: 0, 0: 1}),
    ],
)
def test_wishes_are_read(given: Any, wanted: dict[int, int]) -> None:
    assert read_wishes(given, FACES) == wanted


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("Eyeglases=1", ("'Eyeglases'", "did you mean 'Eyeglasses'?")),
        ("smilling=1", ("'smilling'", "did you mean 'Smiling'?")),
        ({"Hut": 1}, ("'Hut'", "did you mean 'Hat'?")),
        ("Zebra=1", ("'Zebra'", "known:", "Hat")),
        ("=1", ("no attribute ''",)),
        ("Hat=1,Hat=0", ("Hat", "both on and off")),
        ("long hair=0,Smiling=1,Long-Hair=on", ("Long_Hair", "both on and off")),
        ({"Hat": 1, "hat": 0}, ("Hat", "both on and off")),
        ("Hat", ("'Hat'", "Hat=1 or Hat=0")),
        ("Smiling=1,Hat", ("'Hat'", "neither on nor off")),
        ("Hat=", ("Hat=", "give 1 or 0")),
        ("Hat=2", ("Hat=2", "give 1 or 0")),
        ("Hat=-1", ("Hat=-1", "give 1 or 0")),
        ("Hat=0.5", ("Hat=0.5", "give 1 or 0")),
        ("Hat=1=0", ("Hat=1=0", "give 1 or 0")),
        ("Hat=maybe", ("Hat=maybe", "give 1 or 0")),
        ({"Hat": 2}, ("Hat=2", "give 1 or 0")),
        ({"Hat": None}, ("Hat=None", "give 1 or 0")),
        ("", ("nothing was asked for", "Eyeglasses=1")),
        (" , ,", ("nothing was asked for", "Eyeglasses=1")),
        ({}, ("nothing was asked for", "Eyeglasses=1")),
    ],
)
def test_wishes_that_make_no_sense_are_refused(given: Any, says: tuple[str, ...]) -> None:
    refused(lambda: read_wishes(given, FACES), *says)


def test_a_class_is_named_as_it_is() -> None:
    assert read_wishes("Ankle boot", CLOTHES) == {0: 2}
    assert read_wishes(" 7 ", CLOTHES) == {0: 3}
    assert read_wishes("T-shirt/top", CLOTHES) == {0: 0}
    assert read_wishes({"class": "Bag"}, CLOTHES) == {0: 1}
    assert read_wishes({"class": 7}, CLOTHES) == {0: 3}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("Ankle boots", ("'Ankle boots'", "did you mean 'Ankle boot'?")),
        ("zebra", ("'zebra'", "known:", "Bag")),
        ("Hat=1", ("'Hat=1'", "has no attributes")),
        ("", ("no class ''",)),
        ({}, ("no class ''",)),
    ],
)
def test_a_class_unknown_and_attributes_asked_of_classes_are_refused(given: Any, says: tuple[str, ...]) -> None:
    refused(lambda: read_wishes(given, CLOTHES), *says)


def test_groups_are_found_by_name_whatever_the_spelling() -> None:
    assert [group_of(name, FACES) for name in ("hat", " Hat ", "HAT", "long hair", "Long-Hair")] == [2, 2, 2, 3, 3]
    refused(lambda: group_of("Hatt", FACES), "'Hatt'", "did you mean 'Hat'?")
    refused(lambda: group_of("Hat", CLOTHES), "classes", "'Hat'")


def test_names_that_differ_only_in_spelling_find_the_first() -> None:
    twins = PictureInfo(3, 32, ("Long Hair", "long_hair"), "attributes")
    assert group_of("long hair", twins) == 0


def test_states_are_laid_out_with_minus_one_where_nothing_is_wished() -> None:
    states = as_states({0: 1, 2: 0}, 4, 3, torch.device("cpu"))
    assert states.tolist() == [[1, -1, 0, -1]] * 3
    assert as_states({}, 2, 1, torch.device("cpu")).tolist() == [[-1, -1]]


@pytest.mark.parametrize("only", ["hat, Long Hair", ["Hat", "long-hair"], ("long_hair", "HAT"), "Hat,Hat,long hair,"])
def test_groups_are_marked_by_name(only: Any) -> None:
    mask = marked(only, FACES, 2, torch.device("cpu"))
    assert mask.tolist() == [[False, False, True, True, False]] * 2


def test_marks_that_make_no_sense_are_refused() -> None:
    device = torch.device("cpu")
    refused(lambda: marked("", FACES, 1, device), "no attribute was named")
    refused(lambda: marked([], FACES, 1, device), "no attribute was named")
    refused(lambda: marked("Hatt", FACES, 1, device), "'Hatt'", "did you mean 'Hat'?")
    refused(lambda: marked("Bag", CLOTHES, 1, device), "classes", "'Bag'")
