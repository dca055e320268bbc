"""Reads settings: frozen dataclasses from YAML and from the command line, refusing what they do not know."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
import types
import typing
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml

from gencaps.errors import GencapsError, nearest

T = TypeVar("T")


class _Loader(yaml.SafeLoader):
    """YAML that reads ``1e-3`` as a number, as everyone who writes it means."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$|^[-+]?\.(inf|nan)$"),
    list("-+0123456789."),
)


def _parse(text: str) -> Any:
    """Reads a YAML text; whatever is wrong with it comes as one kind of error."""
    try:
        return yaml.load(text, _Loader)
    except (ValueError, RecursionError) as error:  # a date of month 99, a thousand brackets
        raise yaml.YAMLError(str(error)) from None


def read_yaml(path: Path) -> dict[Any, Any]:
    """Reads a YAML file that holds one mapping."""
    try:
        values = _parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise GencapsError(f"there is no file {path}: give the path of a YAML config") from None
    except OSError as error:
        raise GencapsError(f"cannot read {path}: {error.strerror}; give the path of a YAML config") from None
    except UnicodeDecodeError:
        raise GencapsError(f"{path} is not text in UTF-8: give the path of a YAML config") from None
    except yaml.YAMLError as error:
        line = " ".join(str(error).split())
        raise GencapsError(f"{path} is not valid YAML: {line}") from None
    if not isinstance(values, dict):
        raise GencapsError(f"{path} holds no settings: write lines such as 'data: digits'")
    return values


@cache
def field_help(cls: type) -> dict[str, str]:
    """Collects the docstring under each field of a dataclass."""
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for node, after in zip(body.body, body.body[1:], strict=False):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(after, ast.Expr):
            found[node.target.id] = inspect.cleandoc(ast.literal_eval(after.value))
    return found


def type_name(annotation: Any) -> str:
    """Names a field's type for people: ``one of adam, sgd``, ``a whole number``."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return "one of " + ", ".join(map(str, arguments))
    if origin in (typing.Union, types.UnionType):
        return " or ".join(type_name(a) for a in arguments)
    if origin is tuple:
        return "a list such as [1, 2]"
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
    return "null" if annotation is type(None) else names.get(annotation, str(annotation))


def coerce(value: Any, annotation: Any, where: str) -> Any:
    """Checks a value against a field's type, widening only int to float, list to tuple and a number to a word."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    wrong = GencapsError(f"{where} is {value!r}; it must be {type_name(annotation)}")
    if origin is Literal:
        # YAML reads the word 32 as a number
        found = next((choice for choice in arguments if value == choice or str(value) == choice), None)
        if found is None:
            raise GencapsError(f"{where} is '{value}'{nearest(str(value), map(str, arguments))}")
        return found
    if origin in (typing.Union, types.UnionType):
        for choice in arguments:
            try:
                return coerce(value, choice, where)
            except GencapsError:
                continue
        raise wrong
    if annotation is type(None):
        if value is not None:
            raise wrong
        return None
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise wrong
        return tuple(coerce(item, arguments[0], where) for item in value)
    if annotation is float and type(value) is int:
        return float(value)
    if type(value) is not annotation:
        raise wrong
    if annotation is float and value != value:
        raise wrong
    return value


def read(cls: type[T], values: Any, where: str) -> T:
    """Makes a settings dataclass from a mapping; an unknown key is refused with the nearest right one."""
    if not isinstance(values, Mapping):
        raise GencapsError(f"{where} is {values!r}; it must be a mapping of settings")
    hints = typing.get_type_hints(cls)
    for key in values:
        if key not in hints:
            raise GencapsError(f"unknown setting '{where}.{key}'{nearest(str(key), hints)}")
    return cls(**{key: coerce(value, hints[key], f"{where}.{key}") for key, value in values.items()})


def plain(settings: Any) -> dict[str, Any]:
    """Turns a settings dataclass into what YAML and JSON can hold."""
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in dataclasses.asdict(settings).items()
    }


def parse_overrides(words: Sequence[str], sections: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Reads ``--model.dim 8 --train.epochs=3`` into ``{"model": {"dim": 8}, "train": {"epochs": 3}}``."""
    found: dict[str, dict[str, Any]] = {section: {} for section in sections}
    remaining = list(words)
    while remaining:
        word = remaining.pop(0)
        name, equals, text = word.removeprefix("--").partition("=")
        section, dot, key = name.partition(".")
        if not word.startswith("--") or section not in found or not dot:
            known = [f"--{s}.FIELD" for s in sections]
            raise GencapsError(f"unknown option '{word}' (settings are given as {' or '.join(known)} VALUE)")
        if not equals:
            if not remaining:
                raise GencapsError(f"{word} needs a value")
            text = remaining.pop(0)
        try:
            found[section][key.replace("-", "_")] = _parse(text)
        except yaml.YAMLError:
            found[section][key.replace("-", "_")] = text
    return found
