"""Fixtures of all tests: no key, no network but loopback, folders of their own."""

from __future__ import annotations

import faulthandler
import gc
import inspect
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import httpx2
import hypothesis
import pytest

from mdagents_llm.clock import Clock
from mdagents_llm.config import Environment, choices, parse_environment
from mdagents_llm.endpoints import ModelSpec, Runtime
from mdagents_llm.ledger import CallRow, Ledger
from mdagents_llm.llm_registry import ModelRegistry
from mdagents_llm.model_configs import load_model_configs
from tests.fake_provider import FakeProvider

if TYPE_CHECKING:
    from playwright.async_api import Page

REPOSITORY = Path(__file__).parent.parent
CACHE_DIR = parse_environment(os.environ).caches
"""Where the embedded model is; read before a test's surroundings are cleared."""
SHARED = Path(os.environ.get("MDAGENTS_SHARED_DATA") or REPOSITORY.parent / "shared" / "data")
"""Data sets and traces from outside the repository; their tests are skipped where they are not."""
REAL_TRACES = sorted((SHARED / "traces").glob("*.trace.jsonl.gz"))

# Speed is never a timed test: a busy machine, or one that counts branches, fails none. The same
# inputs each time: `pytest --hypothesis-profile search` looks for new ones.
hypothesis.settings.register_profile("same", deadline=None, derandomize=True)
hypothesis.settings.register_profile("search", deadline=None)
hypothesis.settings.load_profile("same")

SLOW = ("process", "browser", "database", "embedded", "sweep", "long")
"""Markers of tests that `--fast` leaves out."""
_MOST_CPU = 0.5  # seconds of a test without such a marker, on an idle machine
_FIXED_WORK = 0.0225  # seconds of CPU that `_slowness` takes there
_FIRST_USES = 30
"""Tests without a marker that may take longer: whichever comes first loads a library or a table."""
_MOST_TIME = 900  # seconds of a test: what waits forever must fail here, not at CI's own limit
_AGAIN = 30  # seconds until a test is interrupted again: `Popen` waits once more on its way out
_OVER = "seconds of CPU"
_IN_CI = bool(os.environ.get("CI"))
_over: list[tuple[str, float]] = []

