"""Running claims: refused before anything is trained, or measured and written down."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from PIL import Image

from gencaps.engine.recipe import make_recipe
from gencaps.engine.run import Run
from gencaps.reproduce import run as run_module
from gencaps.reproduce.claims import Book, book
from gencaps.reproduce.measures import FIGURES, MEASURES
from gencaps.reproduce.run import Bench, Outcome, pick, run_claims, runnable
from gencaps.reproduce.subject import Measured, Subject
from tests.helpers import refused
from tests.reproduce.helpers import cited, entry, one, small_book


def test_a_quantity_is_picked_by_name() -> None:
    claim = one(measure="classification:accuracy")
    assert pick(Measured({"accuracy": 3, "error": 4}), "error", claim) == 4.0
    refused(lambda: pick(Measured({"accuracy": 3.0}), "acuracy", claim), claim.id, "did you mean 'accuracy'")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_number_is_not_reported(value: float) -> None:
    refused(lambda: pick(Measured({"accuracy": value}), "accuracy", one()), "variational.test.one", str(value))


FACES = '[runs.faces]\nsystem = "resnet"\npreset = "celeba"\ndata = "celeba"\nseeds = 1\n'
NEW = '[runs.new]\nsystem = "no_such"\npreset = "x"\ndata = "digits"\nseeds = 1\n'


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (cited("variational.bad"), ["cited"]),
        (NEW + entry("variational.bad", runs=["new"]), ["the system no_such is not built yet"]),
        (
            FACES + entry("variational.bad", runs=["faces"], pictures=5, needs="five faces"),
            ["needs data", "five faces"],
        ),
        (entry("variational.bad", measure="clasification:x"), ["'clasification'", "did you mean 'classification'"]),
        (entry("variational.bad", measure="figure:sample", kind="figure"), ["'sample'", "did you mean 'samples'"]),
    ],
)
def test_a_claim_that_cannot_be_run_is_refused_before_anything_is_trained(
    tmp_path: Path, bad: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "ensure_trained", None)  # any training would fail
    known = small_book(entry("variational.good"), bad)
    bench = Bench(known, tmp_path / "runs", tmp_path / "results", tmp_path / "judges", "cpu", quiet=True)
    refused(lambda: list(run_claims(list(known.claims.values()), bench)), "'variational.bad'", *words)
    assert not (tmp_path / "runs").exists()
    assert not (tmp_path / "results").exists()


def test_a_smoke_run_needs_no_data(tmp_path: Path) -> None:
    claim = book().claims["variational.rival.resnet-celeba-subset.average"]
    for smoke in (True, False):
        bench = Bench(book(), tmp_path, tmp_path / "results", device="cpu", smoke=smoke)
        if smoke:
            run_module.refuse(claim, bench)
        else:
            refused(lambda bench=bench: run_module.refuse(claim, bench), claim.id, "37,540")


class Done(NamedTuple):
    """A small book that was run for real."""

    book: Book
    bench: Bench
    outcomes: dict[str, Outcome]
    said: list[str]
    trained: list[tuple[str, int]]


def picture(subject: Subject) -> Image.Image:
    assert len(subject.trained) == 1
    return Image.new("L", (4, 4), 7)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    known = small_book(
        entry("variational.rival", measure="classification:balanced_percent"),
        entry("variational.easy", target=0.0, published=99.0),
        entry("variational.hard", measure="classification:error_percent", direction="down", target=-1.0),
        entry("variational.shown", kind="figure", direction=None, measure="figure:dot"),
        entry("variational.hidden", kind="figure", direction=None, measure="figure:dot", data="celeba subset"),
        entry("variational.timed", measure="training:seconds"),
    )
    folder = tmp_path_factory.mktemp("done")
    bench = Bench(known, folder / "runs", folder / "deep" / "results", folder / "judges", "cpu", quiet=True)
    said: list[str] = []
    trained: list[tuple[str, int]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FIGURES, "dot", picture)
        patch.setattr(torch.cuda, "is_available", lambda: False)
        real = Bench.train

        def counted(self: Bench, run: Any, seed: int) -> Any:
            trained.append((run.name, seed))
            return real(self, run, seed)

        patch.setattr(Bench, "train", counted)
        outcomes = {
            outcome.claim.id: outcome for outcome in run_claims(list(known.claims.values()), bench, say=said.append)
        }
    return Done(known, bench, outcomes, said, trained)


def stored(done: Done, name: str) -> dict[str, Any]:
    return json.loads((done.bench.results / f"variational.{name}.json").read_text())


def test_every_claim_is_written_with_a_value_a_seed(done: Done) -> None:
    assert len(done.outcomes) == 6
    for name, outcome in done.outcomes.items():
        assert outcome.written == done.bench.results / f"{name}.json"
        assert stored(done, name.removeprefix("variational.")) == outcome.row
    values = stored(done, "easy")["ours"]["values"]
    assert len(values) == 2
    assert values[0] != values[1]  # two seeds are two models
    mean = sum(values) / 2
    assert stored(done, "easy")["ours"]["mean"] == pytest.approx(mean)
    assert stored(done, "easy")["ours"]["sd"] == pytest.approx(abs(values[0] - values[1]) / 2**0.5)


def test_claims_of_the_same_models_share_a_measurement(done: Done) -> None:
    right, wrong = (stored(done, name)["ours"]["values"] for name in ("easy", "hard"))
    assert [a + b for a, b in zip(right, wrong, strict=True)] == pytest.approx([100, 100])
    assert max(right) > 50  # two epochs tell most digits
    # two seeds for the three of one measure and for the time, one for the figures
    assert sorted(done.trained) == sorted([("tiny", 0), ("tiny", 1)] * 2 + [("tiny", 0)])
    assert len([line for line in done.said if not line.startswith("measuring")]) == 5
    assert sorted(path.name for path in (done.bench.runs / "tiny").glob("[!.]*")) == ["seed-0", "seed-1"]


def test_verdicts_are_those_of_the_claims(done: Done) -> None:
    found = {name: (stored(done, name)["met"], stored(done, name)["state"]) for name in ("rival", "easy", "hard")}
    assert found == {"rival": (None, "met"), "easy": (True, "met"), "hard": (False, "missed")}


def test_a_result_says_where_its_models_were_trained_and_where_it_was_measured(tmp_path: Path) -> None:
    bench = Bench(book(), device="cpu")
    runs = []
    for seed, device in enumerate(["NVIDIA X", "NVIDIA Y"]):
        folder = tmp_path / str(seed)
        folder.mkdir()
        made = {"device": device, "torch": "1.0", "commit": "abc"}
        (folder / "facts.json").write_text(json.dumps({"environment": made}))
        runs.append(Run(folder, make_recipe("variational")))
    found = run_module._machine(bench, runs)
    assert (found["device"], found["torch"], found["commit"]) == ("NVIDIA X", "1.0", "abc")
    here, there = sorted(found["notes"])
    assert here.startswith("measured on CPU")
    assert there == "some of the models were trained on NVIDIA Y with torch 1.0, commit abc"


def test_a_result_says_how_it_came_about(done: Done) -> None:
    for name in ("easy", "timed"):
        row = stored(done, name)
        assert row["seeds"] == 2
        assert row["device"].startswith("CPU")
        assert row["torch"] == torch.__version__
        assert row["commit"]
        assert row["command"] == f"gencaps reproduce run variational.{name}"
        assert row["seconds"] > 0
        assert row["date"].endswith("UTC")
        assert "notes" not in row
    assert stored(done, "easy")["seconds"] >= sum(stored(done, "timed")["ours"]["values"]) - 0.1


def test_a_figure_is_written_beside_its_result(done: Done) -> None:
    row = stored(done, "shown")
    assert row["picture"] == "variational.shown.png"
    assert row["seeds"] == 1
    assert row["ours"] == {"mean": None, "sd": None, "values": []}
    assert row["state"] == "met"
    assert Image.open(done.bench.results / "variational.shown.png").getpixel((0, 0)) == 7


def test_faces_of_people_are_not_shown_in_the_documents(done: Done) -> None:
    assert stored(done, "hidden")["state"] == "met"
    assert not (done.bench.results / "variational.hidden.png").exists()
    assert (done.bench.runs / "variational.hidden.png").exists()


def test_a_second_run_trains_nothing_and_says_the_seeds_asked_for(done: Done, tmp_path: Path) -> None:
    metrics = done.bench.runs / "tiny" / "seed-0" / "metrics.jsonl"
    before = metrics.stat().st_mtime_ns
    old = stored(done, "easy")
    elsewhere = replace(done.bench, results=tmp_path)
    (outcome,) = run_claims([done.book.claims["variational.easy"]], elsewhere, seeds=1, say=lambda text: None)
    assert metrics.stat().st_mtime_ns == before
    assert outcome.row["ours"]["values"] == pytest.approx(old["ours"]["values"][:1])
    assert outcome.row["ours"]["sd"] is None
    assert outcome.row["seeds"] == 1
    assert outcome.row["command"] == "gencaps reproduce run variational.easy --seeds 1"


def test_what_was_measured_is_not_measured_again_and_gives_the_same_result(
    done: Done, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A measurement that was stopped after a seed goes on with the next."""
    monkeypatch.setenv("GENCAPS_COMMIT", "abc")
    calls: list[int] = []
    real = MEASURES["classification"]

    def counted(subject: Subject) -> Measured:
        if len(calls) == 1 and not (tmp_path / "later").exists():
            raise KeyboardInterrupt
        calls.append(subject.seed)
        return real(subject)

    monkeypatch.setitem(MEASURES, "classification", counted)
    bench, claim = replace(done.bench, results=tmp_path / "results"), done.bench.book.claims["variational.easy"]
    with pytest.raises(KeyboardInterrupt):
        list(run_claims([claim], bench, say=lambda _: None))
    (tmp_path / "later").touch()
    for _ in range(2):
        (outcome,) = run_claims([claim], bench, say=lambda _: None)
        assert outcome.row["ours"] == stored(done, "easy")["ours"]
    assert calls == [0, 1]


