"""Who of a team is given the pictures of the question, and how prompts refer to them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from mdagents.agents.case import Case
from mdagents.datasets.pictures.question_picture import QuestionPicture
from mdagents.datasets.questions import NOT_SHOWN, Question, SourceQuestion, present
from mdagents.settings import Difficulty, ImageAgents, OptionOrder, TeamRole
from mdagents.teams.baselines import debate, medagents, medprompt, self_refine
from mdagents.teams.baselines.medprompt import Library, Solved
from mdagents.teams.methods import TEAMS
from mdagents.teams.router import route
from mdagents_llm.chat import ChatModel, ChatReply, ChatRequest, OnText
from mdagents_llm.pictures import Picture
from tests.fake_provider import FakeProvider

OPTIONS = "ABCD"
SOURCE = SourceQuestion(
    id="q-1",
    text="Which film shows a fracture?",
    options={"A": "the wrist", "B": "the knee", "C": "", "D": ""},
    gold="C",
    pictures=(
        QuestionPicture(None, content=b"whole", caption="all films"),
        *(QuestionPicture(None, content=letter.encode(), option=letter) for letter in OPTIONS),
    ),
)


class Watched:
    """A model that remembers the requests it passes on."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.requests: list[ChatRequest] = []

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        self.requests.append(request)
        without = tuple(replace(message, pictures=()) for message in request.messages)
        return await self._model.generate(replace(request, messages=without), on_text)


@pytest.fixture
def seeing(case: Case) -> tuple[Case, Watched]:
    """A case with five pictures, and the model that all of its roles share."""
    question = present(SOURCE, OptionOrder.ORIGINAL, 0)
    watched = Watched(next(iter(case.models.values())))
    return (
        replace(
            case,
            question=question,
            models=dict.fromkeys(case.models, watched),
            pictures=shown(question),
        ),
        watched,
    )


def shown(question: Question) -> tuple[Picture, ...]:
    """Pictures whose identity is the content that they stem from."""
    return tuple(
        Picture("AAAA", "image/png", 1, 1, one.content.decode(), label)
        for one, label in zip(question.pictures, question.labels(), strict=True)
    )


def by_role(watched: Watched) -> dict[str, set[bool]]:
    """Role -> whether its prompts had pictures."""
    found: dict[str, set[bool]] = {}
    for request in watched.requests:
        sees = any(message.pictures for message in request.messages)
        found.setdefault(request.labels.role, set()).add(sees)
    return found


@pytest.mark.parametrize("level", Difficulty)
async def test_every_agent_of_a_team_sees(level: Difficulty, seeing: tuple[Case, Watched]) -> None:
    case, watched = seeing
    await route(case)
    await TEAMS[level](case, case.question, case.settings)
    assert by_role(watched).keys() == {"router", "recruiter", "expert", "decision"}
    for request in watched.requests:
        system, user = request.messages
        assert not system.pictures
        assert user.pictures == case.pictures
        texts = [part for part in user.parts() if isinstance(part, str)]
        assert texts[:2] == ["Picture 1: all films:", "Picture 2:"], "labels, then the question"
        assert "A) the wrist [Picture 2]" in user.content
    assert case.were_shown


@pytest.mark.parametrize("level", Difficulty)
async def test_deciders_may_be_left_to_what_experts_say(
    level: Difficulty, seeing: tuple[Case, Watched]
) -> None:
    case, watched = seeing
    case.image_agents = ImageAgents.EXPERTS
    await route(case)
    await TEAMS[level](case, case.question, case.settings)
    assert by_role(watched) == {
        "router": {True}, "expert": {True}, "recruiter": {False}, "decision": {False},
    }  # fmt: skip
    for request in watched.requests:
        if request.labels.role in ("recruiter", "decision"):
            assert "[Picture" not in request.messages[1].content, "a label would point to nothing"


async def test_without_pictures_no_label_points_to_nothing(seeing: tuple[Case, Watched]) -> None:
    case, watched = seeing
    case.pictures = ()
    await self_refine.solve(case, case.question, case.settings)
    for request in watched.requests:
        prompt = request.messages[1].content
        assert "Picture" not in prompt
        assert f"B) the knee\nC) {NOT_SHOWN}\nD) {NOT_SHOWN}" in prompt
    assert not case.were_shown


@pytest.mark.parametrize("solve", [debate.solve, medagents.solve, self_refine.solve])
async def test_later_turns_see_as_the_first_does(
    solve: Callable[..., object], seeing: tuple[Case, Watched], provider: FakeProvider
) -> None:
    case, watched = seeing
    letters = iter(OPTIONS * 10)
    provider.when(
        '"confidence": a number from 0 to 1',
        lambda _: {"answer": next(letters), "confidence": 0.5, "reasoning": "I saw it."},
    )
    provider.when('"needs_change"', {"needs_change": True})
    await solve(case, case.question, case.settings)  # type: ignore[misc]
    phases = {request.labels.phase for request in watched.requests}
    assert len(phases) > 1
    assert by_role(watched).keys() <= {"recruiter", "expert", "decision"}
    assert all(seen == {True} for seen in by_role(watched).values())


class _Solved(Library):
    """A library whose examples are given."""

    def __init__(self) -> None:
        """Read no train split."""

    async def beside(self, case: Case) -> list[Solved]:
        """Return one example without a picture."""
        plain = Question("t-1", "Which vitamin?", {"A": "C", "B": "D"}, "A", {"A": "A", "B": "B"})
        return [Solved(plain, "Gums bleed.")]


async def test_shuffled_options_keep_their_pictures(seeing: tuple[Case, Watched]) -> None:
    case, watched = seeing
    await medprompt.solve(case, case.question, case.settings, exemplars=_Solved())
    orders = set()
    for request in watched.requests:
        user = request.messages[1]
        assert user.content[: user.pictures_at].rstrip().endswith("Answer: A"), "examples first"
        assert [one.label for one in user.pictures][1:] == [f"Picture {n}" for n in range(2, 6)]
        content_of = {one.label: one.sha256 for one in user.pictures}
        block = user.content[user.pictures_at :]
        options = re.findall(r"^([A-D])\) (.*?) ?\[(Picture \d)\]$", block, re.MULTILINE)
        assert [letter for letter, _, _ in options] == list(OPTIONS)
        for _, text, label in options:
            if text:  # A and B have a text that tells whose picture it must be
                assert content_of[label] == {"the wrist": "A", "the knee": "B"}[text]
        orders.add("".join(content_of[label] for _, _, label in options))
    assert len(orders) == len(watched.requests) == 5
    assert all(sorted(order) == list(OPTIONS) for order in orders)


def test_options_of_the_same_text_are_told_apart_by_their_pictures() -> None:
    question = present(SOURCE, OptionOrder.SHUFFLED, 3)
    right = next(letter for letter, of in question.permutation.items() if of == "C")
    assert question.right_letters() == [right]
    assert question.right_letters([str(n) for n in range(5)]) == [right]
    moved = question.reordered(dict(zip("ABCD", "DCBA", strict=True)))
    assert moved.permutation[moved.gold] == "C"
    assert [one.option for one in moved.pictures] == ["", *OPTIONS]


def test_a_role_sees_or_does_not() -> None:
    from mdagents.agents.case import sees_pictures

    for role in (*TeamRole, "expert-3"):
        assert sees_pictures(role, ImageAgents.ALL)
        expected = role.startswith("expert") or role == TeamRole.ROUTER
        assert sees_pictures(role, ImageAgents.EXPERTS) == expected
