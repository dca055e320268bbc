"""Trains the runs behind claims in several processes at once, where one of them does not fill the machine."""

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
from gencaps.reproduce.run import Bench, seeds_of

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


def train_all(jobs: Sequence[Job], bench: Bench, at_once: int, say: Callable[[str], None] = print) -> list[Job]:
    """Trains jobs, so many at a time, each in a process with a log of its own; gives those that failed."""
    waiting, running, failed = list(jobs), dict[Job, Started](), list[Job]()
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
                ended = f"failed, see {log_of(job, bench)}" if code else "trained"
                say(f"{job.run}, seed {job.seed}: {ended} ({time.monotonic() - started.began_s:.0f} s)")
            time.sleep(WAIT_S)
    finally:
        for started in running.values():  # they stop and save, all at once
            started.process.terminate()
        for started in running.values():
            started.process.wait()
            started.log.close()
        signal.signal(signal.SIGTERM, before)
    return failed


def log_of(job: Job, bench: Bench) -> Path:
    """Names the log of a job."""
    return bench.runs / job.run / f"seed-{job.seed}.log"


def _start(job: Job, bench: Bench) -> Started:
    log = log_of(job, bench)
    log.parent.mkdir(parents=True, exist_ok=True)
    words = ["reproduce", "train", "--only", f"{job.run}:{job.seed}", "--runs", str(bench.runs)]
    writing = log.open("ab")
    process = subprocess.Popen(
        [sys.executable, "-m", "gencaps", *words, "--device", bench.device], stdout=writing, stderr=subprocess.STDOUT
    )
    return Started(process, writing, time.monotonic())
