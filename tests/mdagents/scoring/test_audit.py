"""What teams changed and why, on records whose every opinion and message is known."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mdagents.cli.score import main
from mdagents.scoring.audit.audit import Audit, Followed, audit
from mdagents.scoring.audit.claims import claims_agreement
from mdagents.scoring.audit.measures import Influence, Measure, Turned
from mdagents.scoring.audit.text import verdict_of
from mdagents.scoring.rows import read_output
from mdagents.scoring.statistics import minimum_detectable_difference, questions_needed
from mdagents_llm.proportions import tango
from tests.mdagents.scoring.result_records import ours, write


def stated(agent: str, answer: str, round_: int = 0, *, sure: float = 0.7,
           why: str = "So.") -> dict[str, Any]:  # fmt: skip
    return {"agent": agent, "role": agent.capitalize(), "round": round_, "answer": answer,
            "confidence": sure, "reasoning": why}  # fmt: skip


def message(
    sender: str, recipient: str, text: str, round_: int = 1, turn: int = 1
) -> dict[str, Any]:
    return {"round": round_, "turn": turn, "sender": sender, "recipient": recipient, "text": text}


def debated(question_id: str, first: str, decision: str, *, changes: Any = (), messages: Any = (),
            above: Any = None, analysis: str = "So.", **more: Any) -> dict[str, Any]:  # fmt: skip
    """A debate of the experts a, b, c, …, whose right answer is A."""
    agents = "abcdefg"[: len(first)]
    record = ours(
        question_id, "A", decision, question="A patient with koilonychia, nystagmus and stridor.",
        difficulty="intermediate", case_id=f"case-{question_id}",
        response={"analysis": analysis, "majority_vote": f"Answer: {decision}"},
    )  # fmt: skip
    panel = [
        {"agent": agent, "role": agent.capitalize(), "reports_to": (above or {}).get(agent)}
        for agent in agents
    ]
    opinions = [stated(agent, letter) for agent, letter in zip(agents, first, strict=True)]
    return record | {
        "opinions": [*opinions, *changes], "interactions": list(messages), "panel": panel, **more,
    }  # fmt: skip


def audited(*records: dict[str, Any]) -> Audit:
    return audit(read_output(write(list(records))))


def found(figures: Audit) -> set[str]:
    return {str(instance.measure) for one in figures.observed for instance in one.instances}


def test_a_majority_is_turned_by_the_decision() -> None:
    figures = audited(
        debated("1", "ABB", "A"),
        debated("2", "AAB", "B"),
        debated("3", "AAB", "A"),
        debated("4", "BBC", "C"),
        debated("5", "ABC", "A"),
        debated("6", "ABC", "C"),
    )
    assert (figures.n, figures.changed, figures.to_right, figures.to_wrong) == (6, 2, 1, 1)
    assert (figures.wrong_to_wrong, figures.settled, figures.settled_right) == (1, 2, 1)
    assert (figures.net_effect, figures.possible, figures.right) == (0, 5, 3)
    assert figures.flow == {
        "wrong>wrong>right": 1, "right>right>wrong": 1, "right>right>right": 1,
        "wrong>wrong>wrong": 1, "split>split>right": 1, "split>split>wrong": 1,
    }  # fmt: skip


def test_experts_who_hold_options_with_the_same_text_hold_one_answer() -> None:
    """The options of medmcqa/medmcqa#5: B and D are the same."""
    options = {"A": "SD", "B": "Mean - Mode/ SD", "C": "SD/Mode - mean", "D": "Mean - Mode/ SD"}
    changes = [stated("a", "D", 1), stated("b", "D", 1)]
    figures = audited(
        debated("1", "BDC", "D", label="B", options=options, changes=changes),
        debated("2", "BDA", "B", options=options),
    )
    assert [one.first for one in figures.observed] == [{"D": 2, "C": 1}, {"B": 2, "A": 1}]
    assert [one.changes for one in figures.observed] == [0, 0]
    assert figures.flow == {"right>right>right": 1, "wrong>wrong>wrong": 1}


