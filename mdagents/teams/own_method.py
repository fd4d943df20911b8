"""User-defined methods: `--method my_team.py` or `--method package.module:solve`.

A user-defined method is Python code, run as it is. Its result is checked before it counts: a letter
that the question does not have is a reply without an answer.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, wraps
from pathlib import Path
from types import ModuleType

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from mdagents.agents.case import Case, first_of, is_stray_cancellation
from mdagents.datasets.questions import Question
from mdagents.settings import TeamSettings
from mdagents.teams.decision import Decision
from mdagents.teams.declaration import Method, declared_by
from mdagents.teams.names import SOLVE, name_of
from mdagents.teams.own_modules import own_modules
from mdagents.teams.source_imports import SourceLoader, compile_from_source
from mdagents.teams.train_split import OpenExemplars
from mdagents_llm.chat import StopReason, TokenUsage
from mdagents_llm.errors import BenchError, ConfigError, MethodError, StructuredOutputError
from mdagents_llm.files.matching import matching

_SIGNATURE = "async def solve(case, question, settings)"
_SOURCES = (".py", ".txt")


@dataclass(frozen=True, slots=True)
class OwnMethod:
    """A loaded user-defined method."""

    solve: Callable[..., Awaitable[Decision]]
    source_sha256: str
    """SHA-256 of the source: the file, or all `.py` and `.txt` files of the package."""
    modules: Mapping[str, str]
    """Module of the user's own that the source imports -> SHA-256."""


def load(method: str) -> OwnMethod:
    """Load a user-defined method.

    Args:
        method: A file that ends in `.py`, or `package.module:function`, which is searched for on
            Python's path and then in the working directory.

    Raises:
        ConfigError: The method does not exist, cannot be loaded, or has no such function.
    """
    is_file = method.endswith(".py")
    module, ran = _from_file(Path(method)) if is_file else (_from_module(method), None)
    function = SOLVE if is_file else method.partition(":")[2]
    solve = getattr(module, function, None)
    if not inspect.iscoroutinefunction(solve) or not _takes_a_question(solve):
        signature = _SIGNATURE.replace(SOLVE, function)
        raise ConfigError(
            f"--method {method} has no `{signature}`; see docs/tutorials/own-method.md"
        )
    sources = _sources_of(module)
    imported = own_modules(Path(str(module.__file__)), module.__package__ or "")
    source = _hash_of([ran] if ran is not None else (path.read_bytes() for path in sources))
    hashes = {
        name: _hash_of([path.read_bytes()])
        for name, path in imported.items()
        if path not in sources
    }
    # A module may import the method itself, which in a worker is a copy of the file.
    modules = {name: found for name, found in hashes.items() if found != source}
    return OwnMethod(_checked(solve, name_of(method), sources), source, modules)


def declared(method: str) -> Method:
    """Return the properties of a user-defined method, which is loaded once for each source.

    Raises:
        ConfigError: The method cannot be loaded.
    """
    source = b""
    with suppress(OSError):  # a module has no file, and `load` says why another cannot be read
        source = Path(method).read_bytes()
    return _declared(method, source, Path.cwd())


@lru_cache(maxsize=64)
def _declared(method: str, _source: bytes, _folder: Path) -> Method:
    return declared_by(load(method).solve)


def _from_file(path: Path) -> tuple[ModuleType, bytes]:
    """Return the module of a file, and the bytes that it was compiled from."""
    if not path.is_file():
        raise ConfigError(f"--method {path} is not there; give a file with `{_SIGNATURE}`")
    name = f"mdagents_own_method_{path.stem}"
    loader = SourceLoader(name, str(path.absolute()))
    spec = importlib.util.spec_from_file_location(name, loader.path, loader=loader)
    assert spec is not None, "its place is given"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pydantic resolve annotations there
    compile_from_source()
    with _loading(str(path)):
        loader.exec_module(module)
    return module, loader.source


def _from_module(method: str) -> ModuleType:
    name, _, function = method.partition(":")
    if not all(part.isidentifier() for part in (*name.split("."), function)):
        raise ConfigError(f"--method {method}: write package.module:function, or a file.py")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    compile_from_source(name.partition(".")[0])
    with _loading(method):
        return importlib.import_module(name)


