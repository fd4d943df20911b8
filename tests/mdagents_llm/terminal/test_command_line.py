"""What a user sees who has mistyped a word on the command line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdagents_llm.errors import ConfigError
from mdagents_llm.terminal.command_line import Parser
from mdagents_llm.terminal.did_you_mean import did_you_mean

LEVELS = ["adaptive", "basic", "intermediate", "advanced"]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("baisc", "basic"),
        ("BASIC", "basic"),
        ("advnaced", "advanced"),
        ("hard", None),
        ("", None),
        ("b", None),
    ],
)
def test_only_a_name_that_is_alike_is_suggested(given: str, meant: str | None) -> None:
    expected = "" if meant is None else f"; did you mean '{meant}'?"
    assert did_you_mean(given, LEVELS) == expected


def test_case_and_kinds_of_dashes_make_no_difference() -> None:
    assert did_you_mean("Zero-Shot", ["few_shot", "zero_shot"]) == "; did you mean 'zero_shot'?"
    assert did_you_mean("q-7", ["q-0017", "q-0007"]) == "; did you mean 'q-0007'?"


@given(st.text(max_size=9), st.lists(st.text(max_size=9), max_size=5))
def test_a_suggestion_is_a_known_name(given: str, known: list[str]) -> None:
    meant = did_you_mean(given, known)
    assert meant == "" or meant in {f"; did you mean '{name}'?" for name in known}


def parser() -> Parser:
    made = Parser(prog="prog")
    made.add_argument("--level", choices=LEVELS)
    made.add_argument("--number", type=int)
    made.add_argument("--share", type=float)
    made.add_argument("name", nargs="?", choices=["one", "two", "basic", "3"], metavar="NAME")
    return made


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--levle basic", "there is no flag --levle; did you mean '--level'? (see prog --help)"),
        ("--levle=basic", "there is no flag --levle; did you mean '--level'? (see prog --help)"),
        ("-number 3", "there is no flag -number; did you mean '--number'? (see prog --help)"),
        ("--other", "there is no flag --other (see prog --help)"),
        (
            "one two",
            "'two' is not the value of a flag; put the flag before it (see prog --help)",
        ),
        (
            "--level hard",
            "--level is 'hard' but must be one of adaptive, basic, intermediate, advanced",
        ),
        (
            "--level bsic",
            "--level is 'bsic' but must be one of adaptive, basic, intermediate, advanced; "
            "did you mean 'basic'?",
        ),
        ("three", "NAME is 'three' but must be one of one, two, basic, 3"),
        ("--number x", "--number is 'x' but must be a whole number"),
        ("--share 1/2", "--share is '1/2' but must be a number"),
        ("--share", "--share needs a value (see prog --help)"),
        ("--number 1_0", "--number is '1_0' but must be a whole number"),
        ("--share 1_0.5", "--share is '1_0.5' but must be a number"),
        ("--level ,", "--level has an empty value; give one, or leave it out (see prog --help)"),
    ],
)
def test_a_wrong_command_line_is_one_sentence(words: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parser().parse_args(words.split())
    assert str(caught.value) == message


def test_a_right_command_line_is_parsed() -> None:
    options = parser().parse_args(["--level", "basic", "--number", "3", "two"])
    assert (options.level, options.number, options.name) == ("basic", 3, "two")


@pytest.mark.parametrize("flag", ["--level", "--number", "--free", "--maybe"])
@pytest.mark.parametrize("value", ["", " ", ",", " , "])
def test_an_empty_value_is_refused(flag: str, value: str) -> None:
    made = parser()
    made.add_argument("--free", default="")
    made.add_argument("--maybe", nargs="?", const="")
    with pytest.raises(ConfigError, match=rf"^{flag} has an empty value; give one"):
        made.parse_args([flag, value])
    assert made.parse_args(["--maybe"]).maybe == ""


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^NAME has an empty value"):
        parser().parse_args([""])
