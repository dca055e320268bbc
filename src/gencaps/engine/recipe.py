"""A recipe: what is trained, on what, and how; and where the named ones come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import yaml

from gencaps.engine.config import plain, read, read_yaml
from gencaps.errors import GencapsError, nearest
from gencaps.systems import SYSTEMS, check_system, config_type


@dataclass(frozen=True)
class TrainConfig:
    """How any model is trained."""

    epochs: int = 30
    """Passes over the training pictures, in each stage that does not set its own."""
    batch: int = 128
    """Pictures a step, over all processes together; an eighth of the set where that is fewer."""
    learning_rate: float = 1e-3
    """The rate, or its peak where a schedule moves it."""
    optimizer: Literal["adam", "adamw", "sgd"] = "adam"
    """How gradients become steps; sgd has momentum 0.9, which one-cycle moves between 0.85 and 0.95."""
    weight_decay: float = 0.0
    """Pull of every weight towards 0."""
    beta1: float = 0.9
    """Adam's memory of the gradient; GANs like 0.5. One-cycle moves it itself."""
    schedule: Literal["constant", "one-cycle", "cosine", "cooldown"] = "one-cycle"
    """How the rate moves over a stage; cooldown is constant, then falls to 0 over the last fifth."""
    clip_norm: float = 0.0
    """Longest gradient that is stepped along; 0 leaves gradients alone."""
    ema: float = 0.0
    """Decay of the averaged weights that are kept, over a tenth of the run at most; 0 keeps the last weights. A GAN's
    discriminator keeps its last ones."""
    precision: Literal["auto", "32", "bf16"] = "auto"
    """Number format of the layers; auto is bf16 on a GPU and 32 on a CPU."""
    compile: bool = False
    """Compiles the model's networks: pays on long GPU runs, costs half a minute to two at the start."""
    record: bool = False
    """Records a step on a GPU once, as CUDA graphs, and replays it, where the model allows it: the host has little left
    to do. With ``compile``, a step of variational ``best`` took half the time on one H200."""
    size: int | None = None
    """Pixels a side that pictures are scaled to; null keeps the set's own."""
    valid: float = 0.1
    """Share of the training pictures held out to watch training, where the set has no such part; 0 for none."""
    degrees: float = 0.0
    """Random rotation of training pictures, up to this many degrees either way."""
    scale: float = 0.0
    """Random scaling of training pictures, up to this share either way."""
    shift: float = 0.0
    """Random shift of training pictures, up to this many pixels either way."""
    bend: float = 0.0
    """Random bending of training pictures, as handwriting varies: knots move by up to this many pixels."""
    flip: bool = False
    """Mirrors half of the training pictures left to right."""
    validate_every: int = 1
    """Epochs between looks at the held-out part."""
    samples_every: int = 10
    """Epochs between sample grids in the run's samples folder; 0 for none."""
    checkpoint_s: float = 30.0
    """Seconds between checkpoints."""

    def __post_init__(self) -> None:
        least = {"epochs": 1, "batch": 1, "validate_every": 1, "samples_every": 0}
        for name, bound in {**least, **dict.fromkeys(_NOT_NEGATIVE, 0)}.items():
            if getattr(self, name) < bound:
                raise GencapsError(f"train.{name} is {getattr(self, name)}; it must be at least {bound}")
        if self.learning_rate <= 0:
            raise GencapsError(f"train.learning_rate is {self.learning_rate}; it must be above 0")
        for name in ("learning_rate", "weight_decay"):
            if getattr(self, name) > 1e30:  # torch cannot compute with what float32 does not hold
                raise GencapsError(f"train.{name} is {getattr(self, name)}; it must be at most 1e30")
        if self.degrees > 360:
            raise GencapsError(f"train.degrees is {self.degrees}; it must be at most 360")
        for name in ("ema", "valid", "scale", "beta1"):
            if getattr(self, name) >= 1:
                raise GencapsError(f"train.{name} is {getattr(self, name)}; it must be below 1")
        if self.size is not None and self.size < 8:
            raise GencapsError(f"train.size is {self.size}; pictures need at least 8 pixels a side")

    def batch_for(self, pictures: int, processes: int) -> int:
        """Gives the batch for a set: small sets get smaller ones, at least 8, so that an epoch takes several steps."""
        wanted = min(self.batch, max(8, pictures // 8))
        return self.batch if wanted == self.batch else max(processes, wanted // processes * processes)

    def ema_for(self, steps: int) -> float:
        """Gives the decay for a run of so many steps: what is averaged reaches back over a tenth of it at most."""
        return min(self.ema, max(0.0, 1.0 - 10.0 / steps))


_NOT_NEGATIVE = (
    "weight_decay",
    "clip_norm",
    "beta1",
    "ema",
    "valid",
    "degrees",
    "scale",
    "shift",
    "bend",
    "checkpoint_s",
)


@dataclass(frozen=True)
class Recipe:
    """One training run, whole: the file config.yaml of a run folder."""

    paper: str
    """The system that is trained: a room of gencaps.papers, or a rival of gencaps.baselines."""
    data: str
    """The data set, as ``gencaps data list`` names it, or folder:PATH."""
    model: Any
    """The system's own settings."""
    train: TrainConfig = field(default_factory=TrainConfig)
    """How it is trained."""
    seed: int = 0
    """Fixes the first weights, the order of the pictures, every random number and the split."""

    def to_yaml(self) -> str:
        """Writes the recipe as config.yaml holds it."""
        values = {
            "paper": self.paper,
            "data": self.data,
            "seed": self.seed,
            "model": plain(self.model),
            "train": plain(self.train),
        }
        return yaml.safe_dump(values, sort_keys=False, allow_unicode=True)


def presets(paper: str) -> dict[str, str]:
    """Lists a paper's presets with what each is for."""
    folder = resources.files("gencaps.configs") / paper
    if not folder.is_dir():
        return {}
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".yaml")), key=lambda f: f.name)
    return {f.name.removesuffix(".yaml"): _preset_values(paper, f.name).get("about", "") for f in files}


