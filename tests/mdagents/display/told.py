"""What displays are told of a question, for their tests."""

from __future__ import annotations

from exaid_core.schema.agent_summary import AgentSummary
from exaid_core.trace.events import EventKind, TraceEvent
from mdagents.agents.events import (
    Event,
    Member,
    Recruited,
    Routed,
    Started,
    TurnBegan,
    TurnEnded,
)
from mdagents.datasets.questions import SourceQuestion, present
from mdagents.display import Display
from mdagents.records.sample import (
    CaseSummaries,
    ExaidRecord,
    SampleRecord,
    TokenUsageRecord,
    Watched,
)
from mdagents.settings import Difficulty, OptionOrder, RoutedBy, Status

EMBOLISM = AgentSummary(
    status_action=(
        "Suspected pulmonary embolism after caesarean section; heparin is started while imaging "
        "is arranged."
    ),
    key_findings=(
        "Sudden dyspnoea on day 9, pulse 118/min, SpO2 89% on room air, swollen left calf; "
        "Wells score 7.5."
    ),
    differential_rationale=(
        "Embolism first (recent surgery, hypoxaemia, one-sided swelling); amniotic fluid embolism "
        "comes too late; pneumonia unlikely without fever."
    ),
    uncertainty_confidence="Cardiologist 85% for C; pulmonologist keeps D open until the ECG.",
    recommendation_next_step=(
        "CT pulmonary angiography now; do not wait for it with enoxaparin 1 mg/kg every 12 h."
    ),
    agent_contributions="expert-1-cardiologist: Wells score; expert-2-pulmonologist: hypoxaemia",
    agents=("expert-1-cardiologist", "expert-2-pulmonologist", "expert-3-haematologist"),
    unsupported_terms=("7.5",),
    truncated_fields=("agent_contributions",),
)
ASKED = present(
    SourceQuestion(
        id="sample_41",
        text=(
            "Nine days after a caesarean section a 31-year-old woman becomes short of breath at "
            "rest. Her left calf is swollen, her pulse is 118/min and her SpO2 89% on room air. "
            "What is the next step in her management?"
        ),
        options={
            "A": "Chest radiograph, and antibiotics if it shows an infiltrate",
            "B": "Echocardiography within two days",
            "C": "Anticoagulation and CT pulmonary angiography",
            "D": "Thrombolysis at once",
        },
        gold="C",
    ),
    OptionOrder.ORIGINAL,
    seed=0,
)
PANEL = (
    Member("expert-1-cardiologist", "Cardiologist"),
    Member("expert-2-pulmonologist", "Pulmonologist", reports_to="Cardiologist"),
    Member("expert-3-haematologist", "Haematologist"),
)
OPENING: tuple[Event, ...] = (
    Started(ASKED),
    Routed(Difficulty.INTERMEDIATE, RoutedBy.ROUTER, "Surgery, clotting and imaging meet."),
    TurnBegan("recruiter", "Recruiter", "recruit"),
    TurnEnded("recruiter", "recruit"),
    Recruited(PANEL),
)


def turn(agent: str, role: str = "", phase: str = "opinion") -> TurnBegan:
    return TurnBegan(agent, role or agent, phase)


def words(agent: str, text: str, turn_id: int = 1) -> TraceEvent:
    return TraceEvent(0, 0, turn_id, agent, EventKind.DELTA, text)


def tell(display: Display, question_id: str, *events: Event) -> None:
    for event in events:
        display.happened((question_id, 1), event)


def made_of(question_id: str) -> CaseSummaries:
    return CaseSummaries(
        question_id=question_id,
        epoch=1,
        case_id=f"case-{question_id}",
        attempt=1,
        exaid=ExaidRecord(),
        watched=Watched(),
    )


def record(
    question_id: str,
    predicted: str | None,
    gold: str = "C",
    *,
    level: str = "advanced",
    seconds: float = 31.2,
    tokens: int = 14_210,
    status: Status = Status.ANSWERED,
    error: str | None = None,
) -> SampleRecord:
    return SampleRecord.model_construct(
        question_id=question_id,
        case_id=f"case-{question_id}",
        epoch=1,
        difficulty=level,
        status=status,
        predicted=predicted,
        label=gold,
        correct=None if predicted is None else predicted == gold,
        error=error,
        votes={},
        wall_seconds=seconds,
        calls=9,
        token_usage=TokenUsageRecord(total_tokens=tokens),
        exaid=ExaidRecord(),
        left_out=[],
    )
