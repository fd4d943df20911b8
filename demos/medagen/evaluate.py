"""The program `python -m demos.medagen.evaluate`: measures the triage on vignettes.

Under-triage is a level below the right one. Severe under-triage is an emergency rated routine or
self-care, or an urgent case rated self-care. Intervals are 95% Wilson intervals.
"""

from __future__ import annotations

import signal

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C while modules load: no traceback

import argparse
import asyncio
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Never, Protocol

from prettytable import PrettyTable
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from tqdm import tqdm

from demos.medagen.schemas import Language, Level, TriageRequest, TriageResult
from demos.medagen.triage_rules import shipped_rules
from demos.toolkit.database import SETTING
from mdagents_llm.config import read_variables
from mdagents_llm.errors import BenchError, ConfigError
from mdagents_llm.files.json_text import load_json
from mdagents_llm.proportions import wilson
from mdagents_llm.terminal.command_line import Parser
from mdagents_llm.terminal.printing import fails_in_one_line, print_line, print_result

VIGNETTES = Path("data/triage_vignettes/test.jsonl")

_MILD = "mild"
_RULES, _ALWAYS = "rules only", "always emergency"
_ASSISTANT, _MODEL = "assistant", "model alone"


class Case(BaseModel):
    """A message, and how soon whoever wrote it needs care."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str = Field(min_length=1)
    language: Language
    text: str = Field(min_length=1, max_length=4_000)
    level: Level | Literal["mild"]
    """`mild`: routine or self-care, either is right."""


class Triage(Protocol):
    """Interface of the assistant under evaluation, such as `MedagenAssistant`."""

    async def triage(self, request: TriageRequest) -> TriageResult:
        """Answer a message."""
        ...


Opens = Callable[[Mapping[str, str]], AbstractAsyncContextManager[Triage]]
Judged = Mapping[str, Level | None]
"""Case id -> given level; None if the case got no answer."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A proportion: `count` out of `of`."""

    count: int
    of: int

    def __str__(self) -> str:
        interval = wilson(self.count, self.of)
        if interval is None:
            return "none"
        low, high = interval
        return f"{self.count} of {self.of} = {self.count / self.of:.3f} ({low:.3f}, {high:.3f})"


@dataclass(frozen=True, slots=True)
class Measures:
    """Agreement of the given levels with the right ones."""

    matrix: Mapping[tuple[str, str], int]
    """Pair of right level (or `mild`) and given level (or `none`) -> number of cases."""
    right: Rate
    over: Rate
    under: Rate
    severe_under: Rate
    emergency_recall: Rate
    mild_alarms: Rate
    """Mild cases (`mild`, routine or self-care) that were rated urgent or higher."""


def measures(cases: Sequence[Case], judged: Judged) -> Measures:
    """Compare levels. A case without an answer counts as severe under-triage.

    Args:
        cases: Cases with the right levels.
        judged: Case id -> given level.
    """
    matrix: Counter[tuple[str, str]] = Counter()
    right = over = under = severe = 0
    emergencies = recalled = mild = alarms = 0
    for case in cases:
        given = judged[case.id]
        matrix[case.level, given or "none"] += 1
        least, most = _right_ranks(case.level)
        rank = given.rank if given is not None else None
        right += rank is not None and least <= rank <= most
        over += rank is not None and rank > most
        under += rank is None or rank < least
        severe += rank is None or least - rank >= 2
        if case.level is Level.EMERGENCY:
            emergencies += 1
            recalled += given is Level.EMERGENCY
        if most <= Level.ROUTINE.rank:
            mild += 1
            alarms += rank is not None and rank >= Level.URGENT.rank
    n = len(cases)
    return Measures(
        matrix,
        Rate(right, n),
        Rate(over, n),
        Rate(under, n),
        Rate(severe, n),
        Rate(recalled, emergencies),
        Rate(alarms, mild),
    )


def _right_ranks(level: Level | Literal["mild"]) -> tuple[int, int]:
    if level == _MILD:
        return Level.SELF_CARE.rank, Level.ROUTINE.rank
    return Level(level).rank, Level(level).rank


def read_cases(file: Path) -> list[Case]:
    """Read a JSONL file of cases, such as the vignettes.

    Raises:
        ConfigError: The file cannot be read, has no cases, or a line is not a valid case.
    """
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}; give another --file") from None
    cases: dict[str, Case] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{file}, line {number}"
        try:
            case = Case.model_validate(load_json(line, where))
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"][:1])) or "the line"
            raise ConfigError(f"{where}: {field}: {first['msg']}") from None
        except ValueError as error:
            raise ConfigError(str(error)) from None
        if case.id in cases:
            raise ConfigError(f"{where}: the id {case.id} is there twice")
        cases[case.id] = case
    if not cases:
        raise ConfigError(f"{file} has no cases")
    return list(cases.values())


def by_rules(cases: Sequence[Case]) -> dict[str, Level | None]:
    """Return the level of each case by the rules alone."""
    rules = shipped_rules()
    return {one.id: rules.screen([one.text], one.language).triage_level for one in cases}


