"""Runs on the fake provider that answers from the pixels: every method, every wire."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mdagents.teams.names import baseline_names
from mdagents.teams.train_split import Embedding
from mdagents_llm.config import Environment
from tests.fake_provider import FakeProvider, answer_from_pixels
from tests.support.embedders import WordEmbedder
from tests.support.whole_runs import asked_for

OWN_METHOD = """
from mdagents import Decision, Method, Stated, TeamRole
from mdagents.agents import replies

@Method(roles=(TeamRole.EXPERT, TeamRole.DECISION), depth=2)
async def solve(case, question, settings):
    form = replies.opinion(question.letters, 50)
    one = case.expert("expert-1", "Radiologist", "Films.")
    opinion = await one.ask("Your task: look and choose.", form, phase="opinion")
    two = case.decider("second", "Second reader", TeamRole.DECISION)
    verdict = await two.ask("Your task: decide.", form, phase="decide", shared=opinion.reasoning)
    stated = (Stated.by(one, opinion), Stated.by(two, verdict))
    return Decision(verdict.answer, verdict.reasoning, opinions=stated)
"""
"""Source of a user's method."""

METHODS = (
    "adaptive", "basic", "intermediate", "advanced", "disagreement", *baseline_names(), "own",
)  # fmt: skip
"""All ways in which a question can be answered."""
WIRES = {
    "chat": ("--model", "openai/gpt-4.1-mini"),
    "responses": ("--model", "openai/gpt-4.1-mini", "--api", "responses"),
    "anthropic": ("--model", "anthropic/claude-haiku-4-5"),
    "gemini": ("--model", "google/gemini-2.5-flash-lite"),
}
"""Wire -> the flags that choose a model on it."""


def flags_of(method: str, wire: str = "chat") -> list[str]:
    """The flags for a method on a wire; a file of the working directory holds the own method."""
    model = list(WIRES[wire])
    if method == "own":
        Path("two_readers.py").write_text(OWN_METHOD)
        return ["--method", "two_readers.py", *model]
    if method == "disagreement":
        return ["--router", "disagreement", *model]
    if method not in baseline_names():
        return ["--difficulty", method, *model]
    if method == "reconcile" and wire != "chat":
        name = model[1]
        other = {"responses": "openai/gpt-4o-mini", "anthropic": "anthropic/claude-sonnet-4-5",
                 "gemini": "google/gemini-2.5-flash"}[wire]  # fmt: skip
        seats = ["--model-role", f"expert-1={name}", "--model-role", f"expert-2={other}"]
        return ["--method", "reconcile", *seats, *model]
    return [*asked_for(method), *model]


def settings_of(provider: FakeProvider) -> dict[str, str]:
    """The variables with which all wires lead to a provider."""
    return {
        "OPENAI_API_KEY": "test-key",
        "OPENAI_BASE_URL": provider.openai_base_url,
        "ANTHROPIC_API_KEY": "test-key",
        "ANTHROPIC_BASE_URL": provider.anthropic_base_url,
        "GOOGLE_API_KEY": "test-key",
        "GOOGLE_GEMINI_BASE_URL": provider.gemini_base_url,
        "MDAGENTS_EXAID": "off",
    }


def look(provider: FakeProvider) -> None:
    """Let a provider answer from the pixels; a request about pictures without one is a failure."""
    provider.field_policy = answer_from_pixels
    provider.must_see = lambda request: "Which word do the bands" in request.text


def word_embedding(environment: Environment) -> Embedding:
    """An embedding that needs no model, in place of `local_embedding`."""
    return Embedding(WordEmbedder(), Path("cache"))


Patch = Callable[[str, object], None]


def without_embedder(patch: Patch) -> None:
    """Let medprompt find its examples without a model.

    Args:
        patch: Sets an attribute by its dotted name, as that of `pytest.MonkeyPatch` does.
    """
    patch("mdagents.runs.plan.local_embedding", word_embedding)
