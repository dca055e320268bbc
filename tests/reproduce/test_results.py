"""What was measured: verdicts worked by hand, files that are refused, and the row that stands for a claim."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gencaps.reproduce.claims import Claim
from gencaps.reproduce.results import (
    Ours,
    judge,
    path_of,
    picture_of,
    read_result,
    rival_mean,
    row,
    rows,
    state_of,
    write_result,
)
from tests.helpers import refused
from tests.reproduce.helpers import FACTS, KEYS, cited, entry, one, small_book

RIVAL = {"against": "variational.other"}


@pytest.mark.parametrize(
    ("fields", "mean", "rival", "met"),
    [
        # up: at least the bar
        ({"target": 5.0}, 4.9, None, False),
        ({"target": 5.0}, 5.0, None, True),
        ({"target": 5.0}, 5.1, None, True),
        # down: at most
        ({"target": 5.0, "direction": "down"}, 4.9, None, True),
        ({"target": 5.0, "direction": "down"}, 5.0, None, True),
        ({"target": 5.0, "direction": "down"}, 5.1, None, False),
        # within, both ends in it
        ({"target": (4.0, 5.0), "direction": "within"}, 3.9, None, False),
        ({"target": (4.0, 5.0), "direction": "within"}, 4.0, None, True),
        ({"target": (4.0, 5.0), "direction": "within"}, 5.0, None, True),
        ({"target": (4.0, 5.0), "direction": "within"}, 5.1, None, False),
        # strict at equality
        ({"target": 5.0, "strict": True}, 5.0, None, False),
        ({"target": 5.0, "strict": True}, 5.001, None, True),
        ({"target": 5.0, "strict": True, "direction": "down"}, 5.0, None, False),
        ({"target": 5.0, "strict": True, "direction": "down"}, 4.999, None, True),
        # a rival
        (RIVAL, 5.0, 5.0, True),
        (RIVAL, 4.0, 5.0, False),
        ({**RIVAL, "direction": "down"}, 4.0, 5.0, True),
        ({**RIVAL, "direction": "down"}, 6.0, 5.0, False),
        ({**RIVAL, "strict": True}, 5.0, 5.0, False),
        # a target and a rival: both
        ({**RIVAL, "target": 4.0}, 4.5, 5.0, False),
        ({**RIVAL, "target": 6.0}, 5.5, 5.0, False),
        ({**RIVAL, "target": 4.0}, 5.0, 5.0, True),
        # the rival was not measured: no verdict, whatever the target says
        (RIVAL, 5.0, None, None),
        ({**RIVAL, "target": 9.0}, 5.0, None, None),
        # the published value is the bar where there is nothing else
        ({"published": 5.0}, 4.9, None, False),
        ({"published": 5.0}, 5.0, None, True),
        ({"published": 5.0, "direction": "down"}, 5.1, None, False),
        ({"published": 5.0, "target": 3.0}, 4.0, None, True),
        ({"published": 5.0, **RIVAL}, 4.0, 3.0, True),
        # nothing to compare with
        ({}, 5.0, None, None),
        ({"target": 5.0}, None, None, None),
        # 0 is a figure like any other
        ({"target": 0.0, "direction": "down"}, 0.1, None, False),
        (RIVAL, -1.0, 0.0, False),
    ],
)
def test_a_verdict_follows_the_claim(
    fields: dict[str, Any], mean: float | None, rival: float | None, met: bool | None
) -> None:
    assert judge(one(**fields), mean, rival) is met


def test_mean_and_deviation_over_seeds() -> None:
    """(1, 2, 4): mean 7/3, squares 16/9 + 1/9 + 25/9 = 42/9, over n - 1 = 2: 7/3, whose root is 1.5275."""
    ours = Ours((1.0, 2.0, 4.0))
    assert ours.mean == pytest.approx(7 / 3)
    assert ours.sd == pytest.approx((7 / 3) ** 0.5)
    assert ours.plain() == {"mean": ours.mean, "sd": ours.sd, "values": [1.0, 2.0, 4.0]}
    assert Ours((3.0,)).plain() == {"mean": 3.0, "sd": None, "values": [3.0]}
    assert Ours(()).plain() == {"mean": None, "sd": None, "values": []}


@pytest.mark.parametrize(
    ("fields", "ours", "met", "state"),
    [
        ({"kind": "cited"}, None, None, "cited"),
        ({}, None, None, "not run"),
        ({"target": 1.0}, Ours((1.0,)), True, "met"),
        ({"target": 1.0}, Ours((0.0,)), False, "missed"),
        ({}, Ours((1.0,)), None, "met"),  # what others are compared with has no bar of its own
        ({"kind": "figure"}, Ours(()), None, "met"),
        (RIVAL, Ours((1.0,)), None, "not run"),  # half of the comparison is missing
        (RIVAL, Ours((1.0,)), False, "missed"),
    ],
)
def test_states(fields: dict[str, Any], ours: Ours | None, met: bool | None, state: str) -> None:
    assert state_of(one(**fields), ours, met) == state


def write(folder: Path, claim: Claim, /, **changes: Any) -> Path:
    """Writes a good result with changes; a value of ... takes a key out."""
    values = {**row(claim, [1.0, 2.0], FACTS), **changes}
    path = path_of(folder, claim)
    path.write_text(json.dumps({k: v for k, v in values.items() if v is not ...}))
    return path


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    claim = one(published=1.0, target=1.5)
    path = write_result(tmp_path, claim, [1.0, 2.0, 4.0], FACTS, None)
    assert path == tmp_path / "variational.test.one.json"
    assert picture_of(tmp_path, claim) == tmp_path / "variational.test.one.png"
    found = read_result(tmp_path, claim)
    assert found == json.loads(path.read_text()) == row(claim, [1.0, 2.0, 4.0], FACTS)
    assert found is not None
    assert found["ours"]["mean"] == pytest.approx(7 / 3)
    assert (found["met"], found["state"]) == (True, "met")
    assert [p.name for p in tmp_path.glob("*variational*")] == [path.name]  # no half file is left


def test_a_file_that_is_not_there_is_no_result(tmp_path: Path) -> None:
    assert read_result(tmp_path, one()) is None
    assert read_result(tmp_path / "nowhere", one()) is None


@pytest.mark.parametrize("key", KEYS)
def test_a_result_that_lacks_a_key_is_of_another_schema(tmp_path: Path, key: str) -> None:
    path = write(tmp_path, one(), **{key: ...})
    refused(lambda: read_result(tmp_path, one()), str(path), f"'{key}'")


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"claim": "variational.test.two"}, "'variational.test.two'"),
        ({"kind": "figure"}, "'figure'"),
        ({"ours": None}, "values"),
        ({"ours": [1.0]}, "values"),
        ({"ours": {"mean": 1.0, "values": 1.0}}, "values"),
        ({"ours": {"mean": None, "values": []}}, "no values"),
        *(
            ({"ours": {"mean": 1.0, "sd": None, "values": [1.0, value]}}, "finite")
            for value in (float("nan"), float("inf"), -float("inf"), "1.0", True, None, [1.0], 10**400)
        ),
    ],
)
def test_a_result_that_makes_no_sense_is_refused(tmp_path: Path, changes: dict[str, Any], word: str) -> None:
    path = write(tmp_path, one(), **changes)
    refused(lambda: read_result(tmp_path, one()), str(path), word)


@pytest.mark.parametrize("text", ["", "{", "not json", "[]", "3", "null", "\udcff", "[" * 100_000])
def test_a_file_that_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    path = path_of(tmp_path, one())
    path.write_bytes(text.encode(errors="surrogateescape"))
    refused(lambda: read_result(tmp_path, one()), str(path))


def test_a_folder_in_the_place_of_a_result_is_refused(tmp_path: Path) -> None:
    path_of(tmp_path, one()).mkdir()
    refused(lambda: read_result(tmp_path, one()), str(path_of(tmp_path, one())))


def test_a_row_has_every_key_before_and_after_a_run() -> None:
    before, after = row(one(), None), row(one(target=(1.0, 2.0), direction="within"), [1.5], FACTS)
    assert set(KEYS) <= set(before)
    assert list(before) == list(after)
    assert before["ours"] is before["met"] is before["seeds"] is before["device"] is None
    assert before["command"] == "gencaps reproduce run variational.test.one"
    assert after["target"] == [1.0, 2.0]
    assert {key: after[key] for key in FACTS} == FACTS
    assert json.loads(json.dumps(after)) == after


def test_verdicts_follow_the_claims_as_they_stand_today(tmp_path: Path) -> None:
    known = small_book(entry("variational.a", target=5.0))
    (claim,) = known.claims.values()
    write(tmp_path, claim, met=True, state="met", target=1.0, about="an older text")  # its mean is 1.5
    (found,) = rows(known, [claim], tmp_path)
    assert (found["met"], found["state"], found["target"]) == (False, "missed", 5.0)
    assert found["about"] == "What variational.a says"
    assert found["ours"] == {"mean": 1.5, "sd": pytest.approx(0.5**0.5), "values": [1.0, 2.0]}
    assert {key: found[key] for key in FACTS} == FACTS


def test_all_of_a_row_but_what_a_run_filled_follows_the_claim(tmp_path: Path) -> None:
    known = small_book(entry("variational.a", published=5.0, published_sd=0.5))
    (claim,) = known.claims.values()
    write(tmp_path, claim, published=1.0, published_sd=9.0, data="older data", at="an older table")
    (found,) = rows(known, [claim], tmp_path)
    assert (found["published"], found["published_sd"]) == (5.0, 0.5)
    assert (found["data"], found["at"]) == ("digits", "our own")


def test_a_rival_is_looked_up(tmp_path: Path) -> None:
    known = small_book(
        entry("variational.a", against="variational.b", target=0.0), entry("variational.b"), cited("variational.c")
    )
    a, b, _ = claims = list(known.claims.values())
    write_result(tmp_path, a, [2.0], FACTS, None)
    assert [found["state"] for found in rows(known, claims, tmp_path)] == ["not run", "not run", "cited"]
    assert rival_mean(known, a, tmp_path) is None
    write_result(tmp_path, b, [1.0, 4.0], FACTS, None)  # mean 2.5
    assert rival_mean(known, a, tmp_path) == 2.5
    assert rival_mean(known, b, tmp_path) is None
    assert [found["state"] for found in rows(known, claims, tmp_path)] == ["missed", "met", "cited"]
    write_result(tmp_path, b, [1.0, 2.0], FACTS, None)  # mean 1.5
    assert rows(known, [a], tmp_path)[0]["met"] is True


def test_a_rival_is_as_good_as_its_values_say(tmp_path: Path) -> None:
    """The stored mean is for readers: verdicts are made from the values of both sides."""
    known = small_book(entry("variational.a", against="variational.b"), entry("variational.b"))
    a, b = known.claims.values()
    write_result(tmp_path, a, [2.0], FACTS, None)
    write(tmp_path, b, ours={"values": [3.0]})
    assert rival_mean(known, a, tmp_path) == 3.0
    assert rows(known, [a], tmp_path)[0]["met"] is False


def test_data_is_needed_only_where_there_is_no_result(tmp_path: Path) -> None:
    known = small_book(entry("variational.a"), entry("variational.b"), entry("variational.c"))
    claims = list(known.claims.values())
    write_result(tmp_path, claims[0], [2.0], FACTS, None)
    found = rows(known, claims, tmp_path, {"variational.a": "all of it", "variational.b": "some of it"})
    assert [one["state"] for one in found] == ["met", "needs data", "not run"]
    assert found[1]["needs"] == "some of it"
    assert "needs" not in found[0]
    assert found[1]["ours"] is None
