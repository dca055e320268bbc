"""What the service does: each question, the model's answer to it, and an example for the documentation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from pydantic import BaseModel
from torch import Tensor

from gencaps.api import Capsules, Painted
from gencaps.service import questions
from gencaps.service.answers import Explanation, Painting, Seen, explanation, seen
from gencaps.service.limits import PICTURES
from gencaps.service.problems import Problem, naming

Opened = Mapping[str, Tensor]
"""The pictures of a request, decoded and brought to the model's size, by field."""


class Act(NamedTuple):
    """One thing that can be asked of a model."""

    name: str
    about: str
    question: type[questions.Question]
    answer: type[BaseModel]
    run: Callable[[Capsules, Any, Opened], Any]
    example: dict[str, Any]
    """An example of the fields that are no pictures."""
    abilities: tuple[str, ...]
    """A model that has one of these can be asked."""


def classify(capsules: Capsules, asked: questions.Classify, opened: Opened) -> Seen:
    """Names what a picture shows."""
    return seen(capsules.classify(opened["picture"]))


def reconstruct(capsules: Capsules, asked: questions.Reconstruct, opened: Opened) -> Painted:
    """Paints a picture again."""
    return capsules.reconstruct(opened["picture"], sample=asked.sample, seed=asked.seed)


def generate(capsules: Capsules, asked: questions.Generate, opened: Opened) -> Painted:
    """Paints new pictures."""
    named = next((name for name in ("attributes", "classes", "like") if getattr(asked, name) is not None), "n")
    with naming(named):
        rows = 1
        if capsules.info.labels == "classes" and asked.like is None and "generate" in capsules.can:
            rows = len(capsules.names) if asked.classes is None else len(capsules.indices(asked.classes))
        if rows * asked.n > PICTURES:
            raise Problem(
                422,
                f"n is {asked.n}, of {rows} classes: more than {PICTURES} pictures",
                field="n",
                remedy=f"ask for at most {PICTURES} pictures: fewer of each, or of fewer classes",
            )
        wishes: Any = asked.attributes
        return capsules.generate(asked.classes, attributes=wishes, like=opened.get("like"), n=asked.n, seed=asked.seed)


def edit(capsules: Capsules, asked: questions.Edit, opened: Opened) -> Painted:
    """Paints a picture with something changed."""
    wishes: Any = asked.wishes
    with naming("wishes"):
        return capsules.edit(
            opened["picture"],
            wishes,
            styles=asked.styles,
            intensity=asked.intensity,
            sample=asked.sample,
            seed=asked.seed,
        )


def interpolate(capsules: Capsules, asked: questions.Interpolate, opened: Opened) -> Painted:
    """Walks from one picture to another."""
    with naming("only"):
        return capsules.interpolate(opened["start"], opened["end"], only=asked.only, steps=asked.steps)


@torch.no_grad()
def explain(capsules: Capsules, asked: questions.Explain, opened: Opened) -> Explanation:
    """Says who painted what in a picture."""
    model: Any = capsules.model
    return explanation(model.explain(opened["picture"]))


ACTS = (
    Act("classify", "Name what a picture shows", questions.Classify, Seen, classify, {}, ("classify",)),
    Act(
        "generate",
        "Paint new pictures",
        questions.Generate,
        Painting,
        generate,
        {"classes": ["Bag", "Sneaker"], "n": 4, "seed": 7},
        ("generate", "sample"),
    ),
    Act(
        "reconstruct",
        "Paint a picture again from its capsules",
        questions.Reconstruct,
        Painting,
        reconstruct,
        {"sample": False, "seed": 0},
        ("reconstruct",),
    ),
    Act(
        "edit",
        "Change something in a picture and keep the rest",
        questions.Edit,
        Painting,
        edit,
        {"wishes": {"Eyeglasses": 1}, "styles": 4, "seed": 7},
        ("edit",),
    ),
    Act(
        "interpolate",
        "Walk from one picture to another",
        questions.Interpolate,
        Painting,
        interpolate,
        {"steps": 8},
        ("interpolate",),
    ),
    Act("explain", "Say who painted what", questions.Explain, Explanation, explain, {}, ("explain",)),
)


def offers(capsules: Capsules) -> list[str]:
    """Lists what a model can be asked."""
    can = {*capsules.can, *(("explain",) if callable(getattr(capsules.model, "explain", None)) else ())}
    return [act.name for act in ACTS if can & set(act.abilities)]
