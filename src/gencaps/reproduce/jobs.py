"""Trains and measures what is behind claims in several processes at once, where one does not fill the machine."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from gencaps.errors import GencapsError
from gencaps.reproduce.claims import Book, Claim
from gencaps.reproduce.run import Bench, grouped, seeds_of

WAIT_S = 0.2


class Job(NamedTuple):
    """One seed of a run, as the command line names it: ``RUN:SEED``."""

    run: str
    seed: int

    @classmethod
    def read(cls, text: str, book: Book) -> Job:
        """Reads RUN:SEED."""
        name, _, seed = text.rpartition(":")
        if name not in book.runs or not seed.isdecimal():
            raise GencapsError(f"--only is '{text}'; write RUN:SEED, such as {next(iter(book.runs))}:0")
        return cls(name, int(seed))

    def words(self, bench: Bench) -> list[str]:
        """Gives the command that does it."""
        return ["train", "--only", f"{self.run}:{self.seed}"]

    def log(self, bench: Bench) -> Path:
        """Names its log."""
        return bench.runs / self.run / f"seed-{self.seed}.log"

    def __str__(self) -> str:
        return f"{self.run}, seed {self.seed}"


class Measuring(NamedTuple):
    """One seed of what a claim, and others with it, are measured by."""

    claim: Claim
    seed: int

    def words(self, bench: Bench) -> list[str]:
        """Gives the command that does it."""
        return ["run", self.claim.id, "--only-seed", str(self.seed), "--results", str(bench.results)]

    def log(self, bench: Bench) -> Path:
        """Names its log."""
        first, *others = self.claim.runs
        return bench.runs / first / f"seed-{self.seed}-{'-'.join([self.claim.measure_name, *others])}.log"

    def __str__(self) -> str:
        return f"{' and '.join(self.claim.runs)}, seed {self.seed}, {self.claim.measure_name}"


Task = Job | Measuring


class Started(NamedTuple):
    """A process, its log and when it began."""

    process: subprocess.Popen[bytes]
    log: IO[bytes]
    began_s: float


def jobs_of(claims: Sequence[Claim], book: Book, seeds: int | None = None) -> list[Job]:
    """Lists what claims need to be trained, each once; first seeds first: what they compile serves the others."""
    wanted = {
        Job(run.name, seed)
        for claim in claims
        for run in book.training(claim)
        for seed in range(seeds_of(claim, book, seeds))
    }
    return sorted(wanted, key=lambda job: (job.seed, job.run))


def measurings_of(claims: Sequence[Claim], book: Book, seeds: int | None = None) -> list[Measuring]:
    """Lists what claims need to be measured, each once; figures are drawn from one seed, and not listed."""
    return [
        Measuring(group[0], seed)
        for group in grouped(claims)
        if group[0].kind == "value"
        for seed in range(seeds_of(group[0], book, seeds))
    ]


def do_all(jobs: Sequence[Task], bench: Bench, at_once: int, say: Callable[[str], None] = print) -> list[Task]:
    """Does jobs, so many at a time, each in a process with a log of its own; gives those that failed."""
    waiting, running, failed = list(jobs), dict[Task, Started](), list[Task]()
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # a polite kill must not leave orphans
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                job = waiting.pop(0)
                running[job] = _start(job, bench)
            for job, started in list(running.items()):
                code = started.process.poll()
                if code is None:
                    continue
                del running[job]
                started.log.close()
                failed += [job] if code else []
                ended = f"failed, see {job.log(bench)}" if code else "done"
                say(f"{job}: {ended} ({time.monotonic() - started.began_s:.0f} s)")
            time.sleep(WAIT_S)
    finally:
        for started in running.values():  # they stop and save, all at once
            started.process.terminate()
        for started in running.values():
            started.process.wait()
            started.log.close()
        signal.signal(signal.SIGTERM, before)
    return failed


def _start(job: Task, bench: Bench) -> Started:
    log = job.log(bench)
    log.parent.mkdir(parents=True, exist_ok=True)
    words = ["reproduce", *job.words(bench), "--runs", str(bench.runs), "--device", bench.device]
    writing = log.open("ab")
    process = subprocess.Popen([sys.executable, "-m", "gencaps", *words], stdout=writing, stderr=subprocess.STDOUT)
    return Started(process, writing, time.monotonic())
