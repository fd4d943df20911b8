"""The forecast of `--dry-run`: calls, tokens, time and cost of a run. No call is made.

The teams themselves run, on real questions of the data set, with a model that sketches replies
half as long as their limit; so calls and prompts are those of the protocol. If the output folder
holds earlier runs of the same models, reply lengths, routing and latency are taken from them.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from exaid_core.config import ExaidConfig
from exaid_core.trace.bus import TraceBus
from mdagents.agents.case import Case, make_case_id
from mdagents.datasets.dataset import Dataset, IndexEntry, open_dataset, part_note
from mdagents.datasets.pictures.preparing import size_as_sent
from mdagents.datasets.questions import Question, SourceQuestion, present
from mdagents.runs.config import RunConfig
from mdagents.runs.flags.picture_flags import Images
from mdagents.runs.flags.team_flags import ADAPTIVE
from mdagents.runs.forecast_history import Estimate, History, read_history
from mdagents.runs.models import check_sight, choose_models
from mdagents.runs.run_pictures import RunPictures
from mdagents.runs.selecting import dropping_note, picture_note, select, selection_note
from mdagents.runs.solver import Solver
from mdagents.scoring.formatting import Part, Table
from mdagents.settings import EXAID_ROLES, MDAGENTS, Difficulty, TeamRole
from mdagents.teams.train_split import Embedding
from mdagents_llm.chat import ChatReply, ChatRequest, OnText, StopReason, TokenUsage
from mdagents_llm.config import Environment, LLMRole
from mdagents_llm.endpoints import ModelSpec
from mdagents_llm.errors import ConfigError, PictureError
from mdagents_llm.json_schema import longest_reply, reply_schema
from mdagents_llm.model_configs import load_model_configs
from mdagents_llm.picture_tokens import (
    BYTES_PER_TOKEN,
    picture_tokens,
    prompt_tokens,
    text_tokens,
)
from mdagents_llm.pictures import Picture
from mdagents_llm.text import counted

if TYPE_CHECKING:
    from exaid_core.exaid import EXAID
    from mdagents_llm.embeddings import Vectors

_SAMPLE = 20  # questions, of which the one nearest to the mean length is sketched
_SHARE_OF_A_LIMIT = 0.5  # assumed length of a reply as a share of its limit, without history


@dataclass(slots=True)
class _Sketch:
    """A model that replies in the right form and counts what a real reply would take."""

    spec: ModelSpec
    role: str
    talkative: bool
    history: History
    in_batches: bool
    total: Estimate = field(default_factory=Estimate)
    _turns: itertools.count[int] = field(default_factory=itertools.count)

    async def generate(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        assert request.schema is not None, "all turns of the teams have a schema"
        usual = self.history.output_tokens.get(self.role)
        longest = longest_reply(request.schema) / BYTES_PER_TOKEN
        share = _SHARE_OF_A_LIMIT if usual is None else min(usual / longest, 1)
        value = self._fill(reply_schema(request.schema), next(self._turns), share)
        text = json.dumps(value)
        sent = int(prompt_tokens(request.messages, str(self.spec)))
        received = round(usual or text_tokens(text))
        if (
            usual is None and self.talkative
        ):  # an upper bound; with history, the reply length includes it
            received += self.spec.thinking.budget or 0
        usage = TokenUsage(sent, received)
        spec = self.spec
        price = load_model_configs().price(spec.provider, spec.name, in_batches=self.in_batches)
        cost = None if price is None else price.of(usage)
        of_exaid = self.role in EXAID_ROLES
        self.total = self.total.plus(Estimate.of_call(usage, cost, of_exaid=of_exaid))
        parsed = request.schema.model_validate(value)
        return ChatReply(text, usage, StopReason.STOP, "sketch", parsed=parsed)

    def _fill(self, schema: Mapping[str, Any], turn: int, share: float) -> Any:
        if "enum" in schema:
            return schema["enum"][turn % len(schema["enum"])]
        match schema.get("type"):
            case "object":
                fields = schema["properties"].items()
                return {name: self._fill(field, turn, share) for name, field in fields}
            case "array":
                # A debater that takes part writes to one other; all other arrays have a fixed size.
                count = schema.get("minItems", int(self.talkative and schema["maxItems"] > 0))
                return [self._fill(schema["items"], turn + at, share) for at in range(count)]
            case "string":
                return "word " * int(schema["maxLength"] * share / 5)
            case "boolean":
                return self.talkative
            case "integer":
                # Number of an expert: the next one, since an expert does not write to itself.
                return schema["minimum"] + (turn + 1) % (schema["maximum"] - schema["minimum"] + 1)
            case "number":
                return schema["minimum"]
            case _:
                return None


class _AllAlike:
    """An embedder that makes all texts equally similar: a forecast works with any examples."""

    name = "forecast"

    def queries(self, texts: Sequence[str]) -> Vectors:
        import numpy as np  # not needed for most forecasts

        return np.zeros((len(texts), 1), dtype=np.float32)

    passages = queries


Level = Difficulty | None
"""Level of a question; None for a method without levels."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Forecast of a run, from least to most: debaters may be quiet or talkative."""

    dataset: str
    model: str
    """Model of the experts."""
    method: str
    questions: int
    """Number of questions to answer, times epochs."""
    quiet: Mapping[Level, Estimate]
    """Level that a question may go to -> estimate for one question when nobody debates."""
    lively: Mapping[Level, Estimate]
    """Level that a question may go to -> estimate for one question when all debate throughout."""
    shares: Mapping[Level, float]
    """Level that questions are sent to -> share of them; the key None: routed, or a method."""
    history: History
    calls_at_once: int
    in_batches: bool = False
    """Whether calls wait for the provider's batches."""
    pictured: int = 0
    """Number of selected questions with pictures."""
    notices: Sequence[str] = ()
    """Notes on the questions and the models."""

    def whole(self) -> tuple[Estimate, Estimate]:
        """Return the minimum and maximum for all questions."""
        return self._range_of(self.questions)

    def seconds(self) -> tuple[float, float] | None:
        """Return the minimum and maximum wall time in seconds.

        None without an earlier run of these models, or in batches.
        """
        if self.history.latency is None or self.in_batches:
            return None
        each = self.history.latency / self.calls_at_once
        low, high = self.whole()
        return low.calls * each, high.calls * each

    def cost_of(self, questions: int) -> str:
        """Return the cost of a number of questions of this kind, such as `0.12–1.5 USD`."""
        low, high = self._range_of(questions)
        return _money(low.cost, high.cost)

    def price_of(self, questions: int) -> str:
        """Return the cost of a number of questions, for teams and EXAID separately.

        It also says how to save EXAID's part. Without a price it states tokens.
        """
        low, high = self._range_of(questions)
        whole = self.cost_of(questions)
        if not high.exaid_tokens:
            return whole
        if low.cost is None or high.cost is None:
            tokens = _tokens(*(each.input_tokens + each.output_tokens for each in (low, high)))
            exaid = _tokens(low.exaid_tokens, high.exaid_tokens)
            parts = f"{tokens} tokens, EXAID's {exaid}"
        else:
            teams = _money(low.team_cost, high.team_cost)
            parts = f"teams {teams}, EXAID {_money(low.exaid_cost, high.exaid_cost)}"
        return f"{whole}: {parts} (--exaid off leaves EXAID out)"

    def parts(self) -> list[Part]:
        """Return the forecast for a terminal: a table and lines."""
        low, high = self.whole()
        n = self.questions
        cost = [f"cost: {self.price_of(n)}"]
        if low.cost is not None and high.cost is not None:
            cost.append(f"cost per 1,000 questions: {self.cost_of(1000)}")
        runs = self.history.runs
        source = "lengths: assumed to be half the limit (no earlier run of these models)"
        if runs:
            source = f"lengths and routing from {counted(runs, 'earlier run')} of these models"
        if self.history.questions:
            decided = counted(len(self.history.questions), "question")
            source += f"; the whole run from {decided} with these settings"
        lines = [
            f"the whole run: {_range(low.calls, high.calls)} calls, "
            f"{_tokens(low.input_tokens, high.input_tokens)} tokens in, "
            f"{_tokens(low.output_tokens, high.output_tokens)} out",
            f"EXAID's part: {_tokens(low.exaid_tokens, high.exaid_tokens)} tokens",
            *cost,
            self._wall_time(),
            f"reply {source}",
            *(f"NOTE: {notice}" for notice in self.notices),
        ]
        title = f"{self.dataset}: {counted(n, 'question')} to answer with {self.model}"
        return [title, self._table(), *lines]

    def _range_of(self, questions: int) -> tuple[Estimate, Estimate]:
        """Return the minimum and maximum for a number of questions."""
        if (known := self.history.of_questions(questions)) is not None:
            return known
        least = _expected(self.quiet, self.shares, self.history, min)
        most = _expected(self.lively, self.shares, self.history, max)
        return Estimate().plus(least, questions), Estimate().plus(most, questions)

    def _table(self) -> Table:
        rows = []
        for level, low in self.quiet.items():
            high = self.lively[level]
            tokens = [each.input_tokens + each.output_tokens for each in (low, high)]
            costs = [Estimate().plus(each, 1000).cost for each in (low, high)]
            rows.append(
                [
                    level.value if level else self.method,
                    _range(low.calls, high.calls),
                    _tokens(*tokens),
                    _money(*costs),
                ]
            )
        return Table(["a question to", "calls", "tokens", "per 1,000 questions"], rows)

    def _wall_time(self) -> str:
        seconds = self.seconds()
        if self.in_batches:
            return "wall time: each step waits for a batch, which may take a day"
        if seconds is None:
            return "wall time: not known before a first run with these models"
        shortest, longest = (each / 60 for each in seconds)
        time = f"{_range(shortest, longest)} min" if longest >= 1 else "less than a minute"
        return f"wall time: {time} at {self.calls_at_once} calls at once"


