"""The result of a run in a sentence, for every case, in at most 20 words."""

from __future__ import annotations

from typing import Any

import pytest

from mdagents.scoring.report import make_report
from mdagents.scoring.rows import read_output
from mdagents.scoring.run_verdict import RunVerdict, run_verdict
from tests.mdagents.scoring.result_records import ours, write


def panel(held: str, answer: str | None, n: int, **changes: Any) -> list[dict[str, Any]]:
    """Questions whose right option is A, with the first opinions of their experts."""
    opinions = [{"agent": f"e{place}", "round": 0, "answer": letter}
                for place, letter in enumerate(held)]  # fmt: skip
    return [ours(f"{held}{answer}{place}", "A", answer, opinions=opinions, **changes)
            for place in range(n)]  # fmt: skip


def verdict(records: list[dict[str, Any]], **manifest: Any) -> RunVerdict:
    run = read_output(write(records))
    return run_verdict(make_report(run), manifest, run.rows)


RIGHT = panel("AAB", "A", 40)
UNSEEN = {"pictures": [{"name": "x.png", "file": "pictures/x.png", "sha256": "0", "width": 1,
                        "height": 1}], "pictures_sent": 0}  # fmt: skip
CASES: dict[str, tuple[list[dict[str, Any]], dict[str, Any], str]] = {
    "gain": ([*RIGHT, *panel("BBA", "A", 20)], {},
             "100.0% right. The teams gained 20 answers, a significant effect."),
    "harm": ([*RIGHT, *panel("AAC", "B", 10)], {},
             "80.0% right. The teams lost 10 answers, a significant effect."),
    "no difference": ([*RIGHT, *panel("AAC", "B", 5), *panel("BBA", "A", 5)], {},
                      "90.0% right. The teams changed 10 majorities, with no significant effect."),
    "nothing changed": (RIGHT, {}, "100.0% right. The teams changed no majority."),
    "too few panels": (RIGHT[:12], {},
                       "100.0% right. Too few panels to tell whether the teams helped."),
    "too few": (RIGHT[:4], {}, "4 of 4 right: too few for a percentage."),
    "in progress": (RIGHT, {"finished": False, "item_ids": ["x"] * 200},
                    "So far 100.0% right after 40 of 200 questions."),
    "no panel": ([ours(str(n), "A", "A") for n in range(40)], {},
                 "100.0% right, without a panel of experts."),
    # By answers, nine against none would be significant; by questions, three against none are not.
    "epochs": ([one for epoch in (1, 2, 3) for one in (*panel("AAB", "A", 37, epoch=epoch),
                                                       *panel("BBA", "A", 3, epoch=epoch))], {},
               "100.0% right. The teams changed 9 majorities, with no significant effect."),
    "few questions in epochs": (
        [one for epoch in (1, 2, 3) for one in panel("BBA", "A", 12, epoch=epoch)], {},
        "100.0% right. Too few panels to tell whether the teams helped."),
    "failed": ([*RIGHT, *panel("", None, 10)], {},
               "80.0% right, 10 failed. The teams changed no majority."),
    "nothing answered": (panel("", None, 3), {}, "None of the 3 questions was answered."),
    "skipped": (panel("", None, 3, status="skipped"), {}, "All 3 questions were skipped."),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_result_in_a_sentence(case: str) -> None:
    records, manifest, sentence = CASES[case]
    found = verdict(records, **manifest)
    assert found.sentence == sentence
    assert len(found.limits) <= 2


def test_every_sentence_has_at_most_20_words() -> None:
    unseen = [{**record, **UNSEEN} for record in panel("AAC", "B", 15)]
    for records in ([*RIGHT, *unseen, *panel("", None, 12)], [*unseen, *panel("", None, 12)]):
        for manifest in ({}, {"finished": False, "item_ids": ["x"] * 2000}):
            sentence = verdict(records, **manifest).sentence
            assert "12 failed" in sentence
            assert len(sentence.split()) <= 20, sentence


def test_the_limits_say_what_changed_and_what_failed() -> None:
    records = [*RIGHT, *panel("AAC", "B", 5), *panel("BBA", "A", 5), *panel("ABC", "A", 2),
               *panel("", None, 3, status="api_error")]  # fmt: skip
    _, teams = verdict(records).limits
    assert teams.replace("\N{NO-BREAK SPACE}", " ") == (
        "Teams rescued 5 of 5 wrong majorities, overturned 5 of 45 right ones (p = 1.0000). "
        "Of 2 splits, 2 were settled right. Failed questions count as wrong: api error 3."
    )