def test_the_message_that_turned_an_expert_is_named_and_quoted() -> None:
    said = "The stridor decides. It must be Heparin, B."
    figures = audited(
        debated(
            "1", "AAB", "B",
            messages=[message("b", "a", "I still hold Aspirin."), message("c", "a", said)],
            changes=[stated("a", "B", 1, why="Then B.")],
        )
    )  # fmt: skip
    (instance,) = figures.observed[0].instances
    assert (instance.measure, instance.agent, instance.round) == (Measure.CONFORMITY, "a", 1)
    cause = instance.places[0]
    assert (cause.kind, cause.number, cause.agent) == ("message", 1, "c")
    assert cause.said == "It must be Heparin, B."
    assert figures.observed[0].turned == (Turned.NEW_FINDING, Turned.LONGEST)
    assert figures.by_role["C"].to_wrong == 1


def test_a_sender_who_holds_the_answer_counts_more_than_one_who_names_it() -> None:
    figures = audited(
        debated(
            "1", "ABB", "B",
            messages=[message("b", "a", "Why not Aspirin?"), message("c", "a", "Think of B.")],
            changes=[stated("a", "B", 1)],
        )
    )  # fmt: skip
    conformity = next(i for i in figures.observed[0].instances if i.measure == Measure.CONFORMITY)
    assert [place.number for place in conformity.places if place.kind == "message"] == [1]


def test_a_change_for_which_nothing_argued_is_unprompted() -> None:
    figures = audited(
        debated("1", "AAB", "A", messages=[message("a", "c", "I hold Aspirin.")],
                changes=[stated("c", "C", 1)]),
    )  # fmt: skip
    assert found(figures) == {"unprompted"}
    assert figures.measures["conformity"] is None
    assert figures.not_told["conformity"].startswith("no record holds")


def test_who_has_read_nothing_follows_nobody() -> None:
    figures = audited(debated("1", "ABB", "B", changes=[stated("a", "B", 1)]))
    assert found(figures) == {"minority_suppressed", "unprompted"}


def test_where_all_see_all_the_opinions_of_the_others_are_what_is_read() -> None:
    record = debated("1", "ABB", "B", changes=[stated("a", "B", 1)], panel=[])
    figures = audited(record)
    instance = next(i for i in figures.observed[0].instances if i.measure == Measure.CONFORMITY)
    assert [(place.kind, place.number) for place in instance.places] == [
        ("opinion", 1), ("opinion", 2), ("opinion", 3),
    ]  # fmt: skip


def test_a_review_team_states_no_first_opinion() -> None:
    reports = [
        {"name": name, "kind": kind, "answer": letter, "findings": "So.", "members": []}
        for name, kind, letter in (
            ("IAT", "initial", "B"),
            ("Heart", "specialist", "B"),
            ("FRDT", "final_review", "A"),
        )
    ]
    figures = audited(ours("1", "A", "A", teams=reports, difficulty="advanced"))
    assert figures.observed[0].first == {"B": 2}
    assert figures.observed[0].last == {"B": 2, "A": 1}
    assert (figures.to_right, figures.measures["shared_error"].found) == (1, 1)  # type: ignore[union-attr]


def test_what_was_followed_is_counted_beside_chance() -> None:
    long = "It is Heparin. " * 9
    records = [
        debated(
            str(number), "ABC", "B",
            messages=[message("c", "a", "Hm."), message("b", "a", long)],
            changes=[stated("a", "B", 1)],
            above={"a": "B"},
        )
        for number in range(20)
    ]  # fmt: skip
    longest = audited(*records).influences[Influence.LONGEST]
    assert (longest.changes, longest.followed, longest.by_chance) == (20, 20, 10)
    assert (longest.excess, longest.low, longest.high) == (0.5, 0.5, 0.5)
    assert audited(*records).influences[Influence.FIRST].followed == 0
    assert audited(*records).influences[Influence.LEAD].followed == 20


