"""The path of every claim whose system is built, tried small: what ``--smoke`` does."""

from __future__ import annotations

import math

import pytest

from gencaps.reproduce.claims import Claim, book
from gencaps.reproduce.measures import FIGURES, MEASURES
from gencaps.reproduce.run import Bench, run_claims

Key = tuple[tuple[str, ...], str, str]


def groups() -> dict[Key, list[Claim]]:
    """Sorts the claims that can be run by models, measure and kind."""
    found: dict[Key, list[Claim]] = {}
    for claim in book().claims.values():
        if claim.measure is None or book().missing(claim) is not None:
            continue
        name, _, quantity = claim.measure.partition(":")
        if quantity in FIGURES if claim.kind == "figure" else name in MEASURES:
            found.setdefault((claim.runs, name, claim.kind), []).append(claim)
    return found


GROUPS = groups()


def test_every_system_that_is_built_is_tried() -> None:
    tried = {book().runs[name].system for runs, _, _ in GROUPS for name in runs}
    assert {
        "variational",
        "capsule_gan",
        "probabilistic",
        "product_of_experts",
        "capsnet",
        "gan",
        "vae",
        "resnet",
    } <= tried
    assert {name for _, name, kind in GROUPS if kind == "value"} >= {
        "classification", "attributes", "probe", "generation", "semi_supervised",
    }  # fmt: skip


@pytest.mark.parametrize("key", GROUPS, ids=lambda key: f"{'+'.join(key[0])}-{key[1]}")
def test_the_path_of_every_claim_works(key: Key, bench: Bench) -> None:
    if key[1] == "generation":
        pytest.importorskip("efficientnet_lite_pytorch", reason="KID-EffNetLite0 needs gencaps[metrics]")
    claims, said = GROUPS[key], []
    outcomes = list(run_claims(claims, bench, say=said.append))
    assert [outcome.claim for outcome in outcomes] == claims
    assert len([line for line in said if not line.startswith("measuring")]) == 1  # one seed
    for claim, row, written in outcomes:
        assert written is None
        values = row["ours"]["values"]
        assert len(values) == (0 if claim.kind == "figure" else 1)
        assert all(math.isfinite(value) for value in values)
        assert "picture" not in row
    assert not bench.results.exists()
    judged = key[1] in ("generation", "rebuilt", "edits", "styles", "samples_restricted")
    assert all(("the judge reads" in " ".join(row.get("notes", ()))) == judged for _, row, _ in outcomes)
