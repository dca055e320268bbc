"""The table of all claims: for people as Markdown, for programs as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from gencaps.files import write_atomically
from gencaps.reproduce.claims import ROOMS, Book, Claim
from gencaps.reproduce.hand import all_lacking
from gencaps.reproduce.results import rows

TITLES = {
    "variational": "Variational capsules (Huang et al.)",
    "capsule_gan": "CapsuleGAN (Jaiswal et al.)",
    "probabilistic": "Probabilistic capsules (Smith et al.)",
    "product_of_experts": "Product of expert capsules (Hauser)",
}
MARKS = {"met": "met", "missed": "**missed**", "not run": "not run", "needs data": "needs data", "cited": "cited"}


def table(book: Book, claims: Sequence[Claim], folder: Path) -> list[dict[str, Any]]:
    """Lists claims with their states, ``needs data`` among them."""
    return rows(book, claims, folder, all_lacking(book))


def number(value: float | None) -> str:
    """Writes a number with the digits that matter."""
    if value is None:
        return ""
    return f"{value:.0f}" if value == round(value) and abs(value) >= 100 else f"{value:.5g}"


def bar(row: dict[str, Any]) -> str:
    """Writes what is to be reached."""
    sign = {"up": "≥", "down": "≤", "within": "in", None: ""}[row["direction"]]
    parts = []
    if isinstance(row["target"], list):
        parts.append(f"{number(row['target'][0])} to {number(row['target'][1])}")
    elif row["target"] is not None:
        parts.append(f"{sign} {number(row['target'])}")
    if row["against"]:
        parts.append(f"{sign} `{row['against']}`")
    return ", ".join(parts)


def ours(row: dict[str, Any]) -> str:
    """Writes what we measured: mean and standard deviation over seeds."""
    found = row["ours"]
    if found is None:
        return ""
    if found["mean"] is None:
        return "picture"
    spread = f" ± {found['sd']:.2g}" if found["sd"] is not None else ""
    return f"{found['mean']:.4g}{spread}"


def mark(row: dict[str, Any]) -> str:
    """Writes how a claim stands; what had nothing to reach was only measured."""
    return "measured" if row["state"] == "met" and row["met"] is None else MARKS[row["state"]]


def unsteady(row: dict[str, Any]) -> str | None:
    """Says so where the seeds of a result disagree widely: its mean then says little, and a verdict on it less."""
    values = (row["ours"] or {}).get("values") or []
    sizes = [abs(value) for value in values]
    if len(values) < 2 or (min(values) * max(values) >= 0 and max(sizes) <= 2 * min(sizes)):
        return None
    return f"the seeds of `{row['claim']}` disagree: {', '.join(number(value) for value in values)}"


def markdown(listed: Sequence[dict[str, Any]]) -> str:
    """Writes rows as one Markdown table."""
    lines = ["| claim | metric | published | target | ours | state |", "|---|---|---|---|---|---|"]
    for row in listed:
        published = number(row["published"]) + (
            f" ± {number(row['published_sd'])}" if row["published_sd"] is not None else ""
        )
        cells = (f"`{row['claim']}`", row["metric"], published, bar(row), ours(row), mark(row))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def summary(listed: Sequence[dict[str, Any]]) -> str:
    """Counts the states in one line."""
    counts = {state: sum(row["state"] == state for row in listed) for state in MARKS}
    return f"{len(listed)} claim{'s' * (len(listed) != 1)}: " + ", ".join(
        f"{n} {state}" for state, n in counts.items() if n
    )


def group_of(row: dict[str, Any]) -> str:
    """Names the part of a paper that a claim belongs to: the first two parts of its id."""
    return ".".join(row["claim"].split(".")[:2])


def page(listed: Sequence[dict[str, Any]], folder: Path) -> str:
    """Writes RESULTS.md: a section a paper, what was measured first, the rest folded away, then the pictures."""
    parts = [
        "# Results\n",
        "Written by `gencaps reproduce table --write`. Every figure comes from a file beside this one, which a command "
        "wrote (device, seeds, commit, command). A miss stays.\n",
        f"{summary(listed)}.\n",
    ]
    for paper in ROOMS:
        own = [row for row in listed if row["paper"] == paper]
        parts.append(f"## {TITLES[paper]}\n\n{summary(own)}.\n")
        done = [row for row in own if row["ours"] is not None]
        if done:
            parts.append(markdown(done) + "\n")
        notes = sorted({note for row in done for note in row.get("notes") or ()})
        notes += [note for row in done if (note := unsteady(row))]
        parts += [f"- {note}" for note in notes] + ([""] if notes else [])
        rest = sorted((row for row in own if row["ours"] is None), key=group_of)
        for name, group in groupby(rest, group_of):
            kept = list(group)
            parts.append(f"<details><summary>{name}: {summary(kept)}</summary>\n\n{markdown(kept)}\n\n</details>\n")
        for row in done:
            if row.get("picture") and (folder / row["picture"]).exists():
                parts.append(f"### {row['about']}\n\n![{row['about']}]({row['picture']})\n")
    return "\n".join(parts).rstrip() + "\n"


def write_page(book: Book, folder: Path) -> Path:
    """Writes RESULTS.md into the results' folder."""
    path = folder / "RESULTS.md"
    write_atomically(path, page(table(book, list(book.claims.values()), folder), folder))
    return path
