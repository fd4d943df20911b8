"""Reading questions: every form under shared/data, and a clear line for a bad record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mdagents.cli.dataset_parts import extract
from mdagents.datasets.dataset import is_shipped, open_dataset
from mdagents.datasets.question_records import LONGEST_TEXT
from mdagents.datasets.questions import present
from mdagents.settings import OptionOrder
from mdagents_llm.errors import ConfigError
from tests.conftest import REPOSITORY, SHARED

GOOD = {
    "realidx": 7,
    "question": "Which one?",
    "options": {"A": "this", "B": "that", "C": "the other"},
    "answer_idx": "B",
    "answer": "that",
}


def write(path: Path, *records: Any) -> Path:
    lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


def test_ids_come_from_realidx_id_or_line(tmp_path: Path) -> None:
    bare = {k: v for k, v in GOOD.items() if k != "realidx"}
    path = write(tmp_path / "x.jsonl", GOOD, bare | {"id": "b64a-9"}, "", bare)
    dataset = open_dataset(str(path), tmp_path)
    assert [entry.id for entry in dataset.index] == ["7", "b64a-9", "sample_4"]
    assert dataset.load(dataset.index[2]).gold == "B"


@pytest.mark.parametrize(
    ("fields", "id_"),
    [
        ({"ID": "x1"}, "x1"),  # overview-server#248
        ({"Question ID": 7}, "7"),
        ({"QuestionID": "x1", "topic": "id"}, "x1"),
        ({"Sample_ID": "s", "PubID": 3}, "3"),
        ({"ID": "other", "sample_id": "s"}, "s"),
        ({"ID": None, "Idx": "x1"}, "x1"),
        ({"_id": {"$oid": "5f"}}, "sample_1"),
        ({"ID": ""}, "sample_1"),
        ({"ID": 1.0}, "sample_1"),  # as pandas writes it beside an empty cell
        ({"ID": False}, "sample_1"),
        ({"ID": "a\u00a0b"}, "sample_1"),
        ({"ID": "a\nb"}, "sample_1"),
        ({"_id": "x" * 201, "Question ID": "q"}, "q"),
        ({"patient_id": "p"}, "sample_1"),
    ],
)
def test_ids_are_found_by_any_spelling(
    tmp_path: Path, fields: dict[str, object], id_: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = {k: v for k, v in GOOD.items() if k != "realidx"}
    path = write(tmp_path / "x.jsonl", bare | fields)
    assert open_dataset(str(path), tmp_path).index[0].id == id_
    assert extract(["--dataset", str(path), id_]) == 0
    made = {"id": id_} if id_ == "sample_1" else {}
    assert json.loads(capsys.readouterr().out) == made | bare | fields


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("record", "message"),
    [
        (GOOD | {"realidx": 1.5}, "field 'realidx' must be a text or a whole number"),
        ("{nonsense", "line 2 is not JSON"),
        ("[1]", "line 2: a question must be a JSON object"),
        (GOOD | {"question": " "}, "line 2: field 'question'"),
        (GOOD | {"options": {"A": "x", "B": "y", "D": "z"}}, "letters A,B,D are not consecutive"),
        (GOOD | {"options": {"A": "x"}}, "line 2: field 'options'"),
        (GOOD | {"options": dict.fromkeys("ABCDEFGHIJK", "x")}, "from A to J at most"),
        (GOOD | {"options": {"A": "x", "B": " ", "C": "n/a"}}, "field 'options' must have 2 to 10"),
        (GOOD | {"options": {"A": "x", "B": "N.A.", "C": "z"}}, "is 'B', and that option is empty"),
        (GOOD | {"options": {"A": "x", "B": 1, "C": "z"}}, "option B must be a text"),
        (GOOD | {"options": {"A": "", "B": "that", "C": "x", "D": "Both B and C"}},
         "option D names options by letter, and option A, which is empty or n/a, would move them"),
        (GOOD | {"question": "?" * (LONGEST_TEXT + 1)}, "'question' has 100,001 characters"),
        (GOOD | {"options": {"A": "x" * 10_000_000, "B": "that"}}, "option A has 10,000,000 char"),
        (GOOD | {"answer_idx": "x" * 10_000_000}, "'answer_idx' is 'xxxxxxxxxxxx...xxxxxxxxxxxxx'"),
        (GOOD | {"realidx": "x" * 201}, "'realidx' must be one line of at most 200 characters"),
        (GOOD | {"realidx": "a\nb"}, "'realidx' must be one line of at most 200 characters"),
        (GOOD | {"realidx": float("nan")}, "'realidx' must be a text or a whole number"),
        ("[" * 100_000, "line 2 is nested too deeply"),
        ('{"question": "cut\\u0000off"}', "line 2: field 'question' holds a NUL character"),
        ('{"question": "a", "question": "b"}', "line 2 has field 'question' twice"),
        ('{"realidx": ' + "9" * 5000 + "}", "line 2 has a whole number of more than 4300 digits"),
        (GOOD | {"answer_idx": "E"}, "'answer_idx' is 'E' but must be one of A, B, C"),
        (GOOD | {"answer": "this"}, "differs from the text of option B"),
        (GOOD | {"realidx": [1]}, "field 'realidx'"),
        (GOOD, "the id '7' more than once (lines 1, 2); rename the field 'realidx' if it is not"),
        (GOOD | {"realidx": None, "ID": 7}, "more than once (lines 1, 2); rename the field"),
    ],
)  # fmt: skip
def test_a_bad_record_is_named_by_file_line_and_field(
    tmp_path: Path, record: Any, message: str
) -> None:
    path = write(tmp_path / "bad.jsonl", GOOD, record)
    with pytest.raises(ConfigError) as caught:
        open_dataset(str(path), tmp_path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_line_ends_of_any_system_and_no_last_one(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    other = json.dumps(GOOD | {"realidx": 8})
    path.write_bytes(f"\r\n{json.dumps(GOOD)}\r\n \r\n{other}".encode())
    dataset = open_dataset(str(path), tmp_path)
    assert [dataset.load(entry).id for entry in dataset.index] == ["7", "8"]


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_an_empty_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "e.jsonl").write_bytes(content)
    with pytest.raises(ConfigError, match="no questions"):
        open_dataset(str(tmp_path / "e.jsonl"), tmp_path)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", json.dumps(GOOD).encode("utf-16")])
def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "e.jsonl").write_bytes(content)
    with pytest.raises(ConfigError, match="line 1 is not UTF-8"):
        open_dataset(str(tmp_path / "e.jsonl"), tmp_path)


def test_a_byte_order_mark_is_read_over(tmp_path: Path) -> None:
    path = write(tmp_path / "bom.jsonl", GOOD)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    dataset = open_dataset(str(path), tmp_path)
    assert dataset.load(dataset.index[0]).gold == "B"


def test_half_a_surrogate_pair_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", GOOD, json.dumps(GOOD | {"question": "bad \ud83d"}))
    with pytest.raises(ConfigError, match="line 2: field 'question' holds half of a surrogate"):
        open_dataset(str(path), tmp_path)


def test_an_unknown_name_lists_what_there_is(tmp_path: Path) -> None:
    write(tmp_path / "alpha" / "test.jsonl", GOOD)
    with pytest.raises(ConfigError, match=r"no data set 'beta' in .*\(there: alpha\)"):
        open_dataset("beta", tmp_path)
    with pytest.raises(ConfigError, match=r"no split 'dev' .*\(there: test\)"):
        open_dataset("alpha", tmp_path, "dev")


def test_medqa_falls_back_to_the_sample_and_says_so(tmp_path: Path) -> None:
    dataset = open_dataset("medqa", REPOSITORY / "data")
    if (REPOSITORY / "data/medqa/test.jsonl").exists():
        pytest.skip("the real test set is here")
    assert dataset.name == "medqa-sample"
    assert "not MedQA" in dataset.notice
    assert len(dataset.index) == 30
    write(tmp_path / "medqa" / "test.jsonl", GOOD)
    assert open_dataset("medqa", tmp_path).name == "medqa"
    assert open_dataset("medqa", tmp_path).notice == ""


def test_a_file_that_changes_under_way_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = GOOD | {"realidx": 8}
    path = write(tmp_path / "x.jsonl", GOOD, other)
    size = len(open_dataset(str(path), tmp_path).parsed[1])
    monkeypatch.setattr("mdagents.datasets.dataset._MOST_PARSED", size + 1)
    dataset = open_dataset(str(path), tmp_path)
    assert list(dataset.parsed) == [1]
    write(path, *(one | {"question": "Another one?"} for one in (GOOD, other)))
    assert dataset.load(dataset.index[0]).text == "Which one?", "kept in memory"
    with pytest.raises(ConfigError, match="was changed while it was in use"):
        dataset.load(dataset.index[1])
    path.unlink()
    assert dataset.load(dataset.index[0]).text == "Which one?", "kept in memory"
    with pytest.raises(ConfigError, match=r"x\.jsonl cannot be read any more \(No such file"):
        dataset.load(dataset.index[1])


def test_questions_in_memory_are_those_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "x.jsonl", GOOD | {"subject": "anatomy"}, GOOD | {"realidx": 8})
    kept = open_dataset(str(path), tmp_path)
    monkeypatch.setattr("mdagents.datasets.dataset._MOST_PARSED", 0)
    read = open_dataset(str(path), tmp_path)
    assert (len(kept.parsed), len(read.parsed)) == (2, 0)
    for entry in read.index:
        assert kept.load(entry) == read.load(entry)
    for dataset in (kept, read):
        assert all(dataset.load(entry).id is entry.id for entry in dataset.index), "one string"
    assert kept.load(kept.index[0]).fields == {"subject": "anatomy"}


@pytest.mark.parametrize(
    "name", ["medqa", "medqa_5options", "medmcqa", "pubmedqa", "mmlu", "mmlu-pro"]
)
def test_every_shared_data_set_is_read(name: str) -> None:
    if not (SHARED / name).is_dir():
        pytest.skip("the shared data is not here")
    dataset = open_dataset(name, SHARED)
    questions = [dataset.load(entry) for entry in dataset.index]
    assert len(questions) >= 40
    assert all(2 <= len(question.options) <= 10 for question in questions)


def test_a_name_may_have_two_parts(tmp_path: Path) -> None:
    write(tmp_path / "medagentsbench" / "medqa_hard" / "test.jsonl", GOOD)
    dataset = open_dataset("medagentsbench/medqa_hard", tmp_path)
    assert (dataset.name, len(dataset.index)) == ("medagentsbench/medqa_hard", 1)
    with pytest.raises(ConfigError, match="yet; run: python -m mdagents data download"):
        open_dataset("medagentsbench/mmlu_hard", tmp_path)


def test_options_that_are_empty_or_not_applicable_are_hidden(tmp_path: Path) -> None:
    options = {"A": "this", "B": "", "C": "that", "D": "N/A", "E": None, "F": "Na", "G": "-"}
    path = write(tmp_path / "x.jsonl", GOOD | {"options": options, "answer_idx": "C"})
    dataset = open_dataset(str(path), tmp_path)
    source = dataset.load(dataset.index[0])
    assert source.options == {"A": "this", "C": "that", "F": "Na", "G": "-"}
    assert source.hidden == {"B": "", "D": "N/A", "E": ""}
    question = present(source, OptionOrder.ORIGINAL, 0)
    assert question.options == {"A": "this", "B": "that", "C": "Na", "D": "-"}
    assert question.permutation == {"A": "A", "B": "C", "C": "F", "D": "G"}
    assert question.gold == "B"


@pytest.mark.parametrize(  # MME-Benchmarks/MME-CoT#2
    "text",
    ["\u200b", "\u200bN/A", "\ufeff", "\u2060 ", "\u00a0", "&nbsp;", "&nbsp;\n&nbsp;", "#N/A"],
)
def test_options_that_look_empty_are_hidden(tmp_path: Path, text: str) -> None:
    path = write(tmp_path / "x.jsonl", GOOD | {"options": {"A": "x", "B": "that", "C": text}})
    dataset = open_dataset(str(path), tmp_path)
    assert dataset.load(dataset.index[0]).options == {"A": "x", "B": "that"}


def test_the_sample_is_there_for_who_has_no_data_and_names_none() -> None:
    assert open_dataset("medqa", Path("data")).name == "medqa-sample"
    assert open_dataset("medqa", Path("data"), "train").name == "medqa-sample-train"
    with pytest.raises(ConfigError, match="'medqa' is not in elsewhere yet"):
        open_dataset("medqa", Path("elsewhere"))
    Path("data/medqa").mkdir(parents=True)
    Path("data/medqa/test.jsonl").write_text(
        json.dumps({"question": "?", "options": {"A": "x", "B": "y"}, "answer_idx": "A"}) + "\n"
    )
    with pytest.raises(ConfigError, match="has no split 'train'"):
        open_dataset("medqa", Path("data"), "train")


def test_names_may_be_written_in_any_case(tmp_path: Path) -> None:
    write(tmp_path / "medmcqa" / "test.jsonl", GOOD)
    write(tmp_path / "MyOwn" / "test.jsonl", GOOD)
    assert open_dataset("MedMCQA", tmp_path).name == "medmcqa"
    assert open_dataset("myown", tmp_path).name == "MyOwn"
    assert open_dataset("MedQA", Path("data")).name == "medqa-sample"
    with pytest.raises(ConfigError, match=r"data set 'pubmedqa' is not in .* yet"):
        open_dataset("PubMedQA", tmp_path)


def test_the_sample_has_a_name_of_its_own_everywhere(tmp_path: Path) -> None:
    write(Path("data/medqa/test.jsonl"), GOOD)
    assert len(open_dataset("medqa", Path("data")).index) == 1
    for data_dir in (Path("data"), tmp_path / "none"):
        assert open_dataset("medqa-sample", data_dir).name == "medqa-sample"
        assert open_dataset("MedQA-Sample", data_dir, "train").name == "medqa-sample-train"


@pytest.mark.parametrize("data_dir", [REPOSITORY / "data", Path("none")], ids=["clone", "none"])
def test_the_triage_vignettes_are_everywhere_and_say_what_they_are(data_dir: Path) -> None:
    dataset = open_dataset("Triage_Vignettes", data_dir)
    assert (dataset.name, len(dataset.index)) == ("triage_vignettes", 120)
    assert "not reviewed by clinicians" in dataset.notice
    assert is_shipped(dataset) == (data_dir == Path("none"))
    with pytest.raises(ConfigError, match=r"has no split 'train' in .*\(there: test\)"):
        open_dataset("triage_vignettes", data_dir, "train")


def test_triage_vignettes_of_a_users_own_come_first(tmp_path: Path) -> None:
    write(tmp_path / "triage_vignettes" / "test.jsonl", GOOD | {"meta_info": ["own"]})
    dataset = open_dataset("triage_vignettes", tmp_path)
    assert (len(dataset.index), dataset.notice) == (1, "")


@pytest.mark.parametrize(
    ("name", "split", "message"),
    [
        ("medaq", "test", r"no data set 'medaq' in .*; did you mean 'medqa'\?$"),
        ("triage", "test", r"no data set 'triage' in "),
        ("triage_vignette", "test", r"; did you mean 'triage_vignettes'\?$"),
        ("mmlu_pro", "test", r"; did you mean 'mmlu-pro'\?$"),
        ("medqa_hard", "test", r"; did you mean 'medagentsbench/medqa_hard'\?$"),
        ("alfa", "test", r"\(there: alpha\).*; did you mean 'alpha'\?$"),
        ("zzz", "test", r"or another --data-dir$"),
        (
            "alpha",
            "tset",
            r"\(there: test, train\); see --split; did you mean 'test'\?$",
        ),
        ("medqa", "trian", r"no split 'trian' in .*; did you mean 'train'\?$"),
        ("alpha", "", r"no split '' in .*\(there: test, train\)"),
    ],
)
def test_a_mistyped_name_brings_the_right_one(
    tmp_path: Path, name: str, split: str, message: str
) -> None:
    write(tmp_path / "alpha" / "test.jsonl", GOOD)
    write(tmp_path / "alpha" / "train.jsonl", GOOD)
    write(tmp_path / "alpha" / "test.csv", GOOD)
    write(tmp_path / "alpha.jsonl", GOOD)
    with pytest.raises(ConfigError, match=message):
        open_dataset(name, tmp_path, split)


def test_a_run_is_no_data_set() -> None:
    write(Path("output/run/samples.jsonl"), GOOD)
    with pytest.raises(ConfigError, match="output/run is a run, not a data set"):
        open_dataset("output/run", Path("data"))
