"""The results in docs/results: each is of a claim, whole, and shown on the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gencaps.reproduce.claims import book
from gencaps.reproduce.results import read_result

RESULTS = Path(__file__).parents[2] / "docs" / "results"
FILES = [path for path in sorted(RESULTS.glob("*.json")) if "claim" in json.loads(path.read_text())]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_result_is_of_a_claim_and_on_the_page(path: Path) -> None:
    claim = book().claim(path.stem)
    found = read_result(RESULTS, claim)
    assert found is not None
    assert found["commit"] not in ("", "unknown")
    assert str(Path.home()) not in path.read_text()
    assert f"| `{claim.id}` |" in (RESULTS / "RESULTS.md").read_text()
    if claim.kind == "figure":
        assert (RESULTS / found["picture"]).stat().st_size < 500_000


def test_the_rivals_and_the_judges_were_measured_on_three_seeds() -> None:
    judged = ["variational.judge.mnist", "variational.judge.faces", "product_of_experts.judge.fashion-mnist"]
    rivals = ["variational.rival.capsnet.mnist-error", "variational.rival.resnet-celeba-subset.average"]
    for name in [*judged, "capsule_gan.judge.cifar10", *rivals, "probabilistic.table1.vae.rotated-0"]:
        found = read_result(RESULTS, book().claim(name))
        assert found is not None, name
        assert len(found["ours"]["values"]) >= 3, name
        assert "H200" in found["device"], name
