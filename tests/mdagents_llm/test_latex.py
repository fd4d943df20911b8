"""LaTeX commands in JSON whose backslash a model wrote once."""

import json

import pytest

from mdagents_llm.latex import with_escaped_latex


@pytest.mark.parametrize(
    "text",
    [
        # read as backspaces, form feeds and tabs (HKUDS/LightRAG 3238, THU-MAIC/OpenMAIC 658)
        r"\boxed{C}", r"\beta-blocker", r"\frac{1}{2}", r"\times10^9", r"\theta", r"\text{C}",
        r"\textbf {C}", r"\neq", r"\nabla", r"a \to b", r"K \rightarrow L", r"\rho", r"\right)",
    ],
)  # fmt: skip
def test_a_command_keeps_its_backslash(text: str) -> None:
    assert json.loads(with_escaped_latex(f'{{"answer": "{text}"}}')) == {"answer": text}


@pytest.mark.parametrize(
    "text",
    [
        "Heparin.\nThe dose", "a\nb", "\tHeparin", "a\ttext", "\tto be", "\r\nright", "\nnot now",
        "\b", "\f", r"\beta", r"\text{C}", "\\\n", "β",
    ],
)  # fmt: skip
def test_other_escapes_are_left_as_they_are(text: str) -> None:
    encoded = json.dumps({"answer": text})
    assert with_escaped_latex(encoded) == encoded


def test_an_escaped_backslash_before_a_command_is_kept() -> None:
    assert json.loads(with_escaped_latex(r'"\\\beta"')) == r"\\beta"
