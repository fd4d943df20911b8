"""Questions of a file, as a run on it shows them, their prompts and the letters of replies."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from mdagents.datasets.dataset import open_dataset
from mdagents.datasets.question_prompts import read_prompt
from mdagents.datasets.questions import Question, present
from mdagents.datasets.record_lines import place
from mdagents.settings import DATA_DIR, OptionOrder
from mdagents_llm.answers import parse_answer
from mdagents_llm.errors import ConfigError

_INSTRUCTION = "Choose the best option, and give its letter in \\boxed{}."


def questions_in(path: Path | None) -> Iterator[Question]:
    """Yield the questions of a file that `--dataset` takes, with their options in its order.

    Raises:
        ConfigError: There is no file, a line is no question, or a question has a picture.
    """
    if path is None or not path.is_file():
        raise ConfigError(f"the questions are {path}; give a file of questions")
    if path.suffix == ".parquet":  # needs packages that change those of verifiers
        raise ConfigError(f"{path} is not read here; save it as JSON Lines or CSV")
    dataset = open_dataset(str(path), DATA_DIR)
    for entry in dataset.index:
        if entry.pictures or entry.missing_picture:
            raise ConfigError(
                f"{place(path, entry.line)}: the question has a picture, and a prompt is text; "
                "leave it out"
            )
        yield present(dataset.load(entry), OptionOrder.ORIGINAL, seed=0)


def prompt_of(question: Question) -> str:
    """Return a question with its options, and the form of the answer."""
    options = "\n".join(  # each on a line of its own, so that it is read as one option
        f"{letter}. {' '.join(text.split())}" for letter, text in question.options.items()
    )
    return f"{question.text}\n\n{options}\n\n{_INSTRUCTION}"


def is_read(prompt: str, options: Mapping[str, str]) -> bool:
    """Return whether a team finds these options, and no others, in a prompt."""
    read = read_prompt(prompt)
    return read is not None and read.options == {
        letter: " ".join(text.split()) for letter, text in options.items()
    }


def letter_in(reply: str, options: Mapping[str, str], *, by_team: bool) -> str | None:
    """Return the letter of the option that a reply chose, as teams read replies of their experts.

    Args:
        reply: Reply of a rollout.
        options: Letter -> text.
        by_team: Whether a team replied. Its last line is its answer; the analysis before it may
            discuss other options.

    Returns:
        The letter; None if the reply does not choose one option.
    """
    return parse_answer(reply.rpartition("\n")[2] if by_team else reply, options).letter
