"""The prompts of the four agents."""

from pathlib import Path

from infra.files.prompts import PromptFiles

PROMPTS = PromptFiles(Path(__file__).parent)
