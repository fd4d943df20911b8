"""An assistant that answers by a few words of the message, and servers of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from demos.medagen.app import make_app
from demos.medagen.conversation import Conversation, Entry
from demos.medagen.limits import Limits
from demos.medagen.schemas import (
    ActionStart,
    CvFindings,
    Event,
    FinalAnswer,
    Fired,
    Language,
    Level,
    Observation,
    Prediction,
    RulesResult,
    Thought,
    TriageInput,
    TriageRequest,
    TriageResult,
)
from demos.toolkit.guard import new_id
from demos.toolkit.sessions import Role, SessionBusyError, UnknownSessionError
from mdagents_llm.errors import ConfigError
from mdagents_llm.web.address import listen
from mdagents_llm.web.serve import server_of

NOW = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
CHEST_PAIN = Fired(
    rule="chest_pain", flag="chest_pain", level=Level.EMERGENCY, because="đau ngực", source="NHS"
)
MANY = Limits(per_minute=100_000, burst=100_000)


def nothing(event: Event) -> None:
    """Show nothing."""


class ScriptedAssistant:
    """What is in a message decides what is answered.

    ngực or chest: an emergency. FAIL: the model fails. WAIT: the answer waits for `go`. BUSY: the
    session is in use elsewhere. STEPS: ten thousand of them. BUG: what no program expects. MODEL:
    the model names a red flag and gives advice. EARLIER: the level rests on an earlier message.
    """

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.seen: Counter[str] = Counter()
        """`began`, `ended`, `cancelled` -> turns."""
        self.under_way = 0
        self.most_under_way = 0
        self._said: dict[str, tuple[str, list[Entry]]] = {}

    async def triage(
        self, request: TriageRequest, on_event: Callable[[Event], None] = nothing
    ) -> TriageResult:
        self.seen["began"] += 1
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            result = await self._triage(request, on_event)
        except asyncio.CancelledError:
            self.seen["cancelled"] += 1
            raise
        finally:
            self.under_way -= 1
        self.seen["ended"] += 1
        return result

    async def _triage(
        self, request: TriageRequest, on_event: Callable[[Event], None]
    ) -> TriageResult:
        text = request.text
        if not text and not request.image_url:
            raise ConfigError("the message is empty; say what is wrong")
        if "BUSY" in text:
            raise SessionBusyError("the session is in use elsewhere; wait for its answer")
        if "BUG" in text:
            raise ZeroDivisionError(text)
        session = self._session(request.session_id, request.user_id)
        language = Language.ENGLISH if text.isascii() else Language.VIETNAMESE
        rules = self.rules(TriageInput(symptoms=(text,)), language)
        on_event(ActionStart(tool="triage_rules", input={"symptoms": [text]}))
        output = rules.model_dump(mode="json")
        on_event(Observation(tool="triage_rules", output=output, session_id=session))
        result = TriageResult(
            triage_level=rules.triage_level,
            symptom_summary=text,
            red_flags=rules.red_flags,
            model_flags=("chest_pain", "a bad cough") if "MODEL" in text else (),
            model_advice="Drink warm tea." if "MODEL" in text else "",
            earlier_words="crushing pain" if "EARLIER" in text else "",
            suspected_conditions=("viral infection",) if language is Language.ENGLISH else (),
            cv_findings={
                "derm_cv": CvFindings(predictions=(Prediction(label="eczema", probability=0.62),)),
                "eye_cv": CvFindings(error="no service is set up"),
            }
            if request.image_url
            else None,
            recommendation=_advice(rules.triage_level, language),
            language=language,
            session_id=session,
            rules=rules.fired,
            guidelines=("fever-home-01",),
            fallback="the model did not answer in time" if "FAIL" in text else None,
        )
        self._said[session][1].extend(
            (
                Entry(role=Role.USER, text=text, at=NOW),
                Entry(role=Role.ASSISTANT, text=result.recommendation, at=NOW, result=result),
            )
        )
        if "WAIT" in text:
            await self.go.wait()
        for number in range(10_000 if "STEPS" in text else 1):
            on_event(Thought(text=f"I look at step {number}: {text}"))
        on_event(FinalAnswer(result=result))
        return result

    def rules(self, given: TriageInput, language: Language) -> RulesResult:
        text = " ".join(given.symptoms)
        if "ngực" in text or "chest" in text:
            why = "Chest pain." if language is Language.ENGLISH else "Đau ngực."
            return RulesResult(
                triage_level=Level.EMERGENCY,
                red_flags=("chest_pain",),
                fired=(CHEST_PAIN,),
                reasoning=why,
            )
        level = Level.URGENT if "FAIL" in text else Level.SELF_CARE
        return RulesResult(triage_level=level, red_flags=(), fired=(), reasoning="Nothing.")

    async def conversation(self, session_id: str, user_id: str) -> Conversation:
        self._session(session_id, user_id)
        entries = tuple(self._said[session_id][1])
        return Conversation(session_id=session_id, started=NOW, entries=entries)

    def _session(self, id_: str | None, user_id: str) -> str:
        if id_ is None:
            id_ = new_id()
            self._said[id_] = (user_id, [])
        if self._said.get(id_, ("",))[0] != user_id:
            raise UnknownSessionError(f"there is no session {id_!r}")
        return id_


def _advice(level: Level, language: Language) -> str:
    if language is Language.VIETNAMESE:
        return "Gọi 115 ngay." if level is Level.EMERGENCY else "Nghỉ ngơi và uống nhiều nước."
    return "Call 115 now." if level is Level.EMERGENCY else "Rest, and drink enough."


@asynccontextmanager
async def open_scripted(variables: Mapping[str, str]) -> AsyncIterator[ScriptedAssistant]:
    """As `demos.medagen.assistant.open_assistant`."""
    yield ScriptedAssistant()


@asynccontextmanager
async def serving(
    assistant: ScriptedAssistant,
    *,
    limits: Limits = MANY,
    token: str = "",
    monotonic: Callable[[], float] = lambda: 0.0,
    port: int = 0,
) -> AsyncIterator[str]:
    """The address of a server in the loop of the test."""
    place = listen("", port)
    with place.socket:
        app = make_app(assistant, token=token, limits=limits, monotonic=monotonic)
        server = server_of(app, 1)
        task = asyncio.create_task(server.serve(sockets=[place.socket]))
        try:
            yield place.url()
        finally:
            server.should_exit = True
            await task
