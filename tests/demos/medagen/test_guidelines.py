"""The guidelines: read, seeded and found in both languages, with diacritics or without."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from demos.medagen.checks import Fault, faults
from demos.medagen.guidelines import FOLDER, Guidelines, read_guidelines
from demos.medagen.schemas import Language
from demos.medagen.seed_guidelines import main
from demos.toolkit.database import Database
from infra.errors import ConfigError
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
]


@pytest.fixture
async def guidelines(address: str) -> AsyncIterator[Guidelines]:
    database = Database(address)
    async with Guidelines.open(database) as guidelines:
        await guidelines.seed(ALL)
        yield guidelines
    await database.close()


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


@pytest.mark.parametrize("query", ["", "''; DROP TABLE", 'NEAR("a" b*) OR', "x" * 5000, "\x00"])
async def test_any_query_is_harmless(guidelines: Guidelines, query: str) -> None:
    await guidelines.search(query, EN)
    assert await guidelines.search("chest pain", EN)


async def test_seeding_again_removes_what_is_gone(guidelines: Guidelines) -> None:
    await guidelines.seed([one for one in ALL if one.id != "burns"])
    found = await guidelines.search("burn scald blisters water", EN, 10)
    assert "burns" not in [one.id for one in found]
    await guidelines.seed(ALL)
    assert (await guidelines.search("scald cling film", EN, 1))[0].id == "burns"


def test_the_texts_keep_the_rules_that_answers_keep() -> None:
    assert len({one.id for one in ALL}) >= 20
    for one in ALL:
        for sentence in re.split(r"(?<=[.!?:])\s+", one.text):
            assert not faults(sentence) & {Fault.DOSE, Fault.MEDICINE}, sentence
        assert 40 <= len(one.text.split()) <= 160, one.id
        assert one.source


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("Chest Pain.en.md", "# A\n\nb\n\nSource: c\n", "the name must be like"),
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
    for _ in range(2):
        assert main(folder) == 0
        assert f"{len(ALL)} guidelines, two languages, are in" in capsys.readouterr().out
    assert main([]) == 2
    assert "name their folder by --folder" in capsys.readouterr().err
