"""``gencaps reproduce`` and ``gencaps judge``: what they print, write and refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gencaps.reproduce import claims as claims_module
from gencaps.reproduce import judge as judge_module
from gencaps.reproduce.claims import book
from gencaps.reproduce.hand import celeba_pictures
from gencaps.reproduce.results import row, write_result
from tests.cli.helpers import ask, contents, refused
from tests.reproduce.helpers import FACTS, KEYS, cited, entry, small_book

JUDGED = "variational.judge.mnist"
CITED = next(claim.id for claim in book().claims.values() if claim.kind == "cited")


@pytest.fixture(autouse=True)
def no_faces() -> None:
    celeba_pictures.cache_clear()


@pytest.fixture
def results(place: Path) -> Path:
    folder = place / "results"
    folder.mkdir()
    return folder


def test_all_claims_are_listed_one_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    *lines, last = ask(capsys, "reproduce", "list").splitlines()
    assert [line.split()[0] for line in lines] == list(book().claims)
    assert last.startswith(f"{len(lines)} claims: ")
    assert len(lines) > 500
    assert any("needs data" in line for line in lines)


def test_some_claims_are_listed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(ask(capsys, "reproduce", "list", "variational.judge", "--json"))
    assert [one["claim"] for one in found] == ["variational.judge.mnist", "variational.judge.faces"]
    assert found[0]["state"] == "not run"
    assert found[0]["command"] == "gencaps reproduce run variational.judge.mnist"


def test_the_table_is_json_with_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(ask(capsys, "reproduce", "table", "--json"))
    assert len(found) > 500
    assert all(set(KEYS) <= set(one) for one in found)
    assert {one["ours"] for one in found} == {None}  # nothing was run in this folder
    assert {one["state"] for one in found} == {"not run", "needs data", "cited"}
    assert {one["paper"] for one in found} == {"variational", "capsule_gan", "probabilistic", "product_of_experts"}


def test_the_table_is_markdown_with_what_was_measured(capsys: pytest.CaptureFixture[str], results: Path) -> None:
    write_result(results, book().claims[JUDGED], [99.0, 99.2], FACTS, None)  # its target is 99.5
    said = ask(capsys, "reproduce", "table", JUDGED, "--results", results)
    assert "| `variational.judge.mnist` | accuracy, % |  | ≥ 99.5 | 99.1 ± 0.14 | **missed** |" in said
    assert "1 claim: 1 missed" in said
    assert not (results / "RESULTS.md").exists()


def test_the_table_is_written_with_all_claims(capsys: pytest.CaptureFixture[str], results: Path) -> None:
    ask(capsys, "reproduce", "table", "variational.judge", "--write", "--results", results)
    text = (results / "RESULTS.md").read_text()
    assert all(f"`{name}`" in text for name in book().claims)


def test_a_place_without_results_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "nowhere" in refused(capsys, "reproduce", "table", "--results", "nowhere")
    assert "nowhere" in refused(capsys, "reproduce", "list", "--results", "nowhere")


@pytest.mark.parametrize("what", ["list", "run", "table"])
def test_a_claim_that_is_not_there_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str], what: str) -> None:
    said = refused(capsys, "reproduce", what, "variational.judge.mnits")
    assert "'variational.judge.mnits'" in said
    assert "did you mean 'variational.judge.mnist'" in said


@pytest.mark.parametrize("what", ["list", "table"])
def test_results_of_another_schema_are_refused_by_name(
    capsys: pytest.CaptureFixture[str], results: Path, what: str
) -> None:
    path = results / f"{JUDGED}.json"
    old = row(book().claims[JUDGED], [99.0], FACTS)
    del old["ours"]
    path.write_text(json.dumps(old))
    said = refused(capsys, "reproduce", what, "--results", results)
    assert str(path) in said
    assert "'ours'" in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([JUDGED, "--seeds", "0"], ["--seeds", "0"]),
        ([JUDGED, "--seeds", "1001"], ["--seeds", "1001"]),
        ([JUDGED, "--seeds", "two"], ["--seeds", "two"]),
        ([CITED], [CITED, "cited"]),
        (["variational.celeba"], ["'variational.celeba."]),  # none of these can be run
        (["variational.rival.resnet-celeba-subset.average"], ["37,540"]),
        ([], ["CLAIM"]),
    ],
)
def test_what_cannot_be_run_is_refused_and_leaves_nothing(
    capsys: pytest.CaptureFixture[str], place: Path, words: list[str], says: list[str]
) -> None:
    said = refused(capsys, "reproduce", "run", *words)
    assert all(word in said for word in says)
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("smoke", [[], ["--smoke"]])
def test_a_claim_whose_system_is_not_built_is_refused(
    capsys: pytest.CaptureFixture[str], place: Path, smoke: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    new = '[runs.new]\nsystem = "no_such"\npreset = "x"\ndata = "digits"\nseeds = 1\n'
    known = small_book(new, entry("variational.new", runs=["new"]))
    monkeypatch.setattr(claims_module, "book", lambda: known)
    assert "the system no_such is not built yet" in refused(capsys, "reproduce", "run", "variational.new", *smoke)
    assert list(place.iterdir()) == []


def test_a_smoke_run_says_that_the_path_works_and_leaves_nothing(
    capsys: pytest.CaptureFixture[str], place: Path, tmp_path: Path
) -> None:
    said = ask(capsys, "reproduce", "run", "variational.mnist.error-recon", "--smoke", "--device", "cpu", "--quiet")
    assert said.startswith("variational.mnist.error-recon: ")
    assert "smoke, on small stand-in data: nothing was written" in said
    assert list(place.iterdir()) == []
    assert not (tmp_path / "cache" / "judges").exists()


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a small book in the place of the package's own."""
    known = small_book(
        entry("variational.a", target=0.0, published=97.0), entry("variational.b", target=101.0), cited("variational.c")
    )
    monkeypatch.setattr(claims_module, "book", lambda: known)
    return known


