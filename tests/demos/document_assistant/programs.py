"""Programs of the assistant as processes of their own, over the fake provider."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.conftest import REPOSITORY
from tests.fake_provider import FakeProvider
from tests.support.environment import bare_environment

SPEAKER = """
import asyncio, sys
from demos.document_assistant.assistant import DocumentAssistant
from demos.toolkit.database import Database

async def main(folder, address, session, *questions):
    database = Database(address)
    async with DocumentAssistant.open(folder, database=database) as assistant:
        print("ready", flush=True)
        for question in questions:
            await assistant.process_message(question, session)
    await database.close()

asyncio.run(main(*sys.argv[1:]))
"""


def environment(provider: FakeProvider, **more: str) -> dict[str, str]:
    """Return the variables of a program whose models are the fake provider."""
    return bare_environment(
        **{
            "PYTHONPATH": str(REPOSITORY),
            "OPENAI_API_KEY": "test-key",
            "OPENAI_BASE_URL": provider.openai_base_url,
            "LANG": "C.UTF-8",
            **more,
        }
    )


def speaker(
    provider: FakeProvider, folder: Path, address: str, session: str, *questions: str
) -> subprocess.Popen[str]:
    """Start a process that asks questions in a session, one after the other."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", SPEAKER, str(folder), address, session, *questions],
        cwd=folder,
        env=environment(provider),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