@contextmanager
def _loading(method: str) -> Iterator[None]:
    try:
        yield
    except (Exception, SystemExit) as error:  # whatever the user's code does while it loads
        raise ConfigError(f"--method {method} cannot be loaded: {_in_words(error)}") from error


def _in_words(error: BaseException) -> str:
    where = f"line {error.lineno}: " if isinstance(error, SyntaxError) and error.lineno else ""
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return " ".join(f"{where}{type(error).__name__}: {message}".split())


def _takes_a_question(solve: Callable[..., Awaitable[Decision]]) -> bool:
    shown = {} if declared_by(solve).exemplars is None else {"exemplars": "exemplars"}
    try:
        inspect.signature(solve).bind("case", "question", "settings", **shown)
    except TypeError:
        return False
    return True


def _sources_of(module: ModuleType) -> list[Path]:
    """Return the source files of the method: its file, or the files of its package.

    Raises:
        ConfigError: The source is not a file, but in a notebook or an archive, for example.
    """
    file = getattr(module, "__file__", None)
    if file is None or file.startswith("<"):  # <stdin>
        raise ConfigError(
            f"the method in {module.__name__} has no source file to identify it by: save it as a "
            "file (in a notebook, begin its cell with %%writefile my_team.py) and give my_team.py"
        )
    own = Path(file)
    if not own.is_file():
        raise ConfigError(f"the method in {own} has no source file to identify it by: unpack it")
    package = sys.modules.get(module.__name__.partition(".")[0])
    roots = list(getattr(package, "__path__", ()))
    if not roots:
        return [own]
    found = (path for root in roots for path in matching(Path(root), "**/*"))
    return sorted(path for path in found if path.suffix in _SOURCES)


def _hash_of(sources: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for source in sources:
        digest.update(hashlib.sha256(source).digest())
    return digest.hexdigest()


def _checked(
    solve: Callable[..., Awaitable[object]], name: str, sources: Iterable[Path]
) -> Callable[..., Awaitable[Decision]]:
    """Return the method with one-line errors and checked decisions.

    Errors of a model and limits pass through: they become the status of the question, as for every
    method.
    """
    files = {str(path) for path in sources}

    @wraps(solve)
    async def checked(
        case: Case, question: Question, settings: TeamSettings, **shown: OpenExemplars
    ) -> Decision:
        try:
            decided = await solve(case, question, settings, **shown)
        except (Exception, BaseExceptionGroup, asyncio.CancelledError, SystemExit) as raised:
            error = first_of(raised)
            is_stray = isinstance(error, SystemExit) or is_stray_cancellation(error)
            if isinstance(error, BenchError) or not (isinstance(error, Exception) or is_stray):
                raise error from raised
            lines = [at.lineno for at in traceback.extract_tb(error.__traceback__)
                     if at.filename in files]  # fmt: skip
            where = f" line {lines[-1]}" if lines else ""
            raise MethodError(
                f"the method {name}{where}: {_in_words(error)} (question {question.id})"
            ) from error
        return _as_decision(decided, name, question)

    return checked


def _as_decision(decided: object, name: str, question: Question) -> Decision:
    if not isinstance(decided, Decision):
        raise MethodError(
            f"the method {name} returned {type(decided).__name__}, not a Decision "
            f"(question {question.id})"
        )
    # A dataclass does not validate its fields, and a record that is not writable ends the run.
    form = TypeAdapter(Decision)
    try:
        decision = form.validate_python(asdict(replace(decided, letter=decided.letter or "")))
        form.dump_json(decision)
    except (ValidationError, PydanticSerializationError) as error:
        field, why = "text", "it has half a character"
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            field, why = ".".join(map(str, first["loc"])), first["msg"]
        raise MethodError(
            f"the method {name} returned a Decision whose {field} cannot be used: {why} "
            f"(question {question.id})"
        ) from error
    if decision.letter not in question.options:
        raise StructuredOutputError(
            f"the method {name} decided {decided.letter!r}, which is none of "
            f"{', '.join(question.options)}",
            text=decision.analysis,
            usage=TokenUsage(),
            stop_reason=StopReason.STOP,
        )
    return decision