def test_a_change_without_a_choice_says_nothing_about_influence() -> None:
    figures = audited(
        debated("1", "ABB", "B", changes=[stated("a", "B", 1)],
                messages=[message("b", "a", "B."), message("c", "a", "It is B, Heparin.")]),
        debated("2", "ABB", "B", changes=[stated("a", "B", 1)], messages=[message("b", "a", "B.")]),
    )  # fmt: skip
    assert not figures.influences.get(Influence.LEAD)
    assert sum(of.changes for of in figures.influences.values()) == sum(
        of.changes for name, of in figures.influences.items() if name != Influence.LEAD
    )


def test_idle_rounds_echoes_and_repetitions() -> None:
    words = "the volume of distribution stays the same over many decades of life"
    figures = audited(
        debated(
            "1", "AAB", "A",
            changes=[stated("c", "B", 1)],
            messages=[message("b", "c", f"Note that {words}."), message("a", "c", f"Yes, {words}.",
                                                                       2)],
        )
    )  # fmt: skip
    counts = Counter(i.measure for one in figures.observed for i in one.instances)
    assert counts == {Measure.IDLE_ROUND: 2, Measure.ECHO: 1}


def test_confidence_moves_with_the_answer() -> None:
    figures = audited(
        debated("1", "AAB", "A", messages=[message("a", "c", "It is Aspirin.")],
                changes=[stated("c", "A", 1, sure=0.9)])
    )  # fmt: skip
    came = figures.confidence["came to a right answer"]
    assert (came.n, came.first, came.last) == (1, 0.7, 0.9)


@pytest.mark.parametrize(
    "text",
    [
        "All three experts agree on B.",
        "The panel is unanimous.",
        "Every specialist favors Heparin.",
        "There is full consensus.",
        "No expert disagreed.",
        "The experts unanimously chose B.",
        "All of the experts have agreed that the answer is B.",
    ],
)
def test_claims_of_agreement(text: str) -> None:
    assert claims_agreement(text)


@pytest.mark.parametrize(
    "text",
    [
        "Not all experts agree on B.",
        "The panel is not unanimous.",
        "There was no full consensus.",
        "All experts agree that she is septic.",
        "Two of three experts favor B.",
        "The experts did not reach full agreement.",
        "All guidelines recommend it.",
        "All experts agree about the anemia, not about the drug.",
        "Nearly every expert chose B.",
    ],
)
def test_what_claims_no_agreement_on_the_answer(text: str) -> None:
    assert not claims_agreement(text)


def test_a_summary_that_claims_what_nobody_stated_is_told() -> None:
    summaries = [{"status_action": "All experts agree on A."}, {"key_findings": "Stridor."}]
    exaid = {"summaries": summaries, "token_usage": {"total_tokens": 7}}
    (one,) = audited(debated("1", "AAB", "A", exaid=exaid)).observed
    (place,) = one.instances[0].places
    assert (place.kind, place.number, place.said) == ("summary", 0, "All experts agree")
    assert found(audited(debated("1", "AAA", "A", exaid=exaid))) == set()


def test_an_agreement_on_an_option_by_its_text_is_one_on_the_answer() -> None:
    options = {"A": "Aspirin", "B": "Heparin"}
    assert claims_agreement("All experts agree on heparin.", options)
    assert claims_agreement("All experts agree that Heparin is best.", options)
    assert not claims_agreement("All experts agree on the need for haste.", options)


def test_an_agreement_that_the_opinions_show_is_no_false_claim() -> None:
    told = "All three experts agree on A."
    assert found(audited(debated("1", "AAA", "A", analysis=told))) == set()
    assert found(audited(debated("1", "AAB", "A", analysis=told))) == {"unstated_agreement"}


def test_a_record_without_the_argument_tells_nothing_about_it() -> None:
    figures = audited(debated("1", "AAB", "A", response={"majority_vote": "Answer: A) Aspirin"}))
    assert figures.measures["unstated_agreement"] is None


