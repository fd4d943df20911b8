"""Finds drug names in clinical text by a list and by the suffixes of nonproprietary names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from exaid_core.checks.term_list import phrases, read_terms

_DRUGS_FILE = Path(__file__).with_name("words") / "drugs.txt"
_FOREIGN_FILE = Path(__file__).with_name("words") / "foreign_drugs.txt"

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
    "prostatin, follistatin, histidine, cytidine, deoxycytidine,"
    "servir, vivir, hervir, sobrevivir, asservir, desservir"
)
_WORD = re.compile("[a-z]+")  # Latin names are ASCII here, and this is twice as fast as Unicode
_ACCENTED = re.compile("[À-ɏḀ-ỿ]")


class NamedDrugs:
    """Drugs named in a text: test `drug in NamedDrugs(text)` with any name of the drug.

    Args:
        text: Text to search.
    """

    def __init__(self, text: str) -> None:
        self._words = f" {_joined(text)} "
        foreign = [] if text.isascii() else _in_other_scripts().findall(text)
        self._other_scripts: frozenset[str] = frozenset(foreign)

    def __contains__(self, drug: str) -> bool:
        names = _synonyms().get(drug, (drug,))
        return any(f" {name} " in self._words or name in self._other_scripts for name in names)


def drugs(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start, end and name of each drug in a text.

    Names are in lower case, as `NamedDrugs` expects them. A name of two words (`folic acid`) is
    found as a whole. Names in non-Latin scripts come last.
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
        if name in known or (_SUFFIX.fullmatch(name) and name not in _NOT_DRUGS):
            yield word.start(), word.end(), name
    if not text.isascii():
        for found in _in_other_scripts().finditer(text):
            yield *found.span(), found[0]


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
    """Return all names of a drug by each of its names; Latin names are normalized by `_joined`."""
    synonyms = {}
    for line in read_terms(_DRUGS_FILE):
        names = tuple(_joined(name) for name in line.split(","))
        synonyms.update(dict.fromkeys(names, names))
    for line in read_terms(_FOREIGN_FILE):
        drug, _, others = unicodedata.normalize("NFKC", line).partition(":")
        foreign = (name.strip() for name in others.split(","))
        names = (*synonyms[drug], *(_joined(name) or name for name in foreign))
        synonyms.update(dict.fromkeys(names, names))
    return synonyms


@cache
def _in_other_scripts() -> re.Pattern[str]:
    names = sorted((name for name in _synonyms() if not name.isascii()), key=len, reverse=True)
    return re.compile("|".join(names))
