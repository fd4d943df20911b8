"""The schema of a clinical case, and its text for the agents."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    field_validator,
    model_validator,
)

from mdagents_llm.errors import ConfigError
from mdagents_llm.files.json_text import load_json
from mdagents_llm.terminal.did_you_mean import did_you_mean
from mdagents_llm.text import clean, one_line, well_formed

OLDEST = 130
"""Upper bound of a patient's age in years; nobody has lived that long."""
LONGEST_CASE = 20_000
"""Maximum characters of a case's text; more would leave no room for the agents' texts."""

_NOT_DONE = "not available"
_YEARS = re.compile(r"([-+−–]?) *(\d+(?:\.\d+)?)", re.ASCII)
_MOST_DIGITS = 15  # of a number that a float holds exactly


def _clean(text: object) -> object:
    """Remove what a reader cannot see; line breaks of any kind become newlines."""
    return clean(well_formed(text)).strip() if isinstance(text, str) else text


def _folded(name: object) -> object:
    """Return the name of a measurement without what does not tell it from others."""
    cleaned = _clean(name)
    return " ".join(cleaned.replace("_", " ").split()) if isinstance(cleaned, str) else cleaned


Text = Annotated[StrictStr, BeforeValidator(_clean)]
Finite = Annotated[StrictFloat, Field(allow_inf_nan=False)]
Value = StrictBool | StrictInt | Finite | Text | None
"""A measured value; None if it was not measured."""


