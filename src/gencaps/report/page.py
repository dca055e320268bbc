"""Writes the report of a run as one HTML file that asks nothing of the network."""

from __future__ import annotations

from html import escape
from importlib import resources
from pathlib import Path
from string import Template

from gencaps.errors import GencapsError
from gencaps.figures import check_target
from gencaps.files import write_atomically
from gencaps.report import sections
from gencaps.report.confusion import confusion
from gencaps.report.content import Hard, ReportContent

__all__ = ["Hard", "ReportContent", "render", "write_report"]

SECTIONS = (
    sections.samples,
    sections.pairs,
    sections.interpolations,
    sections.training,
    confusion,
    sections.hardest,
    sections.repeat,
)


def write_report(path: Path, content: ReportContent) -> Path:
    """Writes the report; it is there whole or not at all."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise GencapsError(f"cannot write the report to {path}: its name must end in .html")
    check_target(path)
    # a lone surrogate (a file name that is not UTF-8, in the command) must not cost the whole report
    page = render(content).encode("utf-8", "replace")
    write_atomically(path, page)
    return path


def render(content: ReportContent) -> str:
    """Builds the page."""
    shown = [section for build in SECTIONS if (section := build(content)) is not None]
    here = resources.files("gencaps.report")
    return Template(here.joinpath("page.html").read_text("utf-8")).substitute(
        css=here.joinpath("page.css").read_text("utf-8"),
        title=escape(content.title),
        lead=escape(content.lead),
        headline=_headline(content),
        contents="".join(f'<li><a href="#{s.id}">{s.title}</a></li>' for s in shown),
        sections="".join(
            f'<section id="{s.id}"><header><h2>{s.title}</h2><p>{s.say}</p></header>'
            f'<div class="body">{s.body}</div></section>\n'
            for s in shown
        ),
        foot=_foot(content),
    )


def _headline(content: ReportContent) -> str:
    items = "".join(
        f'<div><dt>{escape(name)}</dt><dd class="value">{escape(value)}</dd><dd class="note">{escape(note)}</dd></div>'
        for name, value, note in content.headline
    )
    return f'<dl class="headline">{items}</dl>' if items else ""


def _foot(content: ReportContent) -> str:
    known = content.versions
    by = f"Written by gencaps {known['gencaps']}" if "gencaps" in known else "Written by gencaps"
    return escape(by + (f", {known['date']}" if "date" in known else "")) + ". This page is one file: keep it, send it."
