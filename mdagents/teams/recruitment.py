"""Recruitment of a panel: the recruiter's proposal, corrected by rule where it breaks one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mdagents.agents import replies
from mdagents.agents.case import Case
from mdagents.agents.prompts import render
from mdagents.agents.replies import CHARS_PER_WORD, EXPERTISE_WORDS
from mdagents.settings import TeamRole
from mdagents.teams.clipping import clip
from mdagents_llm.errors import StructuredOutputError

PHASE = "recruit"


@dataclass(frozen=True, slots=True)
class Profile:
    """A recruited clinician."""

    role: str
    expertise: str
    reports_to: str | None = None
    """Role of the expert above; None when independent."""


@dataclass(frozen=True, slots=True)
class TeamMember:
    """A clinician of a multidisciplinary team."""

    role: str
    expertise: str
    lead: bool


@dataclass(frozen=True, slots=True)
class TeamPlan:
    """A multidisciplinary team with exactly one lead."""

    name: str
    purpose: str
    kind: str
    """Kind of the team: `initial`, `specialist` or `final_review`."""
    members: tuple[TeamMember, ...]


FALLBACK_EXPERTS = (
    Profile("General Internist", "Diagnosis and treatment of adult disease across organ systems."),
    Profile("Emergency Physician", "Recognition and first treatment of what cannot wait."),
    Profile("Family Physician", "Common conditions at all ages, prevention and follow-up."),
)
"""Panel to use when the recruiter's reply cannot be used, repeated as often as needed."""


async def recruit_experts(
    case: Case,
    count: int,
    *,
    prompt: str = "recruit_experts",
    by: TeamRole = TeamRole.RECRUITER,
) -> list[Profile]:
    """Recruit `count` experts of equal authority, no two with the same name.

    Args:
        case: Case in progress.
        count: Number of experts.
        prompt: Name of the prompt that describes the experts to recruit.
        by: Role whose model is asked.
    """
    recruiter = case.decider("recruiter", "Recruiter", by)
    task = render(prompt, count=count, expertise_words=EXPERTISE_WORDS)
    try:
        reply = await recruiter.ask(task, replies.recruitment(count), phase=PHASE)
    except StructuredOutputError as error:
        return _fallback(case, count, error)
    return _numbered(case, [Profile(e.role, _brief(e.expertise)) for e in reply.experts])


async def recruit_ranked_experts(case: Case, count: int) -> list[Profile]:
    """Recruit `count` specialists with a hierarchy between them that has no cycle."""
    recruiter = case.decider("recruiter", "Recruiter", TeamRole.RECRUITER)
    task = render("recruit_ranked_experts", count=count, expertise_words=EXPERTISE_WORDS)
    try:
        reply = await recruiter.ask(task, replies.ranked_recruitment(count), phase=PHASE)
    except StructuredOutputError as error:
        return _fallback(case, count, error)
    profiles = [Profile(e.role, _brief(e.expertise), e.reports_to) for e in reply.experts]
    return _with_hierarchy(case, _numbered(case, profiles))


async def recruit_teams(case: Case, count: int, size: int) -> list[TeamPlan]:
    """Recruit `count` teams of `size` members with one lead each.

    One team is an IAT; with two or more teams, another is an FRDT.
    """
    recruiter = case.decider("recruiter", "Recruiter", TeamRole.RECRUITER)
    task = render("recruit_teams", count=count, size=size, expertise_words=EXPERTISE_WORDS)
    try:
        reply = await recruiter.ask(task, replies.teams(count, size), phase=PHASE)
    except StructuredOutputError as error:
        return _fallback_teams(case, count, size, error)
    plans = [
        TeamPlan(
            team.name,
            _brief(team.purpose),
            team.kind,
            tuple(TeamMember(m.role, _brief(m.expertise), m.lead) for m in team.members),
        )
        for team in reply.teams
    ]
    return _with_kinds(case, [_with_one_lead(case, plan) for plan in plans])


def _brief(text: str) -> str:
    """Shorten the description of a persona or a team, whose tokens count in each of its prompts."""
    return clip(text, EXPERTISE_WORDS * CHARS_PER_WORD)


