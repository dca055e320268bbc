"""``gencaps reproduce`` and ``gencaps judge``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gencaps.errors import GencapsError


def add_parsers(commands: Any) -> None:
    """Adds the commands."""
    reproduce = commands.add_parser(
        "reproduce",
        help="measure the papers' numbers again",
        description="Every number and picture of the four papers is a claim; each has one command that measures it.",
    )
    words = reproduce.add_subparsers(dest="what", metavar="WHAT", required=True)
    listed = words.add_parser("list", help="list claims", description="Lists claims with their states.")
    _claims(listed, "*")
    listed.add_argument("--json", action="store_true", help="print JSON")
    listed.set_defaults(run=run_list)

    run = words.add_parser(
        "run",
        help="train what is missing, measure, and write CLAIM.json",
        description="Trains what is missing, resumes what was stopped, measures, and writes the result.",
    )
    _claims(run, "+")
    run.add_argument("--seeds", type=int, metavar="N", help="models to train (default: the claim's own number)")
    run.add_argument("--jobs", type=int, default=1, metavar="N", help="processes at once (1)")
    run.add_argument("--only-seed", type=int, metavar="S", help="measure one seed and keep it; writes no result")
    run.add_argument("--smoke", action="store_true", help="try the path only, small and quick; writes no result")
    run.add_argument("--runs", type=Path, metavar="DIR", help="where training runs go (default runs/reproduce)")
    run.add_argument("--device", default="auto", metavar="D", help="auto, cpu or cuda (default auto)")
    run.add_argument("--quiet", action="store_true", help="print results only")
    run.set_defaults(run=run_run)

    train = words.add_parser(
        "train",
        help="train the runs behind claims, several at once",
        description="Trains what claims need, several at once where one does not fill a GPU. Measures nothing.",
    )
    _claims(train, "*")
    train.add_argument("--jobs", type=int, default=1, metavar="N", help="processes at once (1)")
    train.add_argument("--seeds", type=int, metavar="N", help="models of each run (default: the claims' own number)")
    train.add_argument("--only", metavar="RUN:SEED", help="one seed of one run, here and now")
    train.add_argument("--runs", type=Path, metavar="DIR", help="where training runs go (default runs/reproduce)")
    train.add_argument("--device", default="auto", metavar="D", help="auto, cpu or cuda (default auto)")
    train.set_defaults(run=run_train)

    table = words.add_parser("table", help="published, target and ours, side by side", description="Prints the table.")
    _claims(table, "*")
    table.add_argument("--json", action="store_true", help="print JSON")
    table.add_argument("--write", action="store_true", help="write RESULTS.md too, with the pictures")
    table.set_defaults(run=run_table)

    judge = commands.add_parser(
        "judge",
        help="train the independent judge of a data set, or find it",
        description="Trains the classifier that reads generated pictures, once; afterwards it is taken from the cache.",
    )
    judge.add_argument("data", metavar="SET", help="digits, mnist, ... (gencaps data list)")
    judge.add_argument("--size", type=int, metavar="PX", help="pixels a side (default: the set's own)")
    judge.add_argument("--seed", type=int, default=0, metavar="N", help="fixes everything random")
    judge.add_argument("--device", default="auto", metavar="D", help="auto, cpu or cuda (default auto)")
    judge.add_argument("--json", action="store_true", help="print JSON")
    judge.set_defaults(run=run_judge)


def _claims(parser: argparse.ArgumentParser, count: str) -> None:
    parser.add_argument(
        "claims", nargs=count, metavar="CLAIM", help="claims, papers or patterns ('variational.mnist.*')"
    )
    parser.add_argument("--results", type=Path, metavar="DIR", help="where results lie (default docs/results)")


def _chosen(options: argparse.Namespace) -> tuple[Any, Any, Path]:
    from gencaps.reproduce.claims import book
    from gencaps.reproduce.run import RESULTS

    known = book()
    claims = known.matching(options.claims) if options.claims else list(known.claims.values())
    folder = options.results or RESULTS
    if not folder.is_dir() and options.what not in ("run", "train"):
        if options.results is not None:
            raise GencapsError(f"there is no folder {folder}: give the one that gencaps reproduce run wrote to")
        print(f"note: there is no {folder} here, so nothing counts as run; --results says where it is", file=sys.stderr)
    return known, claims, folder


def run_list(options: argparse.Namespace) -> int:
    """Lists claims, one a line."""
    from gencaps.reproduce.table import summary, table

    known, claims, folder = _chosen(options)
    rows = table(known, claims, folder)
    if options.json:
        fields = ("claim", "kind", "paper", "at", "about", "data", "metric", "state", "command")
        print(json.dumps([{name: row[name] for name in fields} for row in rows], indent=2))
        return 0
    width = max(len(row["claim"]) for row in rows)
    for row in rows:
        print(f"{row['claim']:<{width}}  {row['state']:<10}  {row['about']}")
    print(summary(rows))
    return 0


def run_table(options: argparse.Namespace) -> int:
    """Prints the table of claims."""
    from gencaps.reproduce.table import markdown, summary, table, write_page

    known, claims, folder = _chosen(options)
    rows = table(known, claims, folder)
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        print(f"{markdown(rows)}\n\n{summary(rows)}")
    if options.write:
        if not folder.is_dir():
            raise GencapsError(f"there is no folder {folder}: gencaps reproduce run CLAIM makes it, or give --results")
        print(f"written: {write_page(known, folder)}", file=sys.stderr)
    return 0


def _stopped() -> int:
    """Says how to go on, and gives the exit code of what was stopped."""
    from gencaps.engine.run import command_line

    print(f"stopped and saved; go on with: {command_line()}", file=sys.stderr)
    return 130


def _able(claims: Any, bench: Any, say: Callable[[str], None]) -> Any:
    """Gives the claims that can be run here, and says why others cannot."""
    from gencaps.reproduce.run import runnable

    able, reasons = runnable(claims, bench)
    if not able:
        raise GencapsError(reasons[0])
    if reasons:
        say(f"{len(reasons)} claims cannot be run here, such as: {reasons[0]}")
    return able


def _refuse_count(option: str, count: int | None) -> None:
    if count is not None and not 1 <= count <= 1000:
        raise GencapsError(f"{option} is {count}; it must be from 1 to 1000")


def _beforehand(claims: Any, bench: Any, options: argparse.Namespace, say: Callable[[str], None]) -> None:
    """Trains, then measures, single seeds in processes of their own; what fails there is done again here."""
    from gencaps.reproduce.jobs import do_all, jobs_of, measurings_of
    from gencaps.reproduce.measures import TIMED
    from gencaps.reproduce.run import refuse_all

    refuse_all(claims, bench, options.seeds)
    _refuse_unknown_code(bench, "--jobs")
    others = [claim for claim in claims if claim.measure_name not in TIMED]
    if len(others) < len(claims):
        say(f"{len(claims) - len(others)} claims are of time: theirs is left to a process that is alone")
    do_all(jobs_of(others, bench.book, options.seeds), bench, options.jobs, say)
    do_all(measurings_of(others, bench.book, options.seeds), bench, options.jobs, say)


def _one_seed(claims: Any, bench: Any, seed: int, say: Callable[[str], None]) -> None:
    """Measures one seed of each claim and keeps it."""
    from gencaps.reproduce.run import measure_seed, refuse_all

    refuse_all(claims, bench)
    for claim in claims:
        if claim.kind != "value":
            raise GencapsError(f"'{claim.id}' is a picture, of which nothing is kept: run it without --only-seed")
    _refuse_unknown_code(bench, "--only-seed")
    for claim in claims:
        measure_seed(claim, seed, bench, say)


def _refuse_unknown_code(bench: Any, option: str) -> None:
    from gencaps.engine.devices import choose_device
    from gencaps.engine.run import environment
    from gencaps.reproduce.kept import known

    if not known(environment(choose_device(bench.device))):
        raise GencapsError(f"{option} keeps what a seed measures by the commit, which must be known: commit first")


def run_run(options: argparse.Namespace) -> int:
    """Measures claims and writes what came out."""
    _refuse_count("--seeds", options.seeds)
    _refuse_count("--jobs", options.jobs)
    if options.smoke and (options.jobs > 1 or options.only_seed is not None):
        raise GencapsError("--smoke keeps nothing: it goes with neither --jobs nor --only-seed")
    if options.only_seed is not None and options.only_seed < 0:
        raise GencapsError(f"--only-seed is {options.only_seed}; seeds begin at 0")
    if options.only_seed is not None and (options.jobs > 1 or options.seeds is not None):
        raise GencapsError("--only-seed measures one seed: it goes with neither --jobs nor --seeds")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    import tempfile

    from gencaps.engine.interrupt import Interrupted
    from gencaps.reproduce.run import RUNS, Bench, run_claims
    from gencaps.reproduce.table import bar, number, ours, write_page

    known, claims, folder = _chosen(options)
    with tempfile.TemporaryDirectory(prefix="gencaps-smoke-") as scratch:
        # a smoke run leaves nothing behind
        small = Path(scratch) if options.smoke else None
        runs = small or options.runs or RUNS
        judges = small and small / "judges"
        bench = Bench(known, runs, folder, judges, options.device, options.smoke, options.quiet)

        def say(text: str) -> None:
            if not options.quiet:
                print(text, file=sys.stderr)

        if set(options.claims) != {claim.id for claim in claims}:  # a group was named: what cannot be run is left out
            claims = _able(claims, bench, say)
        wrote = False
        try:
            if options.only_seed is not None:
                _one_seed(claims, bench, options.only_seed, say)
                return 0
            if options.jobs > 1:
                _beforehand(claims, bench, options, say)
            for claim, row, written in run_claims(claims, bench, seeds=options.seeds, say=say):
                shown = [f"published {number(row['published'])}"] if row["published"] is not None else []
                shown += [f"to reach {bar(row)}"] if bar(row) else []
                state = "smoke, on small stand-in data: nothing was written" if options.smoke else row["state"]
                print(f"{claim.id}: {ours(row)} ({', '.join([*shown, state])})")
                for note in () if options.smoke else row.get("notes", ()):
                    print(f"  {note}")
                wrote = wrote or written is not None
        except (Interrupted, KeyboardInterrupt):
            if not options.smoke:
                return _stopped()
            print("stopped", file=sys.stderr)
            return 130
        finally:
            if wrote:
                write_page(known, folder)
    return 0


def run_train(options: argparse.Namespace) -> int:
    """Trains what claims need."""
    from gencaps.engine.devices import choose_device
    from gencaps.engine.interrupt import Interrupted
    from gencaps.reproduce.jobs import Job, do_all, jobs_of
    from gencaps.reproduce.run import RUNS, Bench

    if not options.claims and options.only is None:
        raise GencapsError("which claims? gencaps reproduce train CLAIM ...; gencaps reproduce list names them")
    _refuse_count("--jobs", options.jobs)
    _refuse_count("--seeds", options.seeds)
    known, claims, folder = _chosen(options)
    bench = Bench(known, options.runs or RUNS, folder, device=options.device)
    if options.only is not None:
        job = Job.read(options.only, known)
        try:
            bench.train(known.runs[job.run], job.seed)
        except Interrupted:
            return _stopped()
        return 0
    choose_device(options.device)
    able = _able(claims, bench, lambda text: print(text, file=sys.stderr))
    jobs = jobs_of(able, known, options.seeds)
    if not jobs:
        print("nothing is trained for that: it is drawn from other claims' results", file=sys.stderr)
    try:
        failed = do_all(jobs, bench, options.jobs)
    except KeyboardInterrupt:
        return _stopped()
    return 1 if failed else 0


def run_judge(options: argparse.Namespace) -> int:
    """Trains or finds a judge and says how far it can be trusted."""
    from gencaps.engine.interrupt import Interrupted
    from gencaps.reproduce.judge import get_judge, judge_recipe

    recipe = judge_recipe(options.data, size=options.size, seed=options.seed)
    try:
        judge = get_judge(recipe, device=options.device, quiet=options.json)
    except Interrupted:
        return _stopped()
    names = judge.model.pictures.names if judge.model.pictures.labels == "attributes" else ("all classes",)
    each = judge.each.tolist()
    if options.json:
        facts = {"data": judge.data, "accuracy": judge.accuracy, "path": str(judge.path)}
        print(json.dumps({**facts, "each": dict(zip(names, each, strict=True))}, indent=2))
        return 0
    print(judge.note)
    if len(names) > 1:
        width = max(map(len, names))
        print("\n".join(f"  {name:<{width}}  {100 * share:.2f} %" for name, share in zip(names, each, strict=True)))
    print(f"judge:  {judge.path}")
    return 0
