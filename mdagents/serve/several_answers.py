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
    r"|\bmehrfachauswahl\b|\balle[nr]? (?:zutreffenden|richtigen)\b"
    r"|\b(?:choisi|coche|donne|indique|liste|sélectionne)[a-zé]* toutes les "
    r"(?:options|propositions|réponses) (?:correctes|exactes|justes|vraies)\b"
    r"|\b(?:assinal|el[ei][gj]|esco[gj]|escolh|indi[cq]|list|mar[cq]|selec|señal)[a-zé]* "
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
_COUNT = r"(?:more than one|multiple|several|two or more)"
_MAY_BE_SEVERAL = re.compile(
    rf"\b{_COUNT} (?:of the )?(?:\w+ )?"
    rf"{_ANSWERS} (?:can|could|may|might) be (?:correct|right|true)\b"
    r"|\b(?:more than one|multiple|several) (?:correct )?answers? (?:are|is) possible\b"
    r"|\b(?:can|could|may|might) (?:be|have) (?:more than one|multiple|several) "
    rf"(?:correct|right|true|valid) {_ANSWERS}\b",
    re.IGNORECASE,
)
_RIGHT = r"(?:correct|exact|right|true|valid)"
_HAS_SEVERAL = re.compile(
    rf"\b(?:are|contains?|has|have|with) {_COUNT} {_RIGHT} {_ANSWERS}\b"
    rf"|\b{_COUNT} {_ANSWERS} (?:that )?(?:are|is) {_RIGHT}\b"
    rf"|\bat least one (?:{_ANSWERS} )?is {_RIGHT}\b|\bletters of (?:the )?{_RIGHT} {_ANSWERS}\b"
    r"|\bmulti(?:ple)?[ -]?(?:answer|response|select(?:ion)?) (?:multiple[ -]choice )?"
    r"(?:item|MCQ|question)\b"
    # German
    r"|\bmehrere[nr]? (?:korrekte|richtige|zutreffende)[nr]? (?:antwort|lösung|option)"
    r"|\bmehrere (?:antworten|lösungen|optionen)\b[^.,\n]{0,30}"
    r"\b(?:korrekt|richtig|zutreffend|zutreffen)\b"
    r"|\bmehrere (?:antworten|lösungen)\b[^.,\n]{0,30}\bmöglich\b|\bmehrfach(?:antwort|nennung)"
    r"|\b(?:kreuz|markier|wähl)\w*\b[^.\n]{0,20}\b(?:zwei|drei) (?:antworten|optionen)\b"
    r"|\beine oder mehrere (?:\w+ )?(?:antwort|buchstabe|lösung|option)"
    # French
    r"|\bplusieurs (?:bonnes r[ée]ponses|(?:options|propositions|r[ée]ponses)\b[^.,\n]{0,20}"
    r"\b(?:correctes|exactes|justes|vraies)|r[ée]ponses\b[^.,\n]{0,20}\bpossibles)\b"
    r"|\br[ée]ponses multiples\b"
    r"|\b(?:une ou plusieurs|la ou les) (?:bonnes )?"
    r"(?:lettres|options|propositions|r[ée]ponses|sont)\b"
    r"|\b(?:choisi|coche|indique)\w* (?:deux|trois) (?:options|propositions|r[ée]ponses)\b"
    # Spanish, Portuguese, Italian
    r"|\b(?:el[ei][gj]|esco[gj]|indi[cq]|mar[cq]|selec|señal)\w* (?:dos|tres) "
    r"(?:alternativas|opciones|respuestas)\b"
    r"|\b(?:m[áa]s de una|m[úu]ltiples|varias|mais de uma|m[úu]ltiplas|v[áa]rias) "
    r"(?:alternativas?|opciones|opción|opções|opção|respostas?|respuestas?) (?:\w+ )?"
    r"(?:certas?|ciertas?|correctas?|corretas?|(?<!opciones )posibles?|(?<!ções )possíve(?:l|is)"
    r"|verdade(?:i)?ras?)\b"
    r"|\b(?:una|uma) (?:o más|o varias|ou mais) "
    r"(?:alternativas|letras|opciones|opções|respostas|respuestas)\b"
    r"|\btodas las que (?:apliquen|correspondan|sean)\b"
    r"|\b(?:più|diverse) (?:opzioni|risposte) (?:\w+ )?(?:corrette|esatte|giuste"
    r"|(?<!opzioni )possibili)\b"
    r"|\buna o più (?:lettere|opzioni|risposte)\b"
    # Russian
    r"|\bнесколько (?:верных|правильных) (?:вариантов|ответов)\b"
    # Chinese; 多選題 is any multiple-choice question in Taiwan
    r"|(?:多[个個]|不止一[个個]|所有|全部)的?正[确確]的?(?:答案|[选選][项項])"
    r"|正[确確](?:答案|[选選][项項])(?:可能|可以)?(?:不止一[个個]|有?多[个個]|有一[个個]或多[个個])"
    r"|有多[个個]答案(?![选選])|[(（【\[]多[选選]|[复複][选選][题題]"
    # Korean; "모두 고른 것" and "모두 골라 묶은 것" are one option
    r"|모두 ?(?:고르(?:라|세요|시오|십시오)|골라(?! ?(?:[묶짝]|나열))|선택(?![된한]))"
    r"|복수 ?(?:선택|응답|정답)"
    r"|정답[은이]? ?(?:여러|(?:2|두) ?개 이상)|여러 ?개의? ?정답"
    r"|(?:[23]|두|세) ?(?:가지|개)[를을]? ?(?:고르|골라|선택하)"
    # Japanese
    r"|複数の?(?:回答|正解|正答)|(?:正解|正答|答え)[がは]複数|(?:[1１一])つ以上選",
    re.IGNORECASE,
)
"""A statement that several options are right, which holds for the question that is asked."""
_DENIAL = re.compile(
    r"\b(?:aucune?|keine?[mnrs]?|n[aã]o|ne|nenhuma?|nessuna|never|nicht|ninguna?|no|non|none|not"
    r"|pas|sem|sin|without|не|нет)\b(?! (?:just|nur|one|only|seulement|s[óo]lo)\b)"
    r"|[没沒]有|不存在|不会|并非",
    re.IGNORECASE,
)
"""A denial in front of such a statement, or in it: `Es sind nicht mehrere Antworten richtig`."""
_DENIED_AFTER = re.compile(
    r"(?:en)? (?:(?:are|is|sind|werden) )?(?:ne|nicht|n[aã]o|no|non|not)\b"
    r"|(?: ?개)?[가는은이]? ?(?:금지|불가|아니|아닌|안 |없)"
    r"|[がはも]?(?:でき(?:ない|ません)|なし|不可)",
    re.IGNORECASE,
)
_AMONG = re.compile(
    r"(?:\b(?:among|aus|de(?:ntre)?|entre|from|of|parmi|tra|von|из) |[从從] ?)\Z", re.IGNORECASE
)
"""Words that make it the choice of one: `parmi plusieurs réponses possibles`."""
_PART = re.compile(r"[,:，：、(（\[【]")
_REACH = 100
"""Maximum number of characters between a denial and what it denies."""
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
    r"|单选|单项|唯一|[只仅][有选]?一[个项]|中的?一[个项](?!或)|之一"
    r"|\b(?:genau|nur|von denen) eine\b|\beinzige|\b(?:la (?:bonne|meilleure)|une seule)\b"
    r"|\b(?:la (?:mejor|única)|s[óo]lo una|una (?:sola|única)|a melhor|(?:apenas|só) uma)\b"
    r"|\bla (?:(?:opción|respuesta) )?correcta\b|\ba (?:alternativa|resposta) correta\b"
    r"|\bla (?:migliore|risposta (?:corretta|giusta))\b|\bsolo una\b|하나만"
    r"|하나[를을] ?(?:고르|선택)|[1１一]つ(?:だけ|のみ)?を?(?:選|えら)",
    re.IGNORECASE,
)
_CHOOSE = (
    r"\b(?:assinal|choisi|el[ei][gj]|esco[gj]|escolh|indi[cq]|mar[cq]|sc[ei][eg]l|sele[cz]|señal)"
)
_BEST = re.compile(
    rf"\b{_PICK} (?:only )?(?:the )?(?:single |one )?(?:best|most)\b|\b(?:exactly|just|only) one\b"
    r"|\bthe best (?:answer|choice|one|option)\b|\bis (?:the )?best\b"
    r"|\b(?:kreuz|markier|nenn|wähl)\w* (?:\w+ ){0,2}die \w+ste\b|\bist die \w+ste\b"
    rf"|{_CHOOSE}\w* (?:\w+ )?l?a (?:\w+ )?"
    r"(?:m[áa]s|mais|mejor|meilleure|melhor|migliore|più|plus)\b"
    rf"|{_CHOOSE}\w* un[ae]\b(?! (?:ou?|and|y) )|\bвыберите (?:наиболее|один|самый)\b"
    r"|[选選](?![项項])[^，。\n]{0,6}最(?![后後多少终終])|最(?![后後多少终終])[^，。\n]{0,4}一[个個項项]"
    r"|哪一[个個項项][^，。\n]{0,4}最"
    r"|가장 [가-힣]+ (?:것|답|정답)[을를]? ?(?:하나[를을]? ?)?고르|最も[^。\n]{0,12}[選え]",
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
    r"\b(?:if|in case|otherwise|some|unless|whenever|when(?! answering)"
    r"|falls|sofern|wenn|en cas|lorsque|si(?! (?:chiede|prega|richiede)\b)|s['’]il|cuando|en caso"
    r"|caso haja|se (?:ci sono|existirem|houver|più)|если)\b"
    r"|如果|如有|若(?!干)|当[^，。\n]{1,12}时|만약|(?:인|일|있[는을]) 경우(?!를)|라면|ある場合"
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
    if not (_ONE.search(prompt) or _BEST.search(prompt)):
        stated = (one for one in _SENTENCE.split(prompt) if not _SOMETIMES.search(one))
        if _MAY_BE_SEVERAL.search(prompt) or any(map(_states_several, stated)):
            return True
    is_perhaps = _PERHAPS_SEVERAL.search(prompt) or _PERHAPS_NUMBER.search(prompt)
    return is_perhaps is not None and _ONE.search(prompt) is None


def _states_several(sentence: str) -> bool:
    """Return whether a sentence states, and does not deny, that several options are right."""
    for found in _HAS_SEVERAL.finditer(sentence):
        before = _PART.split(sentence[max(0, found.start() - _REACH) : found.start()])[-1]
        is_denied = _DENIAL.search(before + found[0]) or _DENIED_AFTER.match(sentence, found.end())
        if not (is_denied or _AMONG.search(before)):
            return True
    return False
