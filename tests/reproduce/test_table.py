"""The table of claims: numbers as people read them, and a page that leaves no claim out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gencaps.reproduce.claims import ROOMS, book
from gencaps.reproduce.results import row, write_result
from gencaps.reproduce.table import TITLES, bar, markdown, number, ours, page, summary, table, unsteady, write_page
from tests.reproduce.helpers import FACTS, cited, entry, one, small_book


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (0.0, "0"), (5.0, "5"), (0.25, "0.25"), (99.5, "99.5"), (91.534, "91.534"), (-0.5, "-0.5"),
     (37540.0, "37540"), (162770.0, "162770"), (-250.0, "-250"), (0.000123, "0.000123"), (100.0, "100")],
)  # fmt: skip
def test_numbers_have_the_digits_that_matter(value: float | None, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"target": 99.5}, "≥ 99.5"),
        ({"target": 0.4, "direction": "down"}, "≤ 0.4"),
        ({"target": (1.0, 2.5), "direction": "within"}, "1 to 2.5"),
        ({"against": "variational.b"}, "≥ `variational.b`"),
        ({"target": 1.0, "against": "variational.b", "direction": "down"}, "≤ 1, ≤ `variational.b`"),
        ({"published": 5.0}, ""),
        ({"kind": "figure", "direction": None}, ""),
    ],
)
def test_a_bar_says_which_side_of_it_is_good(fields: dict[str, Any], text: str) -> None:
    assert bar(row(one(**fields), None)) == text


def test_ours_is_a_mean_with_its_deviation_or_a_picture() -> None:
    assert ours(row(one(), None)) == ""
    assert ours(row(one(), [99.5])) == "99.5"
    assert ours(row(one(), [1.0, 2.0, 4.0])) == "2.333 ± 1.5"
    assert ours(row(one(), [3.0, 3.0])) == "3 ± 0"
    assert ours(row(one(kind="figure"), [])) == "picture"


def test_a_table_has_one_row_a_claim() -> None:
    listed = [
        row(one(id="variational.a", published=5.0, published_sd=0.25, target=4.0), [1.0, 2.0, 4.0], FACTS),
        row(one(id="variational.b"), None),
    ]
    head, rule, first, second = markdown(listed).splitlines()
    assert head == "| claim | metric | published | target | ours | state |"
    assert rule.count("|") == head.count("|")
    assert first == "| `variational.a` | accuracy, % | 5 ± 0.25 | ≥ 4 | 2.333 ± 1.5 | **missed** |"
    assert second == "| `variational.b` | accuracy, % |  |  |  | not run |"


def test_no_cell_of_the_book_breaks_the_table(tmp_path: Path) -> None:
    claims = list(book().claims.values())
    lines = markdown(table(book(), claims, tmp_path)).splitlines()
    assert len(lines) == len(claims) + 2
    assert {line.count("|") for line in lines} == {7}
    assert [re.findall(r"`([^`]*)`", line)[0] for line in lines[2:]] == [claim.id for claim in claims]


def test_states_are_counted() -> None:
    states = ["met", "met", "missed", "not run", "cited", "cited", "cited"]
    text = summary([{"state": state} for state in states])
    assert text == "7 claims: 2 met, 1 missed, 1 not run, 3 cited"
    assert summary([]).startswith("0 claims")


def test_the_page_has_every_claim_once_under_its_paper(tmp_path: Path) -> None:
    claims = list(book().claims.values())
    text = page(table(book(), claims, tmp_path), tmp_path)
    rows = re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)
    assert sorted(rows) == sorted(claim.id for claim in claims)
    parts = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    for paper, part in zip(ROOMS, parts, strict=True):
        assert part.startswith(TITLES[paper])
        assert {name.split(".")[0] for name in re.findall(r"^\| `([^`]+)` \|", part, re.MULTILINE)} == {paper}
    assert text.count("<details>") == text.count("</details>")
    assert f"{len(claims)} claims: " in text
    assert text.endswith("\n")


def test_the_page_shows_what_was_measured_first_with_notes_and_pictures(tmp_path: Path) -> None:
    known = small_book(
        entry("variational.waits"),
        entry("variational.done", target=5.0),
        entry("variational.shown", kind="figure", measure="figure:samples", direction=None),
        entry("variational.hidden", kind="figure", measure="figure:samples", direction=None, data="celeba"),
        cited("variational.cited"),
    )
    claims = known.claims
    write_result(tmp_path, claims["variational.done"], [1.0, 2.0], {**FACTS, "notes": ["the judge reads it"]}, None)
    for name in ("shown", "hidden"):
        facts = {**FACTS, "picture": f"variational.{name}.png"}
        write_result(tmp_path, claims[f"variational.{name}"], [], facts, None)
    (tmp_path / "variational.shown.png").write_bytes(b"a picture")
    text = write_page(known, tmp_path).read_text()
    assert text == (tmp_path / "RESULTS.md").read_text()
    assert text.index("`variational.done`") < text.index("`variational.waits`")
    assert "| 1.5 ± 0.71 | **missed** |" in text
    assert "- the judge reads it\n" in text
    assert re.findall(r"!\[(.*)\]\((.*)\)", text) == [("What variational.shown says", "variational.shown.png")]
    assert "5 claims: 2 met, 1 missed, 1 not run, 1 cited." in text


def test_what_needs_data_says_so_in_the_table(tmp_path: Path) -> None:
    claim = book().claims["variational.celeba.recon.average"]
    (found,) = table(book(), [claim], tmp_path)
    assert found["state"] == "needs data"
    assert found["needs"] == claim.needs
    assert markdown([found]).endswith("| needs data |")


@pytest.mark.parametrize(
    ("values", "told"),
    [([1.0, 1.9], False), ([1.0, 2.1], True), ([-1.05, -0.96], False), ([-1.0, -2.1], True), ([0.4, -0.5], True)],
)
def test_seeds_that_differ_by_more_than_twice_or_in_sign_are_told(values: list[float], told: bool) -> None:
    assert (unsteady({"claim": "a.b", "ours": {"values": values}}) is not None) == told