async def by_assistant(
    cases: Sequence[Case], assistant: Triage, at_once: int
) -> dict[str, TriageResult | None]:
    """Return the assistant's result for each case, each in its own conversation.

    Args:
        cases: Cases to judge.
        assistant: Assistant under evaluation.
        at_once: Maximum number of cases in progress.
    """
    room = asyncio.Semaphore(at_once)
    results: dict[str, TriageResult | None] = {}

    async def judge(case: Case, bar: tqdm[Never]) -> None:
        async with room:
            try:
                request = TriageRequest(text=case.text, user_id="evaluation")
                results[case.id] = await assistant.triage(request)
            except BenchError as error:
                print_line(f"{case.id}: {error}")
                results[case.id] = None
        bar.update()

    with tqdm(total=len(cases), unit="case", file=sys.stderr) as bar:
        async with asyncio.TaskGroup() as group:
            for case in cases:
                group.create_task(judge(case, bar))
    return results


@fails_in_one_line
def main(argv: Sequence[str], *, open_assistant: Opens | None = None) -> int:
    """Run the evaluation and print its results.

    Args:
        argv: Command-line arguments without the program's name.
        open_assistant: Function that opens the assistant of an environment; None uses Medagen's.

    Returns:
        The exit status: 0, or 1 if a case got no answer.
    """
    options = _parser().parse_args(argv)
    cases = read_cases(options.file)
    judged: dict[str, Judged] = {
        _RULES: by_rules(cases),
        _ALWAYS: {case.id: Level.EMERGENCY for case in cases},
    }
    failed = 0
    if options.assistant:
        if open_assistant is None:
            from demos.medagen.assistant import open_assistant as open_medagen

            open_assistant = open_medagen
        results = asyncio.run(_asked(cases, open_assistant, options.at_once))
        judged[_ASSISTANT] = {
            id_: one.triage_level if one else None for id_, one in results.items()
        }
        judged[_MODEL] = {id_: one.model_level if one else None for id_, one in results.items()}
        failed = sum(one is None for one in results.values())
        fallbacks = Counter(one.fallback for one in results.values() if one and one.fallback)
        for why, times in fallbacks.most_common():
            print_line(f"the model had no part in {times} of {len(cases)}: {why}")
    print_result(_shown(cases, judged))
    if options.output:
        _write(options.output, cases, judged)
    return 1 if failed else 0


async def _asked(
    cases: Sequence[Case], open_assistant: Opens, at_once: int
) -> dict[str, TriageResult | None]:
    with tempfile.TemporaryDirectory() as folder:
        # Use a temporary database: fictional patients do not belong among users' conversations.
        variables = dict(read_variables()) | {SETTING: str(Path(folder) / "evaluation.sqlite")}
        async with open_assistant(variables) as assistant:
            return await by_assistant(cases, assistant, at_once)


def _shown(cases: Sequence[Case], judged: Mapping[str, Judged]) -> str:
    parts = []
    table = PrettyTable(["of cases", *judged])
    table.align = "l"
    all_ = {name: measures(cases, levels) for name, levels in judged.items()}
    rows: dict[str, Callable[[Measures], Rate]] = {
        "right level": lambda one: one.right,
        "over-triage": lambda one: one.over,
        "under-triage": lambda one: one.under,
        "severe under-triage": lambda one: one.severe_under,
        "emergency recall": lambda one: one.emergency_recall,
        "mild, but urgent or higher": lambda one: one.mild_alarms,
    }
    for name, of in rows.items():
        table.add_row([name, *(str(of(one)) for one in all_.values())])
    parts.append(f"{len(cases)} cases; 95% intervals (Wilson)\n{table}")
    for name, one in all_.items():
        if name != _ALWAYS:
            parts.append(f"{name}\n{_matrix(one)}")
    return "\n\n".join(parts)


def _matrix(one: Measures) -> str:
    given = [*reversed(Level), "none"]
    rows = [level for level in (*reversed(Level), _MILD) if any(r == level for r, _ in one.matrix)]
    if not any(column == "none" for _, column in one.matrix):
        given.remove("none")
    table = PrettyTable(["right \\ given", *map(str, given)])
    for row in rows:
        table.add_row([str(row), *(one.matrix.get((row, column), 0) for column in given)])
    return str(table)


def _write(file: Path, cases: Sequence[Case], judged: Mapping[str, Judged]) -> None:
    lines = [
        json.dumps(
            {"id": case.id, "level": case.level, **{k: v[case.id] for k, v in judged.items()}}
        )
        for case in cases
    ]
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {file}: {error.strerror}") from None


def _parser() -> Parser:
    parser = Parser(
        prog="python -m demos.medagen.evaluate",
        description="Measure the triage on vignettes: the rules alone, with --assistant also the "
        "assistant and its model alone, beside calling all an emergency.",
    )
    add = parser.add_argument
    add("--file", metavar="FILE", type=Path, default=VIGNETTES, help="JSONL of cases [%(default)s]")
    add("--assistant", action="store_true", help="ask the model too, a conversation for each case")
    add("--at-once", metavar="N", type=_count, default=4, help="concurrent cases [%(default)s]")
    add("--output", metavar="FILE", type=Path, help="write each case's levels as JSONL")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 1000")
    return int(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
