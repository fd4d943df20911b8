"""Names of drugs in clinical text: a list, and the suffixes by which new names are formed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from exaid_core.term_list import phrases, read_terms

_DRUGS_FILE = Path(__file__).with_name("drugs.txt")

# Stems of international nonproprietary names that end few other words
# (https://www.who.int/teams/health-product-and-policy-standards/inn). A stem alone, as in
# "a statin", is a class, not a drug.
_SUFFIX = re.compile(
    r"[a-z]{2,}(?:pril|sartan|olol|statin|cillin|mycin|micin|azole|tidine|mab|nib|gliptin|gliflozin"
    r"|oxacin|cycline|vir|dipine|zosin|losin|triptan|setron|parin|xaban|gatran|lukast|(?<!s)terol"
    r"|azepam|zolam|oxetine|triptyline|pramine|thiazide|glitazone|dronate|platin|rubicin|taxel"
    r"|curium|curonium|oxicam|coxib|nafil|dalafil|glutide|reotide|teplase|grastim|fungin|penem"
    r"|bactam|lisib|ciclib|parib|limus|zomib|vaptan|lutamide|caine)"
)
_NOT_DRUGS = phrases(
    "imidazole, nitroimidazole, benzimidazole, triazole, tetrazole, thiazole, benzothiazole,"
    "pyrazole, oxazole, isoxazole, cystatin, somatostatin, angiostatin, endostatin, myostatin,"
    "prostatin, follistatin, histidine, cytidine, deoxycytidine"
)
_WORD = re.compile("[a-z]+")  # names of drugs are ASCII, and this is twice as fast as Unicode


class NamedDrugs:
    """The drugs that a text names: `drug in NamedDrugs(text)` for any name of the drug.

    Args:
        text: The text to search.
    """

    def __init__(self, text: str) -> None:
        self._words = f" {_joined(text)} "

    def __contains__(self, drug: str) -> bool:
        names = _synonyms().get(drug, (drug,))
        return any(f" {name} " in self._words for name in names)


def drugs(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and name (lower case, as `NamedDrugs` takes it) of each drug in a text.

    A name of two words (`folic acid`) is found as a whole.
    """
    known = _synonyms()
    words = list(_WORD.finditer(text.lower()))
    covered = 0
    for index, word in enumerate(words):
        if word.start() < covered:
            continue
        pair = words[index : index + 2]
        name = " ".join(part[0] for part in pair)
        if len(pair) == 2 and name in known:
            covered = pair[1].end()
            yield word.start(), covered, name
            continue
        name = word[0]
        if name in known or (_SUFFIX.fullmatch(name) and name not in _NOT_DRUGS):
            yield word.start(), word.end(), name


def international_name(drug: str) -> str:
    """Return the first name of a drug in the list, for any name that `drugs` yields."""
    return _synonyms().get(drug, (drug,))[0]


def _joined(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))


@cache
def _synonyms() -> dict[str, tuple[str, ...]]:
    """Return each name of a drug -> all its names, as `_joined` writes them."""
    synonyms = {}
    for line in read_terms(_DRUGS_FILE):
        names = tuple(_joined(name) for name in line.split(","))
        synonyms.update(dict.fromkeys(names, names))
    return synonyms