class Measurement(BaseModel):
    """A value with what belongs to it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: Value
    unit: Text = ""
    reference: Text = ""
    """The range that the laboratory calls normal."""
    flag: Text = ""
    """What the laboratory says of it, such as `H` or `critical`."""

    @field_validator("unit", "reference", "flag", mode="before")
    @classmethod
    def _empty_for_null(cls, value: object) -> object:
        return "" if value is None else value

    def __str__(self) -> str:
        """Return the value, its unit, and what is said of it."""
        said = " ".join(filter(None, (_shown(self.value), self.unit)))
        notes = [f"reference {self.reference}"] if self.reference else []
        notes += [self.flag] if self.flag else []
        return f"{said} ({', '.join(notes)})" if notes else said


class NamedMeasurement(Measurement):
    """A measurement in a list."""

    name: Text

    def __str__(self) -> str:
        """Return the name, and the rest after it."""
        return f"{self.name} {super().__str__()}"


def _without_nulls(items: object) -> object:
    return [one for one in items if one is not None] if isinstance(items, list | tuple) else items


Notes = Text | Annotated[Sequence[Text], BeforeValidator(_without_nulls), AfterValidator(tuple)]
"""A text or a list of texts."""
Measured = (
    Mapping[Text, Measurement | Value]
    | Annotated[
        Sequence[NamedMeasurement | Text], BeforeValidator(_without_nulls), AfterValidator(tuple)
    ]
    | Text
)
"""Measurements: names with values, a list, or a text."""


_FINDINGS = ("imaging_results", "physical_exam")
_PARTS = {
    "chief_complaint": "Chief complaint",
    "history_of_present_illness": "History of present illness",
    "past_medical_history": "Past medical history",
    "medications": "Medications",
    "allergies": "Allergies",
    "vital_signs": "Vital signs",
    "physical_exam": "Physical examination",
    "lab_results": "Laboratory results",
    "imaging_results": "Imaging",
    "free_text": "Notes",
}
"""Field -> label, in the order in which clinicians present a case."""


class ClinicalCase(BaseModel):
    """What is known of a patient; every part may be missing or null, but not all of them.

    A missing part is left out of the text. A part that is null is "not available" there.

    Values are taken as they are: zero, `False` and negative values are values, and a unit is only
    said where it was given.

    Raises:
        pydantic.ValidationError: A field does not exist or does not fit, or nothing is said at all.
            `read_case` tells the same in one line.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    patient_id: Text = ""
    """Id of the patient; never sent to a model."""
    age: StrictInt | Finite | Text | None = None
    """Years from 0, or a text such as `3 weeks`."""
    sex: Text = ""
    chief_complaint: Text = ""
    history_of_present_illness: Text = ""
    past_medical_history: Notes = ()
    medications: Notes = ()
    allergies: Notes = ()
    vital_signs: Measured = ()
    """Name to value: a number, a text such as `96 %`, or `{"value": 96, "unit": "%"}`."""
    lab_results: Measured = ()
    """Name to value, in the forms of `vital_signs`."""
    imaging_results: Notes = ()
    physical_exam: Notes = ()
    free_text: Text = ""
    """Whatever else there is, or all of it."""

    @field_validator("age", mode="before")
    @classmethod
    def _in_years(cls, value: object) -> object:
        """Return the number of a text that is only a number, so that its range is checked."""
        match = _YEARS.fullmatch(str(_clean(value))) if isinstance(value, str) else None
        if match is None:
            return value
        sign, digits = match.groups()
        is_float = "." in digits or len(digits) > _MOST_DIGITS
        years = float(digits) if is_float else int(digits)
        return -years if sign in ("-", "−", "–") else years

    @field_validator("patient_id", "sex", mode="before")
    @classmethod
    def _empty_for_null(cls, value: object) -> object:
        return "" if value is None else value

    @field_validator(*_PARTS, mode="before")
    @classmethod
    def _not_available_for_null(cls, value: object) -> object:
        return _NOT_DONE if value is None else value

    @field_validator("vital_signs", "lab_results", mode="before")
    @classmethod
    def _has_each_name_once(cls, value: object) -> object:
        names = Counter(map(_folded, value)) if isinstance(value, Mapping) else Counter[object]()
        if twice := next((name for name, count in names.items() if count > 1), None):
            raise ValueError(f"'{twice}' appears twice; give a list to keep both values")
        return value

    @model_validator(mode="before")
    @classmethod
    def _has_known_fields(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        for name in data:
            if name not in cls.model_fields:
                meant = did_you_mean(str(name), cls.model_fields)
                raise ValueError(f"a clinical case has no field '{one_line(str(name))}'{meant}")
        return data

    @model_validator(mode="after")
    def _says_something(self) -> ClinicalCase:
        age = self.age
        if isinstance(age, int | float) and not 0 <= age <= OLDEST:
            raise ValueError(f"age is {age} but must be from 0 to {OLDEST} years, or a text")
        if not any({*_lines_of(getattr(self, name))} - {_NOT_DONE} for name in _PARTS):
            raise ValueError(
                "the case says nothing: give a chief_complaint, a history or a free_text"
            )
        if len(self.as_text()) > LONGEST_CASE:
            raise ValueError(
                f"the case has {len(self.as_text()):,} characters; the most are {LONGEST_CASE:,}"
            )
        return self

    def as_text(self) -> str:
        """Return the case as the agents read it, the same for the same case; without the id."""
        lines = []
        who = [f"{_shown(self.age)} years" if isinstance(self.age, int | float) else self.age]
        who.append(self.sex)
        if patient := ", ".join(part for part in who if part):
            lines.append(f"Patient: {patient}")
        for name, label in _PARTS.items():
            said = _lines_of(getattr(self, name))
            if len(said) == 1 and "\n" not in said[0]:
                lines.append(f"{label}: {said[0]}")
            elif said:
                lines += [f"{label}:", *(f"- {line}" for line in said)]
        return "\n".join(lines)


def read_case(data: object, where: str = "the case") -> ClinicalCase:
    """Return the case that a mapping, a plain text or a `ClinicalCase` holds.

    Args:
        data: Fields by name, text of the case, or a `ClinicalCase`.
        where: Name of the case in error messages.

    Raises:
        ConfigError: The data is not a valid case; one line names the field and the reason.
    """
    if isinstance(data, ClinicalCase):
        return data
    if isinstance(data, str):
        data = {"free_text": data}
    if not isinstance(data, Mapping):
        raise ConfigError(
            f"{where} must be a ClinicalCase, a text or an object with the fields of a case, "
            f"not {type(data).__name__}"
        )
    try:
        return ClinicalCase.model_validate(data)
    except ValidationError as error:
        raise ConfigError(f"{where}: {_problem(error, data)}") from None


def case_of_json(raw: bytes, where: str) -> ClinicalCase:
    """Return the case in the content of a JSON file.

    Args:
        raw: Content of the file, in UTF-8.
        where: Name of the file for error messages.

    Raises:
        ConfigError: The content is not JSON or not a valid case.
    """
    return read_case(load_json(raw, where), where)


def _problem(error: ValidationError, data: Mapping[Any, Any]) -> str:
    errors = error.errors(include_url=False, include_input=False)
    first = errors[0]
    message = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:
        return message
    field = str(first["loc"][0])
    if first["type"] == "value_error":
        return f"{field}: {message}"
    if field in ("vital_signs", "lab_results"):
        for one in errors:
            if one["type"] == "extra_forbidden":
                *_, place, _, unknown = one["loc"]
                meant = did_you_mean(str(unknown), NamedMeasurement.model_fields)
                key, name = one_line(str(unknown)), _name_of(place, data[field])
                return f"{field}: a measurement has no '{key}' (in {name}){meant}"
        for one in errors:
            if one["type"] == "missing":
                name = _name_of(one["loc"][2], data[field])
                return f"{field}: {name} has no '{one['loc'][-1]}'"
        forms = 'a text, or names with values such as 96, "96 %" or {"value": 96, "unit": "%"}'
        places = [one["loc"][2] for one in errors if len(one["loc"]) > 2]
        which = f"; the value of {_name_of(places[0], data[field])} is not one" if places else ""
        return f"{field} must be {forms}{which}"
    if field in ("past_medical_history", "medications", "allergies", *_FINDINGS):
        return f"{field} must be a text or a list of texts"
    if field == "age":
        return "age must be a number of years, or a text such as '3 weeks'"
    return f"{field} must be a text"


def _name_of(place: Any, measurements: Mapping[Any, Any] | Sequence[Any]) -> str:
    """Return the name of a measurement for a message, or its number in a list if it has none."""
    if isinstance(measurements, Mapping):
        return f"'{one_line(str(place))}'"
    at = [at for at, one in enumerate(measurements) if one is not None][place]
    one = measurements[at]
    name = one_line(str(one.get("name") or "")) if isinstance(one, Mapping) else ""
    return f"'{name}'" if name else f"no. {at + 1}"


def _lines_of(part: Notes | Measured) -> list[str]:
    return [line for line in _lines(part) if line]


def _lines(part: Notes | Measured) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, Mapping):
        for name, value in part.items():
            shown = str(value) if isinstance(value, Measurement) else _shown(value)
            yield f"{name.replace('_', ' ')} {shown}"
    else:
        yield from map(str, part)


def _shown(value: Value) -> str:
    if value is None or value == "":
        return _NOT_DONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
