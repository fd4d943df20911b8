"""A second import path of `exaid_core.prompts`, and the prompts by their older names.

The text is that of the files in `exaid_core/prompts`; a `$name` in it is filled in for each call.
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
    """Return the instructions of the buffer agent, which hold no `$name`."""
    return PROMPTS.text("buffer_system")


def get_buffer_agent_user_prompt() -> str:
    """Return what the buffer agent is asked.

    `$summaries`: the latest summaries. `$waiting`: text that has no summary yet. `$new`: the text
    to be judged; both as `exaid_core.channel.as_data` writes them.
    """
    return PROMPTS.text("buffer_user")


def get_summarizer_system_prompt() -> str:
    """Return the instructions of the summarizer.

    `$status_action`, `$key_findings` and so on: the most characters of that field, from
    `exaid_core.schema.agent_summary.LIMITS`.
    """
    return PROMPTS.text("summary_system")


def get_summarizer_user_prompt() -> str:
    """Return what the summarizer is asked.

    `$history`: earlier summaries. `$latest`: the latest one. `$new`: the text to be summarised, as
    `exaid_core.channel.as_data` writes it.
    """
    return PROMPTS.text("summary_user")
