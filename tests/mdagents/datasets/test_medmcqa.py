"""How a file of MedMCQA counts its options: the file decides, never one record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdagents_llm.errors import ConfigError
from tests.mdagents.datasets.medmcqa_files import a_record, golds, opened, write


@pytest.mark.parametrize(
    ("places", "expected", "said"),
    [
        ((1, 2, 0, 3), "BCAD", "counts the options from 0 (by a 0 on line 3)"),
        ((1, 2, 4, 3), "ABDC", "counts the options from 1 (by a 4 on line 3)"),
        (("1", "4"), "AD", "counts the options from 1 (by a 4 on line 2)"),
    ],
)
def test_a_0_or_a_4_anywhere_decides_for_all(
    tmp_path: Path, places: tuple[Any, ...], expected: str, said: str
) -> None:
    dataset = opened(write(tmp_path / "x.jsonl", *places))
    assert golds(dataset) == expected
    assert said in dataset.notice


def test_a_file_that_does_not_tell_is_refused_and_says_how_to_tell(tmp_path: Path) -> None:
    path = write(tmp_path / "dev.jsonl", *[1, 2, 3] * 67)
    with pytest.raises(ConfigError) as caught:
        opened(path)
    assert str(caught.value) == (
        f"{path}: field 'cop' may count from 0 or from 1, as no record has a 0 or a 4; say which: "
        f"python -m mdagents data download medmcqa --from {path} --cop-from 1 (the authors' files) "
        "or 0 (openlifescienceai/medmcqa)"
    )


def test_a_file_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", 1, 4, 0)
    with pytest.raises(ConfigError) as caught:
        opened(path)
    assert "counts from 0 (by a 0 on line 3) and from 1 (by a 4 on line 2)" in str(caught.value)


@pytest.mark.parametrize(
    ("field", "expected"),
    [({"answer": "opb of 0"}, "BC"), ({"answer": "opc of 0"}, None), ({"answer_idx": "A"}, "AB"),
     ({"answer_idx": "B"}, "BC"), ({"exp": "Ans. A"}, None), ({"answer": "  "}, None),
     ({"answer_idx": "AB"}, None)],
)  # fmt: skip
def test_fields_that_name_the_right_option_decide(
    tmp_path: Path, field: dict[str, str], expected: str | None
) -> None:
    path = write(tmp_path / "x.jsonl", a_record(0, 1, **field), 2)
    if expected is None:
        with pytest.raises(ConfigError, match="may count from 0 or from 1"):
            opened(path)
    else:
        assert golds(opened(path)) == expected


def test_a_broken_record_is_named_by_who_reads_it(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", 0, a_record(1, 1, answer="x"))
    path.write_text(path.read_text().replace('"answer": "x"}', '"answer": "x'))
    with pytest.raises(ConfigError, match="line 2 is not JSON"):
        opened(path)


def test_an_option_that_is_there_twice_decides_nothing(tmp_path: Path) -> None:
    record = a_record(0, 1, opa="same", opb="same", answer="same")
    with pytest.raises(ConfigError, match="may count from 0 or from 1"):
        opened(write(tmp_path / "x.jsonl", record))


def test_a_record_beyond_its_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"line 2: field 'cop' is 5 but must be 1 to 4, as this"):
        opened(write(tmp_path / "x.jsonl", 4, 5))


@pytest.mark.sweep
@given(st.lists(st.integers(0, 3), min_size=1), st.sampled_from([0, 1]))
def test_no_file_is_read_in_the_wrong_way(rights: list[int], first: int) -> None:
    path = write(Path("any.jsonl"), *[right + first for right in rights])
    told = (first == 0 and 0 in rights) or (first == 1 and 3 in rights)
    if told:
        assert golds(opened(path)) == "".join("ABCD"[right] for right in rights)
    else:
        with pytest.raises(ConfigError, match="may count from 0 or from 1"):
            opened(path)
