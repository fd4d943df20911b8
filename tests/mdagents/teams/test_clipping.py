"""Texts in prompts are cut between words, and neither amounts nor denials are parted."""

from __future__ import annotations

import pytest

from mdagents.teams.clipping import clip


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
        kept = clip(text, limit)
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
    assert clip(text, limit) == expected
