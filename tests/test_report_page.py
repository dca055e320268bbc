from __future__ import annotations

import base64
import io
import math
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from gencaps.errors import GencapsError
from gencaps.report import Hard, ReportContent, write_report
from gencaps.report.curves import Axis, chart, short
from gencaps.report.history import History, Series, accuracy, losses
from gencaps.report.page import render
from gencaps.report.pictures import data_uri, spread

VOID = {"meta", "link", "img", "br", "hr"}
BARE = ReportContent("Title", "Lead.")


class Page(HTMLParser):
    """Reads a page: its elements in order, its visible text, and whether every element is closed in turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.stack: list[str] = []
        self.text = ""
        self.feed(text)
        assert self.stack == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.stack:
            self.text += data

    def attributes(self, tag: str, name: str) -> list[str]:
        return [a[name] or "" for t, a in self.tags if t == tag and name in a]


def rows(epochs: int = 3) -> list[dict[str, object]]:
    """Two training rows and one validation row an epoch; margin is half of recon."""
    found: list[dict[str, object]] = []
    for epoch in range(1, epochs + 1):
        for step in (2 * epoch - 1, 2 * epoch):
            terms = {"margin": 1 / step, "recon": 2 / step, "total": 3 / step}
            where = {"split": "train", "stage": "all", "epoch": epoch, "step": step}
            found.append({**where, **terms, "images_per_s": 5e3, "learning_rate": 1e-3, "wait_share": 0.01})
        found.append({"split": "valid", "stage": "all", "epoch": epoch, "accuracy": 1 - 0.1 / epoch, "total": 2.0})
    return found


def full(k: int = 3, side: int = 8, channels: int = 1) -> ReportContent:
    torch.manual_seed(0)

    def pictures(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, channels, side, side)

    return ReportContent(
        title="Variational capsules on digits",
        lead="Three capsules.",
        headline=[("Test accuracy", "98.9 %", "356 of 360 held-out pictures")],
        metrics=rows(),
        names=tuple(f"class {i}" for i in range(k)),
        confusion=torch.eye(k, dtype=torch.int64) * 10,
        real=pictures(6),
        reconstructed=pictures(6),
        samples=pictures(k, 4),
        interpolations=pictures(2, 5),
        hardest=[Hard(pictures(), "class 1", "class 2", 0.61)],
        config="model:\n  dim: 16\n",
        command="gencaps train variational --data digits",
        versions={"gencaps": "0.1.0", "date": "2025-11-15"},
        split={"train": {"pictures": 1149, "sha256": "0123456789abcdef" * 4}, "notes": []},
    )


SECTION_IDS = ["samples", "reconstructed", "interpolations", "training", "confusion", "hardest", "repeat"]


def test_a_full_report_has_every_section_and_links_to_each() -> None:
    page = Page(render(full()))
    assert page.attributes("section", "id") == SECTION_IDS
    assert page.attributes("a", "href") == [f"#{i}" for i in SECTION_IDS]
    assert [t for t, _ in page.tags].count("h1") == 1
    assert "98.9 %" in page.text
    assert "356 of 360 held-out pictures" in page.text


@pytest.mark.parametrize(
    ("part", "nothing", "gone"),
    [
        ("samples", None, "samples"),
        ("samples", torch.zeros(3, 0, 1, 8, 8), "samples"),
        ("real", None, "reconstructed"),
        ("reconstructed", None, "reconstructed"),
        ("real", torch.zeros(0, 1, 8, 8), "reconstructed"),
        ("interpolations", None, "interpolations"),
        ("metrics", [], "training"),
        ("confusion", None, "confusion"),
        ("hardest", [], "hardest"),
    ],
)
def test_a_section_without_content_is_left_out(part: str, nothing: object, gone: str) -> None:
    page = Page(render(full()._replace(**{part: nothing})))
    assert page.attributes("section", "id") == [i for i in SECTION_IDS if i != gone]


def test_pictures_that_nobody_asked_for_have_no_class_names() -> None:
    content = full()._replace(asked=False, confusion=None, hardest=[])
    page = Page(render(content))
    assert page.attributes("section", "id") == [i for i in SECTION_IDS if i not in ("confusion", "hardest")]
    alts = [alt for alt in page.attributes("img", "alt") if alt.startswith("generated")]
    assert alts == [f"generated picture {i}" for i in range(1, 13)]  # 3 rows of 4
    assert page.attributes("dt", "title") == []
    assert "class 1" not in page.text
    assert "none was chosen" in page.text
    assert "painted for one class" not in page.text
    assert "painted for one class" in Page(render(full())).text


def test_a_bare_report_is_a_title_and_a_lead() -> None:
    page = Page(render(BARE))
    assert page.attributes("section", "id") == []
    assert page.attributes("img", "src") == []
    assert "Lead." in page.text


def test_everything_that_users_write_is_escaped() -> None:
    bad = "</pre><script>alert('1')</script>\"onload=x $css ${title}"
    content = full()._replace(
        title=bad,
        lead=bad,
        headline=[(bad, bad, bad)],
        names=(bad, bad, bad),
        hardest=[Hard(torch.zeros(1, 8, 8), bad, bad + "2", 0.5)],
        config=bad,
        command=bad,
        versions={bad: bad},
        split={bad: {bad: [bad]}},
        metrics=[{"split": "train", "stage": s, "step": i, "epoch": i, bad: 1.0} for i, s in ((1, bad), (2, "b"))],
    )
    for k in (3, 30):
        text = render(content._replace(confusion=torch.ones(k, k)))
        page = Page(text)
        assert "<script" not in text
        assert not any(t == "script" or "onload" in a for t, a in page.tags)
        assert bad in page.text  # and it reads as it was written
        assert bad in " ".join(page.attributes("img", "alt"))


def test_the_page_asks_nothing_of_the_network() -> None:
    text = render(full())
    page = Page(text)
    for _, attributes in page.tags:
        for name in ("src", "href", "srcset", "action", "data", "poster"):
            value = attributes.get(name) or "#"
            assert value.startswith(("data:", "#"))
    assert not re.search(r"https?://|url\(|@import", text)
    assert "default-src 'none'" in " ".join(page.attributes("meta", "content"))


def test_every_picture_has_words_for_those_who_cannot_see_it() -> None:
    page = Page(render(full()))
    alts = page.attributes("img", "alt")
    # 6 pairs, 3 rows of 4, 2 strips of 5, 1 hard one
    assert len(alts) == len(page.attributes("img", "src")) == 12 + 12 + 10 + 1
    assert all(alts)
    assert len(set(alts)) == len(alts)
    assert all(page.attributes("svg", "aria-label"))


@pytest.mark.parametrize("channels", [1, 3])
def test_pictures_in_the_page_decode_to_the_same_pixels(channels: int) -> None:
    content = full(channels=channels)
    assert content.samples is not None
    sources = Page(render(content)).attributes("img", "src")
    raw = base64.b64decode(sources[5].removeprefix("data:image/png;base64,"))
    found = np.asarray(Image.open(io.BytesIO(raw))).reshape(8, 8, channels)
    # the sixth picture: four draws of class 0, then the second draw of class 1
    expected = (content.samples[1, 1] * 255).round().permute(1, 2, 0).numpy()
    assert np.array_equal(found, expected)


def test_large_pictures_are_shrunk_and_only_small_ones_pixelated() -> None:
    raw = base64.b64decode(data_uri(torch.rand(3, 128, 64)).removeprefix("data:image/png;base64,"))
    assert Image.open(io.BytesIO(raw)).size == (32, 64)
    assert set(Page(render(full(side=8))).attributes("img", "class")) == {"px"}
    assert Page(render(full(side=64))).attributes("img", "class") == []


def test_a_thousand_classes_stay_a_small_page() -> None:
    k = 1000
    counts = torch.eye(k, dtype=torch.int64) * 10
    counts[3, 7], counts[8, 2] = 5, 9
    content = full(k, side=32, channels=3)._replace(confusion=counts, samples=torch.rand(k, 10, 3, 32, 32))
    text = render(content)
    page = Page(text)
    assert len(text) < 2_000_000
    assert page.attributes("dt", "title") == [f"class {i}" for i in spread(k, 20)]
    assert "20 of 1,000 classes are shown" in page.text
    # the worst pair first: 9 of the 19 pictures of class 8
    worst = re.findall(r"<tr><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td>", text)
    assert worst == [("class 8", "class 2", "9 of 19"), ("class 3", "class 7", "5 of 15")]


def test_confusion_rows_are_true_and_columns_predicted() -> None:
    counts = torch.tensor([[8, 2], [0, 5]])
    text = render(BARE._replace(names=("cat", "dog"), confusion=counts))
    cells = re.findall(r'<td class="(\w+)"[^>]*>([^<]*)</td>', text)
    assert cells == [
        ("right", "8"),
        ("wrong", "2"),
        ("share", "80.0 %"),  # 8 of 10
        ("none", "·"),
        ("right", "5"),
        ("share", "100.0 %"),
    ]
    assert 'title="2 of 10 pictures of cat read as dog"' in text


def test_no_mistake_and_no_picture_are_said_plainly() -> None:
    assert "No mistake was made." in render(BARE._replace(confusion=torch.eye(30)))
    assert "–</td>" in render(BARE._replace(confusion=torch.tensor([[1, 0], [0, 0]])))


def test_losses_start_with_the_total_and_leave_out_rates() -> None:
    found = losses(rows())
    assert [s.name for s in found.series] == ["total", "margin", "recon", "total, validation"]
    assert found.x_label == "step"
    assert found.series[1].points == [(s, 1 / s) for s in (1, 2, 3, 4, 5, 6)]
    # a validation row that knows its epoch only stands at the epoch's last step
    assert found.series[3].points == [(2, 2.0), (4, 2.0), (6, 2.0)]
    assert found.series[3].dashed
    assert found.marks == []


def test_accuracy_is_in_percent_by_epoch() -> None:
    (series,) = accuracy(rows()).series
    assert series.points == [
        pytest.approx((1, 90.0)),
        pytest.approx((2, 95.0)),
        pytest.approx((3, 100 - 10 / 3)),
    ]


def test_stages_follow_one_another_and_rows_written_twice_count_once() -> None:
    def row(stage: str, step: int, total: float) -> dict[str, object]:
        return {"split": "train", "stage": stage, "step": step, "total": total}

    found = losses([row("a", 1, 9.0), row("a", 2, 8.0), row("a", 2, 7.0), row("b", 1, 6.0), row("b", 2, 5.0)])
    # the second stage counts from one again: it goes on after step 2
    assert found.series[0].points == [(1, 9.0), (2, 7.0), (3, 6.0), (4, 5.0)]
    assert found.marks == [(1, "a"), (3, "b")]


def test_rows_that_are_not_numbers_leave_no_trace_in_the_curves() -> None:
    odd = [math.nan, math.inf, None, "high", True]
    found = [{"split": "train", "step": i, "total": v} for i, v in enumerate(odd)]
    assert losses(found).series == []
    text = render(BARE._replace(metrics=[*found, *rows(1)]))
    assert not re.search(r"\b(nan|inf)\b", text, re.IGNORECASE)


def points(name: str, values: list[float]) -> History:
    return History([Series(name, [(float(i), v) for i, v in enumerate(values, 1)])], "step", [])


@pytest.mark.parametrize("value", [0.0, 1.0, -3.0, 1e-30, 1e30])
def test_a_single_point_is_a_dot_inside_the_frame(value: float) -> None:
    svg = chart(points("total", [value]), "Loss")
    (dot,) = re.findall(r'<circle class="dot"[^>]* cx="([\d.]+)" cy="([\d.]+)"', svg)
    assert 40 < float(dot[0]) < 372
    assert 24 <= float(dot[1]) <= 198
    assert "<path" not in svg


def test_larger_values_stand_higher_and_later_ones_further_right() -> None:
    (path,) = re.findall(r' d="M([^"]+)"', chart(points("total", [1.0, 3.0, 2.0]), "Loss"))
    (x1, y1), (x2, y2), (x3, y3) = (map(float, p.split(",")) for p in path.split("L"))
    assert x1 < x2 < x3
    assert y2 < y3 < y1  # on the page, up is less


def test_a_wide_range_of_positive_values_is_drawn_by_logarithm() -> None:
    (path,) = re.findall(r' d="M([^"]+)"', chart(points("total", [1000.0, 100.0, 10.0]), "Loss"))
    y = [float(p.split(",")[1]) for p in path.split("L")]
    assert y[1] - y[0] == pytest.approx(y[2] - y[1], abs=0.11)  # equal ratios are equal distances
    assert "logarithmic" not in chart(points("total", [1000.0, 0.0]), "Loss")
    assert "logarithmic" not in chart(points("total", [49.0, 1.0]), "Loss")


def test_a_hundred_thousand_rows_stay_a_small_chart_with_the_last_value_exact() -> None:
    svg = chart(points("total", [float(i) for i in range(100_000)]), "Loss")
    assert len(svg) < 100_000
    assert "<b>100k</b>" in svg


@pytest.mark.parametrize(
    ("axis", "ticks"),
    [
        (Axis(0.0, 40.0, 0.0, 1.0), [0, 10, 20, 30, 40]),
        (
            Axis(0.93, 1.0, 0.0, 1.0),
            [0.94, 0.96, 0.98, 1.0],
        ),  # steps of 0.02: the least of 1, 2, 5 above 0.07 / 4
        (Axis(0.9, 1100.0, 0.0, 1.0, log=True), [1, 10, 100, 1000]),
        (Axis(2.0, 110.0, 0.0, 1.0, log=True), [3, 10, 30, 100]),
    ],
)
def test_ticks_are_round(axis: Axis, ticks: list[float]) -> None:
    assert axis.ticks() == pytest.approx(ticks)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (4.1, "4.1"), (0.0314159, "0.0314"), (-2.5, "-2.5"), (123.4, "123"), (12_345.0, "12.3k"),
     (2e6, "2M"), (3e9, "3G"), (0.00002, "2e-5")],
)  # fmt: skip
def test_numbers_are_written_short(value: float, text: str) -> None:
    assert short(value) == text


def test_hashes_are_shortened_and_empty_facts_left_out() -> None:
    page = Page(render(full()))
    assert "pictures 1149, sha256 0123456789ab…" in page.text
    assert "notes" not in page.text


def test_a_pick_of_many_is_even_and_has_both_ends() -> None:
    assert spread(3, 5) == [0, 1, 2]
    assert spread(9, 5) == [0, 2, 4, 6, 8]


def test_the_written_file_is_the_page_and_nothing_else_is_left(tmp_path: Path) -> None:
    content = full()._replace(command="gencaps train \udcff")
    path = write_report(tmp_path / "report.html", content)
    assert os.listdir(tmp_path) == ["report.html"]
    assert path.read_text("utf-8") == render(content).replace("\udcff", "?")


@pytest.mark.parametrize(
    ("name", "words"),
    [("missing/report.html", "missing does not exist"), ("report.png", "must end in .html")],
)
def test_a_bad_place_for_the_report_is_refused_by_name(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(GencapsError, match=words) as caught:
        write_report(tmp_path / name, BARE)
    assert name in str(caught.value)
    assert os.listdir(tmp_path) == []
