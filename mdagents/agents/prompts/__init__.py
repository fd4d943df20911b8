"""Prompts of the benchmark, one text file each; a folder holds those of the method of its name."""

from __future__ import annotations

from pathlib import Path

from exaid_core import prompts as exaid_prompts
from mdagents_llm.files.prompts import PromptFiles

PROMPTS = PromptFiles(Path(__file__).parent)
render = PROMPTS.render


def prompt_hashes(method: str, *, with_exaid: bool) -> dict[str, str]:
    """Return file name -> hash of every prompt that a run of a method can use."""
    hashes = dict(PROMPTS.hashes)
    own = PROMPTS.below(method).hashes.items()
    hashes |= {f"{method}/{name}": hash_ for name, hash_ in own}
    if with_exaid:
        hashes |= {f"exaid/{name}": hash_ for name, hash_ in exaid_prompts.PROMPTS.hashes.items()}
    return hashes
