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

_UNIT = r"""(?:
    mgs?|mcg|µg|μg|g|ml|cc|iu|units?|grams?|milligrams?|micrograms?|millilit(?:er|re)s?|miligam|
    mililit|vien|tablets?|pills?|capsules?|drops?|giot|puffs?|sprays?|nhat\ xit|lieu|doses?|ong|
    goi|sachets?|teaspoons?|tsp|tablespoons?|muong|thia
)"""
_NUMBER = r"""(?:
    \d+(?:[.,/]\d+)*|(?:an?\ )?half|
    (?:one|two|three|four|five|six|eight|ten|twelve|mot|hai|ba|bon|nam|sau|tam|nua)\b
)"""
_MEDICINE = r"""
    paracetamol|acetaminophen|tylenol|panadol|efferalgan|hapacol|ibuprofen|advil|nurofen|aspirin|
    naproxen|diclofenac|voltaren|codeine|tramadol|morphine|oxycodone|
    \w{2,}cillin|augmentin|\w{2,}mycin|\w{2,}floxacin|cef\w{3,}|ceph\w{3,}|\w{2,}cycline|
    metronidazole|\w{2,}prazole|\w{2,}sartan|\w{2,}statin|\w{3,}olol|\w{3,}dipine|metformin|insulin|
    warfarin|prednis\w+|dexamethasone|\w{3,}sone|loratadine|cetirizine|fexofenadine|loperamide|
    smecta|salbutamol|ventolin|albuterol|nitroglycerin\w*|diazepam|\w{3,}azepam|\w{3,}oxetine|
    sertraline|antibiotics?|khang\ sinh|steroids?|corticoid\w*|thuoc\ giam\ dau|thuoc\ ha\ sot|
    painkillers?|antihistamines?|thuoc\ chong\ di\ ung|thuoc\ ngu|sleeping\ pills?|hydrocortisone|
    imodium|benadryl|laxatives?|antacids?|decongestants?
"""
_DISEASE = r"""
    \w{3,}itis|\w{3,}emia|\w{3,}aemia|\w{3,}oma|heart\ attack|stroke|myocardial\ infarction|
    pneumonia|cancer|tumou?r|flu|influenza|covid\S*|dengue|malaria|tuberculosis|infection|fracture|
    diabetes|asthma|copd|embolism|thrombosis|sepsis|anaphylaxis|migraine|angina|epilepsy|hernia|
    depression|torsion|preeclampsia|ulcer|gout|shingles|measles|chickenpox|hypertension|
    viem|nhoi\ mau|dot\ quy|tai\ bien|ung\ thu|gay\ xuong|sot\ xuat\ huyet|nhiem\ trung|suy\ \w+|
    tieu\ duong|dai\ thao\ duong|cum|hen|lao|thuyen\ tac|soc|dong\ kinh|thoat\ vi|tram\ cam|xoan|
    tien\ san\ giat|loet|gut|zona|soi|thuy\ dau|tang\ huyet\ ap|benh|
    panic\ attack|anxiety|concussion|croup
"""
_MAYBE = re.compile(
    r"\b(?:may|might|could|can|possibl\w+|perhaps|if|whether|suspect\w*|sign|signs|suggest\w*|"
    r"risk|rule out|like|such as|likely|cannot|not|co the|nghi|neu|kha nang|dau hieu|nguy co|"
    r"khong|chua|loai tru|giong|goi y|phong)\b"
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
    | \b(?:twice|three\s+times)\s+daily\b
    | \b(?:moi|cach)\s+{_NUMBER}\s+(?:gio|tieng)\b
    | \b(?:ngay|moi\ ngay)\s+{_NUMBER}\s+lan\b | \b{_NUMBER}\s+lan\s*(?:/|mot|moi)\s*ngay\b
    """,
    re.VERBOSE,
)
_OBSERVED = re.compile(r"(?:check|measure|watch|look)\b[^.;:]*$")  # "… every two hours"
_NAMED = re.compile(rf"\b(?:{_MEDICINE})\b", re.VERBOSE)
# A medicine is named to be taken, unless the words before it say otherwise …
_NOT_TO_TAKE = re.compile(
    r"""
    \b(?:do\ not|don't|dont|never|avoid|without|not|no|stop|không|khong|tránh|đừng|chưa|chua|ngưng|
      ask|asks|tell|bring|mention|list|whether|which|allerg\w+|
      overdose|too\ (?:much|many)|prescribe[sd]|hoi|dem\ theo|di\ ung|qua\ lieu)\b
    [^.;:]*$
    | \bif\s+(?:you|he|she|they|your\ \w+)(?:\ (?:have|has|already))?\s*$
    | \b(?:doctors?|paramedics?|pharmacists?|ambulance|hospital|bac\ si|duoc\ si)\b[^.;:,]*$
    """,
    re.VERBOSE,
)
# … and have no other verb of taking behind them: "do not worry, take aspirin".
_TAKING = (
    r"(?:take|taking|took|use|using|give|giving|start|starting|inject\w*|swallow|try|chew|have|get|"
    r"apply|put|buy|recommend|suggest|consider|uong|dung|su dung|cho|boi|tiem|ke|toa|mua|nhai)"
)
_TAKE = re.compile(rf"\b{_TAKING}\b(?:\s+\S+){{0,6}}?\s*$")
_ASKED = re.compile(r"(?:do|did|have|has|are|is) (?:you|he|she|they|your \w+) .*\?$")
_TOO_MUCH = re.compile(r"\b(?:too (?:much|many)|more than|an overdose)\b")
_HARMFUL = re.compile(
    r"\s*\S{0,20}\s*(?:is|are|can|may|should|must|do|does)\s+"
    r"(?:not\b|unsafe|dangerous|harm|worsen|hide|mask|cause)"
)
_PRESCRIBED = re.compile(r"\b(?:i prescribe|prescription (?:for|of)|ke don|don thuoc)\b")
_CHANGED = re.compile(
    rf"""
    \b(?:stop|skip|double|halve|cut|hold|reduce|increase|raise|lower|change)\s+
      (?:taking\s+|using\s+)?(?:your|the|his|her)\s+(?:\S+\s+){{0,2}}?
      (?:dose|medicines?|medications?|tablets|pills|thinner|inhaler|{_MEDICINE})\b
    """,
    re.VERBOSE,
)
_IS = r"(?:'(?:s|re|ve)(?:\s+got)?|\s+(?:have|has|had|are|is|got|suffer\w*))"
_CERTAIN = re.compile(
    rf"""
    \b(?:you|he|she|they|your\ \w+|patient|this|it|that|these){_IS}\s+
      (?:\S+\s+){{0,3}}?(?:{_DISEASE})\b
    | \b(?:case\s+of|confirms?)\s+(?:\S+\s+)?(?:{_DISEASE})\b
    | \b(?:diagnosis|diagnosed)\s+(?:is|with|as|of)\b
    | \b(?:definitely|certainly|clearly|surely|undoubtedly|obviously|no\ doubt)\b
    | \b(?:ban|anh|chi|em|ong|ba|be|chau|benh\ nhan|day|do)\s+(?:da\s+|dang\s+)?(?:bi|mac|la)\s+
      (?:benh\s+|con\s+|chung\s+)?(?:{_DISEASE})\b
    | \b(?:chan\ doan)\s+(?:la|xac\ dinh|:)
    | \b(?:chac\ chan|ro\ rang|nhat\ dinh)\b
    """,
    re.VERBOSE,
)
_CARE = (
    r"(?:doctors?|hospital|care|help|emergency|seen|ambulance|clinic|check|er|ed|a&e|gp|physician|"
    r"nurse|specialist|medical|911|999|112|115)\b"
)
_STAY_AWAY = re.compile(
    r"\b(?:no (?:need|reason|point)|not necessary|unnecessary|needn't|neednt|need not|skip|"
    r"not? bother|(?:do|does|did)(?: not|n't|nt) (?:\w+ly )?(?:need|have to|require|bother))\b"
    rf"(?! to be afraid)[^.;]{{0,40}}\b{_CARE}"
    rf"|\binstead of (?:going to |calling |seeing )?(?:the |an? |your )?{_CARE}"
    rf"|\b{_CARE}[^.;]{{0,20}} (?:is not|isn't) (?:necessary|needed|required)\b"
    r"|\bwithout (?:seeing|calling|going to) (?:a|the|your|an) |\bsafe to wait\b"
    r"|\bnothing (?:serious|to worry)\b|\b(?:dont|do not|don't) worry\b"
    rf"|\b(?:dont|do not|don't) (?:go|call|see|visit)\b[^.;,]{{0,30}}\b{_CARE}"
    r"|(?<!if )\b(?:this|it|that)(?: is not|'s not| isn't) (?:an? )?"
    r"(?:emergency|serious|dangerous|urgent)\b"
    r"|\b(?:safely|can) wait\b|\bwait and see\b"
    r"|\bkhong can[^.]{0,40}\b(?:kham|bac si|benh vien|cap cuu|lo|vien|115)\b"
    r"|\b(?:dung|khong phai|khong can) lo\b|\bkhong (?:co gi )?nghiem trong\b"
    r"|\b(?:dung|khong nen) (?:di|den|goi)\b"
)


def faults(sentence: str) -> set[Fault]:
    """Return the faults of a sentence; empty if it may be shown."""
    written = _written(sentence)
    plain = "".join(fold(letter) or letter for letter in written)  # keeps the length of `written`
    found: set[Fault] = set()
    if (dose := _DOSE.search(plain)) and not _OBSERVED.match(plain[: dose.start()]):
        found.add(Fault.DOSE)
    named = () if _ASKED.match(plain) else _NAMED.finditer(plain)
    if any(_is_advised(written, plain, one) for one in named):
        found.add(Fault.MEDICINE)
    if _PRESCRIBED.search(plain) or _is_changed(written, plain):
        found.add(Fault.MEDICINE)
    if _CERTAIN.search(plain) and not _MAYBE.search(plain):
        found.add(Fault.DIAGNOSIS)
    if _STAY_AWAY.search(plain):
        found.add(Fault.KEEPS_FROM_CARE)
    return found


def _is_advised(written: str, plain: str, medicine: re.Match[str]) -> bool:
    """Return whether a medicine is named to be taken rather than warned of or asked about."""
    before = plain[: medicine.start()]
    verb = _TAKE.search(before)
    # With a verb of taking, only the words right before it can turn it around.
    start = max(before.rfind(sign, 0, verb.start()) for sign in ",;:") + 1 if verb else 0
    end = verb.start() if verb else medicine.start()
    if any(_NOT_TO_TAKE.search(text[start:end]) for text in (written, plain)):
        return False
    if _TOO_MUCH.search(plain[end : medicine.start()]):
        return False
    return not _HARMFUL.match(plain, medicine.end())


def _is_changed(written: str, plain: str) -> bool:
    """Return whether a sentence tells to take more, less or none of a medicine."""
    return any(
        not _NOT_TO_TAKE.search(text[: one.start()])
        for text in (written, plain)
        for one in _CHANGED.finditer(text)
    )


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
