"""Training what claims need in several processes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from gencaps.cli import main
from gencaps.reproduce import jobs
from gencaps.reproduce.claims import book
from gencaps.reproduce.jobs import Job, Started, do_all, jobs_of, measurings_of
from gencaps.reproduce.run import Bench
from tests.helpers import refused


def test_every_seed_of_every_run_is_listed_once_and_first_seeds_first() -> None:
    known = book()
    claims = known.matching(["capsule_gan.mnist.best.gam-test", "capsule_gan.mnist.figure-1a"])
    listed = jobs_of(claims, known)
    assert [job.seed for job in listed] == [0, 0, 1, 1, 2, 2]
    assert {job.run for job in listed} == {"capsule-gan-mnist-best", "gan-mnist"}
    assert jobs_of(claims[:1], known, seeds=1) == [job for job in listed if job.seed == 0]
    assert jobs_of(known.matching(["capsule_gan.mnist.figure-1a"]), known) == [Job("gan-mnist", 0)]


def test_a_job_is_read_as_it_is_written() -> None:
    assert Job.read("gan-mnist:12", book()) == Job("gan-mnist", 12)
    for wrong in ("gan-mnist", "gan-mnist:x", "nobody:0", ":1"):
        refused(lambda wrong=wrong: Job.read(wrong, book()), f"'{wrong}'", "RUN:SEED")


def test_measurements_that_claims_share_are_listed_once_a_seed_and_figures_not_at_all() -> None:
    known = book()
    claims = known.matching(
        ["product_of_experts.judge-sure", "product_of_experts.specialisation.*", "product_of_experts.figure2.a"]
    )
    listed = measurings_of(claims, known)
    assert {(one.claim.measure_name, one.seed) for one in listed} == {("samples_restricted", seed) for seed in range(3)}
    assert len(listed) == 3
    bench = Bench(known, Path("there"), Path("results"))
    assert listed[2].words(bench)[2:] == ["--only-seed", "2", "--results", "results"]
    assert listed[2].log(bench) == Path("there/product-of-experts-mnist/seed-2-samples_restricted.log")


def test_a_run_of_several_processes_trains_then_measures_single_seeds_then_writes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    done: list[str] = []
    monkeypatch.setenv("GENCAPS_COMMIT", "abc")
    monkeypatch.setattr(jobs, "do_all", lambda some, *_: done.extend(" ".join(one.words(_[0])) for one in some))
    monkeypatch.setattr("gencaps.reproduce.run.run_claims", lambda *_, **__: iter(done.append("measured") or ()))
    monkeypatch.setattr("gencaps.reproduce.run.refuse", lambda *_: None)  # MNIST need not be here
    of_time, other = "product_of_experts.minutes.digits", "product_of_experts.reconstruction.mnist"
    words = ["reproduce", "run", of_time, other, "--seeds", "2", "--results", str(tmp_path)]
    assert main([*words, "--jobs", "2"]) == 0
    of_seed = [f"run {other} --only-seed {seed} --results {tmp_path}" for seed in range(2)]
    assert done == [*(f"train --only product-of-experts-mnist:{seed}" for seed in range(2)), *of_seed, "measured"]


def test_one_seed_is_measured_and_nothing_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[str, int]] = []
    monkeypatch.setattr("gencaps.reproduce.run.measure_seed", lambda claim, seed, *_: asked.append((claim.id, seed)))
    monkeypatch.setenv("GENCAPS_COMMIT", "abc")
    results = tmp_path / "results"
    words = ["reproduce", "run", "product_of_experts.minutes.digits", "--results", str(results)]
    assert main([*words, "--only-seed", "4"]) == 0
    assert asked == [("product_of_experts.minutes.digits", 4)]
    assert not list(results.iterdir())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--jobs", "0"], "--jobs is 0"),
        (["--only-seed", "-1"], "--only-seed is -1"),
        (["--smoke", "--jobs", "2"], "--smoke keeps nothing"),
        (["--jobs", "2"], "commit first"),
        (["--only-seed", "0"], "commit first"),
        (["--only-seed", "0", "--jobs", "2"], "neither --jobs nor --seeds"),
        (["probabilistic.refine.slowdown", "--only-seed", "0"], "nothing to run"),
    ],
)
def test_a_run_refuses_what_it_cannot_keep(
    words: list[str], says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GENCAPS_COMMIT", "abc-dirty")
    assert main(["reproduce", "run", "product_of_experts.minutes.digits", *words]) == 2
    assert says in capsys.readouterr().err


def test_so_many_run_at_once_and_failures_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, most, said = Bench(book(), tmp_path, device="cpu"), 0, list[str]()
    begun: list[Started] = []

    def start(job: Job, bench: Bench) -> Started:
        nonlocal most
        log = job.log(bench)
        log.parent.mkdir(parents=True, exist_ok=True)
        words = f"import sys, time; time.sleep(0.3); sys.exit({int(job.seed == 1)})"
        begun.append(Started(subprocess.Popen([sys.executable, "-c", words]), log.open("wb"), time.monotonic()))
        most = max(most, sum(one.process.poll() is None for one in begun))
        return begun[-1]

    monkeypatch.setattr(jobs, "_start", start)
    listed = [Job("gan-mnist", seed) for seed in range(4)]
    assert do_all(listed, bench, 2, said.append) == [listed[1]]
    assert most == 2
    assert len(said) == 4
    assert any("seed 1: failed" in line and "seed-1.log" in line for line in said)


def test_the_command_refuses_what_it_cannot_mean(capsys: pytest.CaptureFixture[str]) -> None:
    for words, says in (
        ([], "which claims?"),
        (["gan-mnist", "--jobs", "0"], "--jobs is 0"),
        (["--only", "nobody:0"], "RUN:SEED"),
    ):
        assert main(["reproduce", "train", *words]) == 2
        assert says in capsys.readouterr().err