# A page takes longer than the five seconds that httpx2 waits where other tests keep the cores busy.
_default = inspect.signature(httpx2.get).parameters["timeout"].default
_default.__dict__.update(httpx2.Timeout(60).as_dict())

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--fast` and `--slow`."""
    parser.addoption("--fast", action="store_true", help="leave out the tests that take long")
    parser.addoption("--slow", action="store_true", help="leave out the others")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the slow tests, or the fast ones."""
    for item in items:
        if "postgres" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.database)
    fast, slow = config.getoption("fast"), config.getoption("slow")
    if fast or slow:
        others = {item for item in items if any(map(item.get_closest_marker, SLOW)) != slow}
        config.hook.pytest_deselected(items=list(others))
        items[:] = [item for item in items if item not in others]
    # Files that take minutes go first: at the end, one of them would keep a single worker at work.
    long = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: item.path not in long)


def pytest_collection_finish() -> None:
    """Spare the garbage collector 15,000 tests and their modules, a tenth of some tests' time."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """Fail a test that does not end, and show where it waits."""
    if not hasattr(signal, "setitimer"):  # Windows
        return (yield)
    signal.signal(signal.SIGALRM, _does_not_end)
    signal.setitimer(signal.ITIMER_REAL, _MOST_TIME, _AGAIN)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _does_not_end(_number: int, _frame: FrameType | None) -> None:
    faulthandler.dump_traceback(2)
    pytest.fail(f"it has not ended after {_MOST_TIME} seconds")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Measure a test of a fast run; what other programs take is not counted."""
    before = _cpu_seconds()
    yield
    seconds = _cpu_seconds() - before
    is_over = item.config.getoption("fast") and seconds > _MOST_CPU
    if is_over and seconds > _MOST_CPU * _slowness():
        item.user_properties.append((_OVER, round(seconds, 2)))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note the tests of a fast run that took long."""
    if report.when == "call":
        took = [float(str(of)) for name, of in report.user_properties if name == _OVER]
        _over.extend((report.nodeid, seconds) for seconds in took)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a fast run of CI in which more tests took long than libraries and tables explain."""
    if _IN_CI and len(_over) > _FIRST_USES and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the tests that took long, where there are too many."""
    if len(_over) > _FIRST_USES:
        marks = ", ".join(SLOW)
        terminalreporter.write_line(f"{len(_over)} tests took over {_MOST_CPU} s of CPU: {marks}?")
        for test, seconds in sorted(_over, key=lambda entry: -entry[1]):
            terminalreporter.write_line(f"  {seconds:5.2f} s  {test}")


def _slowness() -> float:
    """Return how much more CPU time fixed work takes now than on an idle machine, at least 1."""
    before = time.process_time()
    sum(number * number for number in range(500_000))
    return max(1.0, (time.process_time() - before) / _FIXED_WORK)


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.fixture(autouse=True)
def _no_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep keys, .env, settings, proxies and cache folders of this machine from the tests.

    Programs are found as in an environment that was activated, however the tests were started: by
    an editor, `uv run`, or with the path to Python.
    """
    prefixes = ("MDAGENTS_", "SKIP_", "SHOW_INTERACTION", "OPENAI_", "ANTHROPIC_", "GOOGLE_")
    names = {*load_model_configs().key_names(), *choices()}
    for name in list(os.environ):
        if name in names or name.startswith(prefixes) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("MDAGENTS_DEBUG", "1")  # what nobody foresaw fails its test
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a connection that would leave this machine fail the test."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and address[0] not in _LOOPBACK:
            raise AssertionError(f"a test tried to connect to {address[0]}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    """A fake provider over real HTTP."""
    with FakeProvider() as server:
        yield server


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    """An empty page of a browser."""
    from tests.support.browser import CHROMIUM, open_page  # slow to import

    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    async with open_page() as page:
        yield page


@pytest.fixture
def rows() -> list[CallRow]:
    """The rows that the ledger of `registry` has booked."""
    return []


@pytest.fixture
def make_runtime(provider: FakeProvider, rows: list[CallRow]) -> Callable[..., Runtime]:
    """Makes a `Runtime` with the fake provider as its endpoints; pauses pass on its clock alone."""
    slept = 0.0

    async def no_pause(seconds: float) -> None:
        nonlocal slept
        slept += seconds

    def make(**changes: Any) -> Runtime:
        settings: dict[str, Any] = {
            "environment": Environment(
                {
                    **dict.fromkeys(load_model_configs().key_names(), "test-key"),
                    "OPENAI_BASE_URL": provider.openai_base_url,
                    "GROQ_BASE_URL": provider.openai_base_url,
                    "GOOGLE_GEMINI_BASE_URL": provider.gemini_base_url,
                    "ANTHROPIC_BASE_URL": provider.anthropic_base_url,
                }
            ),
            "ledger": Ledger(rows.append),
            "clock": Clock(monotonic=lambda: time.monotonic() + slept),
            "sleep": no_pause,
        }
        return Runtime(**(settings | changes))

    return make


@pytest.fixture
async def registry(make_runtime: Callable[..., Runtime]) -> AsyncIterator[ModelRegistry]:
    """Builds models that reach the fake provider."""
    registry = ModelRegistry(make_runtime())
    yield registry
    await registry.aclose()


@pytest.fixture
def openai_spec(provider: FakeProvider) -> ModelSpec:
    """An OpenAI model behind the fake provider."""
    return ModelSpec("openai", "gpt-4o-mini", provider.openai_base_url)


@pytest.fixture
def gemini_spec(provider: FakeProvider) -> ModelSpec:
    """A Gemini model behind the fake provider."""
    return ModelSpec("google", "gemini-2.5-flash-lite", provider.gemini_base_url)
