"""Finds drug names in clinical text by a list and by the suffixes of nonproprietary names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from exaid_core.checks.term_list import phrases, read_terms

_DRUGS_FILE = Path(__file__).with_name("words") / "drugs.txt"

# Stems of international nonproprietary names that few other words end with
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
# "a dopamine agonist" is not dopamine.
_CLASS = re.compile("(?:ant)?agonists?|receptors?")
_OF_A_CLASS = re.compile(rf" [a-z]+(?= (?:{_CLASS.pattern}) )")
_WORD = re.compile("[a-z]+")  # Latin names are ASCII here, and this is twice as fast as Unicode
_ACCENTED = re.compile("[À-ɏḀ-ỿ]")


class NamedDrugs:
    """Drugs named in a text: test `drug in NamedDrugs(text)` with any name of the drug.

    Args:
        text: Text to search.
    """

    def __init__(self, text: str) -> None:
        self._words = _OF_A_CLASS.sub(" ", f" {_joined(text)} ")

    def __contains__(self, drug: str) -> bool:
        return any(f" {name} " in self._words for name in _synonyms().get(drug, (drug,)))


def drugs(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start, end and name of each drug in a text.

    Names are in lower case, as `NamedDrugs` expects them. A name of two words (`folic acid`) is
    found as a whole.
    """
    known = _synonyms()
    words = list(_WORD.finditer(_without_accents(text.lower())))
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
        if len(pair) == 2 and _CLASS.fullmatch(pair[1][0]):
            continue
        if name in known or (_SUFFIX.fullmatch(name) and name not in _NOT_DRUGS):
            yield word.start(), word.end(), name


def international_name(drug: str) -> str:
    """Return the first listed name of a drug, given any name that `drugs` yields."""
    return _synonyms().get(drug, (drug,))[0]


def _joined(text: str) -> str:
    return " ".join(_WORD.findall(_without_accents(text.lower())))


def _without_accents(text: str) -> str:
    """Return `text` without the accents of Latin letters: `métoprolol` becomes `metoprolol`."""
    if text.isascii():
        return text
    return _ACCENTED.sub(lambda letter: unicodedata.normalize("NFD", letter[0])[0], text)


@cache
def _synonyms() -> dict[str, tuple[str, ...]]:
    """Return all names that support a drug by each of its names, as `_joined` writes them."""
    synonyms = {}
    for line in read_terms(_DRUGS_FILE):
        certain, _, others = line.partition("|")
        names = tuple(map(_joined, certain.split(",")))
        supporting = (*names, *map(_joined, others.split(","))) if others else names
        synonyms.update(dict.fromkeys(names, supporting))
    return synonyms
