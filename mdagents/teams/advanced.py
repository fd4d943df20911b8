"""The advanced team: multidisciplinary teams (MDTs), the last of which reviews, and a coordinator.

Calls: 1 + M(1 + (K-1) + 1) + 1. Depth 8: recruit; delegate, investigate and synthesize, in all
teams but the review team at once; the same three steps in the review team, which receives the
reports of the others and the task to review them; coordinate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mdagents.agents import replies
from mdagents.agents.agent import Agent
from mdagents.agents.case import Case, ModelError
from mdagents.agents.events import Member, Recruited
from mdagents.agents.prompts import render
from mdagents.agents.replies import CHARS_PER_WORD, DISSENT_WORDS, Investigation
from mdagents.datasets.questions import Question
from mdagents.settings import Peers, TeamRole, TeamSettings
from mdagents.teams.clipping import clip
from mdagents.teams.decision import Decision, Finding, ReportedTeam
from mdagents.teams.declaration import Method
from mdagents.teams.peers import defend, noise
from mdagents.teams.recruitment import TeamPlan, recruit_teams

ON_ONES_OWN = "Investigate what your specialty can contribute to the question."
"""Task of an assistant when the lead's delegation fails."""


@Method(
    depth=8,
    reads=(
        "teams",
        "team_size",
        "delegate_words",
        "investigate_words",
        "synthesise_words",
        "verdict_words",
    ),
    controls=True,
)
async def solve(
    case: Case, question: Question, settings: TeamSettings, *, known: str = ""
) -> Decision:
    """Recruit M teams, let them report, let the review team review, let a coordinator decide.

    Args:
        case: Case in progress.
        question: Question to answer.
        settings: Numbers of the teams.
        known: Earlier findings, shown to all agents except the recruiter, such as the end of a
            debate.

    Raises:
        ProviderError, StructuredOutputError: No team reported, or the coordinator did not reply.
    """
    plans = await recruit_teams(case, settings.teams, settings.team_size)
    mdts = [
        Mdt(case, question, settings, plan, number, known) for number, plan in enumerate(plans, 1)
    ]
    case.tell(Recruited(tuple(member for mdt in mdts for member in mdt.members())))
    reviewers = [mdt for mdt in mdts if mdt.plan.kind == "final_review"]
    assessors = [mdt for mdt in mdts if mdt not in reviewers]

    reports = assessed = await _reports(case, assessors)
    peers = settings.peers
    if reviewers:
        under_review = "" if peers is Peers.NONE else _compiled(reports, peers, question)
        defend([mdt.lead for mdt in reviewers], question, peers)
        reports = reports + await _reports(case, reviewers, under_review, required=False)

    coordinator = case.decider("coordinator", "Coordinator", TeamRole.DECISION)
    verdict = await coordinator.ask(
        render("coordinate", words=settings.verdict_words, letters=question.letters),
        replies.verdict(question.letters, settings.verdict_words),
        phase="coordinate",
        shared=_blocks(known, _compiled(assessed if peers is Peers.FRESH else reports, peers)),
    )
    return Decision(letter=verdict.answer, analysis=verdict.analysis, teams=tuple(reports))


