"""Fields of published data sets and own columns that the records of a run keep."""

from __future__ import annotations

from typing import Any

import pytest

from mdagents.datasets.kept_fields import LONGEST_FIELD, MOST_FIELDS, kept_fields
from mdagents.datasets.questions import SourceQuestion, present
from mdagents.settings import OptionOrder
from tests.mdagents.datasets.published_records import AFRIMEDQA, MEDMCQA, MEDXPERTQA


@pytest.mark.parametrize(
    ("record", "kept"),
    [
        (
            MEDXPERTQA,
            {
                "medical_task": "Treatment",
                "body_system": "Skeletal",
                "question_type": "Understanding",
            },
        ),
        (MEDMCQA | {"subject_name": "Anatomy", "topic_name": "Urinary tract", "exp": "Short."},
         {"subject_name": "Anatomy", "topic_name": "Urinary tract"}),
        (AFRIMEDQA, {"split": "test", "question_type": "mcq", "tier": "expert"}),
        ({"question": "?", "options": {}, "answer_idx": "A", "answer": "x", "meta_info": "step1"},
         {"meta_info": "step1"}),
        ({"category": "health", "src": "ori_mmlu-virology", "question_id": 7, "answer_index": 3},
         {"category": "health", "src": "ori_mmlu-virology"}),
    ],
)  # fmt: skip
def test_what_describes_a_question_is_kept(record: dict[str, Any], kept: dict[str, str]) -> None:
    found = kept_fields(record)
    assert kept.items() <= found.items()
    assert not {"question", "exp", "cop", "id", "answer", "label", "correct_answer"} & found.keys()


def test_only_short_texts_are_kept_and_only_some() -> None:
    record = {"a column": " two\nlines ", "year": 2019, "is_hard": True, "score": 0.5, "none": None}
    record |= {"long": "x" * (LONGEST_FIELD + 1), "empty": " ", "nan": "nan", "image": "a.png"}
    record |= {"nested": {"a": "b"}, "listed": ["a"], "bad\nname": "x"}
    assert kept_fields(record) == {"a column": "two lines", "year": "2019", "is_hard": "True"}
    assert len(kept_fields({f"field {n}": "x" for n in range(99)})) == MOST_FIELDS


def test_agents_see_no_field() -> None:
    source = SourceQuestion("1", "Why?", {"A": "a", "B": "b"}, "A", fields={"subject": "anatomy"})
    question = present(source, OptionOrder.ORIGINAL, 0)
    assert question.fields == {"subject": "anatomy"}
    assert "anatomy" not in question.block()
