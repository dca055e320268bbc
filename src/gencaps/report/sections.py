"""The sections of a report: each takes its part of the content and says in one line what one sees."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from typing import Any, NamedTuple

from gencaps.report import history
from gencaps.report.content import ReportContent
from gencaps.report.curves import chart
from gencaps.report.pictures import img, row, spread

MOST_CLASSES, MOST_DRAWS, MOST_PAIRS, MOST_STRIPS, MOST_STEPS, MOST_HARD = 20, 10, 20, 10, 12, 24
TERMS = {
    "total": "what training makes smaller: the other terms, weighted and added",
    "loss": "what training makes smaller: the other terms, weighted and added",
    "margin": "asks the capsule of the true class to say “present” (for variational capsules: a small KL), "
    "all others “absent”",
    "recon": "how far the picture painted from the capsules is from the real one",
    "kl": "how far the capsules are from the prior that new pictures are drawn from",
    "generator.diversity": "how varied generated pictures are beside real ones: 1 where they vary alike, 0 where all "
    "are the same; it is not trained",
    "adversarial": "how easily the discriminator tells painted pictures from real ones",
}


class Section(NamedTuple):
    """One part of the page, already escaped."""

    id: str
    title: str
    say: str
    """What one sees, in one line."""
    body: str


def samples(content: ReportContent) -> Section | None:
    """Shows generated pictures, a row a class."""
    if content.samples is None or 0 in content.samples.shape:
        return None
    k, m = content.samples.shape[:2]
    shown, draws = spread(k, MOST_CLASSES), min(m, MOST_DRAWS)
    if not content.asked:
        alts = [[f"generated picture {i * draws + j + 1}" for j in range(draws)] for i in shown]
        made = "".join(f"<dt></dt><dd>{row(content.samples[i, :draws], alts[n])}</dd>" for n, i in enumerate(shown))
        say = "Painted from random numbers alone: new pictures, not ones from the data, and none was chosen."
        return Section("samples", "Generated pictures", say, f'<dl class="rows">{made}</dl>')
    rows = []
    for i in shown:
        name = _name(content, i)
        alts = [f"generated {name}, draw {j + 1}" for j in range(draws)]
        rows.append(f'<dt title="{escape(name)}">{escape(name)}</dt><dd>{row(content.samples[i, :draws], alts)}</dd>')
    say = "Each row was painted for one class from random numbers alone: new pictures, not ones from the data."
    if len(shown) < max(k, len(content.names)):
        say += f" {len(shown)} of {max(k, len(content.names)):,} classes are shown."
    return Section("samples", "Generated pictures", say, f'<dl class="rows">{"".join(rows)}</dl>')


def pairs(content: ReportContent) -> Section | None:
    """Shows real pictures with their reconstructions under them."""
    if content.real is None or content.reconstructed is None:
        return None
    n = min(len(content.real), len(content.reconstructed), MOST_PAIRS)
    if n == 0:
        return None
    figures = "".join(
        f"<li>{img(real, f'real picture {i}')}{img(again, f'picture {i}, reconstructed')}</li>"
        for i, (real, again) in enumerate(zip(content.real[:n], content.reconstructed[:n], strict=True), 1)
    )
    say = "Above, a real picture. Below, the same one painted again from nothing but its code."
    return Section("reconstructed", "Real beside reconstructed", say, f'<ul class="pairs">{figures}</ul>')


def interpolations(content: ReportContent) -> Section | None:
    """Shows walks from one picture to another, a row each."""
    if content.interpolations is None or 0 in content.interpolations.shape:
        return None
    steps = spread(content.interpolations.shape[1], MOST_STEPS)
    alts = [f"step {s} of {len(steps)}" for s in range(1, len(steps) + 1)]
    rows = "".join(
        f"<li>{row(strip[steps], [f'walk {i}, {alt}' for alt in alts])}</li>"
        for i, strip in enumerate(content.interpolations[:MOST_STRIPS], 1)
    )
    say = "Each row walks from the picture at its left to the one at its right through the capsules."
    return Section("interpolations", "From one to another", say, f'<ol class="walks">{rows}</ol>')


def training(content: ReportContent) -> Section | None:
    """Shows the loss terms and the validation accuracy over time."""
    losses, accuracy = history.losses(content.metrics), history.accuracy(content.metrics)
    charts = []
    if losses.series:
        charts.append("<div><h3>Loss</h3>" + chart(losses, "Training loss") + "</div>")
    if accuracy.series:
        charts.append(
            "<div><h3>Validation accuracy</h3>"
            + chart(accuracy, "Validation accuracy", percent=True)
            + f'<p class="note">{_best(accuracy)}</p></div>'
        )
    if not charts:
        return None
    known = [s.name for s in losses.series if s.name in TERMS]
    terms = "".join(f"<div><dt>{n}</dt><dd>{TERMS[n]}</dd></div>" for n in known)
    rival = any(s.name.startswith("discriminator") for s in losses.series)
    how = "two players hold each other in balance" if rival else "the loss should fall, the accuracy rise"
    say = f"How the model learned: {how}. Point at a curve to read its values."
    glossary = f'<dl class="terms">{terms}</dl>' if terms else ""
    return Section("training", "Training", say, f'<div class="charts">{"".join(charts)}</div>{glossary}')


def hardest(content: ReportContent) -> Section | None:
    """Shows the test pictures that were read wrongly, or just about right."""
    if not content.hardest:
        return None
    cards = []
    for hard in content.hardest[:MOST_HARD]:
        right = hard.true == hard.predicted
        alt = f"a {hard.true} read as {hard.predicted}"
        verdict = "right, just" if right else f"read as <b>{escape(hard.predicted)}</b>"
        cards.append(
            f'<li class="{"right" if right else "wrong"}"><figure>{img(hard.picture, alt, largest=96)}'
            f"<figcaption><span>{escape(hard.true)}</span> <span>{verdict}</span> "
            f'<span class="soft">presence {hard.presence:.2f}</span></figcaption></figure></li>'
        )
    say = (
        "Test pictures that the model got wrong, or nearly: the true class, what it was read as, and how "
        "surely (1 is certain)."
    )
    return Section("hardest", "Hardest pictures", say, f'<ul class="cards">{"".join(cards)}</ul>')


def repeat(content: ReportContent) -> Section | None:
    """Shows the command, versions, data split and config: all that is needed to run it again."""
    parts = []
    if content.command:
        parts.append(f'<h3>Command</h3><pre class="command"><code>{escape(content.command)}</code></pre>')
    facts = [_facts("Versions", content.versions), _facts("Data split", content.split)]
    if any(facts):
        parts.append(f'<div class="charts facts">{"".join(facts)}</div>')
    if content.config:
        yaml = re.sub(r"(?m)^([ \t-]*)([\w.]+):", r"\1<i>\2</i>:", escape(content.config))
        lines = len(content.config.strip().splitlines())
        parts.append(f"<details><summary>Full config, {lines} lines</summary><pre><code>{yaml}</code></pre></details>")
    if not parts:
        return None
    say = "What it takes to train this model again: the command, the versions, the data split and the config."
    return Section("repeat", "Run it again", say, "".join(parts))


def _best(accuracy: history.History) -> str:
    points = accuracy.series[0].points
    x, best = max(points, key=lambda p: p[1])
    return f"Best: {best:.2f} % at {accuracy.x_label} {x:,.0f}." if len(points) > 1 else "Measured once."


def _facts(title: str, facts: Mapping[str, Any]) -> str:
    shown = {escape(str(k)): escape(_plain(v)) for k, v in facts.items()}
    items = "".join(f"<div><dt>{k}</dt><dd>{v}</dd></div>" for k, v in shown.items() if v)
    return f"<div><h3>{title}</h3><dl>{items}</dl></div>" if items else ""


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{k} {_plain(v)}" for k, v in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value)) if len(value) <= 12 else f"{len(value):,} values"
    # twelve digits tell hashes apart; the run's record has them whole
    return re.sub(r"\b([0-9a-f]{12})[0-9a-f]{28,}\b", r"\1…", str(value))


def _name(content: ReportContent, i: int) -> str:
    return content.names[i] if i < len(content.names) else str(i)
