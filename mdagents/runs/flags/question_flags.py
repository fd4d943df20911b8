"""Flags of the questions to answer: the data set, the selection, and the order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, field_validator, model_validator

from mdagents.runs.flags.bounds import AtLeast1
from mdagents.runs.flags.flag import Flag, Flags, text_of_path
from mdagents.runs.flags.lists import parts_of
from mdagents.settings import DATA_DIR, Difficulty, OptionOrder
from mdagents_llm.errors import ConfigError
from mdagents_llm.terminal.did_you_mean import did_you_mean


@dataclass(frozen=True, slots=True)
class Selection:
    """Selection of the questions of a data set, and their order."""

    start: int = 0
    """Index of the first question, counted from 0, after shuffling."""
    stop: int | None = None
    """Index after the last question; None: to the end."""
    ids: tuple[str, ...] = ()
    """Ids of the only questions to answer; empty: all."""
    shuffle_seed: int | None = None
    """Seed for shuffling before `start` and `stop` apply; None: the order of the file."""


class QuestionFlags(Flags):
    """Which questions are answered, in which order."""

    dataset: Annotated[
        str,
        BeforeValidator(text_of_path),
        Flag(
            "folder under --data-dir, or a .jsonl, .json, .csv or .parquet file",
            "NAME",
            in_name=True,
        ),
    ] = "medqa"
    split: Annotated[str, Flag("file in that folder, without extension", "NAME", in_name=True)] = (
        "test"
    )
    data_dir: Annotated[Path, Flag("folder of the data sets", "DIR", defines_run=False)] = DATA_DIR
    num_samples: Annotated[
        AtLeast1 | None, Flag("answer the first N questions [all]", in_name=True)
    ] = None
    limit: Annotated[
        str | None, Flag("the first N, or the A-th to the B-th question [all]", "N|A-B")
    ] = None
    """`N` or `A-B`, counted from 1, both included."""
    sample_id: Annotated[
        tuple[str, ...],
        Flag(
            "only the questions with these ids, or with those in a file, one per line", "ID,…|@FILE"
        ),
    ] = ()
    """Also as one text, `12,57` or `@FILE`."""
    sample_shuffle: Annotated[
        int | None, Flag("shuffle the questions before the limit", "SEED")
    ] = None
    option_order: Annotated[
        OptionOrder,
        Flag(
            "order of the options: a new one in each epoch, one for all epochs, or the data set's"
        ),
    ] = OptionOrder.SHUFFLED
    seed: Annotated[int, Flag("seed for the option order and for every call")] = 0
    epochs: Annotated[AtLeast1, Flag("answer each question N times")] = 1
    skip: Annotated[
        tuple[Difficulty, ...], Flag("skip questions routed to these levels", "LEVEL,…")
    ] = ()
    """Also as one text, `basic,advanced`."""
    skip_pictures: Annotated[
        bool, Flag("skip questions with a picture, or whose text refers to one")
    ] = False

    @model_validator(mode="before")
    @classmethod
    def _say_it_one_way(cls, given: Any) -> Any:
        """Treat `--limit 5` and `--num-samples 5` as the same run."""
        if not isinstance(given, Mapping) or given.get("limit") is None:
            return given
        if given.get("num_samples") is not None:
            raise ConfigError("--num-samples and --limit cannot be combined; give one of them")
        start, stop = _range(str(given["limit"]))
        return given if start else {**given, "limit": None, "num_samples": stop}

    @field_validator("sample_id", mode="before")
    @classmethod
    def _ids(cls, value: object) -> object:
        if value is None:
            return ()
        ids = parts_of(value)
        if isinstance(value, str) and not ids:
            raise ConfigError("--sample-id has no id in it; write --sample-id 12,57")
        return ids

    @field_validator("skip", mode="before")
    @classmethod
    def _levels(cls, value: object) -> object:
        names = [name.lower() for name in parts_of(value)]
        for name in names:
            if name not in set(Difficulty):
                raise ConfigError(
                    f"--skip {name}: the levels are {', '.join(Difficulty)}"
                    f"{did_you_mean(name, Difficulty)}"
                )
        return tuple(sorted({Difficulty(name) for name in names}))

    @property
    def selection(self) -> Selection:
        """Selection of the questions to answer."""
        start, stop = (0, self.num_samples) if self.limit is None else _range(self.limit)
        return Selection(start, stop, self.sample_id, self.sample_shuffle)


def _range(limit: str) -> tuple[int, int]:
    """Return (index of the first question, index after the last one) for `N` or `A-B`."""
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)", limit.strip())
    start, stop = (int(match[1] or 1) - 1, int(match[2])) if match else (0, 0)
    if start < 0 or stop <= start:
        raise ConfigError(f"--limit is '{limit}' but must be N or A-B, counted from 1")
    return start, stop
