"""What the name and the description of a schema's property say that it is for."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from mdagents.datasets.field_names import plain as plain_name
from mdagents.serve.several_answers import asks_for_several
from mdagents_llm.answers.phrases import phrases

_LONGEST = 5000
"""Number of characters of a title or description that are read for contradictions."""
LETTERS = frozenset(
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
"""Names of properties for the letter, in the form of `plain`."""
_ARE_LETTERS = frozenset(["letter", "answerletter", "answeridx"])
"""Names of properties that can be nothing but the letter."""
TEXTS = frozenset(["answertext", "optiontext", "choicetext", "selectedtext"])
"""Names of properties for the text of the option."""
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
"""A number from 0 to 1, as an example."""
_ANOTHER = re.compile(
    r"(?:\A|[.:;] )\W{0,9}(?:(?:an?|answer|choice|letter|of|option|the|your) ){0,5}"
    r"(?:(?:second|2nd|third|3rd)[ -](?:best|choice|most|option|likely)\b"
    r"|next[ -](?:best|(?:most )?likely) (?:answer|choice|option)\b"
    r"|(?:runners?[ -]up|worst|least (?:appropriate|likely|plausible|probable|suitable))\b"
    r"|(?:eliminated|excluded|incorrect|rejected|wrong) (?:answer|choice|letter|option)s?\b"
    r"(?! (?:cost|count|score)))"
    r"|(?:\A|[.:;。])\W{0,3}(?:(?:das|der|die|el|la|le|una?|une) )?"
    r"(?:zweit(?:beste|wahrscheinlichste)"
    r"|(?:falsche|unwahrscheinlichste|verworfene) (?:antwort|option)"
    r"|(?:deuxième|seconde) (?:meilleure|option|réponse)"
    r"|(?:option|réponse) (?:écartée|fausse|incorrecte|la moins probable)"
    r"|segunda (?:mejor|opción|respuesta)"
    r"|(?:opción|respuesta) (?:descartada|incorrecta|menos probable)"
    r"|(?:第二|次优|最不|错误|被排除|排除的)[^。，]{0,6}(?:选项|答案)(?![^。，]{0,4}后)"
    r"|두 ?번째|차선|틀린|오답)",
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
"""Words for something other than a letter."""
_LETTER = re.compile(
    r"\b(?:letter|letra|lettera|lettre)\b|\bbuchstabe|букв|字母|記号|글자|알파벳", re.IGNORECASE
)
_LETTER_ALONE = re.compile(
    r"(?!.*\b(?:and|followed by|or|plus|then|with)\b[^.;]{0,60}\b(?:name|number|text|words)\b)"
    r"(?!.*\b(?:e|et|mit|oder|ou|und|y)\b[^.;]{0,60}\b(?i:name|nom|nombre|testo|texte?|texto)\b)"
    r"(?!.*[与加及和][^。，]{0,12}(?:内容|全文|名称|文本))"
    rf".*(?:(?i:{_LETTER.pattern})|(?<![A-Za-z])A(?: ?(?:[-–~～〜到至]|to) ?[B-J]"
    r"|(?:[,，、] ?[B-J])+)(?![A-Za-z])|如[:：]? ?[“「]?A[”」]?(?:[。，；)）]|\Z))",
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
_OTHER_NAMES = ("ans", "best", "correct", "guess", "label", "pick", "solution", "value")
_ANSWER_NAMES = {*map(plain_name, phrases("field")), *_OTHER_NAMES}
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


def is_for_letter(name: str, schema: Mapping[str, Any]) -> bool:
    """Return whether a property can be for nothing but the letter, or says so."""
    plain, words = plain_name(name), _words_of(schema)
    return plain in _ARE_LETTERS or (
        plain in LETTERS and ("enum" in schema or _LETTER.search(words) is not None)
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
    names = LETTERS | _ANSWER_NAMES
    is_named = (
        plain in names
        or plain.removeprefix("final") in names
        or _OF_ANSWER.search(name) is not None
    )
    is_said = (_LETTER if has_grade else _OF_ANSWER).search(words) is not None
    signs = (is_named and not has_grade, is_said, _GRADE.search(words) is None)
    return plain in _ARE_LETTERS or sum(signs) > 1


def contradiction(name: str, schema: Mapping[str, Any], is_letter: bool) -> str:
    """Return why a property is not for the decision of the team by its words; empty if it is.

    Args:
        name: Name of the property.
        schema: Schema of the property.
        is_letter: Whether it would be filled with the letter, rather than the text.
    """
    if is_letter and not _is_of_answer(name, schema):
        return "; if it is for the letter, call it answer, or say 'letter' in its description"
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


def confidence_scale(schema: Mapping[str, Any]) -> float:
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
