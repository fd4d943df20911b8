"""The concept extractor: what it finds, and that results are reproducible."""

from __future__ import annotations

import csv
import gzip
import os
import re
import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.abbreviations import explained_abbreviations
from evals.cli.make_stoplists import main as make_stoplists
from evals.concepts import Concept, TermExtractor
from evals.normal_form import BREAK, normal_term, normal_word
from evals.scispacy_extractor import ScispacyExtractor
from evals.stoplists import load_stoplists
from evals.terminology import FOLDER, TERMS, is_abbreviation
from exaid_core.checks.term_list import read_terms
from mdagents_llm.errors import ConfigError
from tests.conftest import REPOSITORY
from tests.evals.conftest import SENTENCE

DRUGS = REPOSITORY / "exaid_core" / "checks" / "words" / "drugs.txt"
ANNOTATED = Path(__file__).with_name("annotated_sentences.txt")


SHARED = TermExtractor()
SHARED.extract("")  # makes the automaton, so that no example has to wait for it


@pytest.fixture
def extractor() -> TermExtractor:
    return SHARED


@pytest.fixture(scope="module")
def with_negation() -> TermExtractor:
    return TermExtractor(negation=True)


class Span(NamedTuple):
    text: str
    name: str
    negated: bool


def annotated() -> Iterator[tuple[str, list[Span]]]:
    for line in ANNOTATED.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            sentence, _, spans = line.partition(" | ")
            parts = (span.strip().partition("=") for span in spans.split(";"))
            yield sentence, [Span(p[0].lstrip("-"), p[2], p[0].startswith("-")) for p in parts]


def only(extractor: TermExtractor, text: str) -> Concept:
    (concept,) = extractor.extract(text)
    return concept


# Concepts found


def test_precision_and_recall_on_annotated_sentences(extractor: TermExtractor) -> None:
    found_right = found = expected = 0
    for sentence, spans in annotated():
        predicted = Counter(sentence[m.start : m.end] for m in extractor.mentions(sentence))
        gold = Counter(span.text for span in spans)
        found_right += (predicted & gold).total()
        found += predicted.total()
        expected += gold.total()
    assert expected >= 120
    assert found_right / found >= 0.95
    assert found_right / expected >= 0.93


def test_spans_are_the_concepts_that_they_are_annotated_as(extractor: TermExtractor) -> None:
    compared = 0
    for sentence, spans in annotated():
        found = {sentence[m.start : m.end]: m.concept for m in extractor.mentions(sentence)}
        for span in spans:
            if span.name and span.text in found:
                compared += 1
                assert found[span.text] == only(extractor, span.name), span
    assert compared >= 35


@pytest.mark.sweep
def test_negation_on_annotated_sentences(with_negation: TermExtractor) -> None:
    right = compared = 0
    for sentence, spans in annotated():
        found = {sentence[m.start : m.end]: m.concept for m in with_negation.mentions(sentence)}
        for span in spans:
            if span.text in found:
                compared += 1
                right += found[span.text].negated is span.negated
    assert right / compared >= 0.9


