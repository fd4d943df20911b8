"""Medagen as a library: answers a user's message with an urgency level and advice."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from demos.medagen.advice import picture_sent
from demos.medagen.conversation import Conversation, Entry
from demos.medagen.cv_service import CvService
from demos.medagen.guidelines import Guidelines
from demos.medagen.images import picture_at
from demos.medagen.react import Draft, NoDraftError, react
from demos.medagen.result import Evidence, told
from demos.medagen.schemas import (
    ActionStart,
    Event,
    FinalAnswer,
    Language,
    Level,
    Observation,
    RulesResult,
    TriageInput,
    TriageRequest,
    TriageResult,
)
from demos.medagen.settings import Settings
from demos.medagen.tokenizer import language_of
from demos.medagen.tools import TRIAGE_RULES, Services, Toolbox
from demos.medagen.triage_rules import shipped_rules
from demos.toolkit.database import Database
from demos.toolkit.guard import fenced
from demos.toolkit.sessions import Role, SessionBusyError, SessionStore, UnknownSessionError
from demos.toolkit.tracing import workflow
from mdagents_llm import LLMRole, get_llm
from mdagents_llm.errors import BenchError, ConfigError, StructuredOutputError
from mdagents_llm.langchain_model import ChatModelAdapter
from mdagents_llm.ledger import Ledger
from mdagents_llm.text import clean, well_formed

if TYPE_CHECKING:
    from demos.toolkit.program_spans import ProgramSpans

IMAGE = "[Image]"
"""Stored text of a message that is only a picture."""
DEADLINE = 30.0
"""Default seconds for the model and its tools; after that, the answer of the rules stands."""

_LOG = logging.getLogger(__name__)
_REMEMBERED = 5  # earlier messages in the prompt
_LANGUAGES = {Language.ENGLISH: "English", Language.VIETNAMESE: "Vietnamese"}
_PROMPT = Path(__file__).with_name("prompt.txt")
_UNANSWERED = "the model has not answered"  # while it works, and if the user leaves meanwhile


@dataclass(frozen=True, slots=True)
class _Read:
    """A message to which the rules have been applied."""

    messages: Sequence[str]
    """Messages of the user in the conversation, in order."""
    language: Language
    evidence: Evidence
    """What is known before the model and its tools are called."""
    prompt: Sequence[BaseMessage]


class MedagenAssistant:
    """Triages messages of users.

    The rules assess everything that the user has written in the conversation before the model sees
    it, and nothing lowers their level. If the model fails, hangs or returns nonsense, the result is
    the level of the rules, but at least `urgent`.

    Args:
        store: Store of the conversations.
        model: Chat model that reasons.
        services: Services that the tools use.
        deadline: Seconds for the model and its tools.
        spans: Spans of the program for OpenTelemetry; None makes none.
    """

    def __init__(
        self,
        store: SessionStore,
        model: BaseChatModel,
        services: Services,
        *,
        deadline: float = DEADLINE,
        spans: ProgramSpans | None = None,
    ) -> None:
        self._store = store
        self._model = model
        self._services = services
        self._deadline = deadline
        self._spans = spans
        self._prompt = _PROMPT.read_text(encoding="utf-8")

    def rules(self, given: TriageInput, language: Language) -> RulesResult:
        """Return the result of the rules alone."""
        return self._services.rules.evaluate(given, language)

    async def triage(
        self, request: TriageRequest, on_event: Callable[[Event], None] = lambda _: None
    ) -> TriageResult:
        """Answer a message.

        Args:
            request: Message of the user.
            on_event: Callback for each step, from the call of the rules to the final answer.

        Raises:
            ConfigError: The message is empty.
            UnknownSessionError: The session does not exist or belongs to another user.
            SessionBusyError: Another turn of the session did not end in time.
        """
        until = asyncio.get_running_loop().time() + self._deadline
        text = clean(well_formed(request.text)).strip()
        if not text and not request.image_url:
            raise ConfigError("the message is empty: write what is wrong, or add a picture")
        opened = ""
        earlier: list[tuple[Role, str]] = []
        result: TriageResult | None = None
        try:
            id_ = await self._session(request)
            async with self._store.turn(id_, request.user_id, patience=self._deadline) as turn:
                opened = id_
                earlier = [(one.role, one.text) for one in turn.messages]
                read = self._read(request, text, earlier)
                # Store it before the model is called, since the user may leave at any moment.
                stored = told(None, _UNANSWERED, read.evidence, read.language, id_)
                turn.say(Role.USER, text or IMAGE)
                turn.say(Role.ASSISTANT, stored.recommendation, stored.model_dump(mode="json"))
                await self._store.keep(turn)
                result = await self._answered(id_, request, read, until, on_event)
                turn.correct(result.recommendation, result.model_dump(mode="json"))
        except (UnknownSessionError, SessionBusyError):
            raise
        except Exception as error:  # noqa: BLE001 - what cannot be remembered is still answered
            _LOG.error("a conversation cannot be read or stored: %s", type(error).__name__)
            if result is None:
                read = self._read(request, text, earlier)
                answer = await self._answered("", request, read, until, on_event)
                result = answer.model_copy(update={"session_id": opened})  # the next may be stored
        on_event(FinalAnswer(result=result))
        return result

    async def _session(self, request: TriageRequest) -> str:
        if request.session_id is None:
            return (await self._store.start(request.user_id)).id
        return (await self._store.session(request.session_id, request.user_id)).id

    def _read(
        self, request: TriageRequest, text: str, earlier: Sequence[tuple[Role, str]]
    ) -> _Read:
        """Apply the rules to a message and the earlier ones of its conversation."""
        said = [one for role, one in earlier if role is Role.USER and one != IMAGE]
        messages = [*said, text] if text else said
        language = language_of(messages)
        rules, earlier_words = self._screened(messages, language)
        evidence = Evidence(
            rules=rules,
            earlier_words=earlier_words,
            more_rules=(),
            level=None,
            findings=None,
            guidelines=(),
            has_picture=bool(request.image_url),
            message=text or picture_sent(language),
        )
        prompt = self._messages(earlier, text, rules, language, has_picture=bool(request.image_url))
        return _Read(messages, language, evidence, prompt)

    async def _answered(
        self,
        session_id: str,
        request: TriageRequest,
        read: _Read,
        until: float,
        on_event: Callable[[Event], None],
    ) -> TriageResult:
        rules = read.evidence.rules.model_dump(mode="json")
        on_event(ActionStart(tool=TRIAGE_RULES, input={"symptoms": read.messages}))
        on_event(Observation(tool=TRIAGE_RULES, output=rules, session_id=session_id))
        toolbox = Toolbox(self._services, read.language, request.image_url)
        draft: Draft | None = None
        failure: str | None = None
        try:
            with workflow(self._spans, "medagen"):
                async with asyncio.timeout_at(until):
                    draft = await react(self._model, toolbox, read.prompt, on_event)
        except TimeoutError:
            failure = f"the model has not answered within {self._deadline:g} s"
        except NoDraftError as error:
            failure = str(error)
        except StructuredOutputError:
            failure = "the model's replies are in no form that can be read"
        except BenchError as error:
            _LOG.warning("the model could not be asked: %s", error)
            failure = "the model could not be asked"
        except Exception as error:  # noqa: BLE001 - whatever it is, the user gets an answer
            _LOG.exception("the model's part failed: %s", type(error).__name__)
            failure = "the model's part failed"
        evidence = replace(
            read.evidence,
            more_rules=tuple(toolbox.rules),
            level=toolbox.level,
            findings=toolbox.findings or None,
            guidelines=tuple(toolbox.guidelines),
        )
        return told(draft, failure, evidence, read.language, session_id)

    def _screened(self, messages: Sequence[str], language: Language) -> tuple[RulesResult, str]:
        """Return the result of the rules, and the words of earlier messages that it rests on."""
        rules = self._services.rules
        try:
            return rules.screen(messages, language), rules.earlier_words(messages, language)
        except Exception:  # noqa: BLE001 - a fault of ours must not look like harmlessness
            _LOG.exception("the rules failed")
            unknown = RulesResult(triage_level=Level.URGENT, red_flags=(), fired=(), reasoning="")
            return unknown, ""

    def _messages(
        self,
        earlier: Sequence[tuple[Role, str]],
        text: str,
        rules: RulesResult,
        language: Language,
        *,
        has_picture: bool,
    ) -> list[BaseMessage]:
        lines = [f"{role.value}: {said}" for role, said in earlier[-_REMEMBERED:]]
        history = "\n".join(lines) or "This is the first message of the conversation."
        flags = ", ".join(rules.red_flags) or "none"
        picture = "There is a picture.\n" if has_picture else ""
        return [
            SystemMessage(self._prompt.format(language=_LANGUAGES[language])),
            HumanMessage(
                f"Earlier messages:\n{fenced(history, 'conversation')}\n\n"
                f"New message:\n{fenced(text or IMAGE, 'message')}\n{picture}\n"
                f"The rules on the whole conversation: level {rules.triage_level.value}, "
                f"red flags: {flags}. The result will not be below this level."
            ),
        ]

    async def conversation(self, session_id: str, user_id: str) -> Conversation:
        """Return a conversation.

        Raises:
            UnknownSessionError: The session does not exist or belongs to another user.
        """
        session = await self._store.session(session_id, user_id)
        messages = await self._store.messages(session_id, user_id)
        return Conversation(
            session_id=session.id,
            started=session.started,
            entries=tuple(
                Entry(
                    role=one.role,
                    text=one.text,
                    at=one.at,
                    result=TriageResult.model_validate(one.data) if one.data else None,
                )
                for one in messages
            ),
        )


@asynccontextmanager
async def open_assistant(
    variables: Mapping[str, str],
    model: BaseChatModel | None = None,
    *,
    spans: ProgramSpans | None = None,
) -> AsyncIterator[MedagenAssistant]:
    """Open the assistant that the environment configures, and close it when the block ends.

    Args:
        variables: Environment, as returned by `mdagents_llm.config.read_variables`; `Settings`
            lists the variables.
        model: Chat model that reasons; None uses `get_llm`.
        spans: Spans of the program for OpenTelemetry; None makes none.

    Raises:
        ConfigError: A setting is wrong, the database cannot be used, or no model is available.
    """
    settings = Settings.of(variables)
    ledger = Ledger() if spans is None else Ledger(spans.booked)
    async with AsyncExitStack() as stack:
        database: Database = settings.database
        stack.push_async_callback(database.close)
        store = await stack.enter_async_context(SessionStore.open(database))
        guidelines = await stack.enter_async_context(Guidelines.open(database))
        cv = await stack.enter_async_context(CvService(settings.cv_service_url))
        services = Services(
            rules=shipped_rules(),
            search=guidelines.search,
            fetch=picture_at,
            look=cv.look,
        )
        yield MedagenAssistant(
            store,
            model or ChatModelAdapter(get_llm(LLMRole.MAS, ledger=ledger)),
            services,
            deadline=settings.deadline,
            spans=spans,
        )