def test_a_run_writes_results_and_the_page(capsys: pytest.CaptureFixture[str], place: Path, few: Any) -> None:
    said = ask(
        capsys, "reproduce", "run", "variational.a", "variational.b", "--seeds", "1", "--device", "cpu", "--quiet",
        "--results", "out/results", "--runs", "out/runs",
    )  # fmt: skip
    first, second = said.splitlines()
    assert first.startswith("variational.a: ")
    assert first.endswith(" (published 97, to reach ≥ 0, met)")
    assert second.endswith(" (to reach ≥ 101, missed)")
    results = place / "out" / "results"
    assert sorted(path.name for path in results.iterdir()) == ["RESULTS.md", "variational.a.json", "variational.b.json"]
    found = json.loads((results / "variational.a.json").read_text())
    assert found["command"] == "gencaps reproduce run variational.a --seeds 1"
    assert f"{found['ours']['mean']:.4g} (" in first
    assert "3 claims: 1 met, 1 missed, 1 cited" in (results / "RESULTS.md").read_text()
    listed = json.loads(ask(capsys, "reproduce", "table", "--json", "--results", results))
    assert [one["state"] for one in listed] == ["met", "missed", "cited"]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trains judges for one epoch."""
    real = judge_module.judge_recipe
    monkeypatch.setattr(judge_module, "judge_recipe", lambda data, **options: real(data, smoke=True, **options))


@pytest.mark.usefixtures("quick")
def test_a_judge_is_trained_once_and_then_found(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, place: Path
) -> None:
    first = ask(capsys, "judge", "digits", "--device", "cpu").splitlines()
    folders = list((tmp_path / "cache" / "judges").glob("[!.]*"))
    assert len(folders) == 1
    assert first[-1] == f"judge:  {folders[0]}"
    assert any(line.startswith("the judge reads ") and "digits test pictures right" in line for line in first)
    before = {name: value for name, value in contents(folders[0]).items() if "tensorboard" not in name}
    again = json.loads(ask(capsys, "judge", "digits", "--device", "cpu", "--json"))
    assert {name: value for name, value in contents(folders[0]).items() if "tensorboard" not in name} == before
    assert again["path"] == str(folders[0])
    assert f"{100 * again['accuracy']:.2f} %" in " ".join(first)
    assert again["each"] == {"all classes": pytest.approx(again["accuracy"])}
    assert list(place.iterdir()) == []


@pytest.mark.usefixtures("quick")
def test_a_judge_of_attributes_lists_each(capsys: pytest.CaptureFixture[str]) -> None:
    said = ask(capsys, "judge", "faces:20", "--size", "32", "--device", "cpu")
    assert "worst attribute" in said
    assert "Eyeglasses" in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nonsense"], "'nonsense'"),
        (["digts"], "did you mean 'digits'"),
        (["faces:3"], "'faces:3'"),
        (["digits", "--size", "3"], "3"),
        (["digits", "--seed", "-1"], "-1"),
        (["celeba"], "mmlab.ie.cuhk.edu.hk"),
    ],
)
def test_a_judge_that_cannot_be_trained_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str], says: str
) -> None:
    assert says in refused(capsys, "judge", *words)
    assert not (tmp_path / "cache" / "judges").exists()
