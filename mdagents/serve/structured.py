"""Fills a client's JSON schema with the answer of a team, or says beforehand why it cannot."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any
from urllib.parse import unquote

from mdagents.datasets.field_names import plain as plain_name
from mdagents.serve.errors import ApiError, invalid
from mdagents.serve.several_answers import asks_for_several
from mdagents_llm.answers.phrases import phrases

_DEEPEST = 8
"""Maximum number of references one after the other."""
_LONGEST = 5000
"""Number of characters of a title or description that are read for contradictions."""
_LETTERS = frozenset(
    [
        "answer",
        "finalanswer",
        "answerletter",
        "letter",
        "choice",
        "option",
        "selectedoption",
        "selected",
        "prediction",
        "predicted",
        "answeridx",
        "answerchoice",
        "correctanswer",
        "correctoption",
        "selectedanswer",
        "selectedchoice",
    ]
)
_ARE_LETTERS = frozenset(["letter", "answerletter", "answeridx"])
"""Names of properties that can be nothing but the letter."""
_TEXTS = frozenset(["answertext", "optiontext", "choicetext", "selectedtext"])
_REASONS = frozenset(
    [
        "reasoning",
        "explanation",
        "analysis",
        "rationale",
        "reason",
        "thought",
        "thoughts",
        "thinking",
        "justification",
        "chainofthought",
        "steps",
    ]
)
_CONFIDENCES = frozenset(["confidence", "probability", "certainty"])
_SIZES = {"minLength", "maxLength", "minItems", "maxItems"}
_CONDITIONS = {
    "$dynamicRef", "$ref", "allOf", "anyOf", "contains", "else", "exclusiveMaximum",
    "exclusiveMinimum", "format", "if", "multipleOf", "not", "oneOf", "pattern", "prefixItems",
    "then", "uniqueItems",
}  # fmt: skip
"""Keywords under which what is filled in might not be valid; an unknown keyword is a note."""
_OF_THE_WHOLE = {
    "allOf", "anyOf", "const", "dependentRequired", "dependentSchemas", "else", "enum", "if",
    "maxProperties", "minProperties", "not", "oneOf", "patternProperties", "propertyNames", "then",
}  # fmt: skip
"""Keywords of the object itself under which what is filled in might not be valid."""
_TO = r"%?(?:[^\d.]|\.\.){1,40}?"
_RANGE = re.compile(
    rf"(?<![\d.])(?:0(?:\.0+)?(?!\.?\d)|1(?={_TO}100\b)|(?<=scale of )1){_TO}"
    r"([1-9]\d{0,8}|0?\.\d)(?!\d* ?-?(?:decimal|digit|place))",
    re.IGNORECASE,
)
"""A scale in words: `0-100`, `between 0 and 1`, `0 (a guess) to 1 (certain)`."""
_PERCENT = re.compile(
    r"(?<!not )(?<!than )(?<!nicht )(?<!pas )(?<!no )(?<!não )"
    r"(?:\b(?:in|as) (?:an? )?percent(?:age)?\b|\b(?:als|in) prozent"
    r"|\ben (?:porcentaje|pourcentage)\b|\bem (?:percentual|porcentagem)\b"
    r"|\bin percentuale\b|\b(?:em|en|in) %)|\b(?:confidence|certainty|probability),? "
    r"(?:percent(?:age)?\b|\(?%)|\(%\)|\bpor ciento\b|в процентах"
    r"|(?<!非)(?<!不是)百分[制比数率]|백분율|퍼센트|パーセント",
    re.IGNORECASE,
)
"""Percent as the unit of a scale, not of an example (`0.85 is 85%`)."""
_OTHER_SCALE = re.compile(
    r"(?<![\d.,])1 ?(?:\([^()\d]{1,40}\) ?)?"
    r"(?:[-–—~～〜]|\.\.+|\b(?:al?|and|at[ée]|bis|e|through|to|und|y|à|до)\b|[到至]|에서|から) ?"
    r"(?:[2-9]|[1-9]\d)(?!\d* ?-?(?:decimal|digit|décimale|nachkomma|place))(?!\d)"
    r"|\b1 ?[:=][^\d.]{1,40}2 ?[:=]|(?<![\d.,])1, ?2\b|(?:\d|five|seven|ten)-point\b"
    r"|\blikert\b|\bstars?\b"
    r"|(?:\b(?:out of|sobre|sur|von) |/ ?)(?:[2-9]|[1-9]\d|100)\b(?! ?%)"
    r"|(?:5|7|10|五|七|十)(?:段階|点|점|分制)",
    re.IGNORECASE,
)
"""A scale in words that is neither from 0 to 1 nor from 0 to 100: `1 to 10`, `out of 5`."""
_FRACTION = re.compile(r"(?<![\d.,])0?[.,]\d")
_ANOTHER = re.compile(
    r"(?:\A|[.:;] )\W*(?:(?:an?|answer|choice|letter|of|option|the|your) ){0,5}"
    r"(?:(?:second|2nd|third|3rd)[ -](?:best|choice|most|option|likely)\b"
    r"|next[ -](?:best|(?:most )?likely) (?:answer|choice|option)\b"
    r"|(?:runners?[ -]up|worst|least (?:appropriate|likely|plausible|probable|suitable))\b"
    r"|(?:eliminated|excluded|incorrect|rejected|wrong) (?:answer|choice|letter|option)s?\b"
    r"(?! (?:cost|count|score)))"
    r"|(?:\A|[.:;。]) ?\W*(?:(?:das|der|die|el|la|le|una?|une) )?"
    r"(?:zweit(?:beste|wahrscheinlichste)"
    r"|(?:falsche|unwahrscheinlichste|verworfene) (?:antwort|option)"
    r"|(?:deuxième|seconde) (?:meilleure|option|réponse)"
    r"|(?:option|réponse) (?:écartée|fausse|incorrecte|la moins probable)"
    r"|segunda (?:mejor|opción|respuesta)"
    r"|(?:opción|respuesta) (?:descartada|incorrecta|menos probable)"
    r"|(?:第二|次优|最不|错误|被?排除)[^。，]{0,6}(?:选项|答案)|두 ?번째|차선|틀린|오답)",
    re.IGNORECASE,
)
"""A description of an option that the team did not decide for. Later in a sentence the same words
may say how to find the right one: "what remains after the wrong options"."""
_NO_LETTER = re.compile(
    r"\b(?:complete|entire|exact|full|literal|verbatim|whole) (?:\w+ )?(?:sentence|text)\b"
    r"|\btext of (?:the|your)\b|\b(?:answer|choice|option)(?:['’]s)? text\b|\bverbatim\b"
    r"|\b(?:answer|choice|option) (?:index|number)\b"
    r"|\b(?:index|number) of (?:the|your) (?:\w+ )?(?:answer|choice|option)\b"
    r"|\b[01], ?[12]\b|\b1 ?(?:[-–]|or|to|through) ?[2-9]\b|\byes\W{1,3}(?:or )?no\b"
    r"|\bin words\b|\bname of (?:the|your) (?!answer|choice|option)"
    r"|(?<!highest )(?<!greatest )\bprobability (?:of|that)\b"
    r"|\b(?:exakte|ganze|genaue|volle|vollständige)[nrs]? (?:satz|text|wortlaut)"
    r"|\btext der\b|\b(?:antwort|options)text|\bwortlaut|\b(?:index|name|nummer) de[rs]\b"
    r"|\b(?:testo|texte|texto) (?:compl|d[aeo]|esatt|exac?t|intégral|íntegro)"
    r"|\b(?:indice|no(?:m|mbre|me)|numéro|número|índice) d(?:e l|el|u|a|o)"
    r"|(?:选项|答案)的?(?:全部|完整)?(?:内容|全文|原文|文字|文本)|(?:全部|完整)的?(?:内容|文字|文本)"
    r"|名称|序号|编号|索引|(?:답|보기|선택지|정답)의? ?(?:전체 )?(?:내용|문장|번호|텍스트)"
    r"|(?:解答|選択肢)の(?:テキスト|全文|内容|番号)",
    re.IGNORECASE,
)
"""Words for something else than a letter."""
_LETTER = re.compile(
    r"\b(?:letter|letra|lettera|lettre)\b|\bbuchstabe|букв|字母|記号|글자|알파벳", re.IGNORECASE
)
_LETTER_ALONE = re.compile(
    r"(?!.*\b(?:and|followed by|or|plus|then|with)\b[^.;]{0,60}\b(?:name|number|text|words)\b)"
    r"(?!.*\b(?:e|et|mit|oder|ou|und|y)\b[^.;]{0,60}\b(?i:name|nom|nombre|testo|texte?|texto)\b)"
    r"(?!.*[与加及和][^。，]{0,12}(?:内容|全文|名称|文本))"
    rf".*(?:(?i:{_LETTER.pattern})|\bA ?(?:[-–]|to) ?[B-J]\b|\bA(?:, ?[B-J])+\b)",
    re.DOTALL,
)
"""A description that asks for a letter and for nothing beside it."""
_NOT = re.compile(
    r"\b(?:don['’]t|instead of|never|no(?= (?:full|index|number|sentence|text)\b)|not|rather than"
    r"|without)\b[^.;]*",
    re.IGNORECASE,
)
_NOT_THE_LETTER = re.compile(
    r"\b(?:instead of|not|rather than|without) (?:just |only )?(?:(?:a|its|the) )?(?:option )?"
    r"letter\b"
    r"|\b(?:kein(?:en)?|nicht|ohne|statt) (?:nur )?(?:(?:de[mnrs]|die) )?buchstabe"
    r"|\b(?:pas|non|sans) (?:seulement |uniquement )?(?:(?:de|la) )?lettre\b"
    r"|\b(?:no|não|sem|sin) (?:apenas |s[óo]lo )?(?:l?a )?letra\b"
    r"|(?:不含|不是|不要|而非)[^。，、]{0,6}字母"
    r"|(?:글자|알파벳)[가는를을]? ?(?:말고|아니|아닌|제외)",
    re.IGNORECASE,
)
_ANSWER_NAMES = {*map(plain_name, phrases("field")), "ans", "guess", "label", "pick", "value"}
"""Names of fields for an answer, also of other languages."""
_OF_ANSWER = re.compile(
    r"answer|cho(?:ice|ose|sen)|letter|option|pick|predict|select|antwort|buchstabe|lettre|letra"
    r"|réponse|resposta|respuesta|risposta|ответ|答|选项|選|字母|정답|답변|선택",
    re.IGNORECASE,
)
_GRADE = re.compile(
    r"\b(?:class(?:e|ification)?|clase|estadio|grad(?:e|ing|o)?|klass(?:e|ifikation)|level"
    r"|severity|sta(?:dium|de|ge|ging)|tier)\b|分[期级]|等级|등급|분류",
    re.IGNORECASE,
)
"""Words for a scale that may have letters as well: the class A, B or C of Child and Pugh."""
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "array": list, "boolean": bool, "integer": int, "null": type(None), "number": (int, float),
    "object": dict, "string": str,
}  # fmt: skip


class _Part(Enum):
    """What a property is filled with."""

    LETTER = auto()
    TEXT = auto()
    REASONS = auto()
    LISTED_REASONS = auto()
    CONFIDENCE = auto()
    CONSTANT = auto()
    NULL = auto()


@dataclass(frozen=True, slots=True)
class _Property:
    name: str
    part: _Part
    schema: Mapping[str, Any]
    is_required: bool
    is_nullable: bool


@dataclass(frozen=True, slots=True)
class Filling:
    """A schema whose properties a team can fill."""

    properties: Sequence[_Property]

    def fill(
        self, letter: str, text: str, analysis: str, confidence: float | None
    ) -> dict[str, object]:
        """Return the object, its properties in the order of the schema.

        Args:
            letter: Letter of the option.
            text: Text of the option.
            analysis: Reasons of the team.
            confidence: Confidence of the team, 0 to 1; None if it stated none.

        Raises:
            ApiError: The team stated no confidence or no reasons, and the schema requires them.
        """
        filled: dict[str, object] = {}
        for one in self.properties:
            match one.part:
                case _Part.LETTER:
                    filled[one.name] = _spelled(letter, one.schema)
                case _Part.TEXT:
                    filled[one.name] = text
                case _Part.REASONS if analysis or not one.schema.get("minLength"):
                    filled[one.name] = _clipped(analysis, one.schema)
                case _Part.LISTED_REASONS:
                    filled[one.name] = [analysis]
                case _Part.CONSTANT:
                    filled[one.name] = one.schema["const"]
                case _Part.NULL:
                    filled[one.name] = None
                case _Part.CONFIDENCE if confidence is not None:
                    value = round(confidence * _scale(one.schema), 10)
                    filled[one.name] = round(value) if one.schema["type"] == "integer" else value
                case _ if one.is_nullable:
                    filled[one.name] = None
                case _ if one.is_required:
                    code = "no_confidence" if one.part is _Part.CONFIDENCE else "no_reasons"
                    raise ApiError(502, f"the team stated no {one.name}", code)
        return filled


def plan_filling(schema: object, options: Mapping[str, str]) -> Filling:
    """Return how a schema is filled.

    Args:
        schema: JSON schema of an object.
        options: Letter -> text of the options of the question.

    Raises:
        ApiError: The schema has no property for the answer, or requires one that a team cannot
            fill; the message names it.
    """
    if not isinstance(schema, dict):
        raise _refused("the schema must be an object")
    root = _resolved(schema, schema)
    properties = root.get("properties")
    if root.get("type", "object") != "object" or not isinstance(properties, dict):
        raise _refused("the schema must be of an object with properties")
    if conditions := sorted(_OF_THE_WHOLE & root.keys()):
        raise _refused(f"a team cannot follow {' and '.join(conditions)} of its root; leave it out")
    required = root.get("required", [])
    for name in required if isinstance(required, list) else ():
        if not isinstance(name, str) or name not in properties:
            raise _refused(f"a team cannot fill the required property {name!r:.80}")
    found = []
    reasons: dict[str, str] = {}
    resolved = {
        name: _without_null(_resolved(given, schema), schema) for name, given in properties.items()
    }
    parts = _parts_of({str(name): own for name, (own, _) in resolved.items()}, options)
    for name, (own, is_nullable) in resolved.items():
        is_required = isinstance(required, list) and name in required
        part = parts[str(name)]
        if isinstance(part, str):
            if is_required and not is_nullable:
                raise _refused(f"a team cannot fill the required property '{name}'{part}")
            reasons[plain_name(str(name))] = f"a team cannot fill the property '{name}'{part}"
            if is_required:
                found.append(_Property(str(name), _Part.NULL, own, is_required, is_nullable))
        else:
            found.append(_Property(str(name), part, own, is_required, is_nullable))
    if not any(one.part in (_Part.LETTER, _Part.TEXT) for one in found):
        none = "the schema has no property for the answer, such as 'answer': a string"
        raise _refused(
            next((why for name, why in reasons.items() if name in _LETTERS | _TEXTS), none)
        )
    return Filling(found)


def _refused(message: str) -> ApiError:
    return invalid(f"response_format: {message}", "response_format", "invalid_json_schema")


def _resolved(node: object, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema with what it refers to; its own keywords count first."""
    for _ in range(_DEEPEST):
        if not isinstance(node, dict):
            raise _refused("a schema in it is not an object")
        reference = node.get("$ref")
        if reference is None and isinstance(one := node.get("allOf"), list) and len(one) == 1:
            node = _merged(one[0], node, "allOf")
            continue
        if reference is None:
            return node
        at: object = root
        for step in str(reference).removeprefix("#").strip("/").split("/"):
            name = unquote(step).replace("~1", "/").replace("~0", "~")  # RFC 6901
            at = at.get(name) if isinstance(at, dict) and step else at
        if not isinstance(at, dict):
            raise _refused(f"its reference {str(reference)!r:.80} leads to no schema")
        node = _merged(at, node, "$ref")
    raise _refused("its references lead in a circle")


