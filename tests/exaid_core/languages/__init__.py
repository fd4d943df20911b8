"""Clinical texts in several languages, in words of our own."""

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Sample:
    """A text and the ISO 639-1 code of its language."""

    language: str
    text: str


SAMPLES = [
    Sample(path.stem, **record)
    for path in sorted(Path(__file__).parent.glob("*.json"))
    for record in json.loads(path.read_text("utf-8"))
]
