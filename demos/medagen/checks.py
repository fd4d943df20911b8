"""Checks of a model's text, in both languages, before a user sees it.

No dose, no medicine to take, no diagnosis stated as certain, and nothing that keeps the user from
care. Sentences with such a fault are removed. The checks are a word-based heuristic and only one
layer of defense.
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum

from demos.medagen.dictionary import fold
from demos.medagen.schemas import Language
from demos.medagen.tokenizer import split

_SENTENCE = re.compile(r"(?<=[.!?…])\s+|\n+")
_FEW = 4
"""Number of words from which the language of a text can be judged."""

_UNIT = r"(?:mg|mcg|µg|μg|g|gram|grams|ml|cc|iu|units?|vien|tablets?|pills?|capsules?|drops?|giot|puffs?|nhat xit|lieu|doses?|ong|goi|sachets?|teaspoons?|tsp|tablespoons?|muong|thia)"  # noqa: E501 - one list
_NUMBER = r"(?:\d+(?:[.,/]\d+)?|(?:one|two|three|four|half|mot|hai|ba|bon|nua)\b)"
_MEDICINE = r"""
    paracetamol|acetaminophen|tylenol|panadol|efferalgan|hapacol|ibuprofen|advil|nurofen|aspirin|
    naproxen|diclofenac|voltaren|codeine|tramadol|morphine|oxycodone|
    \w{2,}cillin|augmentin|\w{2,}mycin|\w{2,}floxacin|cef\w{3,}|ceph\w{3,}|\w{2,}cycline|
    metronidazole|\w{2,}prazole|\w{2,}sartan|\w{2,}statin|\w{3,}olol|\w{3,}dipine|metformin|insulin|
    warfarin|prednis\w+|dexamethasone|\w{3,}sone|loratadine|cetirizine|fexofenadine|loperamide|
    smecta|salbutamol|ventolin|albuterol|nitroglycerin\w*|diazepam|\w{3,}azepam|\w{3,}oxetine|
    sertraline|antibiotics?|khang\ sinh|steroids?|corticoid\w*|thuoc\ giam\ dau|thuoc\ ha\ sot|
    painkillers?|antihistamines?|thuoc\ chong\ di\ ung|thuoc\ ngu|sleeping\ pills?
"""
_DISEASE = r"""
    \w{3,}itis|\w{3,}emia|\w{3,}aemia|\w{3,}oma|heart\ attack|stroke|myocardial\ infarction|
    pneumonia|cancer|tumou?r|flu|influenza|covid\S*|dengue|malaria|tuberculosis|infection|fracture|
    diabetes|asthma|copd|embolism|thrombosis|sepsis|anaphylaxis|migraine|angina|epilepsy|hernia|
    depression|torsion|preeclampsia|ulcer|gout|shingles|measles|chickenpox|hypertension|
    viem|nhoi\ mau|dot\ quy|tai\ bien|ung\ thu|gay\ xuong|sot\ xuat\ huyet|nhiem\ trung|suy\ \w+|
    tieu\ duong|dai\ thao\ duong|cum|hen|lao|thuyen\ tac|soc|dong\ kinh|thoat\ vi|tram\ cam|xoan|
    tien\ san\ giat|loet|gut|zona|soi|thuy\ dau|tang\ huyet\ ap|benh
