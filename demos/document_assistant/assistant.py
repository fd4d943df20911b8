"""The document assistant as a library: sessions, turns and documents."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseChatModel
from langgraph.graph import START

from demos.document_assistant.assistant_log import AssistantLog, Said
from demos.document_assistant.graph import make_graph
from demos.document_assistant.library import Document, Library, Snippet
from demos.document_assistant.schemas import Response, UserIntent, responses, text_of
from demos.document_assistant.session_file import session_file, write_session
from demos.document_assistant.state import AgentState, MessageAnnotation, OnStep, Services
from demos.document_assistant.tool_log import ToolLogger
from demos.document_assistant.tools import tools_of
from demos.document_assistant.uploads import read_upload
from demos.toolkit.database import Database
from demos.toolkit.retrieval import HybridRetriever
from demos.toolkit.sessions import Message, Role, Session, SessionStore, Turn
from demos.toolkit.tracing import workflow
from mdagents_llm import LLMRole, get_llm
from mdagents_llm.clock import Clock
from mdagents_llm.embeddings import Embedder
from mdagents_llm.errors import ConfigError
from mdagents_llm.langchain_model import ChatModelAdapter
from mdagents_llm.text import well_formed

if TYPE_CHECKING:
    from demos.toolkit.program_spans import ProgramSpans

LONGEST_MESSAGE = 20_000
"""Maximum characters of a user's message."""
DATABASE_FILE = "assistant.sqlite"
"""Name of the default SQLite file in `sessions/`."""
DROPPED = "drop_unfinished_turn"
"""First action of a turn that replaced an unfinished one."""

_KEPT = 20  # earlier messages in the state of a turn


@dataclass(frozen=True, slots=True)
class Reply:
    """Result of a turn."""

    session_id: str
    turn: int
    """Number of the turn in its session, from 1."""
    question: str
    intent: UserIntent
    response: Response
    actions_taken: Sequence[str]
    """Nodes that ran, in order."""
    tools_used: Sequence[str]
    """Tools that were called, in order."""

    @property
    def text(self) -> str:
        """Response as text of the conversation."""
        return text_of(self.response)


@dataclass(frozen=True, slots=True)
class SessionView:
    """Stored content of a session."""

    session: Session
    messages: Sequence[Message]
    conversation_summary: str
    active_documents: Sequence[str]
    """Ids of the documents in use, most recent last."""
    current_response: Response | None
    """Latest response; None before the first turn."""
    unfinished: str
    """Message of an unfinished turn; empty if there is none."""


