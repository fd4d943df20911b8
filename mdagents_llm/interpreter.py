"""Switches the programs of a clone to the Python of `.venv` when the current one lacks packages.

This module is imported only when something is missing. An older Python can parse it.
"""

import os
import shlex
import sys
from pathlib import Path
from types import TracebackType
from typing import NoReturn

CLONE = Path(__file__).resolve().parent.parent
ENVIRONMENT = CLONE / ".venv"
"""Virtual environment that `make run`, `make demo` and `make test` set up."""
SCRIPTS = (
    "evaluate_text_output.py",
    "extract_by_question_id.py",
    "main.py",
    "split_test_data.py",
    "study.py",
    "view.py",
)
"""Programs in the top folder of the clone. Other scripts there belong to the user."""
PACKAGES = ("benchmarks", "demos", "evals", "exaid_core", "mdagents_llm", "mdagents")
"""Packages with programs for `python -m`, in addition to the scripts in `scripts/`."""

_PYTHON = ENVIRONMENT / "bin" / "python"
LEVELS = ("run", "demos", "dev")
"""Levels of installed packages; each includes those before it. The file `NAME.done` in `.venv`
marks an installed level."""
_NEEDED = {"demos": 1, "benchmarks": 2}
"""Package -> index in `LEVELS` that its programs need; 0 for all other packages."""
_SET_UP = ("make run", "make demo", "python3 scripts/set_up.py --dev")
"""Command that installs each of `LEVELS`."""
_INSTALLED = "exaid_core", "mdagents", "mdagents_llm"
"""Packages that pip installs from a clone, with their dependencies."""
_CALLERS = tuple(
    str(CLONE / name) for name in ("mdagents/cli/commands.py", "mdagents_llm/terminal/printing.py")
)
"""Modules whose functions import a program when it is called."""
_NOT_FOR_ANOTHER_PYTHON = ("PYTHONHOME", "PYTHONEXECUTABLE", "__PYVENV_LAUNCHER__")
"""Variables that point a Python to its own library."""


def refuse_old() -> NoReturn:
    """Restart in the Python of `.venv`, or exit with a message that names the required version."""
    if _program() and not _is_chosen():
        _go_on()
    found = "{}.{}.{}".format(*sys.version_info[:3])
    _end(f"Python 3.11 or newer is needed, this is {found}")


def uncaught(
    kind: "type[BaseException]", error: BaseException, trace: "TracebackType | None"
) -> None:
    """Handle an uncaught exception, as `sys.excepthook` of the programs of a clone.

    If a module is missing, the program restarts in the Python of `.venv`, which has it. Without a
    `.venv`, or if the user has chosen another environment, a message says what to type. All other
    exceptions are shown as usual.
    """
    program = _program()
    name = missing_package(error) if isinstance(error, ModuleNotFoundError) else ""
    if not program or not name:
        sys.__excepthook__(kind, error, trace)
        return
    level = _NEEDED.get(program.partition(".")[0], 0)
    if _is_ours():
        if _is_complete(level):  # a bug in this project
            sys.__excepthook__(kind, error, trace)
            return
        _end(f"{ENVIRONMENT.name} has no '{name}'; type {set_up(level)}, then the same command")
    if _is_chosen() or os.name != "posix":
        is_ours = program.endswith(".py") or program.partition(".")[0] in _INSTALLED
        ways = [install(f"{CLONE}[all]")] if is_ours else []
        if _PYTHON.exists():
            ways.append(_with_environment())
        elif not is_ours:
            ways.append(after_set_up(level))
        _end(f"{sys.executable} has no '{name}'; type {', or '.join(ways)}")
    if _is_loading(trace):
        _go_on()
    _end(
        f"{sys.executable} has no '{name}'; type {set_up(level)}, which makes an environment "
        "with all packages, then the same command"
    )


def missing_package(error: ImportError) -> str:
    """Return the third-party package whose import failed; empty if it is not third-party."""
    package = (error.name or "").partition(".")[0]
    is_other = package not in (*PACKAGES, "scripts", *sys.stdlib_module_names)
    return package if is_other else ""


def set_up(level: int) -> str:
    """Return the command that installs the packages of a level, given as an index in `LEVELS`."""
    return _SET_UP[level] if Path.cwd() == CLONE else f"{_SET_UP[level]} in {CLONE}"


def after_set_up(level: int) -> str:
    """Return what to type for the packages of a level, and then to run the same program."""
    then = "the same command" if _is_ours() else _with_environment()
    return f"{set_up(level)}, then {then}"


def _is_ours() -> bool:
    """Return whether the Python that runs is that of `.venv`."""
    return Path(sys.prefix).resolve() == ENVIRONMENT.resolve()


def other_python() -> str:
    """Return the command for the same program with the Python of `.venv`.

    It is empty if that Python runs already, does not exist, or the user has chosen another one.
    """
    is_of_use = _program() and not _is_chosen() and not _is_ours() and _PYTHON.exists()
    return _with_environment() if is_of_use else ""


def _with_environment() -> str:
    """Return the command that runs the same program with the Python of `.venv`."""
    return shlex.join([str(_PYTHON), *_arguments()])


def install(*what: str) -> str:
    """Return the command that installs packages into the running Python.

    It gives the path of that Python, since `python` may be another one.

    Args:
        what: Package names and flags for pip.
    """
    return shlex.join([sys.executable, "-m", "pip", "install", *what])


def _program() -> str:
    """Return the running program, as `main.py` or `demos.medagen.server`; empty if not of ours."""
    if not (CLONE / "pyproject.toml").exists():
        return ""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None or sys.argv[:1] == ["-m"]:  # `-m` while the program's package is imported
        name = spec.name if spec else _module()
        return name if name.partition(".")[0] in PACKAGES else ""
    file = Path(getattr(main, "__file__", None) or "-").resolve()
    is_ours = file.name in SCRIPTS if file.parent == CLONE else file.parent == CLONE / "scripts"
    return file.name if is_ours else ""


def _module() -> str:
    """Return the module name after -m, which `sys.argv` still lacks; empty on an old Python."""
    given = str(_arguments()[-len(sys.argv)])
    return given[2:] if given.startswith("-m") else given  # noqa: FURB188 - for an older Python


def _arguments() -> "list[str]":
    """Return the command line after the interpreter, with Python's own flags if available."""
    return list(getattr(sys, "orig_argv", ["", *sys.argv])[1:])


def _is_chosen() -> bool:
    """Return whether the user explicitly runs the Python of a virtual environment."""
    return sys.prefix != sys.base_prefix


def _is_loading(trace: "TracebackType | None") -> bool:
    """Return whether the program was still importing modules and had done nothing else."""
    while trace is not None:
        code = trace.tb_frame.f_code
        is_import = code.co_name in ("<module>", "__getattr__") or "importlib" in code.co_filename
        if not (is_import or "runpy" in code.co_filename or code.co_filename in _CALLERS):
            return False
        trace = trace.tb_next
    return True


def _is_complete(level: int) -> bool:
    """Return whether the setup of `.venv` has finished since its package lists last changed."""
    stamps = [ENVIRONMENT / f"{name}.done" for name in LEVELS[level:]]
    ended = [stamp.stat().st_mtime for stamp in stamps if stamp.exists()]
    files = [CLONE / name for name in ("uv.lock", "pyproject.toml") if (CLONE / name).exists()]
    return bool(ended) and max(ended) > max(file.stat().st_mtime for file in files)


def _go_on() -> None:
    """Replace this process by the same program in the Python of `.venv`; return if not possible.

    On Windows a process cannot be replaced: the shell would not wait for the new one.
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
