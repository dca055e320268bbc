"""A trained model on its travels: config.json, model.safetensors and a model card in one folder."""

from __future__ import annotations

import hashlib
import json
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from gencaps import __version__
from gencaps.abilities import abilities
from gencaps.engine.config import plain, read
from gencaps.engine.run import Run, resume_command
from gencaps.errors import GencapsError, nearest
from gencaps.files import write_atomically
from gencaps.model import CapsuleModel, PictureInfo, count_parameters
from gencaps.systems import config_type, model_type

FORMAT = 1
CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"


def build(paper: str, config: Any, pictures: PictureInfo) -> CapsuleModel:
    """Makes an untrained model; its first weights come from torch's own generator."""
    return model_type(paper).variant(config)(config, pictures)


def sketch(paper: str, config: Any, pictures: PictureInfo) -> CapsuleModel:
    """Makes a model of shapes alone, without numbers: quick, and however large it would be."""
    try:
        with torch.device("meta"):
            return build(paper, config, pictures)
    except (RuntimeError, TypeError, OverflowError) as error:
        if "verflow" not in str(error):
            raise
        raise GencapsError(
            f"a {paper} model of these settings has more weights than can be counted: make it smaller"
        ) from None


def misfit(model: CapsuleModel, weights: dict[str, Tensor]) -> str | None:
    """Names the first weight that a model lacks, has too many, or has in another shape; ``None`` where all fit."""
    wanted, found = ({n: tuple(t.shape) for n, t in part.items()} for part in (model.state_dict(), weights))
    return min((n for n in wanted.keys() | found.keys() if wanted.get(n) != found.get(n)), default=None)


def checksum(weights: dict[str, Tensor]) -> str:
    """Hashes names, types, shapes and numbers of all weights."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        tensor = weights[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def describe(model: CapsuleModel) -> dict[str, Any]:
    """Gives what config.json holds: enough to build the model again."""
    return {
        "format": FORMAT,
        "gencaps": __version__,
        "paper": model.paper,
        "model": plain(model.config),
        "pictures": plain(model.pictures),
    }


def save_weights(model: CapsuleModel, folder: Path, *, half: bool = False, teachers: bool = True) -> None:
    """Writes config.json and model.safetensors; the weights carry their own checksum and config.

    With ``half`` numbers are written in half precision, in half of the space; they are read back as float32. Without
    ``teachers`` the parts that training alone needs are left out.
    """
    weights = {name: t.detach().cpu().contiguous() for name, t in model.state_dict().items()}
    if not teachers:
        weights = {name: t for name, t in weights.items() if name.partition(".")[0] not in model.teachers}
    if half:
        weights = {name: t.half() if t.is_floating_point() else t for name, t in weights.items()}
    config = json.dumps(describe(model), indent=2)
    write_atomically(folder / WEIGHTS, save(weights, {"gencaps": config, "sha256": checksum(weights), "format": "pt"}))
    write_atomically(folder / CONFIG, config + "\n")


def save_pretrained(model: CapsuleModel, folder: str | Path, card: str | None = None, *, half: bool = False) -> Path:
    """Writes a model folder that ``from_pretrained`` reads, with a model card for people.

    What training alone needs (an adversary) stays behind.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GencapsError(f"cannot make the folder {folder}: {error.strerror}") from None
    save_weights(model, folder, half=half, teachers=False)
    write_atomically(folder / CARD, card or model_card(model))
    return folder


def leave_behind(model: CapsuleModel, weights: dict[str, Tensor]) -> CapsuleModel:
    """Takes off a model the teachers of which there are no weights, in place."""
    there = {name.partition(".")[0] for name in weights}
    for name in model.teachers:
        if name not in there:
            setattr(model, name, None)
    return model


def model_card(model: CapsuleModel, made: str = "") -> str:
    """Writes the card that tells a stranger what the model is and is not; ``made`` says how it came to be."""
    info = model.pictures
    own = [p for name, p in model.named_parameters() if name.partition(".")[0] not in model.teachers]
    names = ", ".join(info.names[:20]) + (", ..." if len(info.names) > 20 else "")
    return f"""---
library_name: gencaps
tags: [capsule-networks, {model.paper.replace("_", "-")}]
---
# {model.title}, trained on {info.data or "an unnamed set"}

- pictures: {info.size} x {info.size}, {"grey" if info.channels == 1 else "colour"}
- {info.labels}: {names}
- parameters: {count_parameters(own):,}
- can: {", ".join(abilities(model))}

```python
import gencaps
model = gencaps.load("PATH OR HUB ID")
```

{made}Made with gencaps {__version__}. It knows only pictures like those it was trained on.
"""


def from_pretrained(name: str | Path, device: torch.device | str = "cpu") -> CapsuleModel:
    """Loads a run folder, a model folder or a hub id; pickles are never opened."""
    folder = find_model(name)
    values = _read_config(folder)
    weights, stored = _read_weights(folder)
    if stored != values:
        raise GencapsError(
            f"{folder / CONFIG} and {folder / WEIGHTS} disagree: one of them was changed; copy the folder again"
        )
    model = _rebuild(folder, values, weights)
    model.load_state_dict(weights)
    return model.to(device).eval()


def shipped() -> dict[str, Path]:
    """Lists the models that come with the package, by name."""
    folder = Path(str(resources.files("gencaps"))) / "pretrained"
    return {path.parent.name: path.parent for path in sorted(folder.glob(f"*/{WEIGHTS}"))}


