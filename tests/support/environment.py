"""What a program that a test starts sees of this process's environment."""

from __future__ import annotations

import os

_MEASURED = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}

WITHOUT_RIGHTS = (
    ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    if hasattr(os, "geteuid") and os.geteuid() == 0
    else []
)
"""Beginning of a command that may not read and write everywhere, as root may (Linux)."""


def bare_environment(**variables: str) -> dict[str, str]:
    """These variables, the path and, while coverage is measured, that it is."""
    return {"PATH": os.environ["PATH"], **_MEASURED, **variables}
