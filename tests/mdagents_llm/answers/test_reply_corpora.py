"""The answer parser on real replies of 20 models, where the shared data is there."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.replies import CORPUS, REAL, main, read_replies
from mdagents_llm.answers import ParseMethod, parse_answer

# Labels that were made by a rule and are wrong: replies that name two letters first and one in
# their last statement, and two that name several where the label has the first.
NAMES_ONE_IN_THE_END = {
    "line 203": "C",
    "line 327": "C",
    "line 419": "J",
    "line 711": "J",
    "line 755": "A",
}
NAMES_SEVERAL = {"line 702", "line 934"}

real = pytest.mark.skipif(not REAL.is_file(), reason="needs the shared data")


@pytest.mark.sweep
@real
def test_real_replies_are_read_as_a_reader_reads_them() -> None:
    otherwise = {}
    for reply in read_replies(REAL):
        answer = parse_answer(reply.text, reply.options)
        if reply.kind != "unclear" and answer.letter != reply.expected:
            otherwise[reply.name] = answer.letter
    assert otherwise == NAMES_ONE_IN_THE_END | dict.fromkeys(NAMES_SEVERAL)


@real
def test_what_names_several_is_said_to_name_several() -> None:
    methods = Counter(
        parse_answer(reply.text, reply.options).method
        for reply in read_replies(REAL)
        if reply.kind == "several" and reply.name not in NAMES_ONE_IN_THE_END
    )
    assert methods[ParseMethod.SEVERAL] >= 50
    assert not set(methods) - {ParseMethod.SEVERAL, ParseMethod.NONE}


def test_the_table_counts_what_was_missed_and_what_is_false(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = CORPUS.read_bytes().split(b"\n")
    file = tmp_path / "replies.jsonl"
    file.write_bytes(
        b"\n".join(
            [
                *(line for line in lines if b'"kind": "run_on"' in line),
                b'{"text": "Answer: B", "options": {"A": "x", "B": "y"}, "expected": "A", '
                b'"class": "plain"}',
                b'{"text": "No idea.", "options": {"A": "x", "B": "y"}, "expected": "A", '
                b'"class": "plain"}',
            ]
        )
    )
    main([str(file)])
    rows = [line.replace(" ", "") for line in capsys.readouterr().out.splitlines()]
    assert "|run_on|1|1|||||" in rows
    assert "|plain|2||1|1|||" in rows
    assert any(row.startswith("false,plain,line2:B,notA") for row in rows)