class DocumentAssistant:
    """Answers questions about documents, summarizes them, and calculates with their numbers.

        async with DocumentAssistant.open(Path("office")) as assistant:
            reply = await assistant.process_message("What did product line A cost in March?")

    Sessions cannot see each other's messages or uploads. All methods may be called concurrently;
    turns of one session wait for each other, even across processes.

    Create an assistant with `open`, which builds the constructor's arguments.
    """

    def __init__(
        self,
        folder: Path,
        *,
        model: BaseChatModel,
        store: SessionStore,
        library: Library,
        redacts: bool,
        clock: Clock,
        spans: ProgramSpans | None = None,
    ) -> None:
        self._sessions = folder / "sessions"
        self._model = model
        self._store = store
        self._library = library
        self._clock = clock
        self._spans = spans
        self._graph = make_graph(store.checkpointer)
        logs = folder / "logs"
        self._log = AssistantLog(logs / "assistant.log", redacts=redacts, now=clock.now)
        self._tool_log = ToolLogger(logs / "tools.log", redacts=redacts, now=clock.now)

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        folder: Path | str = ".",
        *,
        model: BaseChatModel | None = None,
        database: Database | None = None,
        embedder: Embedder | None = None,
        redacts: bool = False,
        spans: ProgramSpans | None = None,
    ) -> AsyncIterator[DocumentAssistant]:
        """Open an assistant, and close everything that it opened when the block ends.

        Args:
            folder: Folder of `sessions/` and `logs/`; created if missing.
            model: Any LangChain chat model; None uses `get_llm`.
            database: Database of sessions and uploads, which the caller closes; None uses a SQLite
                file in `sessions/`.
            embedder: Model for search by meaning; None searches by words only.
            redacts: Whether logs contain lengths and hashes instead of messages.
            spans: Spans of the program for OpenTelemetry; None makes none.

        Raises:
            ConfigError: No model is available, or the database cannot be reached.
            StorageError: The folder cannot be written.
        """
        folder = Path(folder)
        async with AsyncExitStack() as stack:
            if database is None:
                database = Database(folder / "sessions" / DATABASE_FILE)
                stack.push_async_callback(database.close)
            store = await stack.enter_async_context(SessionStore.open(database))
            retriever = await stack.enter_async_context(
                HybridRetriever(database, "documents", embedder=embedder)
            )
            yield cls(
                folder,
                model=model or ChatModelAdapter(get_llm(LLMRole.MAS)),
                store=store,
                library=await Library.open(database, retriever),
                redacts=redacts,
                clock=Clock(),
                spans=spans,
            )

    # -- turns ----------------------------------------------------------------------------------

    async def process_message(
        self,
        text: str,
        session_id: str | None = None,
        user_id: str = "",
        *,
        on_step: OnStep = lambda _: None,
    ) -> Reply:
        """Answer a message. The turn is stored once it is answered, or not at all.

        A turn that fails, is cancelled or is killed stays unfinished: `resume` continues it, and
        the next message drops it.

        Args:
            text: Message of the user.
            session_id: Id of the session, which is created if missing; None starts a new one.
            user_id: Id of the session's owner.
            on_step: Callback for progress messages.

        Raises:
            UnknownSessionError: The session belongs to another user.
            SessionBusyError: Another turn of the session did not end in time.
            ConfigError: The message is empty or too long.
            ProviderError: The model could not be called; `EndpointDown` if every call would fail.
            StorageError: The turn could not be stored.
        """
        text = _checked(text)
        on_step("reading your message")
        session = await self._store.start(user_id, session_id)
        async with self._store.turn(session.id, user_id) as turn:
            state = await self._first_state(session, turn, text)
            if unfinished := await self._unfinished(session.id, state.turn):
                self._log.warning(DROPPED, session.id, prompt=Said(unfinished.user_input))
                state.actions_taken = [DROPPED]
            await self._forget(session.id)
            config = _config(session.id)
            values = state.model_dump(mode="json", exclude_none=True)
            await self._graph.aupdate_state(config, values, as_node=START)
            return await self._run(session, turn, on_step)

    async def resume(
        self, session_id: str, user_id: str = "", *, on_step: OnStep = lambda _: None
    ) -> Reply | None:
        """Resume the unfinished turn of a session; return None if there is none.

        Completed nodes are not run again, nor are completed calls of models and tools in a node.

        Raises:
            UnknownSessionError: The session does not exist or belongs to another user.
            SessionBusyError: Another turn of the session did not end in time.
            ProviderError: The model could not be called; `EndpointDown` if every call would fail.
            StorageError: The turn could not be stored.
        """
        session = await self._store.session(session_id, user_id)
        async with self._store.turn(session_id, user_id) as turn:
            unfinished = await self._unfinished(session_id, _number(turn.messages))
            if unfinished is None:
                return None
            self._log.info("resume_turn", session_id, prompt=Said(unfinished.user_input))
            return await self._run(session, turn, on_step)

    async def drop(self, session_id: str, user_id: str = "") -> None:
        """Drop the unfinished turn of a session, if there is one.

        Raises:
            UnknownSessionError: The session does not exist or belongs to another user.
            SessionBusyError: Another turn of the session did not end in time.
        """
        await self._store.session(session_id, user_id)
        async with self._store.turn(session_id, user_id) as turn:
            if unfinished := await self._unfinished(session_id, _number(turn.messages)):
                self._log.warning(DROPPED, session_id, prompt=Said(unfinished.user_input))
                await self._forget(session_id)

    async def _run(self, session: Session, turn: Turn, on_step: OnStep) -> Reply:
        """Run the graph from its current state, and add the result to the turn."""
        services = Services(
            model=self._model,
            library=self._library,
            tools=tools_of(self._library, self._tool_log, scope=session.id),
            log=self._log,
            now=self._clock.now,
            on_step=on_step,
        )
        config = _config(session.id)
        with workflow(self._spans, "document_assistant", _hashed(session.id)):
            end = await self._graph.ainvoke(None, config, context=services, durability="sync")
        state = AgentState.model_validate(end)
        response = responses.validate_python(state.current_response)
        assert state.intent is not None, "classify_intent has run"
        turn.say(Role.USER, state.user_input)
        turn.say(Role.ASSISTANT, text_of(response), _stored(state))
        said = [*map(_message_as_json, [*turn.messages, *turn.said])]
        write_session(self._sessions, session, said, state)
        return Reply(
            session_id=session.id,
            turn=state.turn,
            question=state.user_input,
            intent=state.intent,
            response=response,
            actions_taken=state.actions_taken,
            tools_used=state.tools_used,
        )

    async def _first_state(self, session: Session, turn: Turn, text: str) -> AgentState:
        last = _data_of_last(turn.messages)
        used = list(last.get("active_documents", ()))
        uploaded = [one.id for one in await self._library.documents(session.id) if one.scope]
        return AgentState(
            session_id=session.id,
            user_id=session.user_id,
            turn=_number(turn.messages),
            user_input=text,
            messages=[
                MessageAnnotation(
                    role=one.role.value,
                    text=one.text,
                    intent_type=str(one.data.get("intent", {}).get("intent_type", "")),
                )
                for one in turn.messages[-_KEPT:]
            ],
            conversation_summary=last.get("conversation_summary"),
            active_documents=[*(one for one in uploaded if one not in used), *used],
        )

    async def _unfinished(self, session_id: str, number: int) -> AgentState | None:
        """Return the state of a turn that was started but not stored; None if there is none.

        A checkpoint of a stored turn is obsolete.
        """
        values = (await self._graph.aget_state(_config(session_id))).values
        return AgentState.model_validate(values) if values.get("turn") == number else None

    async def _forget(self, session_id: str) -> None:
        await self._store.checkpointer.adelete_thread(session_id)

    # -- sessions -------------------------------------------------------------------------------

    async def get_session(self, session_id: str, user_id: str = "") -> SessionView:
        """Return the stored content of a session.

        Raises:
            UnknownSessionError: The session does not exist or belongs to another user.
        """
        session = await self._store.session(session_id, user_id)
        messages = await self._store.messages(session_id, user_id)
        last = _data_of_last(messages)
        unfinished = await self._unfinished(session_id, _number(messages))
        response = last.get("response")
        return SessionView(
            session=session,
            messages=messages,
            conversation_summary=last.get("conversation_summary") or "",
            active_documents=last.get("active_documents") or [],
            current_response=responses.validate_python(response) if response else None,
            unfinished=unfinished.user_input if unfinished else "",
        )

    async def start_session(self, user_id: str = "", session_id: str | None = None) -> Session:
        """Return the session with an id, or a new session if it does not exist.

        Raises:
            UnknownSessionError: The session belongs to another user.
            ConfigError: The id is not valid.
        """
        return await self._store.start(user_id, session_id)

    async def sessions(self, user_id: str = "") -> Sequence[Session]:
        """Return the sessions of a user, most recently updated first."""
        return await self._store.sessions(user_id)

    async def delete_session(self, session_id: str, user_id: str = "") -> None:
        """Delete a session with its messages, state, uploads and file. Logs are kept.

        Raises:
            UnknownSessionError: The session does not exist or belongs to another user.
        """
        await self._store.delete(session_id, user_id)
        await self._library.forget(session_id)
        session_file(self._sessions, session_id).unlink(missing_ok=True)

    # -- documents ------------------------------------------------------------------------------

    async def documents(self, session_id: str = "") -> Sequence[Document]:
        """Return the shipped documents and the uploads of a session."""
        return await self._library.documents(session_id)

    async def retrieve_documents(
        self, query: str, *, session_id: str = "", k: int = 3
    ) -> Sequence[Snippet]:
        """Return the passages that match a query best, with the ids and titles of their documents.

        Args:
            query: Words or a question.
            session_id: Session whose uploads are also searched; empty searches none.
            k: Maximum number of passages.
        """
        return await self._library.retrieve(query, scope=session_id, k=k)

    async def upload(self, path: Path | str, session_id: str, user_id: str = "") -> Document:
        """Add a file to the documents of a session; no other session can see it.

        The same file replaces its earlier upload. If a file of another folder has the same name,
        both are kept, and the id and title of the new document end with a number.

        Raises:
            UnknownSessionError: The session does not exist or belongs to another user.
            UploadError: The file cannot be read or exceeds a limit.
        """
        await self._store.session(session_id, user_id)
        path = Path(path)
        document = await read_upload(path, scope=session_id)
        document = await self._library.add(document, path=path)
        self._log.info("upload", session_id, document=document.id, characters=len(document.text))
        return document


