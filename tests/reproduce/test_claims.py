"""The claims that come with the package, and what a claim file may not say."""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby
from typing import Any

import pytest

from gencaps.errors import GencapsError
from gencaps.reproduce.claims import ROOMS, Claim, book, expand, read_book
from gencaps.reproduce.judge import judge_recipe
from gencaps.reproduce.measures import FIGURES, MEASURES
from gencaps.reproduce.training import recipe_of
from tests.helpers import refused
from tests.reproduce.helpers import RUN, cited, entry, small_book

CLAIMS = book().claims
OWN_ROWS = ("recon", "no-recon")
TABLE_1 = [claim for claim in CLAIMS.values() if claim.id.startswith("variational.celeba.") and "Table 1" in claim.at]


def test_the_book_has_every_number_of_four_papers() -> None:
    assert len(CLAIMS) >= 500
    assert {claim.paper for claim in CLAIMS.values()} == set(ROOMS)
    assert Counter(claim.kind for claim in CLAIMS.values()).keys() == {"value", "figure", "cited"}
    assert all(name == claim.id for name, claim in CLAIMS.items())
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,120}", name) for name in CLAIMS)
    assert len({name.lower() for name in CLAIMS}) == len(CLAIMS)  # as file names on any system


def test_table_1_of_celeba_is_whole() -> None:
    assert len(TABLE_1) == 246  # 6 rows of 40 attributes and their mean
    assert {claim.id.count(".") for claim in TABLE_1} == {3}
    assert Counter(claim.kind for claim in TABLE_1) == {"value": 82, "cited": 164}
    assert {claim.id.split(".")[2] for claim in TABLE_1 if claim.kind == "value"} == set(OWN_ROWS)


def test_each_row_of_table_1_has_the_mean_that_is_printed() -> None:
    rows = groupby(TABLE_1, lambda claim: claim.id.split(".")[2])
    seen = 0
    for name, row in rows:
        values = {claim.id.split(".")[3]: claim.published for claim in row}
        average = values.pop("average")
        assert len(values) == 40
        assert None not in values.values()
        assert average is not None
        assert sum(v for v in values.values() if v is not None) / 40 == pytest.approx(average, abs=0.006), name
        seen += 1
    assert seen == 6


def test_both_figures_of_a_contradiction_stand() -> None:
    """The text says 91.36 and the table 91.53 for the same mean."""
    means = {claim.published for claim in CLAIMS.values() if "celeba" in claim.id and claim.kind == "value"}
    assert {91.36, 91.53} <= means
    assert CLAIMS["variational.celeba.recon.average"].published == 91.53


def test_claims_whose_system_is_there_can_be_measured() -> None:
    ready = [claim for claim in CLAIMS.values() if claim.kind != "cited" and book().missing(claim) is None]
    assert len(ready) >= 30
    for claim in ready:
        if claim.plot is not None:
            continue  # the book reads what it draws
        assert claim.measure is not None
        name, _, quantity = claim.measure.partition(":")
        assert (quantity in FIGURES) if claim.kind == "figure" else (name in MEASURES), claim.id
        assert claim.kind == "figure" or claim.direction in ("up", "down", "within"), claim.id


def test_every_bar_can_be_compared_with() -> None:
    for claim in CLAIMS.values():
        if claim.against is not None:
            rival = CLAIMS[claim.against]
            assert rival.kind == "value", claim.id  # one that is cited is never measured
            assert rival.id != claim.id
        if claim.kind == "cited":
            assert claim.published is not None, claim.id
            assert claim.command is None
        else:
            assert claim.command == f"gencaps reproduce run {claim.id}"
        if isinstance(claim.target, tuple):
            low, high = claim.target
            assert low < high


def test_bars_of_products_of_experts_are_measured_on_the_preset_that_is_to_reach_them() -> None:
    ours = [c for c in book().claims.values() if c.paper == "product_of_experts" and (c.target or c.against)]
    ours = [c for c in ours if ".judge." not in c.id]
    presets = {(c.data, book().runs[run].preset) for c in ours for run in c.runs}
    assert presets == {("mnist", "best"), ("fashion_mnist", "best"), ("digits", "small")}


def test_numbers_are_of_celeba_and_of_its_subset_apart() -> None:
    """Each row of our own has its counterpart on the subset."""
    whole = CLAIMS["variational.celeba.recon.average"]
    assert whole.pictures == 162_770
    assert whole.needs is not None
    subset = [claim for claim in CLAIMS.values() if claim.data == "celeba subset" and claim.kind == "value"]
    assert {claim.pictures for claim in subset} == {37_540}


@pytest.mark.parametrize("name", [run.name for run in book().runs.values() if run.judge])
def test_a_judge_whose_accuracy_is_claimed_is_the_one_that_judges(name: str) -> None:
    run = book().runs[name]
    recipe = recipe_of(run, 0)
    assert recipe.to_yaml() == judge_recipe(run.data, size=recipe.train.size).to_yaml()


def test_a_table_is_dealt_out_over_its_columns() -> None:
    table = {
        "id": "variational.t.{row}.{column}",
        "at": "row {label}, column {column_label}",
        "kind": "cited",
        "columns": ["a", "b"],
        "column_labels": ["A", "B"],
        "rows": {
            "x": {"label": "Ex", "published": [1.0, 2.0]},
            "y": {"published": [3.0, 4.0], "kind": "value", "measure": ["m:p", "m:q"], "runs": ["r"]},
        },
    }
    assert list(expand(table)) == [
        {"id": "variational.t.x.a", "at": "row Ex, column A", "kind": "cited", "published": 1.0},
        {"id": "variational.t.x.b", "at": "row Ex, column B", "kind": "cited", "published": 2.0},
        {
            "id": "variational.t.y.a", "at": "row y, column A", "kind": "value", "published": 3.0,
            "measure": "m:p", "runs": ["r"],
        },
        {
            "id": "variational.t.y.b", "at": "row y, column B", "kind": "value", "published": 4.0,
            "measure": "m:q", "runs": ["r"],
        },
    ]  # fmt: skip


