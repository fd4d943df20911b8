r"""Recognizes LaTeX commands in JSON whose backslash a model wrote once.

As an escape of JSON, the beginning of `\beta` is a backspace, and that of `\text{C}` a tab.
"""

import re

COMMAND = (
    r"(?:[bf](?=[A-Za-z])|(?:nabla|neq|nleq|ngeq|not(?:in)?|right\w*|rho|rm|rceil|rfloor"
    r"|text(?:bf|it|rm|tt|sf|sc|normal)?(?=\s?\{)|times|theta|tau|tilde|tfrac|triangle|top?"
    r"|therefore)(?![A-Za-z]))"
)
r"""Regular expression for the name of a command that begins like an escape: `beta`, `neq`.

No text has a backspace or a form feed before a letter. Line breaks and tabs are common, so a name
counts only if its rest is no word: `\neq`, not `\name`.
"""
_UNESCAPED = re.compile(rf"(?<!\\)((?:\\\\)*)\\(?={COMMAND})")


def with_escaped_latex(json_text: str) -> str:
    """Return JSON text in which the backslash of each LaTeX command is escaped."""
    return _UNESCAPED.sub(r"\1\\\\", json_text) if "\\" in json_text else json_text