def _checked(text: str) -> str:
    text = well_formed(text).replace("\x00", " ").strip()
    if not text:
        raise ConfigError("the message is empty")
    if len(text) > LONGEST_MESSAGE:
        raise ConfigError(
            f"the message has {len(text)} characters, at most {LONGEST_MESSAGE} are read; upload "
            "longer texts as a file"
        )
    return text


def _hashed(session_id: str) -> str:
    """Return an id for spans: a user may have named the session after a person."""
    return sha256(session_id.encode()).hexdigest()[:16]


def _config(session_id: str) -> Any:
    return {"configurable": {"thread_id": session_id}}


def _number(messages: Sequence[Message]) -> int:
    """Return the number of the turn that follows these messages."""
    return sum(one.role is Role.USER for one in messages) + 1


def _data_of_last(messages: Sequence[Message]) -> Mapping[str, Any]:
    return messages[-1].data if messages else {}


def _stored(state: AgentState) -> dict[str, Any]:
    """Return the data stored with an answer, from which the next turn starts."""
    return {
        "intent": state.intent.model_dump(mode="json") if state.intent else None,
        "response": state.current_response,
        "actions_taken": state.actions_taken,
        "tools_used": state.tools_used,
        "conversation_summary": state.conversation_summary,
        "active_documents": state.active_documents,
    }


def _message_as_json(message: Message) -> dict[str, Any]:
    told: dict[str, Any] = {
        "role": message.role.value,
        "text": message.text,
        "at": message.at.isoformat(),
    }
    return {**told, "data": dict(message.data)} if message.data else told