def test_rates_equal_an_independent_count() -> None:
    rng = random.Random(7)
    panels = [("".join(rng.choices("ABCD", k=3)), rng.choice("ABCD")) for _ in range(200)]
    figures = audited(*(debated(str(n), f, d) for n, (f, d) in enumerate(panels)))

    def majority(first: str) -> str:
        return next((letter for letter in "ABCD" if first.count(letter) >= 2), "")

    right = [(f, d) for f, d in panels if majority(f) == "A"]
    wrong = [(f, d) for f, d in panels if majority(f) not in ("A", "")]
    assert figures.to_wrong == sum(d != "A" for _, d in right)
    assert figures.to_right == sum(d == "A" for _, d in wrong)
    assert figures.net_effect == (figures.to_right - figures.to_wrong) / 200
    rates = {name: (rate.found, rate.of) for name, rate in figures.measures.items() if rate}
    assert rates["shared_error"] == (sum(len(set(f)) == 1 for f, _ in wrong), 200)
    minority = [d for f, d in wrong if "A" in f]
    assert rates["minority_prevailed"] == (minority.count("A"), len(minority))
    assert rates["minority_suppressed"] == (len(minority) - minority.count("A"), len(minority))
    assert rates["lost_in_synthesis"] == (figures.to_wrong, len(right))
    assert rates["saved_in_synthesis"] == (figures.to_right, len(wrong))


def test_epochs_of_a_question_are_one_sample() -> None:
    records = [debated("1", "ABB", "A", epoch=epoch) for epoch in (1, 2, 3)]
    figures = audited(*records, debated("2", "AAA", "A"))
    assert (figures.questions, figures.n, figures.to_right) == (2, 4, 3)
    assert figures.mcnemar_p == 1  # one question that changed, not three
    # The sizes 3 and 1 have a design effect of (9 + 1) / 4, since no question's epochs differ.
    assert (figures.net_low, figures.net_high) == pytest.approx(tango(3 / 2.5, 0, 4 / 2.5))


def test_questions_needed_count_a_question_whose_epochs_differ_by_their_share() -> None:
    changed = [
        debated(f"{n}", "ABB" if epoch == 1 else "AAA", "A", epoch=epoch)
        for n in range(9)
        for epoch in (1, 2, 3)
    ]
    kept = [debated(f"k{n}", "AAA", "A", epoch=e) for n in range(51) for e in (1, 2, 3)]
    # The net effect is 9 of 180 answers, and each of 9 of 60 questions gained a third.
    assert audited(*changed, *kept).questions_needed == questions_needed(9 / 180, 9 * (1 / 9) / 60)


def epochs_that_reconsider(questions: int, *, kept: int = 0) -> Audit:
    """An audit of questions in two epochs; after one text each, `kept` experts keep an answer."""
    return audited(*(
        debated(f"{n}", "ABB", "B", epoch=epoch,
                changes=[stated("a", "A" if n < kept and epoch == 2 else "B", 1)],
                messages=[message("b", "a", "B. Because of the long nystagmus."),
                          message("c", "a", "B. So."), message("a", "b", "A. I am sure.")])
        for n in range(questions) for epoch in (1, 2)
    ))  # fmt: skip


def test_rates_have_an_interval_from_ten_questions() -> None:
    # `FEWEST_GROUPS`: the bootstrap of fewer groups is too narrow; changes are no questions.
    few, enough = (epochs_that_reconsider(n, kept=1).measures[Measure.CONFORMITY] for n in (9, 10))
    assert few is not None
    assert enough is not None
    assert (few.found, few.of, few.low, few.high) == (17, 18, None, None)
    assert enough.low is not None
    assert enough.high is not None
    assert enough.low < 19 / 20 <= enough.high