def _preset_values(paper: str, name: str) -> dict[str, Any]:
    with resources.as_file(resources.files("gencaps.configs") / paper / name) as path:
        return read_yaml(path)


def make_recipe(
    paper: str,
    *,
    preset: str | None = None,
    config: Path | None = None,
    data: str | None = None,
    seed: int | None = None,
    overrides: Mapping[str, Mapping[str, Any]] | None = None,
) -> Recipe:
    """Builds a recipe from a preset or a YAML file, then what was said on top of it."""
    check_system(paper)
    if preset is not None and config is not None:
        raise GencapsError(f"both the preset '{preset}' and the config {config} were given: choose one")
    if config is not None:
        values, where = read_yaml(config), f"{config}: "
    else:
        preset = preset or "small"
        known = presets(paper)
        if preset not in known:
            raise GencapsError(f"{paper} has no preset '{preset}'{nearest(preset, known)}")
        values, where = _preset_values(paper, f"{preset}.yaml"), ""
    values = {key: value for key, value in values.items() if key != "about"}
    for key in values:
        if key not in Recipe.__dataclass_fields__:
            raise GencapsError(f"{where}unknown setting '{key}'{nearest(str(key), Recipe.__dataclass_fields__)}")
    if values.get("paper", paper) != paper:
        other = str(values["paper"])
        remedy = f": run gencaps train {other} with it" if other in SYSTEMS else nearest(other, SYSTEMS)
        raise GencapsError(f"{where}this is a config of '{other}', not of '{paper}'{remedy}")
    said = overrides or {}
    sections = {}
    for section, cls in (("model", config_type(paper)), ("train", TrainConfig)):
        given = values.get(section) or {}
        if not isinstance(given, Mapping):
            raise GencapsError(f"{where}{section} is {given!r}; it must be a mapping of settings")
        # what the file says is checked by itself, so that its faults are named with the file
        _named(where, lambda cls=cls, given=given, section=section: read(cls, given, section))
        sections[section] = read(cls, {**given, **said.get(section, {})}, section)
    where = where if seed is None else ""
    seed = values.get("seed", 0) if seed is None else seed
    if type(seed) is not int or seed < 0:
        raise GencapsError(f"{where}seed is {seed!r}; it must be a whole number from 0 up")
    return Recipe(paper, str(data or values.get("data") or "digits"), sections["model"], sections["train"], seed)


def _named(where: str, check: Any) -> None:
    try:
        check()
    except GencapsError as error:
        raise GencapsError(f"{where}{error}") from None


def read_recipe(path: Path) -> Recipe:
    """Reads the recipe back from a run folder's config.yaml."""
    values = read_yaml(path)
    paper = values.get("paper")
    if not isinstance(paper, str):
        raise GencapsError(f"{path} names no paper: it is not the config.yaml of a run")
    return make_recipe(paper, config=path)