def forecast_of_several(forecasts: Mapping[str, Forecast]) -> list[Part]:
    """Return the forecast of several runs, each and in total, as a table and lines.

    Args:
        forecasts: Name of a run -> its forecast.
    """
    rows = []
    least, most = Estimate(), Estimate()
    hours: dict[str, list[float]] = {}  # model -> [minimum, maximum]; models work in parallel
    for name, of_run in forecasts.items():
        low, high = of_run.whole()
        least, most = least.plus(low), most.plus(high)
        rows.append([name, *_columns(low, high)])
        so_far = hours.setdefault(of_run.model, [0.0, 0.0])
        for end, seconds in enumerate(of_run.seconds() or (math.nan, math.nan)):
            so_far[end] += seconds / 3600
    rows.append(["all", *_columns(least, most)])
    ends = [max(of_model[end] for of_model in hours.values()) for end in (0, 1)]
    lines = [
        f"EXAID's part: {_tokens(least.exaid_tokens, most.exaid_tokens)} tokens, "
        f"{_money(least.exaid_cost, most.exaid_cost)}"
    ]
    if math.isnan(sum(each for of_model in hours.values() for each in of_model)):
        lines.append("wall time: not known before a first run with these models and methods")
    else:
        lines.append(f"wall time: {ends[0]:,.2f}–{ends[1]:,.2f} hours")
    known = sum(bool(of_run.history.questions) for of_run in forecasts.values())
    lines.append(
        f"from the questions of earlier runs with the same settings: {known} of {len(forecasts)} "
        "runs; for the others, reply lengths are those of earlier runs with the same models and "
        "methods, or else half the limit"
    )
    table = Table(["run", "calls", "tokens", "USD"], rows, has_total=True)
    return [table, *lines]


