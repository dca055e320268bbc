"""The commands that put a question to a trained model: classify, encode, generate, edit, walk, explore and so on."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gencaps.errors import GencapsError

if TYPE_CHECKING:
    from gencaps.api import Capsules, Painted
    from gencaps.trees import Node


def add_parsers(commands: Any) -> None:
    """Adds the commands."""
    classify = _command(commands, "classify", "name what pictures show", run_classify)
    _pictures(classify)
    classify.add_argument("--top", type=_count, default=3, metavar="N", help="how many classes to name (3)")

    reconstruct = _command(commands, "reconstruct", "paint pictures again from their capsules", run_reconstruct)
    _pictures(reconstruct)
    _out(reconstruct)
    reconstruct.add_argument("--sample", action="store_true", help="from a sample instead of the means")
    reconstruct.add_argument(
        "--refine", type=_count, default=0, metavar="N", help="optimise each picture's capsules for N steps first"
    )

    explain = _command(commands, "explain", "show which part and which object painted what", run_explain)
    _pictures(explain)
    explain.add_argument("--tree", action="store_true", help="draw how a picture is read: objects and their parts")
    _out(explain)

    generate = _command(commands, "generate", "paint new pictures", run_generate)
    generate.add_argument("--classes", metavar="A,B", help="classes by name (default: all)")
    generate.add_argument("--attributes", metavar="A=1,B=0", help="attributes by name (others: as they mostly are)")
    generate.add_argument("--like", metavar="PICTURE", help="take the attributes or the class of a picture")
    generate.add_argument("--capsule", type=_numbers, metavar="J,K", help="draw from these capsules alone, from 0")
    generate.add_argument("--domain", choices=("full", "restricted"), help="the sphere to draw capsules from")
    generate.add_argument("--n", type=_count, default=8, metavar="N", help="pictures of each (8)")
    _out(generate)

    explore = _command(commands, "explore", "walk along the axes of one capsule", run_explore)
    explore.add_argument("--capsule", type=_count, required=True, metavar="J", help="which capsule, from 0")
    explore.add_argument("--steps", type=_count, default=8, metavar="N", help="pictures in a walk (8)")
    _out(explore)

    encode = _command(commands, "encode", "give the capsules of pictures", run_encode)
    _pictures(encode)

    edit = _command(commands, "edit", "change something in pictures and keep the rest", run_edit)
    _pictures(edit)
    edit.add_argument("--set", required=True, metavar="A=1,B=0", help="attributes to switch, or the class to become")
    edit.add_argument("--styles", type=_count, default=0, metavar="N", help="draw N styles of the change")
    edit.add_argument("--intensity", type=_share, metavar="0..1", help="how far to go (1)")
    edit.add_argument("--steps", type=_count, metavar="N", help="a strip of N intensities from 0 to 1")
    edit.add_argument("--sample", action="store_true", help="draw what is kept from its posterior, not its mean")
    edit.add_argument("--turn", metavar="C.K=V", help="and numbers of capsules, such as 'Hat on.0=1.5'")
    _out(edit)

    resample = _command(commands, "resample", "paint what pictures show in other styles", run_resample)
    _pictures(resample)
    resample.add_argument("--only", metavar="A,B", help="these attributes only (default: all that is shown)")
    resample.add_argument("--n", type=_count, default=8, metavar="N", help="styles of each picture (8)")
    _out(resample)

    interpolate = _command(commands, "interpolate", "walk from one picture to another", run_interpolate)
    interpolate.add_argument("start", metavar="A", help="the picture to start from")
    interpolate.add_argument("end", metavar="B", help="the picture to end at")
    interpolate.add_argument("--only", metavar="A,B", help="these attributes only (default: all)")
    interpolate.add_argument("--steps", type=_count, default=8, metavar="N", help="pictures in the walk (8)")
    interpolate.add_argument("--invert", action="store_true", help=_INVERT)
    _out(interpolate)

    turn = _command(commands, "turn", "set numbers of pictures' capsules by hand", run_turn)
    _pictures(turn)
    turn.add_argument("--set", required=True, metavar="C.K=V", help="number K of capsule C, such as 7.0=1.5,7.3=-2")
    _out(turn)

    walk = _command(commands, "walk", "walk between new pictures", run_walk)
    walk.add_argument("--n", type=_count, default=4, metavar="N", help="walks (4)")
    walk.add_argument("--steps", type=_count, default=8, metavar="N", help="pictures in a walk (8)")
    _out(walk)


SAID = 0.1
"""The doubt from which on it is said that a picture may show nothing known."""
MOST = 1_000_000
"""Pictures that can be asked for at once."""


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number") from None
    if number > MOST:
        raise argparse.ArgumentTypeError(f"{number} is more than {MOST:,}")
    return number


def _numbers(text: str) -> list[int]:
    return [_count(word) for word in text.split(",")]


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number") from None
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not from 0 to 1")
    return share


_INVERT = "swap dark and light first (for dark ink on white paper)"


def _command(commands: Any, name: str, about: str, run: Any) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.")
    parser.add_argument("model", metavar="MODEL", help="a run folder, a model folder or a hub id")
    parser.add_argument("--device", default="auto", metavar="D", help="auto, cpu or cuda (default auto)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)
    return parser


def _pictures(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pictures", nargs="+", metavar="PICTURE", help="picture files, or folders of them")
    parser.add_argument("--invert", action="store_true", help=_INVERT)


def _out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, metavar="PNG", help="where the picture goes (.gif for a moving one)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="same seed, same picture")


def _load(options: argparse.Namespace) -> Capsules:
    from gencaps.api import load

    return load(options.model, options.device)


def _files(given: list[str]) -> list[Path]:
    from gencaps.data.pictures import SUFFIXES

    found: list[Path] = []
    for word in given:
        path = Path(word)
        if path.is_dir():
            inside = sorted(p for p in path.iterdir() if p.suffix.lower() in SUFFIXES and not p.name.startswith("."))
            if not inside:
                below = sorted(str(p) for p in path.iterdir() if p.is_dir())
                remedy = f"give a folder in it, such as {below[0]}" if below else "give another folder or a picture"
                raise GencapsError(f"{path} itself holds no pictures ({', '.join(SUFFIXES)}): {remedy}")
            found += inside
        else:
            found.append(path)
    return found


def _read(model: Capsules, files: list[Path], invert: bool) -> Any:
    x = model.pictures(files)
    _say_scaled(model, files)
    return 1.0 - x if invert else x


def _say_scaled(model: Capsules, files: list[Path]) -> None:
    """Says which pictures were scaled, cropped or changed in colour to fit the model."""
    from gencaps.data.pictures import read_header

    size, grey = model.info.size, model.info.channels == 1
    heads = [(file, read_header(file)) for file in files]
    other = [file for file, head in heads if (head.width, head.height, head.grey) != (size, size, grey)]
    if other:
        more = f" and {len(other) - 1} more" if len(other) > 1 else ""
        kind = "grey" if grey else "colour"
        print(f"note: {other[0]}{more} was brought to the model's {size} x {size} px, {kind}", file=sys.stderr)


def _show(painted: Painted, options: argparse.Namespace, **facts: Any) -> None:
    """Writes the picture where asked; otherwise draws it in the terminal."""
    if options.out is not None:
        from gencaps.figures import save_gif

        if options.out.suffix.lower() == ".gif":
            save_gif(painted.pictures, options.out)
        else:
            painted.save(options.out)
    said = {"labels": painted.labels, "columns": painted.columns, "pictures": len(painted.pictures), **facts}
    if options.json:
        print(json.dumps({**said, "out": None if options.out is None else str(options.out)}))
    elif options.out is not None:
        shown = ", ".join(filter(None, painted.labels[:12]))
        print(f"wrote {options.out}{': ' if shown else ''}{shown}")
    else:
        draw(painted)


def draw(painted: Painted) -> None:
    """Draws pictures with characters, in colour where the terminal takes it."""
    import shutil

    from gencaps.figures import terminal

    width = shutil.get_terminal_size((100, 24)).columns
    print(terminal(painted.pictures, painted.columns, width=width, color=sys.stdout.isatty()))


def run_classify(options: argparse.Namespace) -> None:
    """Prints the likeliest classes of each picture."""
    if options.top < 1:
        raise GencapsError(f"--top is {options.top}; it must be at least 1")
    model, files = _load(options), _files(options.pictures)
    seen = model.classify(_read(model, files, options.invert))
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
        names += [f"(none of these: {100 * doubt:.0f} %)"] if doubt >= SAID else []
        print(f"{file}  {'  '.join(names)}")


def run_reconstruct(options: argparse.Namespace) -> None:
    """Paints each picture beside its reconstruction."""
    import torch

    from gencaps.api import Painted

    model, files = _load(options), _files(options.pictures)
    x = _read(model, files, options.invert)
    made = model.reconstruct(x, sample=options.sample, refine=options.refine, seed=options.seed)
    pairs = torch.stack([x.cpu(), made.pictures], 1).flatten(0, 1)
    mse = (x.cpu() - made.pictures).square().mean().item()
    _show(Painted(pairs, made.labels, 2), options, mse=mse)


def run_explain(options: argparse.Namespace) -> None:
    """Paints each picture as given, painted again, and coloured by who painted each pixel; or its parse as a tree."""
    model, files = _load(options), _files(options.pictures)
    if options.tree:
        _show_trees(model.parse(_read(model, files, options.invert), [file.name for file in files]), options)
        return
    _show(model.explain(_read(model, files, options.invert)), options)


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
    model = _load(options)
    classes = None if options.classes is None else [word.strip() for word in options.classes.split(",")]
    like = None if options.like is None else _read(model, [Path(options.like)], False)
    capsule: Any = {"capsule": options.capsule, "domain": options.domain}
    made = model.generate(classes, attributes=options.attributes, like=like, n=options.n, seed=options.seed, **capsule)
    _show(made, options, seed=options.seed)


def run_explore(options: argparse.Namespace) -> None:
    """Paints a walk along each axis of a capsule."""
    _show(_load(options).explore(options.capsule, steps=options.steps), options)


def run_encode(options: argparse.Namespace) -> None:
    """Prints how far each capsule is on; with --json every number of every named tensor."""
    model, files = _load(options), _files(options.pictures)
    code = model.encode(_read(model, files, options.invert))
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

    from gencaps.api import Painted

    if options.steps is not None and (options.intensity is not None or options.steps < 2):
        raise GencapsError("--steps goes from 0 to 1 in 2 or more steps: leave --intensity out")
    model, files = _load(options), _files(options.pictures)
    model.wishes(options.set)  # refused before pictures are read
    x = _read(model, files, options.invert)
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
    again = model.reconstruct(x)
    rows = torch.cat([x.cpu()[:, None], again.pictures[:, None], made.pictures.unflatten(0, (len(x), -1))], 1)
    _show(Painted(rows.flatten(0, 1), made.labels, 2 + made.columns), options, set=options.set, seed=options.seed)


def run_resample(options: argparse.Namespace) -> None:
    """Paints what each picture shows in other styles."""
    model, files = _load(options), _files(options.pictures)
    made = model.resample(_read(model, files, options.invert), only=options.only, n=options.n, seed=options.seed)
    _show(made, options, seed=options.seed)


def run_interpolate(options: argparse.Namespace) -> None:
    """Walks from one picture to another."""
    model = _load(options)
    start, end = (_read(model, [Path(p)], options.invert) for p in (options.start, options.end))
    _show(model.interpolate(start, end, only=options.only, steps=options.steps), options)


def run_walk(options: argparse.Namespace) -> None:
    """Walks between new pictures, for models that need none to start from."""
    made = _load(options).walk(options.n, steps=options.steps, seed=options.seed)
    _show(made, options, seed=options.seed)


def run_turn(options: argparse.Namespace) -> None:
    """Paints each picture with numbers of its capsules set."""
    model, files = _load(options), _files(options.pictures)
    _show(model.turn(_read(model, files, options.invert), options.set), options, set=options.set)
