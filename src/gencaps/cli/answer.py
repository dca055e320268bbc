"""The commands that put a question to a trained model: classify, encode, generate, edit, walk, explore and so on."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gencaps.cli.asking import (
    INVERT,
    add_out,
    add_pictures,
    beside,
    command,
    count,
    files_in,
    load_model,
    numbers,
    read_pictures,
    share,
    show,
)
from gencaps.errors import GencapsError

if TYPE_CHECKING:
    from gencaps.trees import Node


def add_parsers(commands: Any) -> None:
    """Adds the commands."""
    classify = command(commands, "classify", "name what pictures show", run_classify)
    add_pictures(classify)
    classify.add_argument("--top", type=count, default=3, metavar="N", help="how many classes to name (3)")

    reconstruct = command(commands, "reconstruct", "paint pictures again from their capsules", run_reconstruct)
    add_pictures(reconstruct)
    add_out(reconstruct)
    reconstruct.add_argument("--sample", action="store_true", help="from a sample instead of the means")
    reconstruct.add_argument(
        "--refine", type=count, default=0, metavar="N", help="optimise each picture's capsules for N steps first"
    )

    explain = command(commands, "explain", "show which part and which object painted what", run_explain)
    add_pictures(explain)
    explain.add_argument("--tree", action="store_true", help="draw how a picture is read: objects and their parts")
    add_out(explain)

    generate = command(commands, "generate", "paint new pictures", run_generate)
    generate.add_argument("--classes", metavar="A,B", help="classes by name (default: all)")
    generate.add_argument("--attributes", metavar="A=1,B=0", help="attributes by name (others: as they mostly are)")
    generate.add_argument("--like", metavar="PICTURE", help="take the attributes or the class of a picture")
    generate.add_argument("--capsule", type=numbers, metavar="J,K", help="draw from these capsules alone, from 0")
    generate.add_argument("--plain", action="store_true", help="of a scene: each part where its object expects it")
    generate.add_argument("--domain", choices=("full", "restricted"), help="the sphere to draw capsules from")
    generate.add_argument("--n", type=count, default=8, metavar="N", help="pictures of each (8)")
    add_out(generate)

    explore = command(commands, "explore", "walk along the axes of one capsule", run_explore)
    explore.add_argument("--capsule", type=count, required=True, metavar="J", help="which capsule, from 0")
    explore.add_argument("--steps", type=count, default=8, metavar="N", help="pictures in a walk (8)")
    add_out(explore)

    encode = command(commands, "encode", "give the capsules of pictures", run_encode)
    add_pictures(encode)

    edit = command(commands, "edit", "change something in pictures and keep the rest", run_edit)
    add_pictures(edit)
    edit.add_argument("--set", required=True, metavar="A=1,B=0", help="attributes to switch, or the class to become")
    edit.add_argument("--styles", type=count, default=0, metavar="N", help="draw N styles of the change")
    edit.add_argument("--intensity", type=share, metavar="0..1", help="how far to go (1)")
    edit.add_argument("--steps", type=count, metavar="N", help="a strip of N intensities from 0 to 1")
    edit.add_argument("--sample", action="store_true", help="draw what is kept from its posterior, not its mean")
    edit.add_argument("--turn", metavar="C.K=V", help="and numbers of capsules, such as 'Hat on.0=1.5'")
    add_out(edit)

    resample = command(commands, "resample", "paint what pictures show in other styles", run_resample)
    add_pictures(resample)
    resample.add_argument("--only", metavar="A,B", help="these attributes only (default: all that is shown)")
    resample.add_argument("--n", type=count, default=8, metavar="N", help="styles of each picture (8)")
    add_out(resample)

    interpolate = command(commands, "interpolate", "walk from one picture to another", run_interpolate)
    interpolate.add_argument("start", metavar="A", help="the picture to start from")
    interpolate.add_argument("end", metavar="B", help="the picture to end at")
    interpolate.add_argument("--only", metavar="A,B", help="these attributes only (default: all)")
    interpolate.add_argument("--steps", type=count, default=8, metavar="N", help="pictures in the walk (8)")
    interpolate.add_argument("--invert", action="store_true", help=INVERT)
    add_out(interpolate)

    turn = command(commands, "turn", "set numbers of pictures' capsules by hand", run_turn)
    add_pictures(turn)
    turn.add_argument("--set", required=True, metavar="C.K=V", help="number K of capsule C, such as 7.0=1.5,7.3=-2")
    add_out(turn)

    walk = command(commands, "walk", "walk between new pictures", run_walk)
    walk.add_argument("--n", type=count, default=4, metavar="N", help="walks (4)")
    walk.add_argument("--steps", type=count, default=8, metavar="N", help="pictures in a walk (8)")
    add_out(walk)


SAID = 0.1
"""The doubt from which on it is said that a picture may show nothing known."""


def with_doubt(names: str, doubt: float) -> str:
    """Says how likely a picture shows nothing known: first where that is likelier than not."""
    if doubt >= 0.5:
        return f"none of these ({100 * doubt:.0f} %); were it one:  {names}"
    return f"{names}  (none of these: {100 * doubt:.0f} %)" if doubt >= SAID else names


def run_classify(options: argparse.Namespace) -> None:
    """Prints the likeliest classes of each picture."""
    if options.top < 1:
        raise GencapsError(f"--top is {options.top}; it must be at least 1")
    model, files = load_model(options), files_in(options.pictures)
    seen = model.classify(read_pictures(model, files, options.invert))
    if options.json:
        doubts = [None] * len(files) if seen.unknown is None else seen.unknown.tolist()
        rows = [
            {"picture": str(f), "label": label, "presence": dict(zip(seen.names, row, strict=True)), "unknown": doubt}
            for f, label, row, doubt in zip(files, seen.label, seen.presence.tolist(), doubts, strict=True)
        ]
        print(json.dumps(rows))
        return
    for place, (file, row) in enumerate(zip(files, seen.presence, strict=True)):
        best = row.topk(min(options.top, len(row)))
        names = [
            f"{seen.names[i]} {100 * p:.1f} %" for p, i in zip(best.values.tolist(), best.indices.tolist(), strict=True)
        ]
        doubt = 0.0 if seen.unknown is None else float(seen.unknown[place])
        print(f"{file}  {with_doubt('  '.join(names), doubt)}")


def run_reconstruct(options: argparse.Namespace) -> None:
    """Paints each picture beside its reconstruction."""
    model, files = load_model(options), files_in(options.pictures)
    x = read_pictures(model, files, options.invert)
    made = model.reconstruct(x, sample=options.sample, refine=options.refine, seed=options.seed, progress=True)
    mse = (x.cpu() - made.pictures).square().mean().item()
    show(beside(x, made), options, mse=mse)


def run_explain(options: argparse.Namespace) -> None:
    """Paints each picture as given, painted again, and coloured by who painted each pixel; or its parse as a tree."""
    model, files = load_model(options), files_in(options.pictures)
    if options.tree:
        _show_trees(model.parse(read_pictures(model, files, options.invert), [file.name for file in files]), options)
        return
    show(model.explain(read_pictures(model, files, options.invert)), options)


def _show_trees(trees: list[Node], options: argparse.Namespace) -> None:
    """Draws parses as text, and one of them as a picture where that is asked for."""
    if options.out is not None:
        if len(trees) > 1:
            raise GencapsError(f"a tree is drawn of one picture, and {len(trees)} were given: give one, or no --out")
        trees[0].save(options.out)
    if options.json:
        print(json.dumps([tree.as_dict() for tree in trees]))
        return
    print("\n".join(tree.text() for tree in trees))
    if options.out is not None:
        print(f"wrote {options.out}")


def run_generate(options: argparse.Namespace) -> None:
    """Paints new pictures of the classes asked for."""
    model = load_model(options)
    classes = None if options.classes is None else [word.strip() for word in options.classes.split(",")]
    like = None if options.like is None else read_pictures(model, [Path(options.like)], False)
    capsule: Any = {"capsule": options.capsule, "domain": options.domain}
    if "draw" not in model.can and any(value is not None for value in capsule.values()):
        raise GencapsError(f"--capsule and --domain are for models whose capsules draw alone; {options.model} cannot")
    asked: Any = {"attributes": options.attributes, "like": like, **capsule}
    made = model.generate(classes, **asked, plain=options.plain, n=options.n, seed=options.seed)
    show(made, options, seed=options.seed)


def run_explore(options: argparse.Namespace) -> None:
    """Paints a walk along each axis of a capsule."""
    show(load_model(options).explore(options.capsule, steps=options.steps), options)


def run_encode(options: argparse.Namespace) -> None:
    """Prints how far each capsule is on; with --json every number of every named tensor."""
    model, files = load_model(options), files_in(options.pictures)
    code = model.encode(read_pictures(model, files, options.invert))
    if options.json:
        print(json.dumps([{"picture": str(file), **_row(code, place)} for place, file in enumerate(files)]))
        return
    name = next(name for name in ("presence", "kl", *code._fields) if hasattr(code, name))
    for file, row in zip(files, getattr(code, name), strict=True):
        print(f"{file}  {name}  {' '.join(f'{value:.3f}' for value in row.flatten().tolist())}")


def _row(code: Any, place: int) -> Any:
    """Gives the numbers of one picture: named tensors by name, layers of them as a list."""
    if hasattr(code, "_fields"):
        return {name: _row(part, place) for name, part in code._asdict().items()}
    return [_row(part, place) for part in code] if isinstance(code, tuple) else code[place].tolist()


def run_edit(options: argparse.Namespace) -> None:
    """Paints each picture beside itself with something changed: original, painted again, then the edits."""
    import torch

    if options.steps is not None and options.steps < 2:
        raise GencapsError(f"--steps is {options.steps}; a way from 0 to 1 takes 2 or more")
    if options.steps is not None and options.intensity is not None:
        raise GencapsError("--steps goes from intensity 0 to 1: leave --intensity out")
    model, files = load_model(options), files_in(options.pictures)
    model.wishes(options.set)  # refused before pictures are read
    x = read_pictures(model, files, options.invert)
    intensity: Any = 1.0 if options.intensity is None else options.intensity
    if options.steps is not None:
        intensity = torch.linspace(0, 1, options.steps).tolist()
    made = model.edit(
        x,
        options.set,
        styles=options.styles,
        intensity=intensity,
        sample=options.sample,
        seed=options.seed,
        turn=options.turn,
    )
    show(beside(x, model.reconstruct(x), made), options, set=options.set, seed=options.seed)


def run_resample(options: argparse.Namespace) -> None:
    """Paints what each picture shows in other styles."""
    model, files = load_model(options), files_in(options.pictures)
    made = model.resample(
        read_pictures(model, files, options.invert), only=options.only, n=options.n, seed=options.seed
    )
    show(made, options, seed=options.seed)


def run_interpolate(options: argparse.Namespace) -> None:
    """Walks from one picture to another."""
    model = load_model(options)
    start, end = (read_pictures(model, [Path(p)], options.invert) for p in (options.start, options.end))
    show(model.interpolate(start, end, only=options.only, steps=options.steps), options)


def run_walk(options: argparse.Namespace) -> None:
    """Walks between new pictures, for models that need none to start from."""
    made = load_model(options).walk(options.n, steps=options.steps, seed=options.seed)
    show(made, options, seed=options.seed)


def run_turn(options: argparse.Namespace) -> None:
    """Paints each picture with numbers of its capsules set."""
    model, files = load_model(options), files_in(options.pictures)
    show(model.turn(read_pictures(model, files, options.invert), options.set), options, set=options.set)