@pytest.mark.sweep
def test_negation_is_off_unless_asked_for(
    extractor: TermExtractor, with_negation: TermExtractor
) -> None:
    assert extractor.extract("no fever") == extractor.extract("fever")
    assert only(with_negation, "There is no fever.").negated
    assert only(with_negation, "He doesn’t have a fever.").negated
    assert not only(with_negation, "There is fever.").negated
    fever, cough = with_negation.mentions("no fever - cough present")  # openmed#1182
    assert fever.concept.negated
    assert not cough.concept.negated
    for text in ("Fever was not identified.", "fever or cough ruled out"):
        assert all(mention.concept.negated for mention in with_negation.mentions(text)), text
    denied = list(with_negation.mentions("Denies:\n- fever\n- cough\n- dyspnea"))
    assert [mention.concept.negated for mention in denied] == [True] * 3  # mimic-code#729
    assert only(with_negation, "Past medical history:\n- asthma").negated
    assert not only(with_negation, "Past medical history:\n- none\nAssessment:\n- fever").negated


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("haemorrhages", "hemorrhage"),
        ("Oedema", "edema"),
        ("tumours", "tumor"),
        ("**Spinocerebellar** ataxia", "spinocerebellar ataxia"),
        ("Friedreich’s ataxia", "Friedreich ataxia"),
        ("C-reactive protein", "CRP"),
        ("MRIs", "magnetic resonance imaging"),
        ("adrenaline", "epinephrine"),
        ("Guillain–Barré syndrome", "Guillain-Barré syndrome"),
        ("non–Hodgkin lymphoma", "non-Hodgkin lymphoma"),
        ("vitamin B–12", "vitamin B-12"),
        ("type–2 diabetes", "type-2 diabetes"),
        ("25–hydroxyvitamin D", "25-hydroxyvitamin D"),
    ],
)
def test_forms_of_one_concept(extractor: TermExtractor, one: str, other: str) -> None:
    assert only(extractor, one) == only(extractor, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # https://www.ncbi.nlm.nih.gov/books/NBK513228/
        ("non–ST-segment elevation myocardial infarction", "NSTEMI"),
        ("non-ST segment elevation myocardial infarction", "NSTEMI"),
        ("non-STEMI", "NSTEMI"),
        ("non-traumatic subarachnoid hemorrhage", "subarachnoid hemorrhage"),
        ("non-hemorrhagic stroke", "stroke"),
        ("non-bloody diarrhea", "diarrhea"),
        ("non-Hodgkin lymphoma", "non Hodgkin's lymphoma"),
        # https://github.com/monarch-initiative/mondo/issues/7275
        ("type II diabetes", "type 2 diabetes mellitus"),
        ("diabetes mellitus type 2", "T2DM"),
        ("NIDDM", "type 2 diabetes"),
        ("pulmonary emboli", "pulmonary embolism"),
        # Text from a PDF: https://github.com/docling-project/docling/issues/3056
        ("atrial ﬁbrillation", "atrial fibrillation"),
        ("atrial fibril\u00adlation", "atrial fibrillation"),
        ("β-blocker", "beta-blocker"),
        ("vitamin B₁₂ deficiency", "vitamin B12 deficiency"),
        ("Crohnʼs disease", "Crohn's disease"),
    ],
)
def test_spellings_of_one_concept(extractor: TermExtractor, one: str, other: str) -> None:
    assert only(extractor, one) == only(extractor, other)


@pytest.mark.parametrize("spelled", ["NFC", "NFD"])
@pytest.mark.parametrize(
    "name", ["Ménière's disease", "Sjögren syndrome", "Guillain–Barré syndrome", "Behçet’s disease"]
)
def test_accents_may_be_composed_decomposed_or_left_out(
    name: str, spelled: Literal["NFC", "NFD"], extractor: TermExtractor
) -> None:
    plain = re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFD", name))
    concept = only(extractor, f"He has {unicodedata.normalize(spelled, name)} now.")
    assert concept.id == only(extractor, plain).id


def test_an_en_dash_between_digits_or_beside_a_space_is_a_break() -> None:
    for text in ("5–10", "5 –10", "fever– 10", "fever – chills"):
        assert BREAK in normal_term(text)


def test_longest_term_from_the_left(extractor: TermExtractor) -> None:
    text = "systemic lupus erythematosus nephritis"
    first = next(extractor.mentions(text))
    assert text[first.start : first.end] == "systemic lupus erythematosus"


@pytest.mark.parametrize(
    "text",
    [
        "feverish",
        "hyperanemias",
        "chest. Pain",
        "chest, pain",
        "chest – pain",
        "the map and all the rest",
        "us",
    ],
)
def test_whole_words_within_a_clause(extractor: TermExtractor, text: str) -> None:
    ids = {concept.id for concept in extractor.extract(text)}
    forbidden = ("fever", "anemia", "chest pain", "MAP", "US")
    assert not ids & {only(extractor, name).id for name in forbidden}


def test_an_abbreviation_means_what_the_text_says(extractor: TermExtractor) -> None:
    by_default = only(extractor, "MS")
    assert by_default == only(extractor, "multiple sclerosis")
    explained = extractor.extract("Mitral stenosis (MS) is severe; MS needs surgery.")
    assert only(extractor, "mitral stenosis") in explained
    assert by_default not in explained


def test_an_abbreviation_of_something_unknown_is_no_concept(extractor: TermExtractor) -> None:
    explained = extractor.extract("The monthly supplement (MS) was paid. MS again.")
    assert only(extractor, "multiple sclerosis") not in explained


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("acute kidney injury (AKI)", [("AKI", "acute kidney injury")]),
        ("in a heart rate (HR) of", [("HR", "heart rate")]),
        ("**Multiple System Atrophy (MSA)**", [("MSA", "Multiple System Atrophy")]),
        ("fever (XYZ)", []),
        ("fever (see below)", []),
        ("(AKI)", []),
    ],
)
def test_explained_abbreviations(text: str, expected: list[tuple[str, str]]) -> None:
    assert list(explained_abbreviations(text)) == expected


