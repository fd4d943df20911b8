"""The program `python -m demos.cdss_example.demo_cdss`: runs two cases and shows every step."""

from __future__ import annotations

import signal

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C while modules load: no traceback

import argparse
import asyncio
import shutil
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demos.cdss_example.config import SHORT
from demos.cdss_example.schema.clinical_case import ClinicalCase, case_of_json
from demos.toolkit.packages import needs_demos
from demos.toolkit.tracing import add_otel_flag, open_spans
from exaid_core import ExaidConfig, TriggerPolicy
from mdagents_llm.config import LLMRole, choices, parse_environment, read_variables
from mdagents_llm.endpoints import ModelSpec, Runtime
from mdagents_llm.errors import BenchError, ConfigError, StorageError
from mdagents_llm.ledger import CallRow, Ledger, Totals
from mdagents_llm.llm_registry import AUTO, ModelChooser, ModelRegistry
from mdagents_llm.model_configs import load_model_configs
from mdagents_llm.terminal.command_line import Parser
from mdagents_llm.terminal.printing import fails_in_one_line, print_line, print_result
from mdagents_llm.text import counted
from mdagents_llm.web.address import Place, add_address_flags, has_screen, listen, note_of

if TYPE_CHECKING:
    from demos.toolkit.program_spans import ProgramSpans

FINISHED, FAILED = 0, 1
"""Exit statuses. Wrong use exits with 2, a signal with 128 plus its number."""

CASES = ("chest-pain", "fever")
"""Names of the demonstration cases, files in `cases/`."""

_OFF = "off"
_NO_DEVICE = "A demonstration, not a medical device: do not use it for patients."
_TOO_SMALL = (
    "The embedded model is far too small to be right: it shows the way through the graph. "
    "A key, such as OPENAI_API_KEY, or --model gives a better one."
)


@fails_in_one_line
def main(argv: Sequence[str]) -> int:
    """Run cases and show every step.

    Args:
        argv: Command-line arguments without the program's name.

    Returns:
        The exit status.
    """
    options = _parser().parse_args(argv)
    if not options.view and (options.view_port is not None or options.view_host):
        given = "--view-host" if options.view_host else "--view-port"
        raise ConfigError(f"{given} belongs to --view; add that, or leave it out")
    cases = [(name, _case(name)) for name in options.case or CASES]
    place = listen(options.view_host, options.view_port) if options.view else None
    try:
        status = asyncio.run(_Program(options, cases, place).run())
    finally:
        if place is not None:
            place.socket.close()
    if status > 128:  # do not let a second Ctrl-C interrupt the interpreter's shutdown
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return status


class _Program:
    """One invocation of the program.

    Args:
        options: Parsed command line.
        cases: Pairs of name and case.
        place: Address of the page; None runs without a page.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        cases: Sequence[tuple[str, ClinicalCase]],
        place: Place | None,
    ) -> None:
        self._options = options
        self._cases = cases
        self._place = place
        self._work: asyncio.Task[int] | None = None
        self._stay = asyncio.Event()
        """Set when the page may close."""
        self._is_staying = False
        self._signal = 0
        self._has_exaid = options.exaid != _OFF
        self._team, self._exaid = Totals(), Totals()

    async def run(self) -> int:
        """Run until the end or a signal, and return the exit status."""
        self._work = asyncio.create_task(self._run())
        self._listen_to_signals()
        try:
            status = await self._work
        except asyncio.CancelledError:
            if not self._signal:
                raise
            status = FAILED
        if self._signal and not self._is_staying:
            print_line("interrupted; run the same command again")
            return 128 + self._signal
        return status

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop, number)

    def _stop(self, number: int) -> None:
        """Stop at the first signal; ignore later ones, as the shutdown is quick."""
        if self._signal:
            return
        self._signal = number
        if self._is_staying:
            self._stay.set()
        elif self._work is not None:
            self._work.cancel()

    async def _run(self) -> int:
        with needs_demos("the CDSS"):  # imported late: --help and wrong use do not need LangGraph
            from demos.cdss_example.cdss import CDSS
        from demos.cdss_example.console import Console
        from demos.cdss_example.events import Event

        console = Console(print_result, shutil.get_terminal_size().columns)
        unwritten: list[StorageError] = []

        def show(event: Event) -> None:
            try:
                console.show(event)
            except StorageError as error:  # EXAID would swallow it while handling a summary
                unwritten.append(error)
                raise

        listeners: list[Callable[[Event], None]] = [show]
        async with AsyncExitStack() as until:
            spans = await until.enter_async_context(
                open_spans("cdss", read_variables(), wanted=self._options.otel)
            )
            team, models = await self._models(until, spans)
            console.note(f"Model: {team}. {_NO_DEVICE}")
            if getattr(models[LLMRole.MAS], "is_small", False):
                console.note(_TOO_SMALL)
            if self._place is not None:
                from demos.cdss_example.view.page import PageServer

                page = PageServer(self._place, model=str(team))
                await until.enter_async_context(page)
                self._listen_to_signals()  # the server has replaced the signal handlers
                listeners.append(page.log.add)
                self._show_page(self._place, console.note)
            cdss = CDSS(
                models[LLMRole.MAS],
                exaid=self._has_exaid,
                buffer_llm=models[LLMRole.BUFFER_AGENT],
                summarizer_llm=models[LLMRole.SUMMARIZER],
                exaid_config=self._exaid_config(),
                limits=SHORT if self._options.short else None,
                on_event=lambda event: _tell(listeners, event),
                spans=spans,
            )
            status = await self._all_cases(cdss.process_case, console.note)
            if unwritten:
                raise unwritten[0]
            if self._place is not None:
                console.note("The page stays until Ctrl-C.")
                self._is_staying = True
                await self._stay.wait()
        return status

    async def _all_cases(
        self,
        process_case: Callable[[ClinicalCase], Coroutine[Any, Any, Any]],
        note: Callable[[str], None],
    ) -> int:
        for name, case in self._cases:
            self._team, self._exaid = Totals(), Totals()
            try:
                await process_case(case)
            except (ConfigError, StorageError):
                raise
            except BenchError as error:
                print_line(f"error: {name}: {error}")
                return FAILED
            note(_spent(self._team, self._exaid))
        return FINISHED

    async def _models(
        self, until: AsyncExitStack, spans: ProgramSpans | None
    ) -> tuple[ModelSpec, dict[LLMRole, Any]]:
        """Return the agents' model and the started models of all roles (None for unused roles)."""
        environment, configs = parse_environment(read_variables()), load_model_configs()
        chooser = ModelChooser(environment, configs)
        team = chooser.parse(self._options.model)
        chosen = self._options.model != AUTO
        subscribers = [self._book] if spans is None else [self._book, spans.booked]
        registry = ModelRegistry(Runtime(environment, Ledger(*subscribers), configs=configs))
        until.push_async_callback(registry.aclose)
        models = {
            role: registry.model(chooser.for_role(role, team, chosen=chosen))
            for role in LLMRole
            if self._has_exaid or role is LLMRole.MAS
        }
        await registry.prepare()
        return team, {role: models.get(role) for role in LLMRole}

    def _exaid_config(self) -> ExaidConfig | None:
        policy = self._options.exaid
        return ExaidConfig(policy=TriggerPolicy(policy)) if self._has_exaid else None

    def _book(self, row: CallRow) -> None:
        if row.role == LLMRole.MAS:
            self._team += Totals.of(row)
        else:
            self._exaid += Totals.of(row)

    def _show_page(self, place: Place, note: Callable[[str], None]) -> None:
        from mdagents_llm.web.serve import open_browser

        note(f"The page: {place.url('/')}")
        note(note_of(place, self._options.view_port))
        if not self._options.no_open and has_screen(read_variables(), sys.platform):
            open_browser(place.url("/"))


