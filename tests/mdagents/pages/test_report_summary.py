"""The top of a report: the result in words, the card of a run, EXAID's figures, the charts."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from exaid_core.placeholders import PLACEHOLDER
from mdagents.cli.score import main
from tests.mdagents.scoring.result_records import ours, write


def page(*arguments: str) -> str:
    """Writes a report and gives its HTML."""
    assert main(["--html", *arguments]) == 0
    (path,) = Path("evaluation").glob("*.html")
    return path.read_text(encoding="utf-8")


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def headline(html: str) -> str:
    found = re.search(r'<p class="result">(.*?)</p>', html)
    assert found
    return unescape(found[1])


def letters(text: str, **changes: Any) -> list[dict[str, Any]]:
    """Questions whose right option is A, and the answers to them; `-` for an error."""
    return [
        ours(str(n), "A", None if letter == "-" else letter, **changes)
        for n, letter in enumerate(text)
    ]


def manifest(name: str, **content: Any) -> None:
    folder = Path("output") / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps(content))


def test_the_page_begins_with_what_was_run_the_result_and_its_limits() -> None:
    write(letters("A" * 306 + "B" * 194))
    manifest("run", dataset="medqa", models={"expert": "m"}, options={"method": "cot"})
    html = page()
    title = "m · medqa · cot · 500 questions"
    assert f'<h1 class="title">{title}</h1>' in html
    assert f"<title>{title}" in html
    assert headline(html) == "61.2% right, without a panel of experts."
    limits = "95% interval 56.9–65.4; chance 25%; 500 of the 1,273 published medqa questions."
    assert limits in words(html)


def settings(html: str) -> dict[str, str]:
    table = html.split("<b>Settings</b>")[1].split("</table>")[0]
    return dict(re.findall(r'<th scope="row">(.*?)</th><td data-label="value">(.*?)</td>', table))


def test_the_settings_say_what_the_run_was() -> None:
    write(letters("AB-", exaid={"token_usage": {"total_tokens": 1000}}))
    starts = [("2026-11-20T23:00:00.000Z", "2026-11-21T00:00:30.000Z"),
              ("2026-11-22T08:00:00.000Z", "2026-11-22T08:00:30.000Z")]  # fmt: skip
    manifest(
        "run",
        dataset="medqa",
        models={"router": "small", "expert": "large", "decision": "large"},
        options={"method": "mdagents", "difficulty": "basic,advanced", "exaid": "full_exaid"},
        invocations=[{"started_at": began, "ended_at": ended} for began, ended in starts],
        spent={"cost_usd": 0.5},
        git_revision="0123456789abcdef",
    )
    assert settings(page()) == {
        "model of router": "small",
        "model of expert, decision": "large",
        "data set": "medqa",
        "method": "mdagents",
        "difficulty": "basic, advanced",
        "EXAID": "full_exaid",
        "date": "2026-11-20 to 2026-11-22",
        "questions": "2 answered, 1 failed (api error 1)",
        "teams": "360 tokens, 0.030 USD",
        "EXAID used": "3,000 tokens",
        "paid in all": "0.50 USD",
        "wall time": "1:01:00",
        "git revision": "0123456789",
        "run": "run",
    }


@pytest.mark.parametrize(
    ("spent", "paid"),
    [
        (
            {"input_tokens": 1_200_000, "output_tokens": 34, "cost_usd": 0.5},
            "1,200,034 tokens, 0.50 USD",
        ),
        ({"input_tokens": 7, "output_tokens": 34, "cost_usd": None}, "41 tokens"),
        ({"input_tokens": "many", "output_tokens": 34, "cost_usd": 0.5}, "0.50 USD"),
    ],
)
def test_the_settings_say_what_was_paid(spent: dict[str, Any], paid: str) -> None:
    write(letters("AB"))
    manifest("run", spent=spent)
    assert settings(page())["paid in all"] == paid


@pytest.mark.parametrize(
    "odd",
    [
        {"models": ["x"], "invocations": {}, "spent": 3, "git_revision": None},
        {"models": {}, "invocations": [{"started_at": "yesterday", "ended_at": None}]},
        {"invocations": [{"started_at": "2026-01-01T00:00:00", "ended_at": "2026-01-01T00:00Z"}]},
        {"invocations": [{"started_at": "2026-01-01T00:00:00Z"}, 3], "spent": {"cost_usd": None}},
    ],
)
def test_what_is_not_known_has_no_line(odd: dict[str, Any]) -> None:
    write([ours("1", "A", "A", token_usage={}, exaid=None)])
    manifest("run", **odd)
    assert settings(page()).keys() - {"date"} == {"questions", "run"}


def test_a_file_of_another_program_has_settings_of_what_it_holds() -> None:
    write([{"question": "Which?", "label": "A", "response": "A", "options": {"A": "x", "B": "y"}}])
    assert settings(page()) == {"questions": "1 answered", "run": "run"}


def compared(first: str, second: str, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """What the page and the terminal say of two runs."""
    one = [r | {"token_usage": {"total_tokens": 10, "cost_usd": 1}} for r in letters(first)]
    write(one, "model_set_plain_9samples.json")
    write(letters(second), "model_set_team_9samples.json")
    names = [f"output/model_set_{how}_9samples.json" for how in ("plain", "team")]
    html = page("--compare", *names)
    return html, " ".join(capsys.readouterr().out.split())


PRICE = "/extra right"


@pytest.mark.sweep
def test_no_difference_is_not_called_one(capsys: pytest.CaptureFixture[str]) -> None:
    html, printed = compared("A" * 10 + "B" * 10, "A" * 12 + "B" * 8, capsys)
    assert headline(html) == "No significant difference."
    sentence = (
        "o significant difference: team − plain is +10.0 points "
        "(95% interval −7.7 to +30.1), p = 0.5000"
    )
    for text in (words(html), printed):
        assert sentence in text
        assert PRICE not in text
        assert "cost per extra correct answer: shown only for significant differences" in text


@pytest.mark.sweep
@pytest.mark.parametrize("turned", [False, True])
def test_a_difference_is_said_with_the_better_run(
    turned: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    poor, good = "A" * 5 + "B" * 15, "A" * 15 + "B" * 5
    first, second = (good, poor) if turned else (poor, good)
    html, printed = compared(first, second, capsys)
    better, worse = ("plain", "team") if turned else ("team", "plain")
    assert headline(html) == f"{better} is better than {worse}."
    for text in (words(html), printed):
        assert f"{better} is better than {worse} by 50.0 points (95% interval 25.8–" in text
        assert "no significant difference" not in text
        assert PRICE in text


@pytest.mark.process
def test_the_smallest_p_reads_as_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    _, printed = compared("B" * 40, "A" * 40, capsys)
    assert "by 100.0 points (95% interval 82.5–100.0), p < 0.0001" in printed


def test_of_a_handful_nothing_is_claimed(capsys: pytest.CaptureFixture[str]) -> None:
    html, printed = compared("B" * 9, "A" * 9, capsys)
    assert "too few questions to tell: team − plain is +9 of 9" in printed
    assert headline(html) == "Too few questions to tell."
    assert PRICE not in words(html)
    assert PRICE not in printed


@pytest.mark.sweep
def test_an_interval_beside_zero_is_not_enough_without_a_small_p(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Tango's interval of five gains and no loss leaves out 0; McNemar's p is 0.0625.
    _, printed = compared("B" * 5 + "A" * 5, "A" * 10, capsys)
    assert "no significant difference: team − plain is +50.0 points" in printed
    assert "p = 0.0625" in printed


@pytest.mark.sweep
def test_with_many_pairs_the_better_runs_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    runs = {"poor": "A" * 2, "fair": "A" * 15, "good": "A" * 15 + "B", "best": "A" * 29}
    for name, answers in runs.items():
        write(letters(answers.ljust(30, "B")), f"{name}.json")
    html = page("--compare", *(f"output/{name}.json" for name in runs))
    assert headline(html) == (
        "fair, good and best are better than poor; "
        "best is better than fair and good (in 5 of 6 comparisons)."
    )
    text = words(html)
    assert "best is better than poor" in text
    assert "no significant difference in 1 of 6 pairs: good − fair" in text


@pytest.mark.sweep
def test_runs_go_by_their_names_on_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    html, _ = compared("A" * 10, "A" * 10, capsys)
    html += page("--compare", "output/model_set_plain_9samples.json",
                 "output/model_set_team_9samples.json")  # fmt: skip
    assert not re.search(r"\brun [12]\b", words(html))
    assert '<th scope="col"><button type="button">plain</button></th>' in html
    assert '<button type="button" data-run="1">team</button>' in html
    assert "team: 100.0% of 10 right" in html, "in the charts"


def summary(**changes: Any) -> dict[str, Any]:
    return {"status_action": "Give heparin", "source_seqs": [[1, 2]]} | changes


def watched(*summaries: dict[str, Any], tail_loss: float = 0.0, missed: int = 0) -> dict[str, Any]:
    return {
        "exaid": {"summaries": list(summaries), "token_usage": {"total_tokens": 7}},
        "watched": {"tail_loss": tail_loss, "missed_alerts": missed, "error": None},
    }


OF_EXAID = [
    watched(summary(), summary(alerts=["cardiac arrest"])),
    watched(summary(alerts=["SpO2 70%"], alert_missing=True, clipped=True), tail_loss=0.5),
    watched(summary(unsupported_terms=["5 mg", "40 mg"], truncated_fields=["key_findings"])),
    watched(summary(status_action=PLACEHOLDER), summary(source_seqs=[]), tail_loss=1.0, missed=2),
    {"opinions": [{"agent": "e", "round": r, "answer": a} for r, a in enumerate("BA")]},
]


def test_exaid_has_figures_and_filters() -> None:
    write([ours(str(n), "A", "A", **made) for n, made in enumerate(OF_EXAID)])
    html = page()
    tags = re.findall(r'<tr id="q\d"[^>]*data-tags="(.*?)"', html)
    assert tags == [
        "alert", "alert missed-alert", "unsupported", "alert missed-alert no-summary",
        "changed no-summary",
    ]  # fmt: skip
    row = words(html).split("EXAID's summaries")[1]
    assert "basic 3 of 5 62.5% 4 1 of 4 2 1 1" in row
    figures = json.loads(Path("evaluation/run.summary.json").read_text())["summaries"]["all"]
    assert figures == {
        "questions": 5, "without_summary": 2, "coverage": 0.625, "summaries": 4, "alerts": 4,
        "missed_alerts": 3, "unsupported_terms": 2, "cut_fields": 1, "clipped": 1,
    }  # fmt: skip


def test_a_run_without_exaid_says_nothing_of_it() -> None:
    write([ours("1", "A", "A", exaid={"summaries": []}, watched={"tail_loss": 0.0})])
    html = page()
    assert "EXAID's summaries" not in words(html)
    assert "no-summary" not in html.split("<tbody>")[-1]
    assert json.loads(Path("evaluation/run.summary.json").read_text())["summaries"] == {}


def charts(html: str) -> dict[str, str]:
    return {
        title: svg
        for title, svg in re.findall(
            r"<h3>(.*?)</h3>.*?</figcaption>(<svg.*?</svg>)", html, re.DOTALL
        )
    }


@pytest.mark.sweep
def test_marks_have_their_numbers() -> None:
    levels = {"difficulty": "<b> & $x_{1}$"}
    write([*letters("A" * 12), *(r | levels | {"question_id": r["question_id"] + "x"}
                                 for r in letters("ABBABABABAAA"))])  # fmt: skip
    (svg,) = charts(page()).values()
    titles = re.findall(r"<title>(.*?)</title>", svg)
    assert titles == [
        "chance 25%",
        "basic: 100.0% of 12 right (95% interval 75.8–100.0)",
        "&lt;b&gt; &amp; $x_{1}$: 58.3% of 12 right (95% interval 32.0–80.7)",
        "all: 79.2% of 24 right (95% interval 59.5–90.8)",
    ]
    labels = re.findall(r'<g role="img" aria-label="(.*?)"', svg)
    assert labels == titles, "read aloud as well"
    assert not re.search(r'<g id="', svg), "ids that every figure would have"
    assert "#" not in re.sub(r'(clip-path|href|xlink:href)="[^"]*"', "", svg), "theme colors"


def test_small_groups_of_wrong_answers_have_counts_as_in_the_tables() -> None:
    records = [*letters("AAB" * 11), ours("33", "B", "B"), ours("34", "B", "A")]
    for number, record in enumerate(records):
        record["difficulty"] = "advanced" if number < 9 else "basic"
        first = "AAB" if number < 5 else "AAA"
        record["opinions"] = [{"agent": str(place), "answer": of} for place, of in enumerate(first)]
    write(records)
    shown = words(page())
    section = shown[shown.index("What it got wrong") : shown.index("Questions all 35")]
    assert "advanced 9 6 of 9 3" in section
    assert "basic 26 65.4% 9" in section
    assert "B 2 1 of 2 1" in section
    assert "majority 5 4 of 5 1" in section
    assert main(["--figures", "paper"]) == 0
    drawn = Path("paper/run-agreement-at-first.svg").read_text(encoding="utf-8")
    assert ">4 of 5</text>" in drawn
    assert ">80.0%</text>" not in drawn
    assert "advanced 9 of 9 6 of 9 right" in shown, "the table of accuracies"