"""
_MAYBE = re.compile(
    r"\b(?:may|might|could|can|possibl\w+|perhaps|if|whether|suspect\w*|sign|signs|suggest\w*|"
    r"risk|rule out|like|such as|likely|cannot|not|co the|nghi|neu|kha nang|dau hieu|nguy co|"
    r"khong|chua|loai tru|giong|goi y|phong)\b"
)
_DENIED = re.compile(
    r"\b(?:do not|dont|don't|never|avoid|without|not|không|khong|tránh|đừng|chưa|chua|ngưng)\b"
)


class Fault(StrEnum):
    """Reason why a sentence must not be shown."""

    DOSE = "dose"
    MEDICINE = "medicine to take"
    DIAGNOSIS = "diagnosis as certain"
    KEEPS_FROM_CARE = "keeps from care"


_DOSE = re.compile(
    rf"""
    \b{_NUMBER}\s*{_UNIT}\b(?!\s*/\s*(?:dl|l)\b)
    | \b(?:every|each)\s+{_NUMBER}\s+hours?\b
    | \b(?:{_NUMBER}|twice|once)\s+(?:times\s+)?(?:a|per|each|every)\s+(?:day|daily)\b
    | \b(?:moi|cach)\s+{_NUMBER}\s+(?:gio|tieng)\b
    | \b(?:ngay|moi\ ngay)\s+{_NUMBER}\s+lan\b | \b{_NUMBER}\s+lan\s*(?:/|mot|moi)\s*ngay\b
    """,
    re.VERBOSE,
)
_TAKE = re.compile(
    rf"""
    \b(?:take|taking|took|use|using|give|giving|start|starting|prescribe\w*|inject\w*|swallow|try|
      need|needs|uong|dung|su\ dung|cho|boi|tiem|ke|toa|mua|can)\b
    (?:\s+\S+){{0,6}}?\s+\(?(?:{_MEDICINE})\b
    | \b(?:{_MEDICINE})\b(?:\s+\S+){{0,3}}?\s+(?:will\ help|helps?|can\ help|is\ recommended|
      la\ duoc|se\ giup|giup|co\ the\ giup)\b
    | \b(?:i\ prescribe|prescription\ (?:for|of)|ke\ don|don\ thuoc)\b
    """,
    re.VERBOSE,
)
_CERTAIN = re.compile(
    rf"""
    \b(?:you|he|she|they|your\ \w+|patient|this|it|that)\s+(?:have|has|had|are|is|got|suffer\w*)\s+
      (?:\S+\s+){{0,3}}?(?:{_DISEASE})\b
    | \b(?:diagnosis|diagnosed)\s+(?:is|with|as|of)\b
    | \b(?:definitely|certainly|clearly|surely|undoubtedly|obviously|no\ doubt)\b
    | \b(?:ban|anh|chi|em|ong|ba|be|chau|benh\ nhan|day|do)\s+(?:da\s+|dang\s+)?(?:bi|mac|la)\s+
      (?:benh\s+|con\s+|chung\s+)?(?:{_DISEASE})\b
    | \b(?:chan\ doan)\s+(?:la|xac\ dinh|:)
    | \b(?:chac\ chan|ro\ rang|nhat\ dinh)\b
    """,
    re.VERBOSE,
)
_STAY_AWAY = re.compile(
    r"\b(?:no need|not necessary|unnecessary|dont need|do not need|don't need|neednt|need not)\b"
    r"[^.]{0,40}\b(?:doctor|hospital|care|help|emergency|seen|ambulance|clinic|check)\b"
    r"|\bnothing (?:serious|to worry)\b|\b(?:dont|do not|don't) (?:worry|go to|call|see)\b"
    r"|\bkhong can[^.]{0,40}\b(?:kham|bac si|benh vien|cap cuu|lo|vien)\b"
    r"|\b(?:dung|khong phai|khong can) lo\b|\bkhong (?:co gi )?nghiem trong\b"
    r"|\b(?:dung|khong nen) (?:di|den|goi)\b"
)


def faults(sentence: str) -> set[Fault]:
    """Return the faults of a sentence; empty if it may be shown."""
    written = _written(sentence)
    plain = "".join(fold(letter) or letter for letter in written)  # keeps the length of `written`
    found: set[Fault] = set()
    if _DOSE.search(plain):
        found.add(Fault.DOSE)
    if any(not _DENIED.search(written[: one.end()]) for one in _TAKE.finditer(plain)):
        found.add(Fault.MEDICINE)
    if _CERTAIN.search(plain) and not _MAYBE.search(plain):
        found.add(Fault.DIAGNOSIS)
    if _STAY_AWAY.search(plain):
        found.add(Fault.KEEPS_FROM_CARE)
    return found


def allowed(text: str) -> str:
    """Return a text without its faulty sentences."""
    kept = [part for part in _SENTENCE.split(text) if part.strip() and not faults(part)]
    return " ".join(part.strip() for part in kept)


def is_in(text: str, language: Language) -> bool:
    """Return whether a text is in a language. Texts of very few words always pass."""
    words = split(text)
    return sum(word.isalpha() for word in words.words) < _FEW or words.language is language


def _written(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).lower().replace("’", "'").split())