def _columns(low: Estimate, high: Estimate) -> list[str]:
    tokens = [each.input_tokens + each.output_tokens for each in (low, high)]
    money = _money(low.cost, high.cost).removesuffix(" USD")
    return [_range(low.calls, high.calls), _tokens(*tokens), money]


def forecast(
    config: RunConfig, environment: Environment, dataset: Dataset | None = None
) -> Forecast:
    """Return the forecast of a run. It needs no API key and no network.

    A program that offers a run to a user can show
    `f"{forecast(config, environment).cost_of(100)} for 100 questions"`; `config.dataset` may then
    be a sample whose questions are as long as those of the data set.

    Args:
        config: Settings of the run.
        environment: Keys and endpoints.
        dataset: Data set of the run if it is open; None opens it.

    Raises:
        ConfigError: The data set, the selection or a model does not exist.
    """
    if dataset is None:
        dataset = open_dataset(config.dataset, config.data_dir, config.split)
    entries = select(dataset, config)
    specs = choose_models(config, environment)
    models = {role: str(spec) for role, spec in specs.items()}
    pictured = [entry for entry in entries if entry.pictures]
    check_sight(config, specs, len(pictured))
    history = read_history(config, dataset.name, models)
    sent_to = Counter(map(config.forced_level, range(len(entries))))
    levels: list[Level] = [None]
    if config.method == MDAGENTS:
        is_routed = ADAPTIVE in config.levels
        levels = [level for level in Difficulty if is_routed or level in config.levels]
    kinds = [
        _Kind(len(of_kind) / len(entries), usual, asyncio.run(_pictures_of(usual, config)))
        for of_kind in (pictured, [entry for entry in entries if not entry.pictures])
        if of_kind
        for usual in [_usual(dataset, of_kind, config, str(specs[TeamRole.EXPERT.value]))]
    ]
    quiet, lively = (
        {
            level: asyncio.run(
                _sketch_all(config, dataset, kinds, specs, history, level, talkative)
            )
            for level in levels
        }
        for talkative in (False, True)
    )
    return Forecast(
        dataset=dataset.name,
        model=str(specs[TeamRole.EXPERT.value]),
        method=config.method_name,
        questions=len(entries) * config.epochs,
        quiet=quiet,
        lively=lively,
        shares={level: count / len(entries) for level, count in sent_to.items()},
        history=history,
        calls_at_once=config.max_connections or 16,
        in_batches=config.batch,
        pictured=len(pictured),
        notices=list(
            filter(
                None,
                [
                    selection_note(dataset, config),
                    dropping_note(config, entries),
                    _size_note(kinds, len(pictured)),
                    part_note(dataset),
                    picture_note(dataset, config, entries),
                    _reasoning_note(specs, history),
                ],
            )
        ),
    )


