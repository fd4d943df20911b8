"""Sessions of the assistant: stored whole or not at all, one turn at a time, none mixed up."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from demos.document_assistant.assistant import DROPPED, DocumentAssistant
from demos.toolkit.database import Database
from demos.toolkit.sessions import Role, UnknownSessionError
from mdagents_llm.errors import ConfigError, EndpointDown, StorageError
from tests.demos.document_assistant.conftest import Opens
from tests.demos.document_assistant.programs import speaker
from tests.demos.document_assistant.test_conversations import EXPENSE, MARGIN, RISKS
from tests.fake_provider import FakeProvider, SeenRequest
from tests.support.cancelling import cancel_sometime
from tests.support.document_model import document_model


@pytest.fixture
async def assistant(
    opens: Opens, database: Database, provider: FakeProvider
) -> AsyncIterator[DocumentAssistant]:
    """An assistant over each kind of database."""
    provider.when(None, document_model)
    async with opens(database=database) as assistant:
        yield assistant


def has_read(request: SeenRequest) -> bool:
    """Tell whether the request comes after a document was read."""
    return any('"name": "document_reader", "content"' in one for one in request.messages)


@pytest.mark.process
async def test_a_session_goes_on_where_it_was(
    opens: Opens, database: Database, provider: FakeProvider
) -> None:
    provider.when(None, document_model)
    async with opens(database=database) as first:
        await first.process_message(EXPENSE, "s", "ann")
    async with opens(database=database) as second:
        reply = await second.process_message(RISKS, "s", "ann")
        view = await second.get_session("s", "ann")
    assert reply.turn == 2
    assert [one.number for one in view.messages] == [1, 2, 3, 4]
    assert view.active_documents == ["doc_fin_2025_march", "doc_compliance_v2"]
    assert any(EXPENSE in message for message in provider.calls[-1].messages), "it is told"


async def test_a_session_is_its_users(assistant: DocumentAssistant) -> None:
    await assistant.process_message(EXPENSE, "s", "ann")
    for refused in (
        assistant.process_message(RISKS, "s", "bob"),
        assistant.get_session("s", "bob"),
        assistant.resume("s", "bob"),
        assistant.drop("s", "bob"),
        assistant.delete_session("s", "bob"),
        assistant.upload(Path("x.txt"), "s", "bob"),
    ):
        with pytest.raises(UnknownSessionError):
            await refused
    assert [one.id for one in await assistant.sessions("ann")] == ["s"]
    assert await assistant.sessions("bob") == []


@pytest.mark.parametrize("text", ["", "  \n", "\0", "x" * 20_001])
async def test_what_is_no_message(opens: Opens, text: str) -> None:
    async with opens() as assistant:
        with pytest.raises(ConfigError, match="the message"):
            await assistant.process_message(text)
        assert await assistant.sessions() == []


async def test_a_session_is_deleted(assistant: DocumentAssistant, tmp_path: Path) -> None:
    await assistant.process_message(EXPENSE, "s")
    assert (tmp_path / "sessions" / "s.json").exists()
    await assistant.delete_session("s")
    assert not (tmp_path / "sessions" / "s.json").exists()
    with pytest.raises(UnknownSessionError):
        await assistant.get_session("s")


async def test_documents_are_retrieved(assistant: DocumentAssistant) -> None:
    found = await assistant.retrieve_documents(
        "March financial statement product line A operating expense"
    )
    assert found[0].document_id == "doc_fin_2025_march"
    assert found[0].title
    assert found[0].text


async def test_two_files_of_one_name_are_both_kept(
    assistant: DocumentAssistant, tmp_path: Path
) -> None:
    await assistant.start_session(session_id="s")
    for folder, rent in (("a", 1200), ("b", 900), ("a", 1300)):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "report.txt").write_text(f"Rent is {rent} EUR", encoding="utf-8")
        await assistant.upload(tmp_path / folder / "report.txt", "s")
    uploaded = [one for one in await assistant.documents("s") if one.scope]
    assert [(one.id, one.title, one.text) for one in uploaded] == [
        ("report_txt", "report.txt", "Rent is 1300 EUR"),
        ("report_txt_2", "report.txt (2)", "Rent is 900 EUR"),
    ]


@pytest.mark.sweep
async def test_an_upload_is_seen_in_its_session_only(
    assistant: DocumentAssistant, tmp_path: Path
) -> None:
    path = tmp_path / "zebra.txt"
    path.write_text("The zebra of the aviary eats 311 seeds.", encoding="utf-8")
    for name in ("mine", "other"):
        await assistant.start_session(session_id=name)
    uploaded = await assistant.upload(path, "mine")
    assert uploaded.id in [one.id for one in await assistant.documents("mine")]
    assert uploaded.id not in [one.id for one in await assistant.documents("other")]
    question = "How many seeds does the zebra of the aviary eat?"
    assert "311" in (await assistant.process_message(question, "mine")).text
    assert "311" not in (await assistant.process_message(question, "other")).text


# -- turns that do not end ------------------------------------------------------------------------


@pytest.mark.sweep
async def test_a_turn_that_failed_is_finished_without_paying_again(
    assistant: DocumentAssistant, provider: FakeProvider
) -> None:
    provider.fail_next("401", times=9, match=has_read)
    with pytest.raises(EndpointDown):
        await assistant.process_message(EXPENSE, "s")
    provider.forget_faults()
    view = await assistant.get_session("s")
    assert (view.messages, view.unfinished) == ([], EXPENSE)
    before = len(provider.calls)
    steps: list[str] = []
    reply = await assistant.resume("s", on_step=steps.append)
    assert reply is not None
    assert "1,238,450" in reply.text
    assert len(provider.calls) == before + 1, "one call failed, and one is made again"
    assert steps == [], "no tool is called again"
    assert (await assistant.get_session("s")).unfinished == ""
    assert await assistant.resume("s") is None


@pytest.mark.sweep
async def test_a_new_message_drops_what_was_not_finished(
    assistant: DocumentAssistant, provider: FakeProvider, tmp_path: Path
) -> None:
    provider.fail_next("401", times=9, match=has_read)
    with pytest.raises(EndpointDown):
        await assistant.process_message(EXPENSE, "s")
    provider.forget_faults()
    reply = await assistant.process_message(RISKS, "s")
    assert reply.actions_taken == [
        DROPPED,
        "classify_intent",
        "summarization_agent",
        "update_memory",
    ]
    assert (await assistant.get_session("s")).messages[0].text == RISKS
    assert DROPPED in (tmp_path / "logs" / "assistant.log").read_text(encoding="utf-8")


async def test_what_was_not_finished_can_be_dropped(
    assistant: DocumentAssistant, provider: FakeProvider
) -> None:
    provider.fail_next("401")
    with pytest.raises(EndpointDown):
        await assistant.process_message(EXPENSE, "s")
    await assistant.drop("s")
    assert (await assistant.get_session("s")).unfinished == ""
    assert await assistant.resume("s") is None


async def test_an_answer_that_could_not_be_stored_is_stored_later(
    assistant: DocumentAssistant, provider: FakeProvider, tmp_path: Path
) -> None:
    """It is paid for, so it is not asked for again."""
    in_the_way = tmp_path / "sessions" / "s.json"
    in_the_way.mkdir(parents=True)
    with pytest.raises(StorageError, match=r"s\.json"):
        await assistant.process_message(EXPENSE, "s")
    in_the_way.rmdir()
    before = len(provider.calls)
    reply = await assistant.resume("s")
    assert reply is not None
    assert "1,238,450" in reply.text
    assert len(provider.calls) == before


@pytest.mark.process
async def test_a_killed_process_loses_no_question(
    opens: Opens, address: str, database: Database, provider: FakeProvider, tmp_path: Path
) -> None:
    provider.when(None, document_model)
    with provider.hold(has_read) as hold:
        process = speaker(provider, tmp_path, address, "s", EXPENSE)
        await asyncio.to_thread(hold.wait)
        process.kill()
        process.communicate()
    async with opens(database=database) as assistant:
        view = await assistant.get_session("s")
        assert (view.messages, view.unfinished) == ([], EXPENSE)
        before = len(provider.calls)
        reply = await assistant.resume("s")
    assert reply is not None
    assert "1,238,450" in reply.text
    assert len(provider.calls) == before + 1, "intent, search and reading are not paid again"


@pytest.mark.process
async def test_two_processes_take_turns(
    opens: Opens, address: str, database: Database, provider: FakeProvider, tmp_path: Path
) -> None:
    provider.when(None, document_model)
    questions = [[f"{name} {number}: {EXPENSE}" for number in range(3)] for name in "ab"]
    both = [speaker(provider, tmp_path, address, "s", *asked) for asked in questions]
    for process in both:
        _, errors = await asyncio.to_thread(process.communicate)
        assert process.returncode == 0, errors
    async with opens(database=database) as assistant:
        said = (await assistant.get_session("s")).messages
    assert [one.number for one in said] == [*range(1, 13)]
    asked = [one.text for one in said if one.role is Role.USER]
    assert sorted(asked) == sorted(questions[0] + questions[1])
    for own in questions:
        assert [one for one in asked if one in own] == own, "each in its order"
    assert all("1,238,450" in one.text for one in said if one.role is Role.ASSISTANT)
    kept = json.loads((tmp_path / "sessions" / "s.json").read_text(encoding="utf-8"))
    assert len(kept["messages"]) == 12


@pytest.mark.sweep
async def test_a_cancelled_turn_leaves_nothing_half_stored(assistant: DocumentAssistant) -> None:
    chance = random.Random(7)
    whole = 0
    for _ in range(25):
        was_cut = await cancel_sometime(assistant.process_message(MARGIN, "s"), chance, steps=500)
        whole += not was_cut
        view = await assistant.get_session("s")
        assert len(view.messages) in (2 * whole, 2 * whole + 2)
        whole = len(view.messages) // 2  # one may be cut when it is stored
        if chance.random() < 0.3:
            resumed = await assistant.resume("s")
            assert (resumed is not None) == bool(view.unfinished)
            whole += resumed is not None
    assert whole < 25, "some were cut"
    reply = await assistant.process_message(EXPENSE, "s")
    assert "1,238,450" in reply.text
    said = (await assistant.get_session("s")).messages
    assert [one.number for one in said] == [*range(1, 2 * whole + 3)]


@pytest.mark.sweep
async def test_fifty_dialogues_at_once_share_nothing(
    assistant: DocumentAssistant, tmp_path: Path
) -> None:
    kept = {}
    for name in ("wren", "crow"):
        path = tmp_path / f"{name}.txt"
        path.write_text(f"The ledger of the {name} shows {len(name) * 7001}1 seeds.", "utf-8")
        kept[name] = path

    async def dialogue(number: int) -> list[str]:
        session = await assistant.start_session(session_id=f"d{number}")
        name = ("wren", "crow")[number % 2]
        if number < 4:
            await assistant.upload(kept[name], session.id)
        question = f"How many seeds does the ledger of the {name} show? (asked by {number})"
        return [
            (await assistant.process_message(one, session.id)).text for one in (question, EXPENSE)
        ]

    found = await asyncio.gather(*map(dialogue, range(50)))
    for number, (seeds, expense) in enumerate(found):
        assert ("280041" in seeds) == (number < 4), "seen where it was uploaded, and nowhere else"
        assert "1,238,450" in expense
        said = (await assistant.get_session(f"d{number}")).messages
        assert f"(asked by {number})" in said[0].text
        assert len(said) == 4
