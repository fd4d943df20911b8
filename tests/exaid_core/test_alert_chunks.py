"""Alerts of a text that arrives in chunks."""

from __future__ import annotations

import pytest

from exaid_core.checks.alerts import alerts_of_chunk, find_alert


@pytest.mark.parametrize(
    ("before", "chunk"),
    [
        ("He denies syncope, seizures or", " cardiac arrest."),
        ("We saw no evidence of", " septic shock."),
        ("His father had a", " cardiac arrest at 50."),
        ("Give fluids if she develops", " septic shock overnight."),
        ("A newborn girl. She feeds well and", " her blood pressure is 58/37 mmHg."),
        ("There is no sign of cardiac", " arrest."),
        ("Urine: color yellow,", " pH 6.8"),
    ],
)
def test_the_text_before_a_chunk_denies_what_is_in_it(before: str, chunk: str) -> None:
    assert alerts_of_chunk(before, chunk) == ()


@pytest.mark.parametrize(
    ("before", "chunk", "alerts"),
    [
        ("No fever.", " Septic shock.", ("Septic shock",)),
        ("He denies pain and", " is now in septic shock.", ("septic shock",)),
        ("STEMI protocol", " activated.", ("STEMI",)),
        ("BP 120/70 on arrival, then", " 68/40.", ("BP 120/70 on arrival, then 68/40",)),
        ("He was in septic shock.", " He is still in septic shock.", ("septic shock",)),
        ("GCS 14, then 6", " at noon.", ()),
        ("SpO2 70%", ", later 68%.", ()),
    ],
)
def test_the_alerts_of_a_chunk_are_those_that_it_adds(
    before: str, chunk: str, alerts: tuple[str, ...]
) -> None:
    assert alerts_of_chunk(before, chunk) == alerts


@pytest.mark.parametrize(
    ("text", "alerts"),
    [
        ("He denies fever, chills, seizures or loss of consciousness.", set()),
        ("No trauma was found and he is in septic shock with a lactate of 6.", {"septic shock"}),
    ],
)
def test_a_text_in_two_chunks_has_the_alerts_of_the_whole(text: str, alerts: set[str]) -> None:
    for end in range(len(text)):
        first, second = text[:end], text[end:]
        found = [*alerts_of_chunk("", first), *alerts_of_chunk(first, second)]
        assert set(found) == alerts
        assert len(found) == len(alerts)


def test_the_heading_of_a_list_reaches_as_far_in_chunks_as_in_the_whole_text() -> None:
    heading = "Potential complications of this operation:\n"
    for items in range(12):
        before = heading + items * "- an item of the list that is long enough to fill a line\n"
        found = find_alert(f"{before}- septic shock\n") is not None
        assert (alerts_of_chunk(before, "- septic shock\n") != ()) == found
    assert find_alert(f"{heading}- septic shock\n") is None
