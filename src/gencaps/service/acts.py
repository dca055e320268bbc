"""What the service does: each question, the model's answer to it, and an example for the documentation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from pydantic import BaseModel
from torch import Tensor

from gencaps.api import Capsules
from gencaps.painted import Painted
from gencaps.service import questions
from gencaps.service.answers import (
    GIF,
    JSON,
    PNG,
    Encoded,
    Explanation,
    Painting,
    Scored,
    Seen,
    encoded,
    explanation,
    seen,
)
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
    named = next(
        (name for name in ("attributes", "classes", "capsules", "domain", "like") if getattr(asked, name) is not None),
        "n",
    )
    with naming(named):
        rows = 1
        if asked.capsules is not None or asked.domain is not None:
            rows = len(asked.capsules or ()) or getattr(capsules.model, "experts", 1)
        elif capsules.info.labels == "classes" and asked.like is None and "generate" in capsules.can:
            rows = len(capsules.names) if asked.classes is None else len(capsules.indices(asked.classes))
        if rows * asked.n > PICTURES:
            raise Problem(
                422,
                f"n is {asked.n}, of {rows} rows: more than {PICTURES} pictures",
                field="n",
                remedy=f"ask for at most {PICTURES} pictures: fewer of each, or of fewer classes or capsules",
            )
        wishes: Any = asked.attributes
        return capsules.generate(
            asked.classes,
            attributes=wishes,
            like=opened.get("like"),
            capsule=asked.capsules,
            domain=asked.domain,
            n=asked.n,
            seed=asked.seed,
        )


def edit(capsules: Capsules, asked: questions.Edit, opened: Opened) -> Painted:
    """Paints a picture with something changed."""
    wishes: Any = asked.wishes
    with naming("wishes"):
        capsules.wishes(wishes)
    with naming("turn"):
        return capsules.edit(
            opened["picture"],
            wishes,
            styles=asked.styles,
            intensity=asked.intensity,
            sample=asked.sample,
            seed=asked.seed,
            turn=asked.turn,
        )


def interpolate(capsules: Capsules, asked: questions.Interpolate, opened: Opened) -> Painted:
    """Walks from one picture to another."""
    with naming("only"):
        return capsules.interpolate(opened["start"], opened["end"], only=asked.only, steps=asked.steps)


@torch.no_grad()
def explain(capsules: Capsules, asked: questions.Explain, opened: Opened) -> Explanation:
    """Says who painted what in a picture."""
    model: Any = capsules.model
    return explanation(model.explain(opened["picture"]), capsules.explain(opened["picture"]))


def encode(capsules: Capsules, asked: questions.Encode, opened: Opened) -> Encoded:
    """Gives the capsules of a picture."""
    model: Any = capsules.model
    return encoded(capsules.dials(opened["picture"]), model.capsule_names)


def turn(capsules: Capsules, asked: questions.Turn, opened: Opened) -> Painted:
    """Paints capsules that are given as numbers."""
    model: Any = capsules.model
    count, dim = len(model.capsule_names), model.config.dim
    if len(asked.capsules) != count or any(len(one) != dim for one in asked.capsules):
        raise _misfit("capsules", f"{count} lists of {dim} numbers")
    if len(asked.on) != count:
        raise _misfit("on", f"{count} numbers")
    return capsules.paint(torch.tensor([asked.capsules]), torch.tensor([asked.on]))


def _misfit(field: str, wanted: str) -> Problem:
    return Problem(422, f"{field} does not fit the model", field=field, remedy=f"send {wanted}, as encode gives them")


def move(capsules: Capsules, asked: questions.Move, opened: Opened) -> Painted:
    """Paints a picture with an object moved."""
    with naming("object"):
        return capsules.move(opened["picture"], asked.object, right=asked.right, down=asked.down)


def walk(capsules: Capsules, asked: questions.Walk, opened: Opened) -> Painted:
    """Walks between new pictures."""
    return capsules.walk(asked.n, steps=asked.steps, seed=asked.seed)


def explore(capsules: Capsules, asked: questions.Explore, opened: Opened) -> Painted:
    """Walks along the axes of a capsule."""
    with naming("capsule"):
        return capsules.explore(asked.capsule, steps=asked.steps)


def score(capsules: Capsules, asked: questions.Score, opened: Opened) -> Scored:
    """Says how real a picture looks."""
    return Scored(score=float(capsules.score(opened["picture"])[0]))


def fit(capsules: Capsules, asked: questions.Fit, opened: Opened) -> Painted:
    """Gives a picture as the model sees it."""
    return Painted(opened["picture"].cpu(), [""], 1)


TAKING = ("classify", "encode", "reconstruct", "edit", "interpolate", "explain", "score")
"""A model that has one of these takes pictures."""
TURNED: dict[str, Any] = {"capsules": [[0.5] * 8] * 10, "on": [1.0] + [0.0] * 9}

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
    Act("encode", "Give the capsules of a picture as numbers", questions.Encode, Encoded, encode, {}, ("turn",)),
    Act("turn", "Paint capsules given as numbers", questions.Turn, Painting, turn, TURNED, ("turn",)),
    Act(
        "move",
        "Move an object of a picture, whose parts follow",
        questions.Move,
        Painting,
        move,
        {"object": 0, "right": 0.5, "down": 0.0},
        ("move",),
    ),
    Act("walk", "Walk between new pictures", questions.Walk, Painting, walk, {"steps": 8, "seed": 7}, ("walk",)),
    Act(
        "explore",
        "Walk along the axes of one capsule",
        questions.Explore,
        Painting,
        explore,
        {"capsule": 0, "steps": 8},
        ("explore",),
    ),
    Act("score", "Say how real a picture looks", questions.Score, Scored, score, {}, ("score",)),
    Act("fit", "Give a picture as the model sees it", questions.Fit, Painting, fit, {}, TAKING),
)
MOVING = ("interpolate", "walk")
"""The acts whose pictures may move."""


def offers(capsules: Capsules) -> list[str]:
    """Lists what a model can be asked."""
    return [act.name for act in ACTS if set(capsules.can) & set(act.abilities)]


def forms(act: Act) -> tuple[str, ...]:
    """Lists the forms in which an act is answered, the usual one first."""
    if act.answer is not Painting:
        return (JSON,)
    return (JSON, PNG, GIF) if act.name in MOVING else (JSON, PNG)
