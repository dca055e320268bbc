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
from gencaps.reproduce.jobs import Job, Started, jobs_of, log_of, train_all
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


def test_so_many_run_at_once_and_failures_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, most, said = Bench(book(), tmp_path, device="cpu"), 0, list[str]()
    begun: list[Started] = []

    def start(job: Job, bench: Bench) -> Started:
        nonlocal most
        log = log_of(job, bench)
        log.parent.mkdir(parents=True, exist_ok=True)
        words = f"import sys, time; time.sleep(0.3); sys.exit({int(job.seed == 1)})"
        begun.append(Started(subprocess.Popen([sys.executable, "-c", words]), log.open("wb"), time.monotonic()))
        most = max(most, sum(one.process.poll() is None for one in begun))
        return begun[-1]

    monkeypatch.setattr(jobs, "_start", start)
    listed = [Job("gan-mnist", seed) for seed in range(4)]
    assert train_all(listed, bench, 2, said.append) == [listed[1]]
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
