"""Fields that report nothing, and fields that do, in several languages."""

from __future__ import annotations

import gzip
import json
import unicodedata
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exaid_core.checks.echoes import empty_fields
from exaid_core.placeholders import PLACEHOLDER
from exaid_core.prompts import PROMPTS
from exaid_core.schema.agent_summary import LIMITS, SummaryDraft
from exaid_core.segments import Segment
from exaid_core.summarizer_agent.summarizer_agent import SummarizerAgent
from exaid_core.templates import flags
from exaid_core.trace.run_records import SummaryFailure
from tests.conftest import SHARED
from tests.exaid_core.models import model

PROMPT = PROMPTS.render("summary_system")
PUBLISHED = sorted((SHARED / "published_exaid" / "runs").glob("*/*.gz"))
EXAMPLE = json.loads(PROMPT[PROMPT.rindex("{") :])
SAID = (
    "Cardiologist\nHigh-sensitivity troponin is 480 ng/L and rising; ST depression in V4 to V6. "
    "I would give aspirin 300 mg and fondaparinux 2.5 mg now. Answer: B"
)
TROPONIN = "Rising troponin (480 ng/L) with ST depression in V4 to V6."
ASPIRIN = "Aspirin 300 mg and fondaparinux 2.5 mg now."


def empty(said: str = SAID, **fields: str) -> tuple[str, ...]:
    return empty_fields(fields, said, PROMPT)


def test_what_agents_said_stays() -> None:
    assert empty(key_findings=TROPONIN, recommendation_next_step=ASPIRIN) == ()
    assert empty(status_action="Hypotensive", said="She is in hypotension.") == ()
    assert empty(key_findings=PLACEHOLDER, status_action=PLACEHOLDER) == ()


@pytest.mark.parametrize("name", EXAMPLE)
def test_the_example_of_the_prompt_is_no_finding(name: str) -> None:
    assert empty(**{name: EXAMPLE[name]}) == (name,)


def test_the_example_is_a_finding_where_an_agent_said_so() -> None:
    said = "\n".join(["Neurologist", *EXAMPLE.values()])
    assert empty(said=said, **EXAMPLE) == ()


def test_an_instruction_is_no_finding() -> None:
    told = "emergency first, else what changed; action now"
    assert told in PROMPT
    assert empty(status_action=told) == ("status_action",)


def test_what_two_fields_say_is_no_third_finding() -> None:
    assert empty(
        status_action=TROPONIN,
        key_findings=TROPONIN,
        differential_rationale=TROPONIN.upper(),
        recommendation_next_step="ST depression in V4 to V6",
        agent_contributions="480 ng/L",
    ) == ("differential_rationale", "recommendation_next_step")


def test_the_names_and_hints_of_fields_are_no_findings() -> None:
    said = f"{SAID} Who added what is the most urgent, first and leading finding of the key facts."
    told = {name: PROMPT.split(f"{name}: ")[1].split("\n")[0] for name in LIMITS}
    assert empty(said=said, **told) == tuple(LIMITS)
    assert empty(key_findings="Key findings", status_action=ASPIRIN) == ("key_findings",)


def said_in(language: str) -> str:
    file = Path(__file__).parent / "languages" / f"{language}.json"
    return "\n".join(turn["text"] for turn in json.loads(file.read_text("utf-8")))


TRUE: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("true_fields.json").read_text("utf-8")
)


@pytest.mark.parametrize("pair", TRUE, ids=[f"{n}-{one['why']}" for n, one in enumerate(TRUE)])
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_what_is_true_stays_in_whatever_words(
    pair: dict[str, Any], form: Literal["NFC", "NFD"]
) -> None:
    fields = {name: unicodedata.normalize(form, text) for name, text in pair["fields"].items()}
    assert empty(said=pair.get("said") or said_in(pair["language"]), **fields) == ()


@pytest.mark.sweep
@pytest.mark.skipif(not PUBLISHED, reason="needs the shared data")
def test_no_field_of_the_published_summaries_is_emptied() -> None:
    judged = 0
    for path in PUBLISHED:
        with gzip.open(path, "rt", encoding="utf-8") as records:
            for record in map(json.loads, records):
                if record["record_type"] == "summary_event":
                    fields = {name: record["summary_content"][name] for name in LIMITS}
                    assert empty(said=record["summarizer_input_text"], **fields) == ()
                    judged += 1
    assert judged > 200


def test_what_nobody_said_is_no_finding() -> None:
    assert empty(
        key_findings="Bilateral wheeze with a prolonged expiration, and he smokes.",
        recommendation_next_step=ASPIRIN,
    ) == ("key_findings",)


@pytest.mark.parametrize(
    "summary",
    [
        "Troponina en ascenso; se administra un antiagregante y un anticoagulante de inmediato.",
        "心肌肌钙蛋白升高，立即给予抗血小板药物。",
        "ارتفاع التروبونين مع انخفاض ST، يعطى مضاد الصفيحات الآن.",
    ],
)
def test_a_summary_in_another_language_is_left_as_it_is(summary: str) -> None:
    assert empty(key_findings=summary) == ()


@pytest.mark.parametrize(
    ("said", "kept", "made_up"),
    [
        (
            "El paciente tiene fiebre alta y rigidez de nuca; propongo ceftriaxona de inmediato.",
            "Fiebre alta y rigidez de nuca en el paciente.",
            "Fractura de cadera con el tobillo inflamado tras la caída y de larga evolución.",
        ),
        (
            "患者高热伴颈项强直，建议立即使用头孢曲松，等待脑脊液培养结果。",
            "患者高热，颈项强直，立即使用头孢曲松。",
            "左侧股骨骨折术后伤口愈合良好可出院随访。",
        ),
    ],
)
def test_other_languages_than_english_are_judged_within_themselves(
    said: str, kept: str, made_up: str
) -> None:
    assert empty(said=said, key_findings=kept) == ()
    found = empty(said=said, key_findings=kept, differential_rationale=made_up)
    assert found == ("differential_rationale",)


@pytest.mark.sweep
@given(st.lists(st.text(max_size=40), min_size=1, max_size=6), st.text(max_size=80))
def test_whatever_is_written_only_its_fields_are_named(texts: list[str], said: str) -> None:
    fields = {f"field_{n}": text for n, text in enumerate(texts)}
    found = empty_fields(fields, said, PROMPT)
    assert found == tuple(name for name in fields if name in found)


async def test_the_field_becomes_the_placeholder_and_is_named() -> None:
    written = SummaryDraft(
        key_findings=EXAMPLE["key_findings"],
        recommendation_next_step=ASPIRIN,
        status_action=TROPONIN,
    )
    agent = SummarizerAgent(model(written), monotonic=lambda: 0.0)
    result = await agent.write([], "", [Segment("cardiologist", SAID, (1,), 0, 0)])
    assert result.summary is not None
    assert result.failure is None
    assert result.summary.key_findings == PLACEHOLDER
    assert result.summary.status_action == TROPONIN
    assert result.summary.emptied_fields == ("key_findings",)
    assert flags(result.summary) == ["emptied (repeated, or not said by any agent): Key findings"]


async def test_a_summary_of_nothing_that_was_said_is_none() -> None:
    agent = SummarizerAgent(model(SummaryDraft(**EXAMPLE)), monotonic=lambda: 0.0)
    result = await agent.write([], "", [Segment("cardiologist", SAID, (1,), 0, 0)])
    assert (result.summary, result.failure) == (None, SummaryFailure.SCHEMA_VALIDATION_ERROR)
    assert result.error == "the summary says nothing that an agent said"
