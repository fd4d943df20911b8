"""The description of a flag, as metadata of its field: help text, metavar, what it is part of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict
from pydantic.fields import FieldInfo


@dataclass(frozen=True, slots=True)
class Flag:
    """What a field of a run's configuration says about its flag besides type and default."""

    help: str
    """Help text; it names a default in brackets if the field's default is None."""
    metavar: str = "N"
    """Placeholder of the value in the help; not used for switches and closed sets of values."""
    defines_run: bool = True
    """Whether `run.json` keeps the flag and `--resume` reads it back."""
    in_name: bool = False
    """Whether a run's name has its own part for the flag, so that it is no change to list."""
    sets: tuple[str, ...] = ()
    """Counts in `TeamSettings` that the flag replaces."""


StartFlag = partial(Flag, defines_run=False)
"""A flag that concerns this machine and this start, and changes no answer."""


class Flags(BaseModel):
    """A group of flags: each field has the name of its flag, and a `Flag` in its metadata."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @classmethod
    def described(cls) -> Iterator[tuple[str, FieldInfo, Flag]]:
        """Yield (name, field, description of the flag) for each field."""
        for name, field in cls.model_fields.items():
            yield name, field, next(each for each in field.metadata if isinstance(each, Flag))


def text_of_path(value: object) -> object:
    """Return a path as text, for a flag that takes names as well; any other value unchanged."""
    return str(value) if isinstance(value, PurePath) else value


def flag_name(field: str) -> str:
    """Return the flag of a field: `--num-rounds` for `num_rounds`."""
    return f"--{field.replace('_', '-')}"


def value_type(field: FieldInfo) -> type:
    """Return the type of a field's value; str if there are several, as they come from a text."""
    annotation: Any = field.annotation
    if get_origin(annotation) in (Union, UnionType):
        types = [each for each in get_args(annotation) if each is not NoneType]
        annotation = types[0] if len(types) == 1 else str
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    found: type = get_origin(annotation) or annotation
    return found