def _merged(inner: object, outer: Mapping[str, Any], keyword: str) -> object:
    """Return a schema with the other keywords of the one that holds it by `keyword`."""
    others = {name: value for name, value in outer.items() if name != keyword}
    return {**inner, **others} if isinstance(inner, dict) else inner


def _without_null(
    schema: Mapping[str, Any], root: Mapping[str, Any]
) -> tuple[Mapping[str, Any], bool]:
    """Return a schema without its null alternative, and whether it has one."""
    keyword = "anyOf" if schema.get("anyOf") else "oneOf"
    choices = schema.get(keyword)
    if isinstance(choices, list):
        others = [
            one for one in choices if not (isinstance(one, dict) and one.get("type") == "null")
        ]
        if len(others) == 1:
            only = _merged(_resolved(others[0], root), schema, keyword)
            return _resolved(only, root), len(others) < len(choices)
        return schema, len(others) < len(choices)
    kinds = schema.get("type")
    if isinstance(kinds, list):
        others = [kind for kind in kinds if kind != "null"]
        if len(others) == 1:
            return {**schema, "type": others[0]}, "null" in kinds
    return schema, schema.get("nullable") is True


def _parts_of(
    properties: Mapping[str, Mapping[str, Any]], options: Mapping[str, str]
) -> dict[str, _Part | str]:
    """Return what each property is filled with, or why a team has nothing for it.

    Of several properties that may be for the letter, those that do not say so are not filled: one
    of them may be for a second choice or for a text.
    """
    parts = {name: _part_of(name, own, options) for name, own in properties.items()}
    letters = [name for name, part in parts.items() if part is _Part.LETTER]
    if len(letters) > 1:
        why = " because others may be for the letter too; say 'letter' in its description"
        parts |= {name: why for name in letters if not _is_for_letter(name, properties[name])}
    return parts


