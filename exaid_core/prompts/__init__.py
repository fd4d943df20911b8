"""The prompts of EXAID, one text file per prompt."""

from __future__ import annotations

from pathlib import Path

from mdagents_llm.files.prompts import PromptFiles

PROMPTS = PromptFiles(Path(__file__).parent)