def _reasoning_note(specs: Mapping[str, ModelSpec], history: History) -> str:
    """Return the assumption about hidden reasoning; empty when none is needed."""
    configs = load_model_configs()
    new = [spec for role, spec in specs.items() if role not in history.output_tokens]
    if any(spec.thinking.budget for spec in new):
        return (
            "hidden reasoning is counted from none at all to all that --reasoning-effort and "
            "--reasoning-tokens allow, until an earlier run of these models tells"
        )
    may_think = {
        str(spec)
        for spec in new
        if spec.thinking.budget is None
        and not spec.is_local
        and configs.info(spec.provider, spec.name).reasoning_headroom
    }
    if not may_think:
        return ""
    return (
        f"what {', '.join(sorted(may_think))} may think before answering is not counted, until an "
        "earlier run of these models tells"
    )


@dataclass(frozen=True, slots=True)
class _Kind:
    """Questions with pictures, or questions without."""

    share: float
    """Share of the selected questions, 0 to 1."""
    usual: Question
    """A typical question of this kind."""
    pictures: tuple[Picture, ...]
    """Its pictures as agents see them."""


async def _pictures_of(question: Question, config: RunConfig) -> tuple[Picture, ...]:
    try:
        return await RunPictures(config).of(question)
    except PictureError as error:
        raise ConfigError(f"question {question.id}: {error}") from error


def _size_note(kinds: Sequence[_Kind], pictured: int) -> str:
    """Return a note on the size of the pictures that each call sends; empty without any."""
    pictures = [picture for kind in kinds for picture in kind.pictures]
    if not pictures:
        return ""
    size = sum(len(picture.base64) for picture in pictures)
    return (
        f"{pictured} questions have pictures; those of a question take about {size / 1e3:,.0f} kB, "
        "and each of its calls sends them"
    )


