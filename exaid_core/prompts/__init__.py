"""The prompts of EXAID: one text file each."""

from __future__ import annotations

from pathlib import Path

from mdagents_llm.files.prompts import PromptFiles

PROMPTS = PromptFiles(Path(__file__).parent)
