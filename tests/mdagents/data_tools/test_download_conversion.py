"""`mdagents data download`: files in another form that become questions."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from mdagents.datasets.dataset import open_dataset
from mdagents_llm.errors import ConfigError
from tests.mdagents.data_tools.hub import (
    COMMIT,
    REPO,
    Hub,
    Workspace,
    jsonl,
    pinned,
    refusal,
    source,
)

pytestmark = pytest.mark.process

LABELLED = {
    str(pubid): {"QUESTION": f"Is it {pubid}?", "CONTEXTS": ["One."], "final_decision": "no"}
    for pubid in range(5)
}


def converted(hub: Hub) -> list[dict[str, object]]:
    """Two splits that are made of the same two files on GitHub."""
    labelled = hub.serve(json.dumps(LABELLED).encode(), target="labelled.json")
    truth = hub.serve(json.dumps({"3": "no", "1": "no"}).encode(), target="truth.json")
    files = [
        pinned(labelled, "labelled.json", host="github"),
        pinned(truth, "truth.json", host="github"),
    ]
    return [
        source(b"", target="test.jsonl", records=2, files=files, convert="pubmedqa_test"),
        source(b"", target="train.jsonl", records=3, files=files, convert="pubmedqa_train"),
    ]


def test_files_in_another_form_become_questions(hub: Hub, workspace: Workspace) -> None:
    done = workspace.run(converted(hub))

    assert (done.returncode, done.stderr) == (0, ""), done
    assert workspace.listing() == [
        "quiz",
        "quiz/SOURCE.json",
        "quiz/test.jsonl",
        "quiz/train.jsonl",
    ]
    test = [
        json.loads(line) for line in (workspace.data / "quiz/test.jsonl").read_text().splitlines()
    ]
    assert [record["pubid"] for record in test] == ["1", "3"]
    note = json.loads((workspace.data / "quiz/SOURCE.json").read_text())["files"]["train.jsonl"]
    content = (workspace.data / "quiz/train.jsonl").read_bytes()
    assert (note["records"], note["sha256"]) == (3, hashlib.sha256(content).hexdigest())
    assert [file["host"] for file in note["upstream"]] == ["github", "github"]
    paths = [path for _, path, _ in hub.requests]
    assert paths == [
        f"/github/{REPO}/{COMMIT}/files/labelled.json",
        f"/github/{REPO}/{COMMIT}/files/truth.json",
    ], "each once"


def test_a_second_run_knows_what_it_made(hub: Hub, workspace: Workspace) -> None:
    sources = converted(hub)
    workspace.run(sources)
    asked = len(hub.requests)

    done = workspace.run(sources)

    assert done.returncode == 0, done
    same = "already there, unchanged since; made from files with verified checksums"
    assert done.stdout.count(same) == 2
    assert len(hub.requests) == asked


def test_what_was_made_and_changed_since_is_not_overwritten(hub: Hub, workspace: Workspace) -> None:
    sources = converted(hub)
    workspace.run(sources)
    place = workspace.data / "quiz/test.jsonl"
    made = place.read_bytes()
    place.write_bytes(b"mine\n")

    assert "--force" in refusal(workspace.run(sources))
    assert place.read_bytes() == b"mine\n"
    assert workspace.run(sources, "--force").returncode == 0
    assert place.read_bytes() == made


def test_a_file_that_this_command_did_not_make_is_not_taken_for_its_own(
    hub: Hub, workspace: Workspace
) -> None:
    (workspace.data / "quiz").mkdir(parents=True)
    (workspace.data / "quiz/test.jsonl").write_bytes(jsonl(2))

    assert "and not made by this command" in refusal(workspace.run(converted(hub)))
    assert hub.requests == []


def test_records_that_cannot_be_used_are_named_and_counted(hub: Hub, workspace: Workspace) -> None:
    rows = [f'"Question {n}?",Yes,No,{"C" if n == 7 else "A"}\n' for n in range(200)]
    table = hub.serve(
        ("question,opa,opb,answer_idx\n" + "".join(rows)).encode(), target="questions.csv"
    )
    files = [pinned(table, "questions.csv")]

    done = workspace.run([source(b"", records=200, files=files, convert="csv_rows")])

    assert done.returncode == 0, done
    assert (
        f"left out: {REPO}/files/questions.csv record 8: field 'answer_idx' is 'C'" in done.stdout
    )
    assert "199 records" in done.stdout
    note = json.loads((workspace.data / "quiz/SOURCE.json").read_text())["files"]["test.jsonl"]
    assert (note["records"], note["left_out"]) == (199, 1)


@pytest.mark.parametrize("change", ["status", "content"])
def test_github_refuses_or_sends_something_else(
    hub: Hub, workspace: Workspace, change: str
) -> None:
    sources = converted(hub)
    if change == "status":
        hub.status = 429
    else:
        hub.files["files/truth.json"] = b"{}"

    line = refusal(workspace.run(sources))

    expected = {"status": "/github answered 429", "content": "SHA-256 of someone/some-questions"}
    assert expected[change] in line
    assert workspace.listing() == []


def test_without_a_network_github_is_out_of_reach(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    workspace = Workspace(tmp_path, "http://127.0.0.1:1")

    line = refusal(workspace.run(converted(hub)))

    assert "cannot download from http://127.0.0.1:1/github" in line
    assert "GITHUB_RAW_ENDPOINT" in line
    assert workspace.listing() == []


AFRIMEDQA = (
    "sample_id,split,question_type,question,question_clean,answer_options,correct_answer,tier\n"
    's1,test,mcq,"Which?\n","Which one?\n","{""option1"": ""Salt"", ""option2"": ""n/a""'
    ', ""option3"": ""Iron""}",option3,expert\n'
    's2,test,mcq,Which?,Which?,"{""option1"": ""A"", ""option2"": ""B""}","option1,option2",x\n'
    "s3,test,saq,Why?,Why?,,,expert\n"
    's4,train,mcq,Who?,Who?,"{""option1"": ""I"", ""option2"": ""You""}",option1,expert\n'
)


def test_what_is_no_question_is_left_out_by_reason(hub: Hub, workspace: Workspace) -> None:
    table = workspace.folder / "afri.csv"
    table.write_text(AFRIMEDQA)

    done = workspace.run_real("afrimedqa", "--from", str(table))

    assert done.returncode == 0, done
    assert [line for line in done.stdout.splitlines() if line.startswith("left out")] == [
        f"left out: 1 of {table} (record 2): more than one option is right",
        f"left out: 1 of {table} (record 3): field 'question_type' is 'saq', not 'mcq'",
        f"left out: 1 of {table} (record 4): field 'split' is 'train', not 'test'",
    ]
    dataset = open_dataset("afrimedqa", workspace.data)
    (question,) = [dataset.load(entry) for entry in dataset.index]
    assert (question.id, question.text, question.gold) == ("s1", "Which one?", "C")
    assert question.options == {"A": "Salt", "C": "Iron"}
    note = json.loads((workspace.data / "afrimedqa/SOURCE.json").read_text())
    assert note["files"]["test.jsonl"]["left_out"] == 3
    assert workspace.run_real("afrimedqa", "--from", str(table), "--split", "train").returncode == 0
    assert open_dataset("afrimedqa", workspace.data, "train").index[0].id == "s4"


def test_tables_of_medexqa(hub: Hub, workspace: Workspace) -> None:
    files = [workspace.folder / f"{name}_test.tsv" for name in ("psychologist", "engineer")]
    for file in files:
        file.write_text('Which "one"?\tSalt\tIron\tZinc\tGold\tBecause.\tFor.\tD\n')

    done = workspace.run_real("medexqa", "--from", *map(str, files))

    assert done.returncode == 0, done
    dataset = open_dataset("medexqa", workspace.data)
    assert [entry.id for entry in dataset.index] == ["psychologist_test-0", "engineer_test-0"]
    question = dataset.load(dataset.index[0])
    assert (question.text, question.options[question.gold]) == ('Which "one"?', "Gold")
    files[0].write_text("a\tb\n")
    assert f"{files[0]} line 1 has 2 columns, expected 8" in refusal(
        workspace.run_real("medexqa", "--from", *map(str, files), "--force")
    )


def test_a_hard_set_has_a_name_of_two_parts(hub: Hub, workspace: Workspace) -> None:
    import pandas as pd

    table = workspace.folder / "test_hard-00000-of-00001.parquet"
    options = {"A": "Salt", "B": "Iron", "C": "n/a", "D": None}
    row = {"realidx": "7", "question": "Which?", "options": options, "answer_idx": "B"}
    pd.DataFrame([row]).to_parquet(table)

    done = workspace.run_real("medagentsbench/medqa_hard", "--from", str(table))

    assert done.returncode == 0, done
    dataset = open_dataset("medagentsbench/medqa_hard", workspace.data)
    assert dataset.load(dataset.index[0]).options == {"A": "Salt", "B": "Iron"}
    with pytest.raises(ConfigError, match=r"\(there: medagentsbench/medqa_hard\)"):
        open_dataset("medqa_hard", workspace.data)


def test_the_part_of_hle_that_can_be_asked(hub: Hub, workspace: Workspace) -> None:
    import pandas as pd

    listed = "Which?\n\nAnswer Choices:\nA. Salt\nB. Iron"
    row = {"id": "h1", "question": listed, "answer": "B", "answer_type": "multipleChoice",
           "image": "", "image_preview": None, "category": "Biology/Medicine"}  # fmt: skip
    rows = [
        row,
        row | {"id": "h2", "image": "data:image/png;base64,AA", "image_preview": {"bytes": b"\1"}},
        row | {"id": "h3", "answer_type": "exactMatch"},
        row | {"id": "h4", "category": "Math"},
    ]
    table = workspace.folder / "test-00000-of-00001.parquet"
    pd.DataFrame(rows).to_parquet(table)

    done = workspace.run_real("hle", "--from", str(table))

    assert done.returncode == 0, done
    assert "(record 2): it is about an image" in done.stdout
    assert "(record 3): field 'answer_type' is 'exactMatch', not 'multipleChoice'" in done.stdout
    assert "(record 4): field 'category' is 'Math', not 'Biology/Medicine'" in done.stdout
    assert [entry.id for entry in open_dataset("hle", workspace.data).index] == ["h1"]