def _is_for_letter(name: str, schema: Mapping[str, Any]) -> bool:
    plain, words = plain_name(name), _words_of(schema)
    return plain in _ARE_LETTERS or (
        plain in _LETTERS and ("enum" in schema or _LETTER.search(words) is not None)
    )


def _words_of(schema: Mapping[str, Any]) -> str:
    return f"{schema.get('title', '')} {schema.get('description', '')}"


def _spaced(name: str) -> str:
    """Return a name as words: `childPughClass` -> `child Pugh Class`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]+", " ", name)


def _is_of_answer(name: str, schema: Mapping[str, Any]) -> bool:
    """Return whether a property that may hold a letter is for that of an option.

    Two of three signs decide: its name, its description, and that this tells of no grade.
    """
    plain, words = plain_name(name), _words_of(schema)
    has_grade = _GRADE.search(_spaced(name)) is not None
    is_named = plain in _LETTERS | _ANSWER_NAMES or _OF_ANSWER.search(name) is not None
    is_said = (_LETTER if has_grade else _OF_ANSWER).search(words) is not None
    signs = (is_named and not has_grade, is_said, _GRADE.search(words) is None)
    return plain in _ARE_LETTERS or sum(signs) > 1


def _contradiction(name: str, schema: Mapping[str, Any], part: _Part) -> str:
    """Return why a property is not for the decision of the team by its words; empty if it is.

    Args:
        name: Name of the property.
        schema: Schema of the property.
        part: What it would be filled with: the letter or the text.
    """
    if part is _Part.LETTER and not _is_of_answer(name, schema):
        return "; if it is for the letter, call it answer, or say so in its description"
    said = [str(schema.get(key, ""))[:_LONGEST] for key in ("title", "description")]
    words = " ".join(said)
    meant = _NOT.sub("", words)
    texts = [_spaced(name), *(_NOT.sub("", text) for text in said)]
    if any(map(_ANOTHER.search, texts)) or asks_for_several(meant):
        return "; a team decides for one option, and its words are about another, or several"
    if "enum" in schema:
        return ""
    if _NOT_THE_LETTER.search(words) or (
        _NO_LETTER.search(meant) and not _LETTER_ALONE.match(meant)
    ):
        return (
            "; it is filled with the letter, and its description asks for something else (the "
            "text of the option goes into answer_text)"
        )
    return ""


def _part_of(name: str, schema: Mapping[str, Any], options: Mapping[str, str]) -> _Part | str:
    """Return what a property is filled with, or why a team has nothing for it."""
    plain = plain_name(name)
    if "const" in schema:
        _check_bounds(name, schema)
        fits = _fits(schema["const"], schema)
        return _Part.CONSTANT if fits else " because its const is not of its type or in its bounds"
    values = schema.get("enum")
    if not isinstance(values, list) and plain not in _LETTERS | _TEXTS | _REASONS | _CONFIDENCES:
        return "; it fills answer (a letter), reasoning and confidence"
    if found := sorted(_CONDITIONS & schema.keys()):
        instead = ", or give an enum of the letters" if plain in _LETTERS else ""
        return f" because of its {' and '.join(found)}; leave that out{instead}"
    _check_bounds(name, schema)
    if isinstance(values, list):
        letters = [_spelled(letter, schema) for letter in options]
        for part, filled in ((_Part.LETTER, letters), (_Part.TEXT, list(options.values()))):
            if all(one in values for one in filled):
                fits = all(_fits(one, schema) for one in filled)
                unfit = " because its enum is not of its type or in its bounds"
                return _contradiction(name, schema, part) or (part if fits else unfit)
        return " because its enum has neither the letters nor the texts of all options"
    least = max(1 if plain in _LETTERS else 0, schema.get("minLength", 0))
    match schema.get("type"):
        case "string" if least > 1:
            return " because of its minLength; leave that out"
        case "string" if schema.get("maxLength", least) < least:
            return " because of its maxLength; leave that out"
        case "string" if plain in _TEXTS and "maxLength" in schema:
            return " because of its maxLength; leave that out"
        case "string" if plain in _LETTERS:
            return _contradiction(name, schema, _Part.LETTER) or _Part.LETTER
        case "string" if plain in _TEXTS:
            return _Part.TEXT
        case "string" if plain in _REASONS:
            return _Part.REASONS
        case "array" if plain in _REASONS:
            is_list = _is_list_of_strings(schema)
            return _Part.LISTED_REASONS if is_list else " unless it may be a list of one string"
        case "number" | "integer" as kind if plain in _CONFIDENCES:
            scales = (100,) if kind == "integer" else (1, 100)
            is_known = schema.get("minimum", 0) == 0 and _scale(schema) in scales
            named = " or ".join(str(scale) for scale in scales)
            return _Part.CONFIDENCE if is_known else f" unless its scale is 0 to {named}"
        case _:
            return f" unless its type is {'number' if plain in _CONFIDENCES else 'string'}"


def _check_bounds(name: str, schema: Mapping[str, Any]) -> None:
    for bound in (_SIZES | {"minimum", "maximum"}) & schema.keys():
        value = schema[bound]
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise _refused(f"{bound} of '{name}' is not a number")
        if bound in _SIZES and value < 0:
            raise _refused(f"{bound} of '{name}' is not a number of 0 or more")


def _fits(value: object, schema: Mapping[str, Any]) -> bool:
    """Return whether a value is of the type of a schema and within its bounds.

    A type that JSON schema does not know, such as `STRING` of other APIs, is no condition.
    """
    given = schema.get("type")
    kinds = [kind for kind in _TYPES if kind in (given if isinstance(given, list) else [given])]
    if kinds and not any(_is_of(kind, value) for kind in kinds):
        return False
    match value:
        case bool():
            return True
        case int() | float():
            least, most = schema.get("minimum", value), schema.get("maximum", value)
            return bool(least <= value <= most)
        case str():
            length = len(value)
            least, most = schema.get("minLength", length), schema.get("maxLength", length)
            return bool(least <= length <= most)
        case _:
            return True


def _is_of(kind: str, value: object) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind])


def _scale(schema: Mapping[str, Any]) -> float:
    """Return the largest confidence by a schema's maximum or, without one, by its words; or NaN."""
    stated: float | None = schema.get("maximum")
    words = _words_of(schema)
    if stated is not None:
        return stated
    if range_ := _RANGE.search(words):
        return max(1, float(range_[1]))
    if _PERCENT.search(words):
        return 100
    return math.nan if _OTHER_SCALE.search(words) and not _FRACTION.search(words) else 1


def _is_list_of_strings(schema: Mapping[str, Any]) -> bool:
    items = schema.get("items", {"type": "string"})
    is_short = schema.get("minItems", 0) <= 1 <= schema.get("maxItems", 1)
    return (
        is_short
        and isinstance(items, dict)
        and not items.keys() & (_CONDITIONS | _SIZES | {"const", "enum"})
        and items.get("type") == "string"
    )


def _clipped(text: str, schema: Mapping[str, Any]) -> str:
    longest = schema.get("maxLength")
    return text if longest is None else text[: int(longest)]


def _spelled(letter: str, schema: Mapping[str, Any]) -> str:
    values = schema.get("enum")
    return letter if not isinstance(values, list) or letter in values else letter.lower()
