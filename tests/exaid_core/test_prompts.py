"""The prompts by the names that older code imports."""

from __future__ import annotations

from string import Template

import pytest

from exaid_core.buffer_agent.buffer_agent import BufferAgent
from exaid_core.config import ExaidConfig
from exaid_core.prompts import PROMPTS
from exaid_core.schema.agent_summary import LIMITS
from exaid_core.segments import Segment, block
from exaid_core.summarizer_agent.summarizer_agent import SummarizerAgent
from exaid_core.utils import prompts
from tests.exaid_core.models import STABLE, WAIT, model


async def test_they_are_what_the_models_are_sent() -> None:
    judge, writer = model(WAIT), model(STABLE)
    new = [Segment("doctor", "The fever is gone.", (1,), 0, 0)]
    await BufferAgent(judge, ExaidConfig()).judge(new, ["- earlier"])
    await SummarizerAgent(writer).write(["- earlier"], "- latest", new)
    text = block(new)
    filled = [
        prompts.get_buffer_agent_system_prompt(),
        Template(prompts.get_buffer_agent_user_prompt()).substitute(
            summaries="- earlier", waiting="(nothing)", new=text
        ),
        Template(prompts.get_summarizer_system_prompt()).substitute(LIMITS),
        Template(prompts.get_summarizer_user_prompt()).substitute(
            history="- earlier", latest="- latest", new=text
        ),
    ]
    sent = [message.content for each in (judge, writer) for message in each.requests[0].messages]
    assert filled == sent


def test_each_name_is_explained_where_the_prompt_is_given() -> None:
    for name in prompts.__all__:
        if name == "PROMPTS":
            continue
        give = getattr(prompts, name)
        names = Template(give()).get_identifiers()
        unexplained = [each for each in names if f"${each}" not in give.__doc__]
        assert not set(unexplained) - set(LIMITS), name


def test_a_prompt_that_is_not_there_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        PROMPTS.text("nothing")
