"""The identity of a run: a hash over everything that can change a result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from mdagents.agents.prompts import PROMPTS, prompt_hashes
from mdagents.runs.config import RunConfig
from mdagents.runs.run_pictures import NO_PICTURES, PlannedPictures
from mdagents.settings import DebatePolicy, OptionOrder, Peers, Router
from mdagents.teams.peers import noise_sha256


def identity(
    config: RunConfig,
    models: Mapping[str, str],
    items_hash: str,
    exemplars_hash: str = "",
    source_hash: str = "",
    pictures: PlannedPictures = NO_PICTURES,
    *,
    modules: Mapping[str, str] | None = None,
) -> str:
    """Return the SHA-256 over everything that can change a result.

    Args:
        config: Configuration of the run.
        models: Role -> model and endpoint, as chosen.
        items_hash: Hash of the selected questions.
        exemplars_hash: Hash of the questions that exemplars are taken from; empty for none.
        source_hash: Hash of the source of a user-defined method, regardless of its location;
            empty for built-in methods.
        pictures: Pictures of the selected questions.
        modules: Hashes of the user's own modules that a user-defined method imports; None for none.
    """
    content: dict[str, Any] = {
        "items": items_hash,
        "exemplars": exemplars_hash,
        "option_order": _permutations(config),
        "seed": config.seed,
        "epochs": config.epochs,
        "models": dict(models),
        "level": config.difficulty,
        "method": config.method_name,
        "team": asdict(config.team),
        "skip": config.skip,
        "prompts": prompt_hashes(config.method, with_exaid=config.exaid_policy is not None),
        "exaid": config.exaid_policy,
    }
    # Settings that earlier versions lacked are added only where they matter, so that runs of
    # these versions can be resumed.
    if source_hash:
        content["source"] = source_hash
    if modules:
        content["modules"] = dict(modules)
    if config.router is not Router.LLM:
        content |= {"router": config.router, "agreement": config.least_agreement}
    if pictures.questions:
        content["images"] = config.images
    if pictures.sha256:
        content["pictures"] = pictures.sha256, *_how_shown(config)
    if "answer_rounds" not in config.declared.reads:
        del content["team"]["answer_rounds"]
    if config.debate_policy is DebatePolicy.ALWAYS:
        del content["team"]["debate_policy"]
    if config.peers is Peers.ALL:
        del content["team"]["peers"]
    else:
        content["prompts"] |= PROMPTS.below("peers").hashes
    if config.peers is Peers.NOISE:
        content["noise"] = noise_sha256()
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _how_shown(config: RunConfig) -> tuple[object, ...]:
    return config.image_agents, config.image_detail, config.image_max_pixels


def _permutations(config: RunConfig) -> str:
    """Return the effective `option_order`: `same` changes nothing in a run with one epoch."""
    if config.option_order is OptionOrder.SHUFFLED and config.epochs > 1:
        return "of each epoch"
    if config.option_order is OptionOrder.SAME:
        return OptionOrder.SHUFFLED.value
    return config.option_order.value