def test_an_excess_over_chance_has_an_interval_from_ten_questions() -> None:
    def followed(questions: int) -> Followed:
        return audited(*(
            debated(f"{n}", "ABC", "B", epoch=epoch, changes=[stated("a", "BC"[n == 0], 1)],
                    messages=[message("c", "a", "Hm."), message("b", "a", "It is Heparin. " * 9)])
            for n in range(questions) for epoch in (1, 2)
        )).influences[Influence.LONGEST]  # fmt: skip

    few, enough = followed(9), followed(10)
    assert (few.changes, few.followed, few.low, few.high) == (18, 16, None, None)
    # Of 10 questions, 9 follow where half is chance: 0.4, and resamples reach from 0.2 to 0.5.
    assert (enough.excess, enough.low, enough.high) == pytest.approx((0.4, 0.2, 0.5))


def test_too_few_questions_give_no_rate() -> None:
    assert verdict_of(audited(debated("1", "ABB", "A"))) == (
        "The teams changed 1 majority: 1 from wrong to right, 0 from right to wrong. "
        "Too few questions for a rate."
    )


def test_the_verdict_claims_harm_only_where_it_is_shown() -> None:
    kept = [debated(f"k{n}", "AAA", "A") for n in range(80)]
    harmed = [debated(f"h{n}", "AAB", "B") for n in range(20)]
    helped = [debated(f"r{n}", "ABB", "A") for n in range(18)]
    assert "Significant harm." in verdict_of(audited(*kept, *harmed))
    assert "No harm is shown." in verdict_of(audited(*kept, *harmed, *helped))
    assert "Significant benefit." in verdict_of(audited(*kept, *helped))
    assert "changed no majority" in verdict_of(audited(*kept))


def test_questions_needed_are_those_that_detect_the_difference() -> None:
    n = questions_needed(0.05, 0.2)
    assert n is not None
    detected = minimum_detectable_difference(n, 0.2)
    assert detected == pytest.approx(0.05, abs=2e-4)
    assert questions_needed(0, 0.2) is None
    assert (questions_needed(-0.05, 0.2), questions_needed(0.3, 0.1)) == (
        n,
        questions_needed(0.3, 0.3),
    )


