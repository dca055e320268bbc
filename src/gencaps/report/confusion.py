"""Shows which classes were taken for which."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gencaps.report.content import ReportContent
from gencaps.report.sections import Section

MOST_CLASSES = 20
"""Up to this many classes the whole matrix is shown; beyond it, the pairs most often confused."""
MOST_PAIRS = 20

Counts = Int[Tensor, "classes classes"] | Float[Tensor, "classes classes"]


def confusion(content: ReportContent) -> Section | None:
    """Shows the confusion matrix as a heat map, or the worst pairs where there are many classes."""
    if content.confusion is None or content.confusion.numel() == 0:
        return None
    counts = content.confusion.detach().cpu().round().long()
    k = len(counts)
    names = [content.names[i] if i < len(content.names) else str(i) for i in range(k)]
    if k <= MOST_CLASSES:
        say = "Rows are the true class, columns what the model read; everything off the diagonal is a mistake."
        return Section("confusion", "Confusion matrix", say, _matrix(counts, names))
    say = f"The mistakes made most often among {k:,} classes: the true class, and what the model read instead."
    return Section("confusion", "Most confused", say, _pairs(counts, names))


def _matrix(counts: Int[Tensor, "classes classes"], names: Sequence[str]) -> str:
    wide = " tall" if max(map(len, names)) > 3 else ""
    head = "".join(f'<th scope="col"><span>{escape(n)}</span></th>' for n in names)
    rows = []
    for i, (name, line) in enumerate(zip(names, counts.tolist(), strict=True)):
        total = sum(line)
        cells = "".join(_cell(n, total, name, names[j], i == j) for j, n in enumerate(line))
        share = f"{100 * line[i] / total:.1f} %" if total else "–"
        rows.append(f'<tr><th scope="row">{escape(name)}</th>{cells}<td class="share">{share}</td></tr>')
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="Confusion matrix">'
        f'<table class="confusion{wide}">'
        f'<thead><tr><td></td>{head}<th scope="col" class="share">right</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(n: int, total: int, true: str, read: str, right: bool) -> str:
    if n == 0:
        return '<td class="none">·</td>'
    # one mistake in a hundred must still be seen: the square root lifts small shares
    heat = 0.1 + 0.5 * (n / total) ** 0.5 if not right else 0.04 + 0.3 * n / total
    kind = "right" if right else "wrong"
    what = f"{n} of {total} pictures of {true} read as {read}"
    return f'<td class="{kind}" style="--a:{heat:.2f}" title="{escape(what)}">{n}</td>'


def _pairs(counts: Int[Tensor, "classes classes"], names: Sequence[str]) -> str:
    wrong = counts.clone().fill_diagonal_(0)
    found = torch.topk(wrong.flatten(), min(MOST_PAIRS, wrong.numel()))
    totals, k = counts.sum(1).tolist(), len(counts)
    rows = []
    for n, at in zip(found.values.tolist(), found.indices.tolist(), strict=True):
        if n > 0:
            i, j = divmod(int(at), k)
            share = f"{n} of {totals[i]}"
            rows.append(
                f"<tr><td>{escape(names[i])}</td><td>{escape(names[j])}</td><td>{share}</td>"
                f'<td class="bar"><span style="--a:{n / totals[i]:.3f}"></span></td></tr>'
            )
    if not rows:
        return "<p>No mistake was made.</p>"
    head = "<tr><th>True class</th><th>Read as</th><th>Pictures</th><td></td></tr>"
    table = f'<table class="worst"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table>'
    return f'<div class="scroll">{table}</div>'
