"""The summary that clinicians read, and the draft of it that a model fills in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from exaid_core.channel import valid_agent_id
from exaid_core.placeholders import PLACEHOLDER, TOO_LONG
from mdagents_llm.notebook import html_table
from mdagents_llm.text import one_line, spelled_as

SUMMARY_SCHEMA_VERSION: Literal["1.0.0"] = "1.0.0"

LIMITS: Mapping[str, int] = MappingProxyType(
    {
        "status_action": 150,
        "key_findings": 180,
        "differential_rationale": 210,
        "uncertainty_confidence": 120,
        "recommendation_next_step": 180,
        "agent_contributions": 150,
    }
)
"""Maximum characters of each field, in field order."""

_NOTHING = frozenset({"", "none", "none reported", "null", "nil", "n/a", "not reported"})
"""Texts that models write into fields without content, in lower case without punctuation."""

_SEMANTIC_FIELDS = tuple(name for name in LIMITS if name != "agent_contributions")

_NOT_SHOWN = frozenset({"schema_version", "source_seqs", *(f"full_{name}" for name in LIMITS)})
"""Fields that a notebook does not show."""

# A grammar stops a model at maxLength in the middle of a word. With this room above the limit, such
# a field is still recognized as too long and can be cut between words.
_ROOM = 40


def _field(name: str, content: str) -> Any:
    limit = LIMITS[name]
    return Field(
        PLACEHOLDER,
        description=f"{content}, <= {limit} characters",
        json_schema_extra={"maxLength": limit + _ROOM},  # for the model; not enforced on a reply
    )


class _SixFields(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)

    status_action: str = _field("status_action", "status and action now")
    """Current situation, and the action being taken."""
    key_findings: str = _field("key_findings", "findings that matter now")
    """Findings that matter now."""
    differential_rationale: str = _field("differential_rationale", "diagnoses and reasons")
    """Diagnoses that are considered, and why."""
    uncertainty_confidence: str = _field("uncertainty_confidence", "what is uncertain")
    """Confidence of the agents, and open questions."""
    recommendation_next_step: str = _field("recommendation_next_step", "next step")
    """What should be done next."""
    agent_contributions: str = _field("agent_contributions", "who said what")
    """Which agent contributed what."""

    @field_validator(*LIMITS, mode="before")
    @classmethod
    def _read_loosely(cls, value: object) -> object:
        """Accept a list of strings, or null, in place of a string."""
        if value is None:
            return PLACEHOLDER
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return "; ".join(filter(None, map(one_line, value)))
        return value

    @field_validator(*LIMITS)
    @classmethod
    def _never_empty(cls, value: str) -> str:
        line = one_line(value)
        return PLACEHOLDER if line.strip(" .-–—…\"'").lower() in _NOTHING else line


class SummaryDraft(_SixFields):
    """The six fields as a model wrote them: one line each, never empty, maybe too long.

    Names may be in other case or with spaces. Other fields are ignored, missing ones have the
    placeholder; but a reply without any of the six is not a summary.
    """

    model_config = ConfigDict(extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _is_a_summary(cls, data: object) -> object:
        fields = spelled_as(data, LIMITS)
        if isinstance(fields, dict) and fields.keys().isdisjoint(LIMITS):
            raise ValueError(f"has none of the fields {', '.join(LIMITS)}")
        return fields


class AgentSummary(_SixFields):
    """A summary with its provenance and the results of its checks.

    Raises:
        pydantic.ValidationError: A field is longer than its limit; `from_draft` cuts such fields.
    """

    model_config = ConfigDict(extra="forbid")

    schema_version: Literal["1.0.0"] = SUMMARY_SCHEMA_VERSION
    """Version of this form."""
    agents: tuple[str, ...] = ()
    """Exact ids of the agents whose segments are summarized."""
    source_seqs: tuple[tuple[int, int], ...] = ()
    """Sequence numbers of the segments that are summarized: see `seq_ranges`."""
    truncated_fields: tuple[str, ...] = ()
    """Names of the fields that were cut to their limit."""
    full_status_action: str = ""
    """Uncut text of `status_action`; empty if it fits."""
    full_key_findings: str = ""
    """Uncut text of `key_findings`; empty if it fits."""
    full_differential_rationale: str = ""
    """Uncut text of `differential_rationale`; empty if it fits."""
    full_uncertainty_confidence: str = ""
    """Uncut text of `uncertainty_confidence`; empty if it fits."""
    full_recommendation_next_step: str = ""
    """Uncut text of `recommendation_next_step`; empty if it fits."""
    full_agent_contributions: str = ""
    """Uncut text of `agent_contributions`; empty if it fits."""
    emptied_fields: tuple[str, ...] = ()
    """Names of the fields replaced by the placeholder because the model's text repeated its prompt
    or two other fields, or said nothing that an agent said."""
    unsupported_terms: tuple[str, ...] = ()
    """Numbers, doses and drugs of the summary that do not occur in its source text."""
    dissent_missing: bool = False
    """Whether the agents hold different answers and the summary does not mention it."""
    clipped: bool = False
    """Whether it is of a part of a text that was too long for the model; the next has the rest."""
    alerts: tuple[str, ...] = ()
    """Critical alerts in the source text, in the agents' own words."""
    alert_missing: bool = False
    """Whether it does not mention one of them."""
    remarks: tuple[str, ...] = ()
    """Agents who changed their answer although nobody had said anything new, and what checks of the
    caller found: see `ExaidConfig.checks`."""

    @model_validator(mode="after")
    def _fields_fit(self) -> Self:
        if over := excess(self):
            name, count = next(iter(over.items()))
            raise ValueError(f"{name}: {count} characters over the limit of {LIMITS[name]}")
        return self

    @model_validator(mode="after")
    def _ranges_ascend(self) -> Self:
        ends = [end for bounds in self.source_seqs for end in bounds]
        if ends != sorted(ends) or any(
            after <= before + 1 for (_, before), (after, _) in pairwise(self.source_seqs)
        ):
            raise ValueError("source_seqs: the ranges must ascend with a gap between them")
        return self

    @classmethod
    def from_five_fields(
        cls,
        agents: Iterable[str],
        action: str,
        reasoning: str,
        findings: str | None = None,
        next_steps: str | None = None,
    ) -> Self:
        """Return a summary made from the older form with five fields.

        Text beyond the limit of its field is cut like a model's. Fields that the older form lacks
        hold the placeholder.

        Args:
            agents: Ids of the agents.
            action: Text for `status_action`.
            reasoning: Text for `differential_rationale`.
            findings: Text for `key_findings`; None for the placeholder.
            next_steps: Text for `recommendation_next_step`; None for the placeholder.

        Raises:
            TypeError: `agents` is a single string.
            ValueError: An agent id cannot be displayed.
            pydantic.ValidationError: A field is not a string.
        """
        if isinstance(agents, str):
            raise TypeError(f"agents must be a list of ids, not the text {agents!r}")
        draft = SummaryDraft.model_validate(
            {
                "status_action": action,
                "key_findings": findings,
                "differential_rationale": reasoning,
                "recommendation_next_step": next_steps,
            }
        )
        return cls.from_draft(draft).model_copy(
            update={"agents": tuple(dict.fromkeys(map(valid_agent_id, agents)))}
        )

    @classmethod
    def from_draft(cls, draft: SummaryDraft) -> Self:
        """Return the draft as a summary.

        Fields that are too long are cut, or replaced by `TOO_LONG` if no cut leaves their meaning;
        `truncated_fields` names them, and their `full_` fields hold the text.
        """
        from exaid_core.checks.shortening import shorten  # its rules take time to compile

        texts = {name: getattr(draft, name) for name in LIMITS}
        over = tuple(excess(draft))
        fields = {name: shorten(text, LIMITS[name]) or TOO_LONG for name, text in texts.items()}
        full = {f"full_{name}": texts[name] for name in over}
        return cls.model_validate({**fields, **full, "truncated_fields": over})

    @property
    def full_texts(self) -> dict[str, str]:
        """Uncut texts of the fields that were cut, by field name."""
        full = {name: str(getattr(self, f"full_{name}")) for name in LIMITS}
        return {name: text for name, text in full.items() if text}

    @property
    def action(self) -> str:
        """Value of `status_action`, by its name in the older five-field form."""
        return self.status_action

    @property
    def reasoning(self) -> str:
        """Value of `differential_rationale`, by its name in the older five-field form."""
        return self.differential_rationale

    @property
    def findings(self) -> str:
        """Value of `key_findings`, by its name in the older five-field form."""
        return self.key_findings

    @property
    def next_steps(self) -> str:
        """Value of `recommendation_next_step`, by its name in the older five-field form."""
        return self.recommendation_next_step

    def __repr_args__(self) -> Iterator[tuple[str, object]]:
        """Yield the fields with content; the placeholder and empty lists would fill a screen."""
        for name in type(self).model_fields:
            value = getattr(self, name)
            if value and value != PLACEHOLDER and name not in _NOT_SHOWN:
                yield name, value

    def _repr_html_(self) -> str:
        """Return the table that a notebook shows: the six fields, then agents and flags."""
        rows = [(name.replace("_", " "), self.text_of(name)) for name in LIMITS]
        rows += [
            (name.replace("_", " "), ", ".join(value) if isinstance(value, tuple) else "yes")
            for name, value in self.__repr_args__()
            if name not in LIMITS and isinstance(value, tuple | bool)
        ]
        return html_table(rows)

    def text_of(self, name: str) -> str:
        """Return the text of a field; the uncut text if the field holds `TOO_LONG`."""
        text = str(getattr(self, name))
        return self.full_texts[name] if text == TOO_LONG else text

    def semantics_text(self) -> str:
        """Return the five clinician-facing fields, one per line, without `agent_contributions`."""
        return "\n".join(getattr(self, name) for name in _SEMANTIC_FIELDS)


def says_nothing(draft: SummaryDraft | AgentSummary) -> bool:
    """Return whether every field is empty, that is, holds the placeholder."""
    return all(getattr(draft, name) == PLACEHOLDER for name in LIMITS)


def excess(draft: SummaryDraft | AgentSummary) -> dict[str, int]:
    """Return the number of characters over the limit for each overlong field."""
    over = {name: len(getattr(draft, name)) - limit for name, limit in LIMITS.items()}
    return {name: count for name, count in over.items() if count > 0}


def seq_ranges(seqs: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return sequence numbers as ascending inclusive ranges: 3, 1, 2, 7 give (1, 3) and (7, 7)."""
    ranges: list[tuple[int, int]] = []
    for seq in sorted(set(seqs)):
        if ranges and seq == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], seq)
        else:
            ranges.append((seq, seq))
    return tuple(ranges)
