"""What a program that a test starts sees of this process's environment."""

from __future__ import annotations

import os

_MEASURED = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}


def bare_environment(**variables: str) -> dict[str, str]:
    """These variables, the path and, while coverage is measured, that it is."""
    return {"PATH": os.environ["PATH"], **_MEASURED, **variables}
