"""An alternative import path for `exaid_core.prompts`, with the prompts under their older names.

The text comes from the files in `exaid_core/prompts`; a `$name` in it is filled in for each call.
"""

from exaid_core.prompts import PROMPTS

__all__ = [
    "PROMPTS",
    "get_buffer_agent_system_prompt",
    "get_buffer_agent_user_prompt",
    "get_summarizer_system_prompt",
    "get_summarizer_user_prompt",
]


def get_buffer_agent_system_prompt() -> str:
    """Return the system prompt of the buffer agent, which has no `$name`."""
    return PROMPTS.text("buffer_system")


def get_buffer_agent_user_prompt() -> str:
    """Return the user prompt of the buffer agent.

    `$summaries` is the latest summaries, `$waiting` the earlier text without a summary, and `$new`
    the text to judge; the texts are formatted by `exaid_core.channel.as_data`.
    """
    return PROMPTS.text("buffer_user")


def get_summarizer_system_prompt() -> str:
    """Return the system prompt of the summarizer.

    `$status_action`, `$key_findings` and so on are the maximum characters of the field, from
    `exaid_core.schema.agent_summary.LIMITS`.
    """
    return PROMPTS.text("summary_system")


def get_summarizer_user_prompt() -> str:
    """Return the user prompt of the summarizer.

    `$history` is the earlier summaries, `$latest` the latest one, and `$new` the text to summarize,
    formatted by `exaid_core.channel.as_data`.
    """
    return PROMPTS.text("summary_user")