def test_what_cannot_be_audited_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    path = write([
        ours("1", "A", "A"), ours("2", "A", None), debated("3", "A", "A"), debated("4", "ABB", "A"),
    ])  # fmt: skip
    assert main(["--audit", str(path)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "not audited: 1 answer (the record holds no opinions)" in printed
    assert "not audited: 1 answer (no answer: api_error)" in printed
    assert "not audited: 1 answer (fewer than two first opinions)" in printed


def test_results_without_opinions_are_refused_no_page_and_no_crash(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--audit", str(write([ours("1", "A", "A")]))]) == 0
    assert "nothing can be audited" in " ".join(capsys.readouterr().out.split())


def test_json_holds_the_counts_and_nothing_else_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = write([debated("1", "ABB", "A"), debated("2", "AAB", "B")])
    assert main(["--audit", str(path), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert (content["changed"], content["to_right"], content["to_wrong"]) == (2, 1, 1)
    assert content["measures"]["minority_prevailed"]["rate"] == 1
    assert not Path("evaluation").exists()


def run_with(peers: str, records: list[dict[str, Any]]) -> str:
    """A run folder whose run.json says which control it is."""
    folder = Path("output") / f"run-{peers}"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(record | {"schema_version": "1.6.0"}) + "\n" for record in records]
    (folder / "samples.jsonl").write_text("".join(lines))
    ids = [record["question_id"] for record in records]
    manifest = {"options": {"peers": peers}, "item_ids": ids, "finished": True}
    (folder / "run.json").write_text(json.dumps(manifest))
    return str(folder)


def test_a_control_tells_what_would_have_been_right_without_peers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    full = run_with("all", [debated(f"{n}", "ABB", "A") for n in range(20)])
    alone = run_with("none", [debated(f"{n}", "ABB", "A" if n < 15 else "B") for n in range(20)])
    devil = run_with("devil", [debated(f"{n}", "ABB", "B") for n in range(20)])
    assert main(["--audit", devil, full, alone, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    none, of_devil = content["controls"]
    assert (none["peers"], none["also_right"], none["of_to_right"]) == ("none", 15, 20)
    assert (of_devil["peers"], of_devil["difference"], of_devil["also_right"]) == ("devil", -1, 0)
    assert none["mcnemar_p_holm"] >= none["mcnemar_p"]
    assert main(["--audit", full, alone]) == 0
    assert (
        "Of the 20 that turned right, 15 would have been right without peers as well."
        in " ".join(capsys.readouterr().out.split())
    )


def test_a_control_that_differs_in_more_is_said_to(capsys: pytest.CaptureFixture[str]) -> None:
    records = [debated("1", "ABB", "A")]
    full, alone = run_with("all", records), run_with("none", records)
    path = Path(alone) / "run.json"
    manifest = json.loads(path.read_text())
    manifest["options"] |= {"model": "other", "seed": 3}
    path.write_text(json.dumps(manifest))
    assert main(["--audit", full, alone]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "run-none also differs in model, seed, so that it is no control" in printed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--audit", "output/run-none"], "none is given"),
        (["--audit", "output/run-all", "output/run-all"], "the same run twice"),
        (
            ["--audit", "output/run-all", "--compare", "output/run-none"],
            "cannot be combined; give one of them",
        ),
        (["--audit", "output/run-all", "--input", "output/run-all"], "leave --input out"),
        (["--input", "output/run-all", "--json"], "--json belongs to --audit"),
        (["--audit", "output/run-all", "output/run-noise"], "the runs hold different questions"),
    ],
)
def test_wrong_use_is_refused_in_a_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run_with("all", [debated("1", "ABB", "A"), debated("2", "ABB", "A")])
    run_with("none", [debated("1", "ABB", "A"), debated("2", "ABB", "A")])
    run_with("noise", [debated("1", "ABB", "A")])
    assert main(arguments) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "changes",
    [
        {"opinions": "no list"},
        {"opinions": [{"agent": 3, "answer": ["A"]}, {"answer": "A"}, {"answer": "B"}]},
        {"interactions": [{"sender": None, "text": 7}], "panel": [{}]},
        {"opinions": [stated("a", "A", -1), stated("b", "Z")]},
        {"teams": [{"answer": "A"}, {"answer": "B", "kind": 7}], "opinions": []},
        {"opinions": [stated("a", "A") | {"confidence": "high", "round": "x"}, stated("b", "B")]},
        {"response": None},
        {"question": None},
    ],
)
def test_odd_records_are_audited_as_far_as_they_tell(changes: dict[str, Any]) -> None:
    figures = audited(debated("1", "ABB", "A") | changes, debated("2", "ABB", "A"))
    assert figures.n + sum(figures.left_out.values()) == 2


def test_the_page_has_the_sentence_the_figures_and_the_questions_that_teach() -> None:
    records = [debated(f"{n}", "ABB", "A" if n % 2 else "B") for n in range(12)]
    path = write([*records, debated("x", "AAB", "B")])
    assert main(["--audit", str(path), "--html", "--figures", "figures"]) == 0
    page = Path("evaluation/audit_run.html").read_text()
    assert '<p class="result">The teams changed 7 majorities: 6 from wrong to right, 1 from' in page
    for figure in ("From first opinions to the decision", "What turned the majorities"):
        assert f"<h3>{figure}</h3>" in page
    lessons = page[page.index('<ol class="lessons">') :]
    assert lessons[: lessons.index("</ol>")].count("<li><a href=") == 10
    assert "<b>Right minority suppressed</b>" in page
    assert 'href="#q13">x</a><span>overturned</span>' in page
    assert "<h3>Controls</h3>" not in page
    assert len(list(Path("figures").iterdir())) == 6


def test_nothing_to_audit_makes_a_page_that_says_so() -> None:
    assert main(["--audit", str(write([ours("1", "A", "A")])), "--html"]) == 0
    page = Path("evaluation/audit_run.html").read_text()
    assert "nothing can be audited" in page
