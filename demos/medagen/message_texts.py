"""Texts of the page and the report, in both languages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files

import yaml

from demos.medagen.schemas import Language

_PACKAGE = "demos.medagen"


class Wording:
    """Texts by key: those of the page, and the explanation of each triage rule.

    Args:
        texts: Key -> language -> text.
    """

    def __init__(self, texts: Mapping[str, Mapping[str, str]]) -> None:
        self.texts = texts

    def text(self, key: str, language: Language) -> str:
        """Return a text; for an unknown key, the part after its first dot, as words."""
        known = self.texts.get(key)
        return known[language] if known else key.partition(".")[2].replace("_", " ")


def load_wording() -> Wording:
    """Load the texts that ship with the program."""
    folder = files(_PACKAGE)
    texts = json.loads(folder.joinpath("page/words.json").read_text(encoding="utf-8"))
    rules = yaml.safe_load(folder.joinpath("rules.yaml").read_text(encoding="utf-8"))["rules"]
    return Wording(texts | {f"rule.{rule['id']}": rule["says"] for rule in rules})