class Mdt:
    """A multidisciplinary team at work; its agents are the lead, then the assistants."""

    def __init__(
        self,
        case: Case,
        question: Question,
        settings: TeamSettings,
        plan: TeamPlan,
        number: int,
        known: str = "",
    ) -> None:
        self.case = case
        self.plan = plan
        self._known = known
        self._letters = question.letters
        self._settings = settings
        prefix = {"initial": "iat", "final_review": "frdt"}.get(plan.kind, f"mdt{number}")
        members = sorted(plan.members, key=lambda member: not member.lead)
        agents = [
            case.expert(f"{prefix}-{place}", member.role, member.expertise)
            for place, member in enumerate(members, start=1)
        ]
        self.lead, self.assistants = agents[0], agents[1:]
        self._phase = prefix

    def members(self) -> list[Member]:
        """Return the members of the team, the lead first."""
        agents = (self.lead, *self.assistants)
        return [Member(agent.id, agent.role, team=self.plan.name) for agent in agents]

    async def report(self, under_review: str) -> ReportedTeam:
        """Let the lead delegate, the assistants investigate at once, and the lead synthesize.

        Args:
            under_review: Reports of the other teams for this team to review; empty when it assesses
                the question itself.

        Raises:
            ProviderError, StructuredOutputError: The lead's synthesis failed.
        """
        instructions, investigations = "", list[tuple[Agent, Investigation]]()
        if self.assistants:
            instructions = await self._delegate(under_review)
            investigations = await self._investigate(instructions, under_review)
        task = self._task(
            "synthesise",
            under_review,
            investigations=self._reported(investigations),
            words=self._settings.synthesise_words,
            dissent_words=DISSENT_WORDS,
            letters=self._letters,
        )
        reply = replies.team_report(self._letters, self._settings.synthesise_words)
        conclusion = await self.lead.ask(
            task,
            reply,
            phase=f"{self._phase}-synthesise",
            shared=_blocks(self._known, under_review),
        )
        return ReportedTeam(
            name=self.plan.name,
            purpose=self.plan.purpose,
            kind=self.plan.kind,
            members=(self.lead.id, *(assistant.id for assistant in self.assistants)),
            instructions=instructions,
            investigations=tuple(
                Finding(agent.id, reply.findings) for agent, reply in investigations
            ),
            findings=conclusion.findings,
            answer=conclusion.answer,
            dissent=conclusion.dissent,
        )

    async def _delegate(self, under_review: str) -> str:
        phase, words = f"{self._phase}-delegate", self._settings.delegate_words
        assistants = "; ".join(assistant.role for assistant in self.assistants)
        task = self._task("delegate", under_review, assistants=assistants, words=words)
        try:
            reply = await self.lead.ask(
                task,
                replies.delegation(words),
                phase=phase,
                shared=_blocks(self._known, under_review),
            )
        except ModelError as error:
            self.case.leave_out(self.lead, phase, error)
            return ON_ONES_OWN
        return reply.instructions

    async def _investigate(
        self, instructions: str, under_review: str
    ) -> list[tuple[Agent, Investigation]]:
        phase, words = f"{self._phase}-investigate", self._settings.investigate_words
        shared = _blocks(self._known, under_review)
        task = self._task("investigate", under_review, instructions=instructions, words=words)

        async def investigate(assistant: Agent) -> Investigation:
            return await assistant.ask(
                task, replies.investigation(words), phase=phase, shared=shared
            )

        return await self.case.ask_all(self.assistants, phase, investigate, required=False)

    def _task(self, step: str, under_review: str, **fields: object) -> str:
        name = f"review_{step}" if under_review else step
        return render(name, team=self.plan.name, purpose=self.plan.purpose, **fields)

    def _reported(self, investigations: Sequence[tuple[Agent, Investigation]]) -> str:
        if not investigations:
            return f"Its purpose: {self.plan.purpose}\nYou work alone."
        lines = [f"- {agent.role}: {reply.findings}" for agent, reply in investigations]
        return "\n".join(["Your assistants report:", *lines])


async def _reports(
    case: Case, mdts: Sequence[Mdt], under_review: str = "", *, required: bool = True
) -> list[ReportedTeam]:
    """Return the reports of concurrent teams; one whose lead fails is left out and named."""
    team_of = {mdt.lead: mdt for mdt in mdts}

    async def report(lead: Agent) -> ReportedTeam:
        return await team_of[lead].report(under_review)

    reported = await case.ask_all(list(team_of), "team-report", report, required=required)
    return [report for _, report in reported]


_HEADINGS = {
    "initial": "[Initial Assessments]",
    "specialist": "[Specialist Team Assessments]",
    "final_review": "[Final Review]",
}


def _compiled(
    reports: Sequence[ReportedTeam], peers: Peers, question: Question | None = None
) -> str:
    """Return all reports under the headings of the protocol.

    Args:
        reports: Reports of teams.
        peers: What is shown of them.
        question: Question that a review team reviews them for; None: the coordinator reads them.
    """
    names = [report.name for report in reports]
    if peers is Peers.SHUFFLED:
        names = [*names[1:], *names[:1]]
    sections = []
    for kind, heading in _HEADINGS.items():
        lines = [
            _line(replace(report, name=name), peers, question)
            for report, name in zip(reports, names, strict=True)
            if report.kind == kind
        ]
        if lines:
            sections.append("\n".join([heading, *lines]))
    return "\n\n".join(sections)


def _blocks(*blocks: str) -> str:
    return "\n\n".join(block for block in blocks if block)


def _line(report: ReportedTeam, peers: Peers, question: Question | None) -> str:
    if peers is Peers.NOISE and question is not None:
        return f"{report.name}: {noise(question.text, report.name, len(report.findings))}"
    name = "A team" if peers is Peers.BLIND else report.name
    line = f"{name}: {report.findings} (answer {report.answer}"
    if report.dissent.strip(" .").lower() not in ("", "none"):
        line += f"; dissent: {clip(report.dissent, DISSENT_WORDS * CHARS_PER_WORD)}"
    return f"{line})"
