"""A picture's parse as a tree: objects, their parts and the parts' parts, as text and as a picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from gencaps.abilities import Parsed
from gencaps.figures import CAPTION_SIZE, INK, PAPER, save_picture, to_images

THERE = 0.5
"""How surely a part must be there to be shown."""
CELL, GAP, LEVEL = 64, 10, 44
"""Pixels a side of a node, between two nodes, and between two levels."""


@dataclass(frozen=True, eq=False)
class Node:
    """A capsule of a parse, or the whole picture, and what belongs to it."""

    name: str
    presence: float
    """How surely it is there."""
    share: float
    """How surely it is its parent's."""
    picture: Tensor
    """What it painted, (channels, height, width)."""
    children: tuple[Node, ...] = ()

    def text(self) -> str:
        """Draws the tree with characters."""
        return "\n".join(_lines(self, "", ""))

    def as_dict(self) -> dict[str, Any]:
        """Gives the tree as plain values."""
        inner = [child.as_dict() for child in self.children]
        return {"name": self.name, "presence": self.presence, "share": self.share, "children": inner}

    def image(self) -> Image.Image:
        """Draws the tree with a picture at each node; the surer whose part it is, the thicker the line."""
        root, width = _layout(self, float(GAP), 0)
        spots = list(root.all())
        caption = 2 * (CAPTION_SIZE + 2)
        each = CELL + caption + LEVEL
        depth = 1 + max(spot.level for spot in spots)
        page = Image.new("RGB", (round(width), 2 * GAP + depth * each - LEVEL), PAPER)
        draw, font = ImageDraw.Draw(page), ImageFont.load_default(CAPTION_SIZE)
        for spot in spots:
            start = (spot.x + CELL / 2, GAP + spot.level * each + CELL + caption)
            for child in spot.below:
                end = (child.x + CELL / 2, GAP + child.level * each)
                draw.line((start, end), INK, max(1, round(4 * child.node.share)))
        for spot in spots:
            corner = (round(spot.x), GAP + spot.level * each)
            (small,) = to_images(spot.node.picture[None])
            page.paste(small.convert("RGB").resize((CELL, CELL), Image.Resampling.NEAREST), corner)
            for line, said in enumerate((spot.node.name, f"{100 * spot.node.presence:.0f} %" if spot.level else "")):
                at = (corner[0] + CELL / 2, corner[1] + CELL + 1 + line * (CAPTION_SIZE + 2))
                draw.text(at, said, fill=INK, font=font, anchor="ma")
        return page

    def save(self, path: str | Path) -> Path:
        """Writes the drawn tree."""
        return save_picture(self.image(), path)


@dataclass(frozen=True, eq=False)
class Spot:
    """Where a node is drawn."""

    node: Node
    x: float
    level: int
    below: tuple[Spot, ...]

    def all(self) -> Iterator[Spot]:
        """Gives itself and all below it."""
        yield self
        for spot in self.below:
            yield from spot.all()


def trees(parsed: Parsed, names: list[str]) -> list[Node]:
    """Builds the tree of each picture: every part that is there hangs from whoever most surely has it.

    Args:
        parsed: how the pictures are read.
        names: what to call the pictures.
    """
    on_cpu = Parsed(parsed.picture.cpu(), *(tuple(t.cpu() for t in part) for part in parsed[1:]))
    return [_tree(on_cpu, row, name) for row, name in enumerate(names)]


def _tree(parsed: Parsed, row: int, name: str) -> Node:
    depth, loose = len(parsed.presence), []
    below: dict[int, list[Node]] = {}
    for layer in reversed(range(depth)):
        said = "template" if layer == depth - 1 else "object" if layer == 0 else f"capsule {layer}."
        space = "" if said.endswith(".") else " "
        nodes: dict[int, list[Node]] = {}
        there = parsed.presence[layer][row]
        link = None if layer == 0 else parsed.whose[layer - 1][row]
        for index in range(len(there)):
            own = tuple(below.get(index, ()))
            # a parent is shown for its parts' sake; a template for its own
            if not own and (layer < depth - 1 or float(there[index]) < THERE):
                continue
            slot = -1 if link is None else int(link[:, index].argmax())
            share = 1.0 if link is None else float(link[slot, index])
            node = Node(f"{said}{space}{index}", float(there[index]), share, parsed.painted[layer][row, index], own)
            if slot == 0:
                loose.append(node)
            else:
                nodes.setdefault(slot - 1, []).append(node)
        below = nodes
    top = [node for group in below.values() for node in group]
    top.sort(key=lambda node: -node.presence)
    if loose:
        picture = torch.stack([node.picture for node in loose]).sum(0).clamp(0, 1)
        top.append(Node("nobody's", 1.0, 1.0, picture, tuple(loose)))
    return Node(name, 1.0, 1.0, parsed.picture[row], tuple(top))


def _lines(node: Node, first: str, rest: str) -> list[str]:
    sure = f"  {100 * node.presence:.0f} %" if first and node.name != "nobody's" else ""
    whose = f", its part: {100 * node.share:.0f} %" if node.share < 0.995 else ""
    lines = [f"{first}{node.name}{sure}{whose}"]
    for place, child in enumerate(node.children):
        last = place == len(node.children) - 1
        lines += _lines(child, f"{rest}{'└─ ' if last else '├─ '}", f"{rest}{'   ' if last else '│  '}")
    return lines


def _layout(node: Node, left: float, level: int) -> tuple[Spot, float]:
    """Puts each node above the middle of its children; gives where the next may begin too."""
    below, right = [], left
    for child in node.children:
        spot, right = _layout(child, right, level + 1)
        below.append(spot)
    x = (below[0].x + below[-1].x) / 2 if below else left
    return Spot(node, x, level, tuple(below)), max(right, left + CELL + GAP)