def _usual(
    dataset: Dataset, entries: Sequence[IndexEntry], config: RunConfig, model: str
) -> Question:
    """Return the question whose length, its pictures included, is nearest to the mean.

    Tokens grow with the length, and the calls of a sketch do not depend on the question.
    """
    sample = [dataset.load(entry) for entry in entries[:: max(1, len(entries) // _SAMPLE)]]
    lengths = [_length(one, config, model) for one in sample]
    mean = fmean(lengths)
    usual = min(zip(lengths, sample, strict=True), key=lambda pair: abs(pair[0] - mean))[1]
    return present(usual, config.option_order, config.seed)


def _length(question: SourceQuestion, config: RunConfig, model: str) -> float:
    """Return the length of a question in tokens, with its pictures."""
    length = text_tokens("".join([question.text, *question.options.values()]))
    if config.images is Images.DROP:
        return length
    for picture in question.pictures:
        width, height = size_as_sent(picture, config.image_max_pixels)
        sent = Picture("", "image/png", width, height, "", detail=config.image_detail)
        length += picture_tokens(sent, model)
    return length


async def _sketch_all(
    config: RunConfig,
    dataset: Dataset,
    kinds: Sequence[_Kind],
    specs: Mapping[str, ModelSpec],
    history: History,
    level: Difficulty | None,
    talkative: bool,
) -> Estimate:
    """Return the mean estimate for a question at `level`, over those with and without pictures."""
    total = Estimate()
    for kind in kinds:
        one = await _sketch(config, dataset, kind, specs, history, level, talkative)
        total = total.plus(one, kind.share)
    return total


async def _sketch(
    config: RunConfig,
    dataset: Dataset,
    kind: _Kind,
    specs: Mapping[str, ModelSpec],
    history: History,
    level: Difficulty | None,
    talkative: bool,
) -> Estimate:
    """Return the estimate for a question at `level`, including the router's call if any is routed.

    A method has no level.
    """
    models = {
        role: _Sketch(spec, role, talkative, history, config.batch) for role, spec in specs.items()
    }
    team = {role: model for role, model in models.items() if role not in EXAID_ROLES}
    bus = TraceBus()
    case = Case(
        make_case_id(kind.usual.id, 1),
        kind.usual,
        team,
        config.team,
        config.seed,
        kind.pictures,
        config.image_agents,
        bus=bus,
    )
    exaid = _exaid(config, models, bus, coalesce=not talkative)
    with TemporaryDirectory() as folder:
        by = Embedding(_AllAlike(), Path(folder), say=lambda _: None)
        solver = Solver(config, dataset, lambda: by)
        if solver.climbs:
            await solver.ladder(case, lambda at, _: at is level).solve()
        else:
            chosen = await solver.route(case, None if ADAPTIVE in config.levels else level)
            await solver.at(replace(chosen, difficulty=level), case)
        if exaid is not None:
            await exaid.finalize()
    return sum((model.total for model in models.values()), Estimate())


def _exaid(
    config: RunConfig, models: Mapping[str, _Sketch], bus: TraceBus, *, coalesce: bool
) -> EXAID | None:
    """Return EXAID for the sketched case; with `coalesce`, it makes the fewest calls; None: off."""
    if config.exaid_policy is None:
        return None
    from exaid_core.exaid import EXAID  # its rules take time to import

    settings = ExaidConfig(policy=config.exaid_policy, coalesce=coalesce, linger=0.0)
    summarizer = models[LLMRole.SUMMARIZER.value]
    buffer_agent = models.get(LLMRole.BUFFER_AGENT.value, summarizer)
    exaid = EXAID(buffer_llm=buffer_agent, summarizer_llm=summarizer, config=settings)
    bus.subscribe(exaid.on_event)
    return exaid


def _expected(
    by_level: Mapping[Level, Estimate], shares: Mapping[Level, float], history: History, bound: Any
) -> Estimate:
    """Return the mean estimate of a question, weighted over routed and forced levels."""
    total = Estimate()
    for level, share in shares.items():
        if level is None:
            total = total.plus(_routed(by_level, history, bound), share)
        else:
            total = total.plus(by_level[level], share)
    return total


def _routed(by_level: Mapping[Level, Estimate], history: History, bound: Any) -> Estimate:
    """Return the mean estimate of a routed question; without history, the bound over the levels."""
    routed = sum(history.routing.get(level or "", 0) for level in by_level)
    if len(by_level) > 1 and routed:
        total = Estimate()
        for level, estimate in by_level.items():
            total = total.plus(estimate, history.routing.get(level or "", 0) / routed)
        return total
    return Estimate.bound(by_level.values(), bound)


def _range(low: float, high: float) -> str:
    texts = [f"{value:,.0f}" for value in (low, high)]
    return texts[0] if texts[0] == texts[1] else f"{texts[0]}–{texts[1]}"


def _tokens(low: float, high: float) -> str:
    """Return a range with three significant digits, the precision of a forecast."""
    return _range(float(f"{low:.3g}"), float(f"{high:.3g}"))


def _money(low: float | None, high: float | None) -> str:
    """Return a range with two significant digits, the precision of a forecast."""
    if low is None or high is None:
        return "price not known"
    texts = [_two_digits(low), _two_digits(high)]
    return f"{texts[0] if texts[0] == texts[1] else '–'.join(texts)} USD"


def _two_digits(amount: float) -> str:
    digits = 0 if amount == 0 else 1 - math.floor(math.log10(abs(amount)))
    return f"{round(amount, digits):,.{max(0, digits)}f}"
