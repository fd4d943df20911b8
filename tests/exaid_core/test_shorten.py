"""A text that was cut must not change its meaning."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exaid_core.checks.shortening import shorten
from exaid_core.tokenizer import is_spaced
from tests.support.medical_prose import prose


@pytest.mark.parametrize(
    "whole",
    [
        "0.5 mg",
        "10 mg/kg",
        "10 mg per kg",
        "120/80 mmHg",
        "120 / 80 mmHg",
        "1,000 mL",
        "1 000 mL",
        "5 × 10^9/L",
        "5 x 10⁹ /L",
        "10 - 20 mg",
        "5 to 10 mg",
        "5 or 10 units",
        "2 x 500 mg",
        "< 5 mg",
        "≥ 180 mmHg",
        "3 million units",
        "38.5 °C",
        "92 %",
        "5 µg",
        "5000 IU",
        "2 L",
        "10 puffs",
        "1½ tablets",
        "3 days",
        "no fever",
        "no evidence of pulmonary embolism",
        "no signs of recent bleeding",
        "not indicated",
        "without chest pain",
        "denies chest pain",
        "negative for malignant cells",
        "rule out pulmonary embolism",
        "absence of rebound tenderness",
        "never smoked",
        "doesn't tolerate metformin",
        "doesn’t tolerate metformin",
        "thrombolysis is not indicated",
        "pulmonary embolism is unlikely",
        "infarction was ruled out",
        "Pulmonary embolism: ruled out",
        "Embolism : unlikely",
        "Raised troponin: not seen",
        "avoid NSAIDs",
        "rather than surgery",
        "**no** fever",
        "no 5 mg",
    ],
)
def test_what_belongs_together_stays_or_goes_whole(whole: str) -> None:
    before, after = "Fever; ", "; reassess at once and again"
    text = before + whole + after
    for limit in range(1, len(text)):
        kept = shorten(text, limit)
        assert kept in ("…", "Fever…") or kept.startswith(before + whole), limit


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("Give aspirin now", 16, "Give aspirin now"),
        ("Give aspirin now", 15, "Give aspirin…"),
        ("Give aspirin now", 13, "Give aspirin…"),
        ("Give aspirin now", 12, "Give…"),
        ("Give aspirin now", 1, "…"),
        ("Pneumonoultramicroscopic", 10, "…"),
        ("Fever, cough and malaise", 14, "Fever, cough…"),
        ("Fever (39.5 °C) and malaise", 20, "Fever (39.5 °C)…"),
        ("Fever (39.5 °C) and malaise", 14, "Fever…"),
        ("Fever and malaise", 12, "Fever…"),
        ("Sodium 140. Potassium 4.1 today", 15, "Sodium 140…"),
        ("Rash: no. Fever: yes, for long", 10, "Rash…"),
        ("Rash: no. Fever: yes, for long", 18, "Rash: no. Fever…"),
        ("Rash: no. – Fever: yes", 12, "Rash…"),
        ("Option 2 with steroids", 12, "Option 2…"),
        ("Stable and warfarin is not given", 25, "Stable…"),
        ("A… b… c", 6, "A… b…"),
        ("", 1, ""),
        ("   x", 3, "…"),
    ],
)
def test_cut(text: str, limit: int, expected: str) -> None:
    assert shorten(text, limit) == expected


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_the_ellipsis_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match=f"{limit} characters"):
        shorten("text", limit)


_WORDS = st.lists(
    st.sampled_from(
        re.findall(
            r"\S+",
            "no not without denies unlikely 5 mg 0.5 1,000 mL 120/80 mmHg × 10^9/L to per kg <"
            " and or fever. aspirin, is (stable) – evidence of rule out ruled doesn't 92 %",
        )
    ),
    max_size=40,
).map(" ".join)
_TEXTS = st.text(max_size=120) | _WORDS | st.builds(prose, st.integers(1, 60), st.integers(0, 999))
_LIMITS = st.integers(1, 150)


@pytest.mark.sweep
@given(_TEXTS, _LIMITS)
def test_the_result_fits_and_begins_like_the_text(text: str, limit: int) -> None:
    kept = shorten(text, limit)
    assert len(kept) <= limit
    if len(text) <= limit:
        assert kept == text
    else:
        assert kept.endswith("…")
        assert text.startswith(kept[:-1])
        left_out = text[len(kept) - 1 :]
        words = re.findall(r"\S+", text)
        if is_spaced(text) and any(map(str.isalnum, text)) and max(map(len, words)) <= 64:
            between = re.match(r"[\s,;:.…(\[{/–—，、。；：（「『【《〈،؛۔।¿¡]*\s", left_out)
            assert kept == "…" or between, "cut inside a word"


@pytest.mark.sweep
@given(_TEXTS, _LIMITS)
def test_what_was_shortened_is_not_shortened_again(text: str, limit: int) -> None:
    kept = shorten(text, limit)
    assert shorten(kept, limit) == kept


@given(_TEXTS, _LIMITS)
def test_more_room_never_keeps_less(text: str, limit: int) -> None:
    assert len(shorten(text, limit)) <= len(shorten(text, limit + 1))


@pytest.mark.sweep
@given(_WORDS, _LIMITS)
def test_no_number_is_split_from_its_unit_and_no_negation_dangles(text: str, limit: int) -> None:
    kept = shorten(text, limit)
    if kept == text or kept == "…":
        return
    last = kept[:-1].split()[-1].strip("(),.")
    assert last not in {"no", "not", "without", "denies", "unlikely", "doesn't", "<"}
    left_out = text[len(kept) - 1 :].split()
    if last[-1].isdigit() and kept[-2].isdigit() and left_out:
        assert left_out[0] not in {"mg", "mL", "mmHg", "×", "%", "kg"}


def test_a_long_text_is_read_only_as_far_as_needed() -> None:
    assert shorten("no " * 1_000_000, 150) == "…"
    assert shorten("x" * 1_000_000, 150) == "x" * 149 + "…"
