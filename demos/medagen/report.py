"""Printable report of a conversation: levels over time, warning signs, advice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from jinja2 import Environment, PackageLoader, StrictUndefined

from demos.medagen.conversation import Conversation
from demos.medagen.message_texts import Wording
from demos.medagen.schemas import Fired, Language, TriageResult, highest


class Reports:
    """Renders reports.

    Args:
        wording: Texts of the report in both languages.
    """

    def __init__(self, wording: Wording) -> None:
        self._wording = wording
        self._template = Environment(
            loader=PackageLoader("demos.medagen", "page"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        ).get_template("report.html")

    def html_of(self, conversation: Conversation) -> str:
        """Return the report as HTML, in the language of the last answer."""
        answers = [(entry.at, entry.result) for entry in conversation.entries if entry.result]
        results = [result for _, result in answers]
        language = results[-1].language if results else Language.VIETNAMESE
        return self._template.render(
            text=partial(self._wording.text, language=language),
            language=language,
            conversation=conversation,
            answers=answers,
            level=highest(result.triage_level for result in results) if results else None,
            flags=self._flags(results),
            from_model=[
                (at, said) for at, result in answers for said in self._from_model(result, language)
            ],
            rules=_latest(fired for result in results for fired in result.rules),
            guidelines=_once(id_ for result in results for id_ in result.guidelines),
        )

    @staticmethod
    def _flags(results: Sequence[TriageResult]) -> list[tuple[str, str]]:
        """Return the flags of the user's own words, each once and with the words."""
        words = {fired.flag: fired.because for result in results for fired in result.rules}
        flags = _once(flag for result in results for flag in result.red_flags)
        return [(flag, words.get(flag, "")) for flag in flags]

    def _from_model(self, result: TriageResult, language: Language) -> list[str]:
        flags = [self._wording.text(f"flag.{flag}", language) for flag in result.model_flags]
        advice = [result.model_advice] if result.model_advice else []
        return [*flags, *result.suspected_conditions, *advice]


def _once(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _latest(rules: Iterable[Fired]) -> list[Fired]:
    """Return each rule once, in its latest form, most urgent first."""
    by_id = {fired.rule: fired for fired in rules}
    return sorted(by_id.values(), key=lambda fired: -fired.level.rank)
