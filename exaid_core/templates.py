"""Renders summaries as text: labels, flags and templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import Template
from types import MappingProxyType

from exaid_core.agent_names import AgentNames
from exaid_core.schema.agent_summary import AgentSummary
from mdagents_llm.text import one_line

LABELS: Mapping[str, str] = MappingProxyType(
    {
        "status_action": "Status / action",
        "key_findings": "Key findings",
        "differential_rationale": "Differential",
        "uncertainty_confidence": "Uncertainty",
        "recommendation_next_step": "Next step",
        "agent_contributions": "Agents",
    }
)
"""Label of each field of a summary, in display order."""

SIX_LINES = "\n".join(["$flags", *(f"{label}: ${name}" for name, label in LABELS.items())])
"""Template for six labeled lines, preceded by the summary's flags."""

BOX = """\
┌─ Agents: $agents
├─ Action: $action
├─ Reasoning: $reasoning
├─ Findings: $findings
├─ Flags: $flags
└─ Next Steps: $next_steps"""
"""Template for the box of the older form with five fields."""

_OLDER_NAMES = ("action", "reasoning", "findings", "next_steps")


def render_summary(
    summary: AgentSummary, template: str = SIX_LINES, names: AgentNames | None = None
) -> str:
    """Return a summary as text.

    Args:
        summary: Summary to render.
        template: Text with placeholders: a `$name` for each field of `AgentSummary`; `$action`,
            `$reasoning`, `$findings` and `$next_steps` for the fields of the older form; `$flags`
            for all known problems of the summary; and `$$` for `$`. A line whose placeholders are
            all empty is left out.
        names: Display names of agents; None uses their ids.

    Raises:
        ValueError: The template has an unknown placeholder, or a `$` without a name.
    """
    texts = texts_of(summary, names)
    texts |= {name: one_line(getattr(summary, name)) for name in _OLDER_NAMES}
    texts["flags"] = " · ".join(flags(summary))
    lines = []
    for line in map(Template, template.split("\n")):
        if not line.is_valid():
            raise ValueError(f"the template has a $ without a name: {line.template!r}; write $$")
        known = line.get_identifiers()
        if unknown := [name for name in known if name not in texts]:
            raise ValueError(f"a template has no ${unknown[0]}; there are ${', $'.join(texts)}")
        if not known or any(texts[name] for name in known):
            lines.append(line.substitute(texts))
    return "\n".join(lines)


def texts_of(summary: AgentSummary, names: AgentNames | None = None) -> dict[str, str]:
    """Return each field of a summary as one line of text; an empty list gives an empty line."""
    texts = {name: _text(getattr(summary, name)) for name in AgentSummary.model_fields}
    name_of = (names or AgentNames()).name_of
    return texts | {"agents": ", ".join(one_line(name_of(agent)) for agent in summary.agents)}


def flags(summary: AgentSummary) -> list[str]:
    """Return descriptions of all known problems of a summary; empty if there are none."""
    found = []
    if summary.alert_missing:
        found.append(f"ALERT, maybe not told here: {', '.join(summary.alerts)}")
    if summary.clipped:
        found.append("of a part of a long text")
    if summary.unsupported_terms:
        found.append(f"unsupported: {', '.join(summary.unsupported_terms)}")
    if summary.dissent_missing:
        found.append("the agents disagree, and this does not say so")
    if summary.truncated_fields:
        found.append(f"cut: {_labels(summary.truncated_fields)}")
    if summary.emptied_fields:
        found.append(
            f"emptied (repeated, or not said by any agent): {_labels(summary.emptied_fields)}"
        )
    return [line for flag in (*found, *summary.remarks) if (line := one_line(flag))]


def _labels(fields: Sequence[str]) -> str:
    if len(fields) == len(LABELS):
        return "all fields"
    return ", ".join(LABELS.get(name, name) for name in fields)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(map(_item, value))
    return one_line(str(value))


def _item(value: object) -> str:
    if isinstance(value, tuple):  # a range of sequence numbers
        first, last = value
        return str(first) if first == last else f"{first}–{last}"
    return one_line(str(value))
