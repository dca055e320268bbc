"""``gencaps evaluate``."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gencaps.data.images import ImageSet, Splits
    from gencaps.model import CapsuleModel, PictureInfo


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "evaluate",
        help="measure a model on its test part",
        description="Classifies and reconstructs every picture of a part of the data, once.",
    )
    parser.add_argument("model", metavar="MODEL", help="a run folder, a model folder or a hub id")
    parser.add_argument("--data", metavar="SET", help="another set than the one it was trained on")
    parser.add_argument("--part", default="test", choices=("train", "valid", "test"))
    parser.add_argument("--device", default="auto", metavar="D", help="auto, cpu or cuda (default auto)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Prints accuracy, error, reconstruction error and time."""
    from gencaps.engine.evaluate import evaluate

    model, spec, splits = load_with_data(options)
    seen = evaluate(model, getattr(splits, options.part)).figures()
    if options.json:
        print(json.dumps({"model": str(options.model), "data": spec, "part": options.part, **seen}))
        return
    print(f"{options.model} on {spec}, {options.part} part: {seen['images']} pictures, {seen['seconds']:.1f} s")
    if seen["accuracy"] is not None:
        print(f"accuracy {100 * seen['accuracy']:.2f} %   error {seen['error_percent']:.2f} %")
    if seen["accuracy"] is None and seen["mse"] is None:
        print(f"a {model.paper} model neither classifies nor reconstructs: look at what it paints (gencaps generate)")
    if seen["mse"] is not None:
        print(f"reconstruction: mean squared error {seen['mse']:.5f} a pixel")


def load_with_data(options: argparse.Namespace) -> tuple[CapsuleModel, str, Splits]:
    """Loads a model and what it is measured on; names that data; refuses such as the model does not know."""
    from gencaps.engine.devices import choose_device
    from gencaps.engine.pretrained import from_pretrained

    model = from_pretrained(options.model, choose_device(options.device))
    spec = options.data or model.pictures.data
    splits = splits_for(options.model, model.pictures, spec)
    refuse_other(splits.test, model.pictures, spec, options.model)
    return model, spec, splits


def splits_for(name: str, info: PictureInfo, spec: str) -> Splits:
    """Loads the data that a model is measured on, cut as its run recorded it where that is its own."""
    from gencaps import data
    from gencaps.engine.pretrained import run_of
    from gencaps.engine.train import load_splits

    trained = run_of(name)
    if trained is not None and spec in (info.data, trained.recipe.data):
        splits = load_splits(trained.recipe)
        found = data.split_record(splits)
        if trained.facts().get("split", found) != found:  # not the very split that the run recorded
            changed = f"the data '{trained.recipe.data}' has changed since {name} was trained"
            print(f"note: {changed}: some of what is tested may have been trained on", file=sys.stderr)
    else:
        splits = data.load(spec, size=info.size)
    return splits


def refuse_other(part: ImageSet, info: PictureInfo, spec: str, model: str) -> None:
    """Refuses pictures of another shape, or with other labels, than a model was trained on."""
    from gencaps.errors import GencapsError

    shape, found = (info.channels, info.size, info.size), tuple(part.x.shape[1:])
    if found != shape or part.labels != info.labels or len(part.names) != len(info.names):
        raise GencapsError(
            f"{model} knows {len(info.names)} {info.labels} in pictures of {shape}; '{spec}' has {len(part.names)} "
            f"{part.labels} in pictures of {found}: choose data like '{info.data}'"
        )
    for ours, theirs in zip(info.names, part.names, strict=True):
        if ours != theirs:
            raise GencapsError(
                f"{model} knows '{ours}' where '{spec}' has '{theirs}': choose data with the {info.labels} of "
                f"'{info.data}'"
            )
