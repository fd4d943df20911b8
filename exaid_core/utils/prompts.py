"""A second import path of `exaid_core.prompts`."""

from exaid_core.prompts import PROMPTS

__all__ = ["PROMPTS"]
