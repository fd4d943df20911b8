"""The prompts of the four agents."""

from pathlib import Path

from mdagents_llm.files.prompts import PromptFiles

PROMPTS = PromptFiles(Path(__file__).parent)
