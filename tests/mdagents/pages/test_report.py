"""The HTML report: that it holds what the run holds, needs nothing else, and can be used."""

from __future__ import annotations

import base64
import gzip
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from exaid_core.placeholders import TOO_LONG
from exaid_core.schema.agent_summary import LIMITS
from exaid_core.trace.traces import read_trace
from mdagents.cli.score import main
from tests.fake_provider import FakeProvider
from tests.mdagents.scoring.result_records import OPTIONS, ours, write
from tests.support.browser import problems
from tests.support.whole_runs import SAMPLE, Run, records

pytestmark = pytest.mark.process

LEVELS = ("basic", "intermediate", "advanced")


def report(*arguments: str) -> Path:
    """Writes the report with these arguments and gives its path."""
    assert main(["--html", *arguments], input_filename="", output_filename="") == 0
    (page,) = Path("evaluation").glob("*.html")
    return page


def transcripts(page: Path) -> dict[str, str]:
    """Id of the element -> the HTML that is packed in it."""
    packed = re.findall(r'<script type="text/plain" id="(.*?)">(.*?)</script>', page.read_text())
    return {id_: gzip.decompress(base64.b64decode(text)).decode() for id_, text in packed}


def text_of(html: str) -> str:
    """The words of some HTML, one blank between two."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


@pytest.fixture
def watched(provider: FakeProvider, run: Run) -> list[dict[str, Any]]:
    """Records of a run with EXAID of three questions, one for each level."""
    levels = iter(LEVELS)
    provider.when("triage officer", lambda _: {"difficulty": next(levels)})
    status, _, err = run("--num-samples", "3", "--max-samples", "1", "--exaid", "full_exaid")
    assert status == 0, err
    return records()


def test_every_turn_message_and_summary_of_a_question_is_in_its_transcript(
    watched: list[dict[str, Any]],
) -> None:
    pages = transcripts(report())
    assert [r["difficulty"] for r in watched] == list(LEVELS)
    (folder,) = (path.parent for path in Path("output").glob("*/run.json"))
    for number, record in enumerate(watched, start=1):
        page = pages[f"t{number}-0"]
        text = text_of(page)
        trace = read_trace(folder / "traces" / f"{record['case_id']}.trace.jsonl.gz")
        said = re.findall(r'id="turn-(\d+)-said">(.*?)</p>', page, re.DOTALL)
        order = sorted(said, key=lambda one: int(one[0]))  # they stand step by step of the protocol
        assert [unescape(words) for _, words in order] == [turn.text for turn in trace.turns]
        assert all(" ".join(m["text"].split()) in text for m in record["interactions"])
        assert page.count("<header><b>Summary ") == len(record["exaid"]["summaries"]) > 0
        for summary in record["exaid"]["summaries"]:
            unspaced = "".join(text.split())  # phrases are links of their own
            fields = {field: summary[field] for field in LIMITS}
            shown = [
                summary[f"full_{field}"] if words == TOO_LONG else words
                for field, words in fields.items()
            ]
            assert all("".join(words.split()) in unspaced for words in shown)
        assert record["question"] in text
        for letter, votes in record["votes"].items():
            marks = "( right option)?( answer)?"
            option = re.escape(f"{letter} {record['options'][letter]}")
            assert re.search(f"{option}{marks} {votes} vote", text)


def test_a_summary_leads_to_the_turns_that_it_was_made_from(
    watched: list[dict[str, Any]],
) -> None:
    page = transcripts(report())["t1-0"]
    (folder,) = (path.parent for path in Path("output").glob("*/run.json"))
    trace = read_trace(folder / "traces" / f"{watched[0]['case_id']}.trace.jsonl.gz")
    cards = re.findall(
        r'<section class="summary".*?data-turns="([\d ]*)">(.*?)</section>', page, re.DOTALL
    )[::-1]  # the newest comes first
    assert len(cards) == len(watched[0]["exaid"]["summaries"])
    for summary, (turns, card) in zip(watched[0]["exaid"]["summaries"], cards, strict=True):
        newest = summary["source_seqs"][-1][1]
        (place,) = [
            place
            for place, turn in enumerate(trace.turns)
            if newest in {delta.seq for delta in turn.deltas}
        ]
        assert place in map(int, turns.split())
        assert "".join(summary["key_findings"].split()) in "".join(text_of(card).split())


def test_a_record_without_a_trace_shows_what_the_record_holds() -> None:
    opinion = {"agent": "e-1", "role": "Surgeon", "round": 0, "answer": "B", "confidence": 0.7,
               "reasoning": "because of the gallbladder"}  # fmt: skip
    team = {"name": "Alpha", "purpose": "to assess", "instructions": "look", "findings": "stones",
            "investigations": [{"agent": "a-1", "findings": "an echo"}], "answer": "B",
            "dissent": "one doubts"}  # fmt: skip
    message = {"round": 1, "turn": 2, "sender": "e-1", "recipient": "e-2", "text": "are you sure?"}
    write(
        [
            ours("1", "A", "B", question="Which?", opinions=[opinion], teams=[team],
                 interactions=[message],
                 left_out=[{"agent": "e-3", "phase": "opinion", "error": "gone"}]),
            ours("2", "A", None, error="no reply", question="Why?"),
        ]
    )  # fmt: skip
    pages = transcripts(report())
    first = text_of(pages["t1-0"])
    for words in ("because of the gallbladder", "70.0%", "are you sure?", "round 1, turn 2",
                  "an echo", "one doubts", "e-3 was left out in opinion: gone",
                  "There is no trace"):  # fmt: skip
        assert words in first
    assert "error: no reply" in text_of(pages["t2-0"])


def test_runs_in_different_orders_stand_side_by_side() -> None:
    asked = [ours(id_, "A", "A", question=f"Question {id_}?") for id_ in ("1", "2", "3")]
    one, two = write(asked, "one.json"), write([asked[2], asked[0], asked[1]], "two.json")
    page = report("--compare", str(one), str(two))
    shown = transcripts(page)
    assert len(shown) == 6
    for number in (1, 2, 3):
        assert all(f"Question {number}?" in shown[f"t{number}-{run}"] for run in (0, 1))
        assert f'data-text="{number} Question {number}?"' in page.read_text()


@pytest.mark.parametrize(
    "odd",
    [
        {"votes": {"A": None, "B": "many", "C": [1], "D": 1e999}},
        {"votes": ["A"], "opinions": "none", "interactions": [3, {"text": 4}]},
        {"teams": [{"name": "IAT"}, {"investigations": ["text"]}, 7]},
        {"watched": {"tail_loss": "0.2", "error": ["x"]}, "exaid": {"summaries": None}},
        {"exaid": None, "repairs": "none", "left_out": [{}]},
        {"exaid": ["text"], "response": ["A) Aspirin", {"x": None}], "status": None},
        {"difficulty": "$\\frac$ _{ " + "very long " * 20, "question": 7},
        {"question": "half a \ud83d character", "question_id": "\ud83d \"'<b>"},
        {"confidence": "high", "calls": "5", "wall_seconds": None, "token_usage": []},
    ],
)
def test_odd_records_have_a_page(odd: dict[str, Any]) -> None:
    write([ours("1", "A", "A"), ours("2", "A", "B") | odd])
    assert set(transcripts(report())) == {"t1-0", "t2-0"}


def test_files_of_foreign_programs_have_a_page() -> None:
    write([{"question": "Which?", "label": "B", "answer": "Heparin", "options": OPTIONS,
            "response": {"0.0": "The answer is (B) Heparin"}, "difficulty": "basic"}])  # fmt: skip
    (page,) = transcripts(report()).values()
    assert "The answer is (B) Heparin" in text_of(page)


def test_what_models_write_stays_text() -> None:
    attack = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    opinion = {"agent": attack, "answer": "B", "reasoning": attack}
    write([ours(attack, "A", "B", question=attack, opinions=[opinion], error=attack,
                difficulty=attack, response={attack: attack, "answer": "B) Heparin"})])  # fmt: skip
    path = report()
    page = path.read_text()
    for text in (page, *transcripts(path).values()):
        assert "<script>alert" not in text
        assert "<img" not in text
        assert "&lt;img src=x" in text


def test_the_page_needs_nothing_but_itself(watched: list[dict[str, Any]]) -> None:
    path = report()
    assert "default-src 'none'" in path.read_text()
    for page in (path.read_text(), *transcripts(path).values()):
        assert not re.search(r"(src|href)\s*=\s*[\"']?(https?:)?//", page)
        assert not re.search(r"@import|url\(\s*[\"']?(https?:)?//", page)
        assert str(Path.cwd()) not in page
        assert str(SAMPLE.parent) not in page


def test_the_same_run_gives_the_same_page(watched: list[dict[str, Any]]) -> None:
    first = report().read_bytes()
    assert report().read_bytes() == first


def test_numbers_of_the_page_are_those_of_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    write([ours(str(n), "A", "AB"[n % 3 == 0]) for n in range(30)])
    page = text_of(report().read_text())
    out = capsys.readouterr().out
    table = next(line for line in out.splitlines() if line.startswith("| basic"))
    assert " ".join(table.replace("|", " ").split()) in page


def test_a_broken_trace_is_one_line_and_keeps_the_page_that_was_there(
    watched: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    page = report()
    before = page.read_bytes()
    trace = next(Path("output").glob("*/traces/*.gz"))
    trace.write_bytes(trace.read_bytes()[:-30])
    capsys.readouterr()
    assert main(["--html"], input_filename="", output_filename="") == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert trace.name in err
    assert err.count("\n") == 1
    assert page.read_bytes() == before
    assert not list(page.parent.glob(".*"))


@pytest.mark.parametrize("ranges", [[[999_990, 999_999]], [[1, 1]]])
def test_a_trace_of_another_attempt_is_not_shown(
    watched: list[dict[str, Any]], ranges: list[list[int]]
) -> None:
    summary = watched[0]["exaid"]["summaries"][0]
    summary["source_seqs"] = ranges
    summary["agents"] = ["arbitrator"]
    (array,) = Path("output").glob("*.json")
    array.write_text(json.dumps(watched))
    pages = transcripts(report())
    assert "its trace is not of this record" in text_of(pages["t1-0"])
    assert " ".join(summary["key_findings"].split()) in text_of(pages["t1-0"])
    assert "There is no trace" in pages["t1-0"]
    assert "There is no trace" not in pages["t2-0"]


def test_of_a_question_that_was_answered_again_the_last_record_is_shown(
    provider: FakeProvider, run: Run
) -> None:
    one = ("--num-samples", "1", "--difficulty", "basic", "--exaid", "full_exaid")
    provider.fail_next("context_length", match="Your role: arbitrator")
    run(*one)
    assert records()[0]["status"] == "api_error"
    run(*one, "--retry-errors")
    (folder,) = (path.parent for path in Path("output").glob("*/run.json"))
    assert len((folder / "samples.jsonl").read_text().splitlines()) == 2
    path = report("--input", str(folder))
    page = transcripts(path)["t1-0"]
    assert "basic 1 of 1" in text_of(path.read_text()).split("EXAID's summaries")[1]
    assert "<dd>answered</dd>" in page
    assert "Summary 1</b>" in page


def test_summaries_are_shown_without_a_trace_too(watched: list[dict[str, Any]]) -> None:
    for trace in Path("output").glob("*/traces/*.gz"):
        trace.unlink()
    page = text_of(transcripts(report())["t1-0"])
    assert "There is no trace" in page
    assert " ".join(watched[0]["exaid"]["summaries"][0]["key_findings"].split()) in page


@pytest.mark.parametrize("is_stated", [True, False])
def test_runs_with_other_orders_are_listed_in_letters_of_the_first(is_stated: bool) -> None:
    source = dict(zip("ABCD", "DCBA", strict=True))
    turned = {shown: OPTIONS[letter] for shown, letter in source.items()}
    write([ours("1", "A", "B")], "a.json")
    other = ours("1", "D", "C", options=turned, permutation=source if is_stated else {})
    write([other | {"response": {"final_answer": f"C) {turned['C']}"}}], "b.json")
    page = report("--compare", "output/a.json", "output/b.json").read_text()
    assert re.findall(r'<td class="wrong"[^>]*>(.*?)</td>', page) == ["B, not A"] * 2


def test_the_page_never_takes_the_place_of_the_csv(capsys: pytest.CaptureFixture[str]) -> None:
    write([ours("1", "A", "A")])
    arguments = ["--html", "--output", "report.html"]
    assert main(arguments, input_filename="", output_filename="") == 2
    assert capsys.readouterr().err.startswith("error: --output report.html names the CSV")
    Path("evaluation/run.html").mkdir(parents=True)
    assert main(["--html"], input_filename="", output_filename="") == 2
    assert "cannot write evaluation/run.html" in capsys.readouterr().err
    assert Path("evaluation/run.csv").is_file()


def test_a_comparison_shows_what_each_run_made_of_a_question() -> None:
    write([ours("1", "A", "A", question="First?"), ours("2", "A", "A", question="Next?")], "a.json")
    write([ours("1", "A", "B", question="First?"), ours("2", "A", "A", question="Next?")], "b.json")
    page = report("--compare", "output/a.json", "output/b.json")
    assert set(transcripts(page)) == {"t1-0", "t1-1", "t2-0", "t2-1"}
    rows = re.findall(r'<tr id="q\d+".*?</tr>', page.read_text())
    assert [text_of(row) for row in rows] == ["1 First? A B, not A", "2 Next? A A"]
    assert 'data-tags="differ wrong"' in rows[0]
    assert "differ" not in rows[1]


@pytest.mark.parametrize(
    ("changes", "tags"),
    [
        ({}, ""),
        ({"predicted": "B"}, "wrong"),
        ({"predicted": None}, "unanswered"),
        ({"predicted": None, "status": "skipped"}, ""),
        ({"predicted": "B", "held": "AAC"}, "wrong overturned"),
        ({"predicted": "A", "held": "BBC"}, "rescued"),
        ({"predicted": "A", "held": "BCA"}, ""),
    ],
)
def test_filters_let_the_right_questions_through(changes: dict[str, Any], tags: str) -> None:
    opinions = [
        {"agent": f"e-{place}", "answer": letter}
        for place, letter in enumerate(changes.pop("held", ""))
    ]
    write([ours("1", "A", changes.pop("predicted", "A"), opinions=opinions, **changes)])
    assert f'data-tags="{tags}"' in report().read_text()


def test_the_tenth_that_took_most_tokens_is_expensive() -> None:
    write([ours(str(n), "A", "A", token_usage={"total_tokens": 10 * n}) for n in range(20)])
    expensive = re.findall(r'<tr id="q(\d+)"[^>]*data-tags="expensive"', report().read_text())
    assert expensive == ["19", "20"]


async def shown_rows(page: Page) -> list[str | None]:
    """Ids of the rows of the list that are shown, in their order."""
    rows = await page.locator("#list tbody tr:not([hidden])").all()
    return [await row.get_attribute("id") for row in rows]


async def test_a_click_opens_a_transcript(watched: list[dict[str, Any]], page: Page) -> None:
    transcript = page.locator("#transcript")
    await page.goto(report().absolute().as_uri())
    await page.click("#q2 td:nth-child(2)")
    await expect(page.locator("#case")).to_have_attribute("open", "")
    await expect(transcript).to_contain_text(watched[1]["question"].split(".")[0])
    await expect(transcript).to_contain_text("Summary 1")
    await page.click("#transcript #play")  # which would keep the focus
    for key, question in (("ArrowLeft", "q1"), ("ArrowRight", "q2"), ("ArrowRight", "q3")):
        await page.keyboard.press(key)
        await page.wait_for_url(f"**#{question}")
    await expect(transcript).to_contain_text(watched[2]["question"].split(".")[0])
    await page.keyboard.press("Escape")
    await expect(page.locator("#case")).not_to_have_attribute("open", "")
    assert await problems(page) == []


async def test_filters_words_and_sorting_in_the_browser(page: Page) -> None:
    texts = ["fever", "cough", f"A boy who has a {'very ' * 50}high Fever and cough"]
    write(
        [
            ours(
                text[:5],
                "A",
                letter,
                question=text,
                token_usage={"total_tokens": tokens},
                difficulty=level,
            )
            for text, letter, tokens, level in zip(
                texts, "ABB", (300, 100, 200), ("basic", "very hard", "very hard"), strict=True
            )
        ]
    )
    await page.goto(report().absolute().as_uri())
    await page.click("#list th:nth-child(7) button")
    assert await shown_rows(page) == ["q2", "q3", "q1"]
    await page.click("input[value=wrong]")
    assert await shown_rows(page) == ["q2", "q3"]
    await page.select_option("select >> nth=0", "very hard")
    assert await shown_rows(page) == ["q2", "q3"]
    await page.fill("input[type=search]", "FEVER")
    assert await shown_rows(page) == ["q3"]
    await expect(page.locator("#shown")).to_have_text("1 found")
    assert await problems(page) == []


async def test_a_long_list_is_shown_in_parts(page: Page) -> None:
    write([ours(str(n), "A", "A", question="Which?") for n in range(1, 451)])
    await page.goto(report().absolute().as_uri() + "#q300")
    await expect(page.locator("#case")).to_have_attribute("open", "")
    rows = page.locator("#list tbody tr:not([hidden])")
    await expect(rows).to_have_count(200)
    await page.keyboard.press("ArrowRight")
    await page.wait_for_url("**#q301")
    await page.keyboard.press("Escape")
    # Not `click`, which scrolls: the page shows more by itself when its button comes into view.
    await page.locator("#more").dispatch_event("click")
    await expect(rows.nth(399)).to_be_attached()
    await expect(page.locator("#shown")).to_have_text("450 found")
    assert await problems(page) == []


async def test_a_link_to_a_question_opens_it_and_a_comparison_has_a_button_for_each_run(
    page: Page,
) -> None:
    write([ours("1", "A", "A", question="First?")], "a.json")
    write([ours("1", "A", "B", question="First?")], "b.json")
    address = report("--compare", "output/a.json", "output/b.json").absolute().as_uri()
    answer = page.locator("#transcript .answer")
    await page.goto(f"{address}#q1")
    await expect(answer).to_contain_text("Aspirin")
    await page.click("#runs button:nth-child(2)")
    await expect(answer).to_contain_text("Heparin")
    await page.keyboard.press("Escape")
    await page.wait_for_url("**#questions")
    await page.evaluate("location.hash = '#q1'")  # as when a link is pasted
    await expect(page.locator("#case")).to_have_attribute("open", "")
    assert await problems(page) == []


async def test_nothing_that_a_model_wrote_runs(page: Page) -> None:
    attack = "<img src=x onerror='document.title=1'><script>document.title=1</script>"
    write([ours("1", "A", "B", question=attack, error=attack)])
    await page.goto(report().absolute().as_uri() + "#q1")
    await expect(page.locator("#transcript")).to_contain_text(attack)
    assert await page.title() == "1 question · run"
