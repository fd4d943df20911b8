"""The prompts of the benchmark: one text file each."""

from __future__ import annotations

from pathlib import Path

from exaid_core import prompts as exaid_prompts
from infra.files.prompts import PromptFiles

PROMPTS = PromptFiles(Path(__file__).parent)
render = PROMPTS.render


def prompt_hashes(*, with_exaid: bool) -> dict[str, str]:
    """Return file name -> hash of every prompt that a run can use."""
    hashes = dict(PROMPTS.hashes)
    if with_exaid:
        hashes |= {f"exaid/{name}": hash_ for name, hash_ in exaid_prompts.PROMPTS.hashes.items()}
    return hashes
