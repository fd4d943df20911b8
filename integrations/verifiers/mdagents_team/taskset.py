"""Multiple-choice questions as tasks."""

from collections.abc import Iterator
from pathlib import Path

import verifiers.v1 as vf

from mdagents.datasets.questions import Question
from mdagents_llm.errors import ConfigError
from mdagents_team.questions import is_read, letter_in, prompt_of, questions_in


class MdagentsTeamData(vf.TaskData):
    """A question and its right option."""

    right: list[str]
    """Letter of the right option, and of those with the same text."""
    options: dict[str, str]
    """Letter -> text of the options."""


class MdagentsTeamTask(vf.Task[MdagentsTeamData]):
    """A question; its answer is right or wrong."""

    def _letter(self, trace: vf.Trace) -> str | None:
        by_team = "mdagents" in trace.info
        letter: str | None = letter_in(trace.last_reply, self.data.options, by_team=by_team)
        return letter

    @vf.reward(weight=1.0)
    async def correct(self, trace: vf.Trace) -> float:
        """1 if the letter is that of the right option; a reply without a letter is wrong."""
        return float(self._letter(trace) in self.data.right)

    @vf.metric
    async def answered(self, trace: vf.Trace) -> float:
        """1 if the reply names an option."""
        return float(self._letter(trace) is not None)

    async def validate(self, runtime: vf.Runtime) -> bool:
        """Return whether a team reads the options in the prompt as they are."""
        is_valid: bool = is_read(self.data.prompt, self.data.options)
        return is_valid


class MdagentsTeamConfig(vf.TasksetConfig):
    """Where the questions are."""

    questions: Path | None = None
    """File of questions, as for `--dataset`."""


class MdagentsTeamTaskset(vf.Taskset[MdagentsTeamTask, MdagentsTeamConfig]):
    """The questions of a file."""

    def load(self) -> Iterator[MdagentsTeamTask]:
        """Yield a task for each question.

        Raises:
            SystemExit: There is no file, or a line cannot be used; the message names it.
        """
        try:
            for question in questions_in(self.config.questions):
                yield self._task(question)
        except ConfigError as error:
            raise SystemExit(f"taskset.questions: {error}") from None

    def _task(self, question: Question) -> MdagentsTeamTask:
        data = MdagentsTeamData(
            id=question.id,
            prompt=prompt_of(question),
            right=question.right_letters(),
            options=dict(question.options),
        )
        return MdagentsTeamTask(data, self.config.task)