def _tell(listeners: Sequence[Callable[[Any], None]], event: object) -> None:
    for listener in listeners:
        listener(event)


def _spent(team: Totals, exaid: Totals) -> str:
    parts = [f"agents {_totals(team)}"]
    if exaid.calls or exaid.failed_attempts:
        parts.append(f"EXAID {_totals(exaid)}")
    return f"Spent: {'; '.join(parts)}."


def _totals(totals: Totals) -> str:
    attempts = counted(totals.failed_attempts, "failed attempt")
    failed = f", {attempts}" if totals.failed_attempts else ""
    return f"{counted(totals.calls, 'call')}, {totals.usage.total_tokens:,} tokens{failed}"


def _case(name: str) -> ClinicalCase:
    """Return a demonstration case or the case in a file.

    Raises:
        ConfigError: The name is not known, or the file cannot be read or holds no valid case.
    """
    if name in CASES:
        raw = files("demos.cdss_example.cases").joinpath(f"{name}.json").read_bytes()
        return case_of_json(raw, name)
    if not name.endswith(".json"):
        known = ", ".join(CASES)
        raise ConfigError(f"--case is '{name}' but must be one of {known}, or a file FILE.json")
    try:
        return case_of_json(Path(name).read_bytes(), name)
    except OSError as error:
        raise ConfigError(f"{name} cannot be read: {error.strerror}") from None


def _parser() -> Parser:
    parser = Parser(
        prog="python -m demos.cdss_example.demo_cdss",
        description="Clinical decision support on LangGraph: an orchestrator, specialists, a "
        "synthesis, and EXAID's summaries beside them. " + _NO_DEVICE,
        epilog="Exit status: 0 finished, 1 a case failed, 2 usage error, 130 Ctrl-C, "
        "143 SIGTERM. Models and keys as for main.py: .env or the environment "
        f"({', '.join(choices()[:2])}, OPENAI_API_KEY, …).",
    )
    add = parser.add_argument
    add("--case", metavar="CASE", action="append", default=[],
        help=f"{', '.join(CASES)}, or a file FILE.json with the fields of a ClinicalCase; "
        "may be given several times [both]")  # fmt: skip
    add("--model", metavar="MODEL", default=AUTO,
        help="provider/name, local (the embedded one), or auto: by the keys [auto]")  # fmt: skip
    add("--short", action="store_true", help="short texts, for a slow model")
    policies = [*TriggerPolicy, _OFF]
    add("--exaid", metavar="POLICY", choices=policies, default=TriggerPolicy.FULL_EXAID.value,
        help=f"live summaries: {', '.join(policies)} [%(default)s]")  # fmt: skip
    add("--view", action="store_true", help="also show the cases on a page in the browser")
    add_address_flags(parser)
    add_otel_flag(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