def test_whole_numbers_are_numbers() -> None:
    """TOML writes 79 where it means 79.0."""
    found = small_book(entry("variational.a", published=79, published_sd=1, target=80)).claims["variational.a"]
    assert (found.published, found.published_sd, found.target) == (79.0, 1.0, 80.0)
    assert isinstance(found.published, float)


def test_a_claim_has_the_fields_that_its_entry_says() -> None:
    found = small_book(entry("variational.a", target=[1, 2], direction="within"), cited("capsule_gan.b")).claims
    first = found["variational.a"]
    assert isinstance(first, Claim)
    assert (first.target, first.runs, first.paper) == ((1.0, 2.0), ("tiny",), "variational")
    assert found["capsule_gan.b"].paper == "capsule_gan"


TABLE = """
[[tables]]
id = "variational.t.{row}.{column}"
at = "T"
about = "T"
kind = "cited"
data = "x"
metric = "x"
columns = ["a", "b"]
[tables.rows.short]
published = [1.0]
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[claims]\n", ["small.toml", "not valid TOML"]),
        (entry("variational.a", publshed=1.0), ["small.toml", "'variational.a'", "'publshed'", "mean 'published'"]),
        (entry("variational.a") + entry("variational.a"), ["small.toml", "'variational.a'", "twice"]),
        (entry("variational.a", metric=None), ["small.toml", "'variational.a'", "metric"]),
        ('[runs.other]\nsystm = "gan"\n', ["small.toml", "'other'", "'systm'", "did you mean 'system'"]),
        ('[runs.other]\nsystem = "gan"\n', ["small.toml", "'other'", "preset"]),
        (TABLE, ["small.toml", "'short'", "1 of 'published' to 2 columns"]),
        (entry("variational.a", against="variational.c") + entry("variational.b"),
         ["'variational.a'", "'variational.c'", "did you mean 'variational.b'"]),
        (entry("variational.a", runs=["tinny"]), ["'variational.a'", "'tinny'", "did you mean 'tiny'"]),
        (entry("variational.a", runs=None), ["'variational.a'", "names no run"]),
        (entry("variational.a", measure="classification"), ["'variational.a'", "MEASURE:QUANTITY"]),
        (entry("variational.a", target=[1, 2]), ["'variational.a'", "'within'"]),
        (entry("variational.a", target=1.0, direction="within"), ["'variational.a'", "'within'"]),
        (entry("variational.a", direction=None), ["'variational.a'", "no direction"]),
        (cited("variational.a", runs=["tiny"]), ["'variational.a'", "cited"]),
        (cited("variational.a", measure="x:y"), ["'variational.a'", "cited"]),
        (entry("varational.a"), ["'varational.a'", "variational, capsule_gan, probabilistic, product_of_experts"]),
        (entry("variational.a/b"), ["'variational.a/b'", "odd letters"]),
        (entry("variational.A"), ["'variational.A'", "odd letters"]),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_claim_file_is_named(text: str, words: list[str]) -> None:
    refused(lambda: read_book({"small.toml": RUN + text}), *words)


@pytest.mark.parametrize("field", ["kind", "direction"])
def test_a_word_that_is_none_of_those_known_is_refused(field: str) -> None:
    with pytest.raises(GencapsError, match=r"'variational\.a'"):
        small_book(entry("variational.a", **{field: "sideways"}))


def test_names_are_unique_over_all_files() -> None:
    both: dict[str, str] = {"a.toml": RUN + entry("variational.a"), "b.toml": entry("variational.a")}
    refused(lambda: read_book(both), "b.toml", "'variational.a'", "twice")
    refused(lambda: read_book({"a.toml": RUN, "b.toml": RUN}), "b.toml", "'tiny'", "twice")


def found(*patterns: str) -> list[str]:
    known = small_book(*(entry(f"variational.{name}") for name in ("one.a", "one.b", "onely", "two.a")))
    return [claim.id.removeprefix("variational.") for claim in known.matching(patterns)]


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["variational.one.b"], ["one.b"]),
        (["variational.one"], ["one.a", "one.b"]),  # and not onely
        (["*.a"], ["one.a", "two.a"]),
        (["variational.two", "*.a"], ["one.a", "two.a"]),  # each once, in the book's order
        (["variational"], ["one.a", "one.b", "onely", "two.a"]),
    ],
)
def test_claims_are_found_by_id_beginning_and_pattern(patterns: list[str], names: list[str]) -> None:
    assert found(*patterns) == names


def test_a_claim_that_is_not_there_is_refused_with_the_nearest() -> None:
    refused(lambda: found("variational.one.c"), "'variational.one.c'", "did you mean", "variational.one.")
    known: Any = small_book(entry("variational.one"))
    refused(lambda: known.claim("variational.onee"), "did you mean 'variational.one'")


def test_what_a_claim_waits_for_is_said() -> None:
    runs = '[runs.new]\nsystem = "no_such"\npreset = "x"\ndata = "digits"\nseeds = 1\n'
    runs += '[runs.newer]\nsystem = "resnet"\npreset = "huge"\ndata = "digits"\nseeds = 1\n'
    known = small_book(
        runs,
        entry("variational.a"),
        entry("variational.b", runs=["tiny", "new"]),
        entry("variational.c", runs=["newer"]),
    )
    said = [known.missing(claim) for claim in known.claims.values()]
    assert said == [None, "the system no_such is not built yet", "resnet has no preset 'huge' yet"]