@given(st.text())
def test_mentions_are_in_order_and_do_not_overlap(text: str) -> None:
    end = 0
    for mention in SHARED.mentions(text):
        assert end <= mention.start < mention.end <= len(text)
        end = mention.end


@given(st.lists(st.sampled_from([*SENTENCE.split(), "(MS)", "MRI", "no", "\n", "."])).map(" ".join))
def test_concepts_of_a_text_are_those_of_its_mentions(text: str) -> None:
    assert SHARED.extract(text) == {mention.concept for mention in SHARED.mentions(text)}


@given(st.text(max_size=12))
def test_normal_form_of_a_word_is_one_word(word: str) -> None:
    assert len(normal_term(normal_word(word))) <= max(1, len(normal_term(word.lower())))


# The same, and fast


@pytest.mark.process
def test_equal_under_every_hash_seed() -> None:
    program = (
        "from evals.concepts import TermExtractor\n"
        "from pathlib import Path\n"
        f"text = Path({str(ANNOTATED)!r}).read_text(encoding='utf-8')\n"
        "extractor = TermExtractor(negation=True)\n"
        "print(list(extractor.mentions(text)), sorted(extractor.extract(text)))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (0, 1, 2)
    }
    assert len(outputs) == 1
    assert len(outputs.pop()) > 1000


# The table


def read_sources() -> list[dict[str, str]]:
    with (FOLDER / "sources.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_the_table_is_in_the_normal_form_of_today() -> None:
    lines = gzip.decompress(TERMS.read_bytes()).decode().splitlines()[1:]
    assert len(lines) > 50_000
    sources = {source["name"] for source in read_sources()}
    for line in lines:
        _, term, source, form = line.split("\t")
        assert source in sources
        if form:
            assert BREAK not in form
        else:
            assert is_abbreviation(term)
    for line in [*lines[::50], *(line for line in lines if not line.isascii())]:
        _, term, _, form = line.split("\t")
        assert form in ("", " ".join(normal_term(term)))


@pytest.mark.parametrize("list_", [FOLDER / "local_terms.txt", DRUGS])
def test_the_table_has_each_concept_of_the_lists_of_today(
    list_: Path, extractor: TermExtractor
) -> None:
    for line in read_terms(list_):
        names = line.partition("|")[0] if list_ == DRUGS else line.partition(":")[2]
        found = any(extractor.extract(name) for name in re.split("[,;]", names))
        assert found or line.startswith("vital_signs:"), line


def test_every_source_has_a_version_and_a_licence() -> None:
    for source in read_sources():
        assert source.keys() == {"name", "version", "licence", "citation", "url"}
        assert all(source.values()), source


def test_a_damaged_table_is_one_line(tmp_path: Path) -> None:
    damaged = tmp_path / "terms.tsv.gz"
    damaged.write_bytes(TERMS.read_bytes()[:1000])
    with pytest.raises(ConfigError, match=r"terms\.tsv\.gz cannot be read"):
        TermExtractor(damaged)


# Stoplists


@pytest.mark.sweep
def test_stoplists_leave_out_what_every_trace_names(
    traces: Path, tmp_path: Path, extractor: TermExtractor
) -> None:
    folder = tmp_path / "stop"
    when = "2026-01-01T00:00:00Z"
    assert make_stoplists([str(traces), "--out", str(folder), "--generated-at", when]) == 0
    stoplists = load_stoplists(folder)
    pneumonia = only(extractor, "pneumonia")
    assert pneumonia.id in stoplists.concepts
    assert "pneumonia" in stoplists.terms
    assert stoplists.provenance.stoplists_generated_at == when
    without = TermExtractor(stop_concepts=stoplists.concepts, stop_terms=stoplists.terms)
    assert without.extract("pneumonia and gout") == extractor.extract("gout")
    before = stoplists.provenance
    (folder / "stop_cuis.txt").write_text("C0000001\n")
    after = load_stoplists(folder).provenance
    assert after.stop_cuis_hash != before.stop_cuis_hash
    assert after.stop_entities_hash == before.stop_entities_hash


def test_scispacy_that_is_not_there_fails_loudly() -> None:
    with pytest.raises(ConfigError, match=r"pip install scispacy==0"):
        ScispacyExtractor()