def test_fewer_seeds_never_replace_more(done: Done) -> None:
    before = stored(done, "easy")
    claims = [done.book.claims["variational.easy"]]
    refused(lambda: list(run_claims(claims, done.bench, seeds=1)), "variational.easy.json", "2 seeds", "--results")
    assert stored(done, "easy") == before


def test_a_claim_run_before_its_rival_gets_its_verdict_when_the_rival_is_run(done: Done, tmp_path: Path) -> None:
    known = small_book(
        entry("variational.rival", measure="classification:error_percent", direction="down"),
        entry("variational.ours", direction="up", against="variational.rival"),
    )
    bench = replace(done.bench, book=known, results=tmp_path)
    quiet = {"seeds": 1, "say": lambda text: None}
    (first,) = run_claims([known.claims["variational.ours"]], bench, **quiet)
    assert (first.row["met"], first.row["state"]) == (None, "not run")
    (rival,) = run_claims([known.claims["variational.rival"]], bench, **quiet)
    now = json.loads((tmp_path / "variational.ours.json").read_text())
    met = first.row["ours"]["mean"] >= rival.row["ours"]["mean"]
    assert (now["met"], now["state"]) == (met, "met" if met else "missed")
    assert {key for key in now if now[key] != first.row.get(key)} == {"met", "state"}


def test_of_a_group_what_can_be_run_is_told_from_what_cannot(tmp_path: Path) -> None:
    known = small_book(entry("variational.good"), cited("variational.bad"))
    able, reasons = runnable(list(known.claims.values()), Bench(known, tmp_path, tmp_path, device="cpu"))
    assert [claim.id for claim in able] == ["variational.good"]
    assert len(reasons) == 1
    assert "'variational.bad' is cited" in reasons[0]


def test_a_figure_can_be_the_first_result_of_all(done: Done, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FIGURES, "dot", picture)
    bench = Bench(done.book, done.bench.runs, tmp_path / "new" / "results", device="cpu", quiet=True)
    list(run_claims([done.book.claims["variational.shown"]], bench, say=lambda text: None))
    assert (bench.results / "variational.shown.png").exists()


def test_models_that_judge_lie_among_the_judges(tmp_path: Path, bench: Bench) -> None:
    """So that a judge whose accuracy is claimed need not be trained again to judge."""
    run = book().runs["judge-mnist"]
    trained = bench.train(run, 0)
    assert bench.judges is not None
    assert trained.run.path.parent == bench.judges
    assert bench.judge(trained.run).path == trained.run.path
    assert bench.judge(trained.run) is bench.judge(trained.run)
