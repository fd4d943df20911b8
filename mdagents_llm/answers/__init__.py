"""Parses the option that a model's reply chose, never a letter that it does not commit to."""

from mdagents_llm.answers.parser import ParsedAnswer, ParseMethod, parse_answer

__all__ = ["ParseMethod", "ParsedAnswer", "parse_answer"]
