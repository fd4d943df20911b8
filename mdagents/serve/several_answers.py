"""Whether a prompt asks for more than one letter, which a team does not give."""

from __future__ import annotations

import re
from collections.abc import Collection

_PICK = r"(?:choose|mark|pick|select|tick)"
_TELL = (
    rf"(?:{_PICK}|give|identify|indicate|list|output|provide|return|write"
    r"|(?:answer|reply|respond) with)"
)
_ANSWERS = r"(?:answers?|choices?|letters?|options?)"
_SEVERAL = re.compile(
    r"[$\[<{]LETTERS\b|\b(?:all|any) (?:(?:answers|letters|options) )?that apply\b"
    r"|\bletters (?:separated by|with) commas?\b|\bcomma[- ]separated (?:list of )?letters\b"
    r"|\bmehrfachauswahl\b|\balle (?:zutreffenden|richtigen)\b"
    r"|\b(?:choisi|coche|donne|indique|liste|sélectionne)[a-zé]* toutes les "
    r"(?:options|propositions|réponses) (?:correctes|exactes|justes|vraies)\b"
    r"|\b(?:assinale|elija|escoja|escolha|indique|liste|marque|seleccione|selecione|señale) "
    r"todas (?:as|las) (?:alternativas|opciones|opções|respostas|respuestas) "
    r"(?:certas|ciertas|correctas|corretas|que|verdadeiras|verdaderas)\b"
    r"|\b(?:indic|scegli|segn|selezion)[a-z]{0,5} tutte le (?:opzioni|risposte) "
    r"(?:corrette|esatte|giuste)\b|\b(?:выберите|отметьте|укажите) все (?:верные|правильные)\b"
    r"|选出(?:其中的?)?所有|一[个项]或多[个项]正确|(?:[2-5\uff12-\uff15二三四五][つ個]|すべて|全て)を?(?:選|えら)",
    re.IGNORECASE,
)
_PERHAPS_SEVERAL = re.compile(
    rf"\b{_PICK} all (?:of the )?"
    r"(?:correct|right|true|best|applicable|letters|answers|options)\b"
    rf"|\b{_PICK} all that are (?:correct|right|true)\b"
    rf"|\b{_TELL} (?:the letters of )?(?:all|each|every)(?: of)?(?: the)? (?:applicable"
    rf"|appropriate|correct|right|suitable|true|valid) (?:answer |option )?{_ANSWERS}\b"
    rf"|\bone or more (?:of the )?(?:correct |right )?{_ANSWERS}\b|\bone or more of A, ?B\b"
    r"|\b(?:answer|respond|reply|write|give|list|choose|select)\b[^.\n]{0,40}"
    r"\b(?:several|multiple) letters\b|多选题|一道多项选择题|不定项选择题|[(（]多选|複数選択",
    re.IGNORECASE,
)
_MAY_BE_SEVERAL = re.compile(
    r"\b(?:more than one|multiple|several|two or more) (?:of the )?(?:\w+ )?"
    rf"{_ANSWERS} (?:can|could|may|might) be (?:correct|right|true)\b"
    r"|\b(?:more than one|multiple|several) (?:correct )?answers? (?:are|is) possible\b"
    r"|\b(?:can|could|may|might) (?:be|have) (?:more than one|multiple|several) "
    rf"(?:correct|right|true|valid) {_ANSWERS}\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\bwhich (?:two|three) (?:of|are|options|answers)\b|\bwhich (?-i:TWO|THREE)\b(?!-)",
    re.IGNORECASE,
)
_PERHAPS_NUMBER = re.compile(
    rf"\b{_PICK} (?:the )?(?:two|three) "
    r"(?:of the )?(?:correct|right|true|best|applicable|letters|answers|options)\b"
    rf"|(?:\A|[.?!:;,(\[\n*][ \t]*|\b(?:and|please|then) ){_PICK} (?:any |the )?(?:best )?"
    rf"(?:two|three|four|[2-4])(?: (?:best |correct |right )?{_ANSWERS}\b"
    r"|(?=[ \t]*(?:[)\]\n]|[.:](?!\d)|\Z)))"
    r"|\b(?:answer|respond|reply|write|give|list|choose|select)\b[^.\n]{0,40}"
    r"\b(?:two|three) letters\b",
    re.IGNORECASE,
)
_ONE = re.compile(
    r"(?<!least )(?<!than )\b(?:single|one) (?:best )?(?:letter|answer|option)\b"
    r"|单选|单项|唯一|[只仅][有选]?一[个项]|中的?一[个项](?!或)|之一",
    re.IGNORECASE,
)
_BEST = re.compile(
    rf"\b{_PICK} (?:only )?(?:the )?(?:single |one )?(?:best|most)\b|\b(?:exactly|just|only) one\b"
    r"|\bthe best (?:answer|choice|one|option)\b|\bis (?:the )?best\b",
    re.IGNORECASE,
)
_PAIR = re.compile(
    r"(?=\W*(?:[\w'’-]+\W+){1,5}[\w'’-]+\W*\Z).*(?:[,;/&+、と]|\s[-–—]\s"
    r"|\b(?:and|et|oder|or|plus|und|with|(?-i:[ey]))\b)",
    re.IGNORECASE | re.DOTALL,
)
"""A text of few words that names several things; a sentence may have the same words."""
_NOT_SO = re.compile(
    r"\b(?:do not|don['’]t|instead of|never|rather than)\b[^.,:;!?\n]*", re.IGNORECASE
)
_SOMETIMES = re.compile(
    r"\b(?:if|in case|otherwise|some|unless|whenever|when(?! answering))\b"
    r"|\bfor (?!(?:all|any|each|every|the|these|this|multiple[ -]choice)\b)(?:[\w-]+ ){0,4}"
    r"(?:items|ones|prompts|questions)\b",
    re.IGNORECASE,
)
"""Words for some questions, which may not include this one: "For multi-select questions, …"."""
_SENTENCE = re.compile(r"[.;!?\n。]")


def asks_for_several(prompt: str, options: Collection[str] = (), system: str = "") -> bool:
    """Return whether a prompt asks for more than one letter.

    Args:
        prompt: Text of the prompt.
        options: Texts of the options. If nearly all name several things (`Iron and zinc`), "Which
            TWO" and "all correct statements" ask for one of them.
        system: Text of the system prompt. Its sentences about some questions do not count.
    """
    told = [one for one in _SENTENCE.split(system) if not _SOMETIMES.search(one)]
    prompt = _NOT_SO.sub("", "\n".join([*told, prompt]))
    if _SEVERAL.search(prompt):
        return True
    pairs = sum(bool(_PAIR.match(option)) for option in options)
    if pairs > 1 and pairs >= len(options) - 1:
        return False
    if _NUMBER.search(prompt):
        return True
    if _MAY_BE_SEVERAL.search(prompt) and not (_ONE.search(prompt) or _BEST.search(prompt)):
        return True
    is_perhaps = _PERHAPS_SEVERAL.search(prompt) or _PERHAPS_NUMBER.search(prompt)
    return is_perhaps is not None and _ONE.search(prompt) is None
