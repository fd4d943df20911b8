"""Multiple-choice questions as tasks."""

from collections.abc import Iterator
from pathlib import Path

import verifiers.v1 as vf
from pydantic import BaseModel, Field, ValidationError, model_validator

_INSTRUCTION = "Choose the best option, and give its letter in \\boxed{}."


class Question(BaseModel):
    """A line of a file of questions, in the form of MedQA: the form of mdagents-bench."""

    question: str = Field(min_length=1)
    options: dict[str, str] = Field(min_length=2)
    answer_idx: str
    realidx: str | int | None = None
    id: str | int | None = None

    @model_validator(mode="after")
    def _has_its_answer(self) -> "Question":
        if self.answer_idx not in self.options:
            raise ValueError(f"answer_idx is {self.answer_idx!r}, which is none of its options")
        return self

    @property
    def prompt(self) -> str:
        """The question with its options, and the form of the answer."""
        options = "\n".join(  # each on a line of its own, so that it is read as one option
            f"{letter}. {' '.join(text.split())}" for letter, text in self.options.items()
        )
        return f"{self.question}\n\n{options}\n\n{_INSTRUCTION}"


class MdagentsTeamData(vf.TaskData):
    """A question and its right option."""

    answer: str
    """Letter of the right option."""
    letters: list[str]
    """Letters of the options."""


class MdagentsTeamTask(vf.Task[MdagentsTeamData]):
    """A question; its answer is right or wrong."""

    def _letter(self, trace: vf.Trace) -> str:
        return str(vf.extract_boxed_answer(trace.last_reply, strict=True)).strip().upper()

    @vf.reward(weight=1.0)
    async def correct(self, trace: vf.Trace) -> float:
        """1 if the letter is that of the right option; a reply without a letter is wrong."""
        return float(self._letter(trace) == self.data.answer.upper())

    @vf.metric
    async def answered(self, trace: vf.Trace) -> float:
        """1 if the reply names an option."""
        return float(self._letter(trace) in map(str.upper, self.data.letters))

    async def validate(self, runtime: vf.Runtime) -> bool:
        """Return whether the right option is one of the options."""
        return self.data.answer in self.data.letters


class MdagentsTeamConfig(vf.TasksetConfig):
    """Where the questions are."""

    questions: Path | None = None
    """JSON Lines with `question`, `options` (letter -> text) and `answer_idx`."""


class MdagentsTeamTaskset(vf.Taskset[MdagentsTeamTask, MdagentsTeamConfig]):
    """The questions of a file."""

    def load(self) -> Iterator[MdagentsTeamTask]:
        """Yield a task for each question.

        Raises:
            ValueError: There is no file, or a line is no question.
        """
        path = self.config.questions
        if path is None or not path.is_file():
            raise ValueError(f"--env.taskset.questions is {path}; give a file of questions")
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield self._task(_question(line, f"{path} line {number}"), number)

    def _task(self, question: Question, number: int) -> MdagentsTeamTask:
        known = question.realidx if question.realidx is not None else question.id
        data = MdagentsTeamData(
            id=str(number if known is None else known),
            prompt=question.prompt,
            answer=question.answer_idx,
            letters=list(question.options),
        )
        return MdagentsTeamTask(data, self.config.task)


def _question(line: str, where: str) -> Question:
    try:
        return Question.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where}: {field} {first['msg']}".replace(":  ", ": ")) from None