def _fallback(case: Case, count: int, error: StructuredOutputError) -> list[Profile]:
    case.repairs.append(f"recruitment replaced by the fallback panel: {error}")
    copies = -(-count // len(FALLBACK_EXPERTS))
    profiles = list(FALLBACK_EXPERTS * copies)[:count]
    return [
        replace(profile, role=role)
        for profile, role in zip(profiles, _unique(p.role for p in profiles), strict=True)
    ]


def _fallback_teams(
    case: Case, count: int, size: int, error: StructuredOutputError
) -> list[TeamPlan]:
    profiles = _fallback(case, size, error)
    members = tuple(TeamMember(p.role, p.expertise, lead=i == 0) for i, p in enumerate(profiles))
    kinds = ["initial", *["specialist"] * (count - 2), "final_review"][:count]
    names = {
        "initial": ("Initial Assessment Team", "assess the question first"),
        "specialist": ("Specialist Team", "assess the question in depth"),
        "final_review": ("Final Review and Decision Team", "review the reports of the others"),
    }
    return [TeamPlan(*names[kind], kind, members) for kind in kinds]


def _unique(names: Iterable[str]) -> list[str]:
    """Return the names made unique: the second `Cardiologist` becomes `Cardiologist 2`."""
    taken: set[str] = set()
    result = []
    for name in names:
        clean = " ".join(name.split()) or "Clinician"
        candidate, number = clean, 1
        while candidate.lower() in taken:
            number += 1
            candidate = f"{clean} {number}"
        taken.add(candidate.lower())
        result.append(candidate)
    return result


def _numbered(case: Case, profiles: Sequence[Profile]) -> list[Profile]:
    roles = _numbered_roles(case, [profile.role for profile in profiles])
    return [replace(profile, role=role) for profile, role in zip(profiles, roles, strict=True)]


def _numbered_roles(case: Case, roles: Sequence[str]) -> list[str]:
    """Return the roles made unique, and record each change as a repair."""
    unique = _unique(roles)
    for before, after in zip(roles, unique, strict=True):
        if after != " ".join(before.split()):
            case.repairs.append(f"role named twice or empty: '{before}' became '{after}'")
    return unique


def _with_hierarchy(case: Case, profiles: Sequence[Profile]) -> list[Profile]:
    """Resolve who reports to whom; an unknown role or a cycle becomes independent."""
    roles = {profile.role.lower(): profile.role for profile in profiles}
    above: dict[str, str | None] = {}
    for profile in profiles:
        wanted = _parent(profile)
        above[profile.role] = roles.get(wanted.lower()) if wanted else None
        if wanted and above[profile.role] is None:
            case.repairs.append(f"{profile.role} reports to nobody on the panel: independent")
    for role in above:
        if _in_cycle(role, above):
            case.repairs.append(f"hierarchy is a cycle at {role}: independent")
            above[role] = None
    return [replace(profile, reports_to=above[profile.role]) for profile in profiles]


def _parent(profile: Profile) -> str | None:
    """Return the role above, such as `Cardiologist`; None when independent.

    The model states it as a role, `Independent`, or a chain `Pediatrician > Cardiologist`.
    """
    chain = [" ".join(part.split()) for part in (profile.reports_to or "").split(">")]
    chain = [part for part in chain if part.lower() not in ("", "independent", "none", "null")]
    own = [i for i, part in enumerate(chain) if part.lower() == profile.role.lower()]
    if own:
        return chain[own[0] - 1] if own[0] > 0 else None
    return chain[-1] if chain else None


def _in_cycle(role: str, above: Mapping[str, str | None]) -> bool:
    seen = {role}
    parent = above[role]
    while parent is not None and parent not in seen:
        seen.add(parent)
        parent = above[parent]
    return parent == role


def _with_one_lead(case: Case, plan: TeamPlan) -> TeamPlan:
    leads = [i for i, member in enumerate(plan.members) if member.lead]
    if len(leads) != 1:
        case.repairs.append(
            f"{plan.name} had {len(leads)} leads: {plan.members[(leads or [0])[0]].role} leads"
        )
    lead = leads[0] if leads else 0
    roles = _numbered_roles(case, [member.role for member in plan.members])
    members = tuple(
        replace(member, role=role, lead=i == lead)
        for i, (member, role) in enumerate(zip(plan.members, roles, strict=True))
    )
    return replace(plan, members=members)


def _with_kinds(case: Case, plans: Sequence[TeamPlan]) -> list[TeamPlan]:
    """Ensure that exactly one team assesses first and, with two or more teams, one reviews last."""
    everyone = range(len(plans))
    candidates = [i for i in everyone if plans[i].kind == "initial"]
    candidates += [i for i in everyone if plans[i].kind != "final_review"]
    first = candidates[0] if candidates else 0
    others = [i for i in everyone if i != first]
    reviewers = [i for i in others if plans[i].kind == "final_review"]
    last = (reviewers or others)[-1] if others else None
    result = []
    for i, plan in enumerate(plans):
        kind = "specialist"
        if i == first:
            kind = "initial"
        elif i == last:
            kind = "final_review"
        if kind != plan.kind:
            case.repairs.append(f"{plan.name} was planned as {plan.kind}: became {kind}")
        result.append(replace(plan, kind=kind))
    return result
