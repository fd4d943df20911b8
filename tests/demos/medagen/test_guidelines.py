"""The guidelines: read, seeded and found in both languages, with diacritics or without."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from demos.medagen.checks import Fault, faults
from demos.medagen.guidelines import FOLDER, Guidelines, Seeded, read_guidelines
from demos.medagen.schemas import Language
from demos.medagen.seed_guidelines import main
from demos.toolkit.database import Database
from mdagents_llm.errors import ConfigError
from tests.conftest import REPOSITORY

ALL = read_guidelines(REPOSITORY / FOLDER)
EN, VI = Language.ENGLISH, Language.VIETNAMESE
QUESTIONS = [
    (EN, "crushing pain in my chest", "chest-pain"),
    (EN, "child with high fever for three days", "fever-child"),
    (EN, "hit on the head and vomits", "head-injury"),
    (EN, "scalded by hot water, blisters", "burns"),
    (EN, "it burns when I pee", "urinary"),
    (EN, "stung by a wasp, throat swelling", "anaphylaxis"),
    (EN, "runny nose and cough", "cold-and-sore-throat"),
    (EN, "swallowed pills", "poisoning"),
    (EN, "bleeding in pregnancy", "pregnancy"),
    (EN, "one arm weak, speech unclear", "stroke-signs"),
    (VI, "đau ngực lan ra tay", "chest-pain"),
    (VI, "trẻ sốt cao co giật", "fever-child"),
    (VI, "bị chó cắn có cần tiêm phòng dại", "snake-and-animal-bites"),
    (VI, "bỏng nước sôi phồng rộp", "burns"),
    (VI, "tiểu buốt có máu", "urinary"),
    (VI, "dau bung duoi ben phai", "abdominal-pain"),
    (VI, "kho tho moi tim", "breathing-difficulty"),
    (VI, "sot xuat huyet chay mau chan rang", "dengue"),
    (VI, "tieu duong khat nuoc nhieu", "diabetes"),
    (VI, "tieu chay mat nuoc", "diarrhoea"),
    (EN, "I do not want to live any more", "suicidal-thoughts"),
    (VI, "không muốn sống nữa", "suicidal-thoughts"),
]
# Written before it was seen what is found. Texts and their words were not mended on these; the
# words left out of a query were, once (English ones out of Vietnamese: PostgreSQL 36 -> 37).
# Questions and words are of one author: users' words are found less often than this says.
UNSEEN = [
    (EN, "grandma suddenly cannot move her left leg and talks nonsense", "stroke-signs"),
    (EN, "elephant sitting on my chest", "chest-pain"),
    (EN, "asthma attack, inhaler is not helping", "breathing-difficulty"),
    (EN, "my baby ate washing powder", "poisoning"),
    (EN, "I keep thinking about killing myself", "suicidal-thoughts"),
    (EN, "diarrhoea and vomiting since last night", "diarrhoea"),
    (EN, "cat scratched me and the wound is swollen", "snake-and-animal-bites"),
    (EN, "splashed acid in the eye", "eye"),
    (EN, "spilled boiling soup on my arm", "burns"),
    (EN, "fell off a ladder and hit my head", "head-injury"),
    (EN, "blood in my urine", "urinary"),
    (EN, "my newborn feels hot", "fever-child"),
    (EN, "pounding headache on one side", "headache"),
    (EN, "sugar is 20 and I feel sick and thirsty", "diabetes"),
    (EN, "28 weeks, baby is not kicking", "pregnancy"),
    (EN, "itchy bumps after gardening", "rash"),
    (EN, "deep cut on the palm from glass", "bleeding"),
    (EN, "cannot poop for five days", "small-complaints"),
    (EN, "he is having convulsions right now", "seizures"),
    (EN, "pollen makes me sneeze", "allergic-rhinitis"),
    (VI, "tôi muốn chết cho xong", "suicidal-thoughts"),
    (VI, "tức ngực khó chịu khi leo cầu thang", "chest-pain"),
    (VI, "bố tôi tự nhiên nói khó, tay phải không nhấc được", "stroke-signs"),
    (VI, "bé nhà em đi ngoài phân lỏng mười lần", "diarrhoea"),
    (VI, "bị ong chích sưng hết mặt", "anaphylaxis"),
    (VI, "đau lưng lan xuống chân", "back-and-muscle-pain"),
    (VI, "sốt 40 độ người lớn rét run", "fever-adult"),
    (VI, "đau họng nuốt vướng, ho", "cold-and-sore-throat"),
    (VI, "chồng tôi lên cơn động kinh", "seizures"),
    (VI, "vướng bụi vào mắt, đau mắt", "eye"),
    (VI, "chay mau cam hoai khong het", "small-complaints"),
    (VI, "meo cao co can chich ngua khong", "snake-and-animal-bites"),
    (VI, "con toi nuot pin", "poisoning"),
    (VI, "dau rat khi di tieu", "urinary"),
    (VI, "bi bong dau an", "burns"),
    (VI, "nhuc dau dinh hai ben thai duong", "headache"),
    (VI, "bau 7 thang dau dau mo mat", "pregnancy"),
    (VI, "toi chan song lam roi", "suicidal-thoughts"),
    (VI, "nghet mui hat hoi khi gap bui", "allergic-rhinitis"),
    (VI, "noi cham do sau sot 4 ngay chay mau rang", "dengue"),
]
FOUND = 37
"""Queries whose page is among the first five, in either database; among the first three, SQLite has
as many and PostgreSQL 35."""


@pytest.fixture
async def guidelines(address: str) -> AsyncIterator[Guidelines]:
    database = Database(address)
    async with Guidelines.open(database) as guidelines:
        await guidelines.seed(ALL)
        yield guidelines
    await database.close()


@pytest.mark.process
@pytest.mark.parametrize(
    ("language", "query", "wanted"), QUESTIONS, ids=[query for _, query, _ in QUESTIONS]
)
async def test_what_is_asked_is_found(
    guidelines: Guidelines, language: Language, query: str, wanted: str
) -> None:
    found = await guidelines.search(query, language, 3)
    assert wanted in [one.id for one in found]
    texts = {one.id: one.text for one in ALL if one.language is language}
    for one in found:
        assert one.text.startswith(texts[one.id]), "as it is written"
        assert "~" not in one.text
        assert "Words:" not in one.text


async def test_what_is_asked_in_other_words_is_mostly_found(guidelines: Guidelines) -> None:
    missed = [
        query
        for language, query, wanted in UNSEEN
        if wanted not in [one.id for one in await guidelines.search(query, language, 5)]
    ]
    assert len(UNSEEN) - len(missed) >= FOUND - 1, missed


async def test_letters_that_are_composed_of_two_are_found(guidelines: Guidelines) -> None:
    query = unicodedata.normalize("NFD", "bị bỏng nước sôi")
    assert (await guidelines.search(query, VI, 1))[0].id == "burns"


@pytest.mark.parametrize(
    "query", ["", "''; DROP TABLE", 'NEAR("a" b*) OR', "x" * 5000, "\x00", "\ud800", "the"]
)
async def test_any_query_is_harmless(guidelines: Guidelines, query: str) -> None:
    await guidelines.search(query, EN)
    assert await guidelines.search("chest pain", EN)


async def test_seeding_again_removes_what_is_gone(guidelines: Guidelines) -> None:
    assert await guidelines.seed(ALL) == Seeded(added=0, removed=0)
    fewer = [one for one in ALL if one.id != "burns"]
    assert await guidelines.seed(fewer) == Seeded(added=0, removed=2)
    found = await guidelines.search("burn scald blisters water", EN, 10)
    assert "burns" not in [one.id for one in found]
    assert await guidelines.seed(ALL) == Seeded(added=2, removed=0)
    assert (await guidelines.search("scald cling film", EN, 1))[0].id == "burns"


async def test_a_text_that_has_changed_takes_the_place_of_the_old_one(
    guidelines: Guidelines,
) -> None:
    changed = [replace(one, words="xylophone") if one.id == "burns" else one for one in ALL]
    assert not await guidelines.search("xylophone", EN)
    assert await guidelines.seed(changed) == Seeded(added=0, removed=0)
    assert [one.id for one in await guidelines.search("xylophone", EN)] == ["burns"]


def test_the_texts_keep_the_rules_that_answers_keep() -> None:
    assert len({one.id for one in ALL}) == 26
    for one in ALL:
        for sentence in re.split(r"(?<=[.!?:])\s+", one.text):
            assert not faults(sentence) & {Fault.DOSE, Fault.MEDICINE}, sentence
        assert 40 <= len(one.text.split()) <= 160, one.id
        assert one.source


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("Chest Pain.en.md", "# A\n\nb\n\nSource: c\n", "the name must be like"),
        ("a.md", "# A\n\nb\n\nSource: c\n", "the name must be like"),
        ("a.en.md", "no heading", "it must be '# Title'"),
        ("a.en.md", "# A\n\nb\n\nSource: c\n", "one language only"),
        ("a.txt", "x", "there are no guidelines"),
    ],
)
def test_a_folder_that_is_wrong(tmp_path: Path, name: str, text: str, told: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=told):
        read_guidelines(tmp_path)


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = ["--folder", str(REPOSITORY / FOLDER)]
    for added in (len(ALL), 0):
        assert main(folder) == 0
        told = capsys.readouterr().out
        assert f"{len(ALL)} guidelines, two languages, are in" in told
        assert told.endswith(f": {added} added, 0 removed\n")
    assert main([]) == 2
    assert "name their folder by --folder" in capsys.readouterr().err
