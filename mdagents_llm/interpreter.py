"""The Python of a clone's programs: that of `.venv`, when the one that was called lacks packages.

It is imported only when something is missing, and an older Python can read it.
"""

import os
import shlex
import sys
from pathlib import Path
from types import TracebackType
from typing import NoReturn

CLONE = Path(__file__).resolve().parent.parent
ENVIRONMENT = CLONE / ".venv"
"""What `make run`, `make demo` and `make test` set up."""
SCRIPTS = (
    "evaluate_text_output.py",
    "extract_by_question_id.py",
    "main.py",
    "split_test_data.py",
    "study.py",
    "view.py",
)
"""The programs of the clone's top level. A script of the user's beside them is none of ours."""
PACKAGES = ("benchmarks", "demos", "evals", "exaid_core", "mdagents_llm", "mdagents")
"""What `python -m` calls; `scripts/` holds programs, too."""

_PYTHON = ENVIRONMENT / "bin" / "python"
LEVELS = ("run", "demos", "dev")
"""Selections of packages; each holds those before it. `NAME.done` in `.venv`: it was installed."""
_NEEDED = {"demos": 1, "benchmarks": 2}
"""Package -> the place in `LEVELS` of what its programs need; all others: the first."""
_SET_UP = ("make run", "make demo", "python3 scripts/set_up.py --dev")
"""What installs each."""
_INSTALLED = "exaid_core", "mdagents", "mdagents_llm"
"""Packages that pip installs from a clone, with what they need."""
_CALLERS = tuple(
    str(CLONE / name) for name in ("mdagents/cli/main.py", "mdagents_llm/files/printing.py")
)
"""Modules with the functions that import a program when it is called."""
_NOT_FOR_ANOTHER_PYTHON = ("PYTHONHOME", "PYTHONEXECUTABLE", "__PYVENV_LAUNCHER__")
"""Variables that tell a Python where its own library is."""


def refuse_old() -> NoReturn:
    """Go on with the Python of `.venv`, or end with a line that says which version is needed."""
    if _program() and not _is_chosen():
        _go_on()
    found = "{}.{}.{}".format(*sys.version_info[:3])
    _end(f"Python 3.11 or newer is needed, this is {found}")


def uncaught(
    kind: "type[BaseException]", error: BaseException, trace: "TracebackType | None"
) -> None:
    """Handle an exception that nothing has caught: `sys.excepthook` of the programs of a clone.

    A module that this Python does not have is no reason to give up: the Python of `.venv` has it.
    Where there is none, or the user has chosen another environment, a line says what to type.
    Everything else is shown as Python shows it.
    """
    program = _program()
    name = missing_package(error) if isinstance(error, ModuleNotFoundError) else ""
    if not program or not name:
        sys.__excepthook__(kind, error, trace)
        return
    level = _NEEDED.get(program.partition(".")[0], 0)
    if Path(sys.prefix).resolve() == ENVIRONMENT.resolve():
        if _is_complete(level):  # then it is a mistake of ours
            sys.__excepthook__(kind, error, trace)
            return
        _end(f"{ENVIRONMENT.name} has no '{name}'; type {set_up(level)}, then the same command")
    if _is_chosen() or os.name != "posix":
        is_ours = program.endswith(".py") or program.partition(".")[0] in _INSTALLED
        ways = [install(str(CLONE))] if is_ours else []
        if _PYTHON.exists() or not is_ours:
            then = shlex.join([str(_PYTHON), *_arguments()])
            ways.append(then if _PYTHON.exists() else f"{set_up(level)}, then {then}")
        _end(f"{sys.executable} has no '{name}'; type {', or '.join(ways)}")
    if _is_loading(trace):
        _go_on()
    _end(
        f"{sys.executable} has no '{name}'; type {set_up(level)}, which makes an environment "
        "with all packages, then the same command"
    )


def missing_package(error: ImportError) -> str:
    """Return the name of somebody else's package of which an import failed; "": of none."""
    package = (error.name or "").partition(".")[0]
    is_other = package not in (*PACKAGES, "scripts", *sys.stdlib_module_names)
    return package if is_other else ""


def set_up(level: int) -> str:
    """Return what to type for the packages of a level, the place of its name in `LEVELS`."""
    return _SET_UP[level] if Path.cwd() == CLONE else f"{_SET_UP[level]} in {CLONE}"


def install(*what: str) -> str:
    """Return the command by which the Python that runs gets packages: `python` may be another.

    Args:
        what: Names and flags for pip.
    """
    return shlex.join([sys.executable, "-m", "pip", "install", *what])


def _program() -> str:
    """Return the program that runs, as `main.py` or `demos.medagen.server`; "": none of ours."""
    if not (CLONE / "pyproject.toml").exists():
        return ""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None or sys.argv[:1] == ["-m"]:  # the latter: while its package is imported
        name = spec.name if spec else _module()
        return name if name.partition(".")[0] in PACKAGES else ""
    file = Path(getattr(main, "__file__", None) or "-").resolve()
    is_ours = file.name in SCRIPTS if file.parent == CLONE else file.parent == CLONE / "scripts"
    return file.name if is_ours else ""


def _module() -> str:
    """Return the name after -m, of which `sys.argv` says nothing yet; "": Python is too old."""
    given = str(_arguments()[-len(sys.argv)])
    return given[2:] if given.startswith("-m") else given  # noqa: FURB188 - for an older Python


def _arguments() -> "list[str]":
    """Return the command line after the interpreter, with the flags for Python if it knows them."""
    return list(getattr(sys, "orig_argv", ["", *sys.argv])[1:])


def _is_chosen() -> bool:
    """Return whether the user called the Python of an environment, which is then the one meant."""
    return sys.prefix != sys.base_prefix


def _is_loading(trace: "TracebackType | None") -> bool:
    """Return whether nothing has been done yet: only modules were imported, or about to be."""
    while trace is not None:
        code = trace.tb_frame.f_code
        is_import = code.co_name in ("<module>", "__getattr__") or "importlib" in code.co_filename
        if not (is_import or "runpy" in code.co_filename or code.co_filename in _CALLERS):
            return False
        trace = trace.tb_next
    return True


def _is_complete(level: int) -> bool:
    """Return whether the set-up of `.venv` has ended since what it installs was changed."""
    stamps = [ENVIRONMENT / f"{name}.done" for name in LEVELS[level:]]
    ended = [stamp.stat().st_mtime for stamp in stamps if stamp.exists()]
    files = [CLONE / name for name in ("uv.lock", "pyproject.toml")]
    return bool(ended) and max(ended) > max(file.stat().st_mtime for file in files)


def _go_on() -> None:
    """Become the same program in the Python of `.venv`; return if that cannot be.

    On Windows a process cannot become another one: the shell would not wait for its end.
    """
    if os.name != "posix" or sys.executable == str(_PYTHON) or not os.access(_PYTHON, os.X_OK):
        return
    for name in _NOT_FOR_ANOTHER_PYTHON:
        os.environ.pop(name, None)
    try:
        os.execv(_PYTHON, [str(_PYTHON), *_arguments()])
    except OSError:
        return


def _end(words: str) -> NoReturn:
    print(f"error: {words}", file=sys.stderr)
    sys.exit(2)
