"""The file `sessions/<id>.json`: a session after its last turn, for people and programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from demos.document_assistant.state import AgentState
from demos.toolkit.guard import valid_id
from demos.toolkit.sessions import Session
from mdagents_llm.errors import StorageError
from mdagents_llm.files.whole_file import replace_file

SCHEMA_VERSION = 1


def session_file(folder: Path, session_id: str) -> Path:
    """Return the path of a session's file.

    Raises:
        ConfigError: The id is not valid.
    """
    return folder / f"{valid_id(session_id, 'a session')}.json"


def write_session(
    folder: Path, session: Session, messages: Sequence[dict[str, Any]], state: AgentState
) -> None:
    """Write the file of a session, replacing an earlier one.

    Args:
        folder: Folder of the session files; created if missing.
        session: Session to write.
        messages: All messages of the session as JSON, including those of this turn.
        state: State at the end of the last turn.

    Raises:
        StorageError: The file cannot be written. An earlier one is kept.
    """
    path = session_file(folder, session.id)
    content = {
        "schema_version": SCHEMA_VERSION,
        "session_id": session.id,
        "user_id": session.user_id,
        "started": session.started.isoformat(),
        "turns": state.turn,
        "intent": state.intent.model_dump(mode="json") if state.intent else None,
        "actions_taken": state.actions_taken,
        "tools_used": state.tools_used,
        "current_response": state.current_response,
        "conversation_summary": state.conversation_summary,
        "active_documents": state.active_documents,
        "messages": list(messages),
    }
    try:
        text = json.dumps(content, ensure_ascii=False, indent=1)
        replace_file(path, text.encode(), private=True)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}") from error