def find_model(name: str | Path) -> Path:
    """Finds the folder that a MODEL argument names: on disk, one that comes along, or a hub id ``owner/name``."""
    path = Path(name)
    if path.is_dir():
        if not (path / WEIGHTS).exists():
            if is_run(path):
                raise GencapsError(f"{path} holds no model yet: {resume_command(path)}")
            raise GencapsError(
                f"{path} is neither a run folder nor a model folder: it has no {WEIGHTS}; give what gencaps train made"
            )
        return path
    if path.exists():
        raise GencapsError(f"{path} is a file: give the folder that holds {WEIGHTS}")
    ready = shipped()
    if str(name) in ready:
        return ready[str(name)]
    parts = str(name).split("/")
    if len(parts) == 2 and all(parts) and not str(name).startswith((".", "~")):
        return _from_hub(str(name))
    here = [p.parent.name for p in Path().glob(f"*/{WEIGHTS}")]
    offer = nearest(str(name), [*here, *ready])
    raise GencapsError(f"there is no model '{name}': give a run folder or a model folder{offer}")


def _from_hub(name: str) -> Path:
    missing = f"there is no folder '{name}' (gencaps train --out makes one); to take it as a hub id: "
    try:
        from huggingface_hub import snapshot_download  # pyright: ignore[reportMissingImports] (an extra)
    except ImportError:
        raise GencapsError(f"{missing}pip install 'gencaps[hub]'") from None
    try:
        return Path(snapshot_download(name, allow_patterns=[CONFIG, WEIGHTS, CARD]))
    except Exception as error:  # network, name and licence faults all come as different classes
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise GencapsError(f"{missing}the hub gave none: {reason}") from None


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    values: Any = None
    try:
        values = json.loads(path.read_text())
        known = isinstance(values, dict) and {"format", "paper", "model", "pictures"} <= values.keys()
    except OSError as error:
        raise GencapsError(f"cannot read {path}: {error.strerror}; copy the folder again") from None
    except (ValueError, RecursionError):
        known = False
    if not known or type(values["format"]) is not int:
        raise GencapsError(f"{path} is not the config of a gencaps model: copy the folder again")
    if values["format"] > FORMAT:
        raise GencapsError(
            f"{path} was written by gencaps {values.get('gencaps')} (format {values['format']}); "
            f"this is {__version__}, which reads up to format {FORMAT}: upgrade gencaps"
        )
    return values


def _read_weights(folder: Path) -> tuple[dict[str, Tensor], Any]:
    path = folder / WEIGHTS
    try:
        with safe_open(path, framework="pt") as file:
            facts = file.metadata() or {}
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (OSError, SafetensorError) as error:
        raise GencapsError(f"{path} is not a whole safetensors file ({error}): copy it again") from None
    if "gencaps" not in facts or "sha256" not in facts:
        raise GencapsError(f"{path} was not written by gencaps: only models that it saved can be loaded")
    if checksum(weights) != facts["sha256"]:
        raise GencapsError(f"{path} was changed after it was written (checksum differs): copy it again")
    try:
        return weights, json.loads(facts["gencaps"])
    except (ValueError, RecursionError):
        return weights, None  # no config is equal to it


def _rebuild(folder: Path, values: dict[str, Any], weights: dict[str, Tensor]) -> CapsuleModel:
    """Builds the model that a config names, once its shapes are known to be those of the weights."""
    try:
        config = read(config_type(values["paper"]), values["model"], "model")
        pictures = read(PictureInfo, values["pictures"], "pictures")
        wrong = misfit(leave_behind(sketch(values["paper"], config, pictures), weights), weights)
    except (GencapsError, TypeError, ValueError, RuntimeError) as error:  # a config may hold anything
        reason = (str(error).splitlines() or [""])[0]
        raise GencapsError(f"{folder / CONFIG} cannot be used: {reason}; copy the folder again") from None
    if wrong is not None:
        raise GencapsError(f"{folder / WEIGHTS} does not fit its config (at '{wrong}'): copy the folder again")
    return leave_behind(build(values["paper"], config, pictures), weights)


def how_made(run: Run) -> str:
    """Tells on a card how a run was trained and how well it did on the test part."""
    evaluation = run.path / "evaluation.json"
    figures: dict[str, Any] = json.loads(evaluation.read_text()) if evaluation.exists() else {}
    # a model without classes has no accuracy, and one that only paints has no error either
    known = {name: figures.get(name) for name in ("accuracy", "error_percent", "mse")}
    told = "".join(f"- {name}: {value:.4g}\n" for name, value in known.items() if value is not None)
    where = {"device": "an unknown device", "commit": "unknown", **run.facts().get("environment", {})}
    return f"""## How it was made
`gencaps train {run.recipe.paper} --config recipe.yaml` on {where["device"]}, commit {where["commit"]}; the recipe:

```yaml
{run.recipe.to_yaml().strip()}
```

## On the test part
{told or "not measured" + chr(10)}
"""


def is_run(folder: Path) -> bool:
    """Tells a run folder from a model folder."""
    return (folder / "config.yaml").exists()


def run_of(name: str | Path) -> Run | None:
    """Opens the run behind a MODEL argument, where there is one."""
    path = Path(name)
    return Run.open(path) if is_run(path) else None
