"""Checks of a model's text, in both languages, before a user sees it.

No dose, no medicine to take, no diagnosis stated as certain, no harmful first aid, and nothing that
keeps the user from care. Sentences with such a fault are removed, and so are those in another
language, which the checks cannot judge. The checks are a word-based heuristic and only one layer of
defense.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from enum import StrEnum

from demos.medagen.dictionary import fold
from demos.medagen.schemas import Language, Level
from demos.medagen.tokenizer import split
from exaid_core.checks.drugs import drugs

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
    imodium|benadryl|nsaids?|pepto\S*|tums|gaviscon|
    inhibitors?|decolgen|tiffy|berberin|laxatives?|antacids?|decongestants?
"""
_DISEASE = r"""
    \w{3,}itis|\w{3,}emia|\w{3,}aemia|\w{3,}oma|heart\ attack|stroke|myocardial\ infarction|
    pneumonia|cancer|tumou?r|flu|influenza|covid\S*|dengue|malaria|tuberculosis|infection|fracture|
    diabetes|asthma|copd|embolism|thrombosis|sepsis|anaphylaxis|migraine|angina|epilepsy|hernia|
    depression|torsion|preeclampsia|ulcer|gout|shingles|measles|chickenpox|hypertension|
    viem|nhoi\ mau|dot\ quy|tai\ bien|ung\ thu|gay\ xuong|sot\ xuat\ huyet|nhiem\ trung|suy\ \w+|
    tieu\ duong|dai\ thao\ duong|cum|hen|lao|thuyen\ tac|soc|dong\ kinh|thoat\ vi|tram\ cam|xoan|
    tien\ san\ giat|loet|gut|zona|soi|thuy\ dau|tang\ huyet\ ap|benh|
    panic\ attack|anxiety|concussion|croup|uti|reflux|eczema|gallstones?|trao\ nguoc|hoang\ loan|
    tay\ chan\ mieng|roi\ loan\ \w+
"""
_TRIVIAL = r"""
    heartburn|indigestion|gas|wind|bloating|constipation|(?:a\ )?cold|stress|nerves|tiredness|
    fatigue|cramps?|
    (?:an?\ )?(?:virus|bug|strain|sprain|hangover|allergy|(?:pulled|strained)\ muscle)|
    met\ moi|cang\ thang|day\ hoi|kho\ tieu|cam\ lanh|cam\ cum
"""
"""What danger is mistaken for."""
# A word without its diacritics may be another one: "can" is not "cần", nor "nghi" "nghỉ". So
# Vietnamese cues are searched as they are written, and folded only in texts without diacritics.
_MAYBE = re.compile(
    r"\b(?:may|might|could|can|possibl\w+|perhaps|if|whether|suspect\w*|sign|signs|suggest\w*|"
    r"risk|rule out|like|such as|likely|cannot|not|có thể|nghi ngờ|nghi|nếu|khả năng|dấu hiệu|"
    r"nguy cơ|không|chưa|loại trừ|giống|gợi ý|phòng ngừa)\b"
)
_MAYBE_FOLDED = re.compile(
    r"\b(?:co the|nghi|neu|kha nang|dau hieu|nguy co|khong|chua|loai tru|giong|goi y|phong)\b"
)
_TOLD = re.compile(r"\byou (?:said|told|mentioned|wrote)\b|\bbạn nói\b")
_TAKEN = re.compile(
    r"\byou (?:said|told \w{1,20}|mentioned|wrote)(?: that)?(?: you)?(?:'ve| have| had| are| were)?"
    r"(?: been)? (?:taking|took|taken|using|used)\b(?!.*\b(?:so|now|again|more|another)\b)"
    r"|\bbạn (?:nói|kể)(?: là| rằng)?(?: bạn)? (?:đã |đang )?(?:uống|dùng)\b"
    r"(?!.*\b(?:nên|hãy|thêm)\b)"
)
"""A medicine that the user has told of."""
_REASON = re.compile(r"\b(?:because|since|as|vì)\s+$")  # right before: "because you have asthma"


class Fault(StrEnum):
    """Reason why a sentence must not be shown."""

    DOSE = "dose"
    MEDICINE = "medicine to take"
    DIAGNOSIS = "diagnosis as certain"
    KEEPS_FROM_CARE = "keeps from care"
    HARMFUL = "harmful first aid"


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
_AMOUNT = re.compile(rf"{_NUMBER}\s*{_UNIT}\b", re.VERBOSE)
# "Check her temperature every two hours"
_OBSERVED = re.compile(
    r"\s*(?:check|measure|watch|look|đo|theo dõi)\b"
    r"(?:(?!\b(?:out|take|give|use|uống|cho|dùng)\b).)*"
)
_NAMED = re.compile(rf"\b(?:{_MEDICINE})\b", re.VERBOSE)
# A medicine is named to be taken, unless the words before it say otherwise.
_NOT_TO_TAKE = re.compile(
    r"""
    \b(?:do\ not|don't|dont|can't|cannot|never|avoid|without|not|no|stop|không|tránh|đừng|chưa|
      ngưng|bring|mention|list|whether|which|allerg\w+|
      (?:asks?|tell)\ (?:(?:an?|the|your|his|her)\ )?
      (?:doctors?|pharmacists?|nurses?|gp|paramedics?|physician|dentist|midwife|ambulance|triage|
      them(?!\ to\s*$)|about|before|if|what|how|when)|
      overdose|too\ (?:much|many)|prescribe[sd]|hỏi|mang\ theo|đem\ theo|dị\ ứng|quá\ liều)\b
    [^.;:]*$
    | \bif\s+(?:you|he|she|they|your\ \w+)(?:\ (?:have|has|already))?\s*$
    | \b(?:doctors?|paramedics?|pharmacists?|ambulance|hospital|bác\ sĩ|dược\ sĩ)\b
      (?!\ (?:would|will)\ (?:tell|say|want)\b)[^.;:,]*$
    """,
    re.VERBOSE,
)
_NOT_TO_TAKE_FOLDED = re.compile(
    r"\b(?:khong|tranh|chua|ngung|hoi|dem theo|di ung|qua lieu|bac si|duoc si)\b[^.;:]*$"
)
_TAKING = re.compile(
    r"\b(?:take|taking|took|use|using|give|giving|start|starting|inject\w*|swallow|try|chew|have|"
    r"get|apply|put|buy|recommend|suggest|consider|uống|dùng|sử dụng|cho|bôi|tiêm|kê|mua|nhai|"
    r"uong|dung|boi|tiem|ke|nhai)\b"
)
_REACH = 300
"""Number of characters before a medicine that are read, so that the work stays linear."""
# Between a verb and its medicine.
_UP_TO_SIX_WORDS = re.compile(r"(?:\s+\S+){0,6}?\s*")
# Ends the scope of a denial: "do not worry, take aspirin", "avoid aspirin and use ibuprofen".
_TURN = re.compile(r"[,;:]|\b(?:and|but|then|while|mà|nhưng|rồi|trong khi)\b")
_ASKED = re.compile(
    r"(?:do|did|have|has|are|is) (?:you|he|she|they|any(?:one|body)|your \w+) "
    r"(?!want|need|wish|know that).*\?$"
    r"|(?:ban|anh|chi|em|be|chau|ai) (?:co|da)(?! (?:muon|can|the|nen|biet)\b).*"
    r"\b(?:khong|chua)\s?\?$"
)
_QUESTION = re.compile(
    r"(?:(?:and|so|but|also|then),? )?(?:do|does|did|have|has|had|are|is|was|were|can|could|would|"
    r"will|should|what|which|when|where|who|how|why|any)\b(?! (?:you|he|she|they) know that)"
    r"(?!.*, (?:ok|okay|right|correct|yes|no)\?$).*\?$"
    r"|.*\b(?:không|chưa|nào|gì|bao lâu|khi nào)\s?\?$"
)
_TOO_MUCH = re.compile(
    r"\b(?:too (?:much|many)|an overdose)\b|^(?:taking|took|using|have|giving)\b.*\bmore than\b"
)
_HARMFUL = re.compile(
    r"\s*(?!that\b|which\b)\S{0,20}\s*(?:(?:is|are|can|may|should|must|do|does)\s+"
    r"(?:not\b(?! (?:harm|danger|unsafe))"
    r"|unsafe|dangerous|harm|worsen|hide|mask|cause)|(?:don't|doesn't)\s+(?:help|work|treat))"
    r"(?! no\b)"
)
_AT_HAND = ("adrenaline", "epinephrine", "epipen", "naloxone", "glucagon")
"""Medicines that a user carries for an emergency and has been shown to use."""
_PRESCRIBED = re.compile(r"\b(?:i prescribe|prescription (?:for|of)|ke don|don thuoc)\b")
_CHANGED = re.compile(
    rf"""
    \b(?:stop|skip|pause|come\s+off|double(?:\s+up\s+on)?|halve|cut|hold|reduce|increase|raise|
      lower|change)\s+(?:taking\s+|using\s+)?(?:your|the|his|her)\s+(?:\S+\s+){{0,2}}?
      (?:dose|medicines?|medications?|tablets|pills|thinner|inhaler|antidepressants?|{_MEDICINE})\b
    | \b(?:don't|dont|do\s+not|not)\s+(?:take|use|inject)\s+(?:your|his|her)\s+(?:\S+\s+){{0,2}}?
      (?:dose|medicines?|medications?|tablets|pills|thinner|inhaler|antidepressants?|{_MEDICINE})\b
      (?![^.;]{{0,30}}\b(?:without|before|until|unless|if|more|again|twice|with|double)\b)
    | \b(?:dung|khong)\s+(?:nen\s+)?(?:uong|tiem)\s+thuoc\s+(?:\S+\s+){{0,3}}?
      (?:chong\s+dong|loang\s+mau|huyet\s+ap|tieu\s+duong|tim|dong\s+kinh|hen|hang\s+ngay)\b
      (?![^.;]{{0,40}}\b(?:khi|neu|ma|chua|truoc|gap\s+doi)\b)
    | \b(?:ngung|ngừng|bo|gap\s+doi|tang|giam)\s+(?:lieu\s+)?thuoc\b | \bdouble\s+dose\b
    | \b(?:twice|double|triple|half)\s+(?:your|the|his|her)\s+(?:usual|normal|regular|prescribed)
      \s+(?:amount|dose|number)\b
    | \b(?:take|use|borrow|try|give)\s+(?:\w+\s+)?(?:your|his|her|my)\s+\w+'s\s+(?:\S+\s+){{0,3}}?
      (?:tablets|pills|medicines?|medications?|inhaler|{_MEDICINE})\b
    | \b(?:tablets|pills|medicines?|medications?|antidepressants?|{_MEDICINE})\b[^.;]{{0,40}}
      \bso,?\s+(?:quit|stop|drop)\s+(?:it|them|taking)\b
    """,
    re.VERBOSE,
)
_IS = r"(?:'(?:s|re|ve)(?:\s+got)?|\s+(?:have|has|had|are|is|got|suffer\w*))"
_CERTAIN = re.compile(
    rf"""
    \b(?:you|he|she|they|your\ \w+|the\ \w+|patient|this|it|that|these){_IS}\s+
      (?:\S+\s+){{0,3}}?(?:{_DISEASE})\b
    | \b(?:case\s+of|confirms?)\s+(?:\S+\s+)?(?:{_DISEASE})\b
    | \b(?:diagnosis|diagnosed)\s+(?:is|with|as|of)\b
    | (?<!possible\ )(?<!differential\ )(?<!likely\ )(?<!working\ )(?<!suspected\ )
      \b(?:diagnosis|dx)\s?[:=]\s*(?!\S*\?)
      (?!(?:unclear|unknown|uncertain|pending|none|not\ (?:yet|known|clear|possible|made))\b
        |(?:only\ )?(?:an?\ |the\ |your\ )?(?:doctors?|physicians?)\b)\w
    | \b(?:this|it|that|day|do)(?:'s|\s+is)?\s+(?:\w+ly\s+)?(?:just|only|simply|merely|chi\s+la)\s+
      (?:{_TRIVIAL})\b
    | (?<!until\ )(?<!until\ a\ )(?<!unless\ )(?<!unless\ a\ )(?<!once\ )(?<!once\ a\ )
      (?<!so\ that\ )(?<!so\ that\ a\ )(?<!whether\ )(?<!whether\ a\ )
      \b(?:{_DISEASE})\s+(?:is|was|has\s+been|have\s+been)\s+(?:ruled\s+out|excluded)\b
    | \b(?:rules|ruled|excludes|excluded)\s+(?:out\s+)?(?:\w+\s+){{0,2}}?(?:{_DISEASE})\b
      (?!\ only\ in\ part)
    | \b(?:definitely|certainly|clearly|surely|undoubtedly|obviously|no\ doubt)\b
      [^,;:]{{0,60}}\b(?:{_DISEASE})\b
    | \b(?:ban|anh|chi|em|ong|ba|be|chau|benh\ nhan|day|do)\s+
      (?:(?:da|dang|chi)\s+)?(?:bi|mac|la)\s+
      (?:benh\s+|con\s+|chung\s+)?(?:{_DISEASE})\b
    | \bchan\ doan(?:\s+(?:la|xac\ dinh)\b|\s*:)
      (?!\s*(?:(?:chi|can|phai|chua|do)\s+){{1,3}}(?:bac\s+si|kham|ro|co|xac)\b|\s*bac\s+si\b)
    | \b(?:chac\ chan|ro\ rang|nhat\ dinh)\b[^,;:]{{0,60}}\b(?:{_DISEASE})\b
    """,
    re.VERBOSE,
)
_CARE = (
    r"(?:doctors?|hospital|care|help|emergency|seen|ambulance|clinic|check|er|ed|a&e|gp|physician|"
    r"nurse|specialist|medical|911|999|112|115)\b"
)
_NO_MATTER_OF_CARE = (
    r"(?! (?:to )?(?:be afraid|worry|fast|undress|(?:an? )?(?:referral|appointment)|"
    r"wait(?! for (?:an?|the) ambulance)|"
    r"(?:rush|hurry)(?! (?:[\w']+ ){0,4}(?:hospital|er|ed|a&e|emergency|doctor|clinic|gp)\b))\b)"
)
_STAY_AWAY = re.compile(
    rf"""
    \b(?:no\ (?:need|reason|point|rush)|not\ necessary|unnecessary|needn't|neednt|need\ not|skip|
      not?\ bother|hold\ off|put\ off|cancel|avoid\ going|wouldn't\ rush|
      (?:do|does|did)(?:\ not|n't|nt)\ (?:\w+ly\ )?(?:need|have\ to|require|bother))\b
      {_NO_MATTER_OF_CARE.replace(" ", chr(92) + " ")}[^.;]{{0,40}}\b{_CARE}
    | \binstead\ of\ (?:going\ to\ |calling\ |seeing\ )?(?:the\ |an?\ |your\ )?{_CARE}
    | \b{_CARE}[^.;]{{0,20}}\ (?:is\ not|isn't)\ (?:necessary|needed|required)\b
    | \bwithout\ (?:seeing|calling|going\ to)\ (?:a|the|your|an)\  | \bsafe\ to\ (?:wait|sleep)\b
    | \bsafe\ to\ (?:stay|remain|rest)\ (?:at\ )?home\b
    | \bsafely\ (?:stay|remain|rest|manage|treat|recover)\b
    | \b(?:manage|treat|handle|deal\ with)d?\ (?:(?:this|it|that|these|them)\ )?
      (?:\w+ly\ )?at\ home\b
    | \b(?:sleep|ride|tough)\ (?:it|this)\ (?:off|out)\b
    | \blet\ (?:the|this|that|his|her)\ (?:seizure|fit|convulsion|stroke|attack)\ run\ its\ course\b
    | \bno\ (?:\w+\ )?{_CARE}\ (?:visit\ |trip\ |is\ )?(?:needed|necessary|required)\b
    | (?<!to\ )\bavoid\ (?:(?:calling|visiting|seeing)\ )?(?:the\ |an?\ |your\ )?{_CARE}
    | ^not\ (?:an?\ )?(?:{_DISEASE})\b(?!\ (?:until|unless))
    | \b(?:co\ the|cu|chi\ can)\ (?:yen\ tam\ )?
      (?:o|nghi|tu\ (?:theo\ doi|dieu\ tri|chua))\ (?:tai\ |o\ )?nha\b
    | \bda\ loai\ tru\ (?:kha\ nang\ )?(?:{_DISEASE})\b
    | \b(?:dont|do\ not|don't)\ (?:go|call|see|visit)\b(?!\ (?:alone|yourself|by))
      [^.;,]{{0,30}}\b{_CARE}
    | (?<!if\ )\b(?:this|it|that)(?:\ is\ not|'s\ not|\ isn't)\ (?:an?\ )?
      (?:emergency|serious|dangerous|urgent|life[-\ ]threatening|critical)\b
    | (?<!if\ )\b(?:this|it|that|you)(?:\ is|\ are|'s|'re)?(?:\ not|n't)\ (?:having\ |have\ )?
      (?:an?\ )?(?:{_DISEASE})\b(?!\ (?:until|unless))
    | (?<!\bif\ )(?<!there\ is\ )\bno\ emergency(?:\ here|\ now|\ at\ all)?\s*(?:[.!,;]|$)
    | ^there\ is\ no\ emergency(?:\ here|\ now|\ at\ all)?\s*(?:[.!,;]|$)
    | \b(?:safely|can)\ wait\b | \bwait\ and\ see\b | \bno\ cause\ for\ concern\b
    | (?<!if\ )(?<!sure\ )\b(?:you(?:\ are|'?re)
      |(?:you|he|she|they|your\ \w+)(?:\ will|'?ll|\ should|(?:'[rs]e?|\ are|\ is)\ going\ to)\ be)
      \ (?:\w+ly\ )?(?:fine|ok|okay|all\ right|alright)\b(?!\ to\b)
      (?!\ (?:once|when|after|as\ soon\ as)\ (?:the\ |an?\ |your\ )?
      (?:help|ambulance|paramedics?|doctors?|treat\w*|hospital|surgery|specialists?|team)\b)
    | \b(?:ban|anh|chi|em|be)\ (?:se\ )?(?:on|khoe)\ (?:thoi|ca|ngay)\b | \bharmless\b
    | \bwaste\ of\ time\b | \boverkill\b
    | \brather\ than\ going\ to\ (?:the\ )?{_CARE}
    | \bkhong\ can(?!\ (?:doi|cho))[^.]{{0,40}}\b(?:kham|bac\ si|benh\ vien|cap\ cuu|vien|115)\b
    | \b(?:chua|chang|khoi)\ can[^.]{{0,40}}\b(?:kham|bac\ si|benh\ vien|cap\ cuu|vien|115)\b
    | \bkhong\ (?:nhat\ thiet\ )?phai\ (?:di|den|goi)\b
    | \bkhong\ (?:bi|phai)\ (?:dot\ quy|nhoi\ mau)
    | \b(?:dung|khong\ nen)\ (?:di|den|goi)\b(?!\ (?:mot\ minh|xe\ may|bo))
    """,
    re.VERBOSE,
)
_DELAY = re.compile(
    r"""
    (?<!if\ you\ )(?<!than\ )(?<!may\ )(?<!have\ to\ )(?<!expect\ to\ )\bwait
      \ (?:(?:until|till)\ (?:tomorrow|monday|(?:the\ )?(?:next\ )?(?:morning|day|week))|
      (?:for\ )?an?\ (?:few|couple\ of)?\ ?(?:hours?|days?|weeks?))\b
      (?!\ before\ (?:you\ )?(?:bath|shower|eat|drink|swim|wash|exercis)\w*)
    | \bwait\b[^.;]{0,40}\b(?:and|to)\ see\ (?:if|whether|how)\b
    | (?<!than\ )\bdrive\ (?:yourself|himself|herself|themselves)\b
    | \btu\ lai\ xe\b
    """,
    re.VERBOSE,
)
"""Advice to wait, or to drive alone."""
_WATCHING = re.compile(
    r"""
    (?:^|[,;]\ |\b(?:and|then|just)\ )see\ how\ (?:you|he|she|it|they|things|that|your\ \w+)
      \ (?:feels?|goes?|go|do|does|is|are|gets?|develops?)\b
    | (?<!pressure\ )(?<!sugar\ )(?<!glucose\ )(?<!oxygen\ )(?<!rate\ )(?<!\ba\ )(?<!the\ )
      \b(?:monitor|observe|watch)\ (?:(?:it|this|that|them|him|her|yourself|
      (?:your|the|his|her)\ (?:symptoms?|condition|pain))\ )?(?:\w+ly\ )?at\ home\b
    """,
    re.VERBOSE,
)
"""Advice to watch an illness, which keeps from care unless it says when to seek care."""
_SAFETY_NET = re.compile(
    r"\b(?:call|go to|come back|return|seek|see an?)\b[^.;]{0,60}\bif\b[^.;]{0,40}\bwors\w+"
)
_SOME = (
    r"(?:(?!1\b)\d{1,2}|(?:an?\ )?(?:few|couple\ of)|some|several|two|three|four|five|seven|ten)"
)
_TO = r"\ ?(?:-|–|to|or)\ ?"
_SPAN = rf"(?:(?:(?:\d|one|two){_TO})?{_SOME}\ (?:more\ )?(?:day|week)s|(?:an?|one|1)\ week)"
_NGAY = r"(?:vai|may|it|(?:\d\ ?(?:-|–|den)\ ?)?(?!1\b)\d{1,2}|hai|ba|nam|bay)\ (?:ngay|hom|tuan)"
_CARED_FOR = r"""
    \b(?:see|seen|seek|go(?:es)?|visit|book|make|schedule|arrange|plan|call|comes?|return|doctor
    |appointment|clinic|check\w*|evaluat\w*|examin\w*|assess\w*|consult\w*|contact|talk|speak|follow
    |looked|attention|help|care|treat|treated|wait\w*|monitor\w*|watch\w*|observ\w*|review\w*|rest
    |resting|better|improv\w*|resolv\w*|pass|passes|clears?|disappears?|eases?|fades?|gone|fine
    |recover\w*|settles?|subsid\w*|heals?)\b[^.;]{0,40}\b"""
"""Care or recovery, before the time when it is due: "a cough over a week" is no such time."""
_TOO_LATE = {
    Level.URGENT: re.compile(
        rf"""
        \bnext\ (?:week|month|available)\b
        | \b(?:in|within|over)\ (?:the\ )?(?:next|coming)\ {_SPAN}\b
        | {_CARED_FOR}(?:this\ week|(?:in|within|over)\ (?:the\ )?{_SPAN})\b
        | ^(?:this\ week|(?:in|within)\ {_SPAN})\b
        | \b(?:end\ of\ the|later\ this)\ week\b | \boutpatient\b | \boffice\ hours\b
        | \bif\b[^.;]{{0,60}}\b(?:after|(?:more|longer)\ than)\ {_SPAN}\b
        | \b(?:routine|regular)\ (?:appointment|check|visit)
        | \bwhen(?:ever)?\ (?:it\ is\ |it's\ )?(?:convenient|you\ can)\b | \byour\ convenience\b
        | \b(?:tuan|thang)\ (?:sau|toi)\b | \b(?:trong(?:\ vong)?|sau)\ {_NGAY}\b
        | \b{_NGAY}\ (?:toi|nua|sau)\b | \btheo\ doi\b[^.;]{{0,15}}\b{_NGAY}\b
        """,
        re.VERBOSE,
    ),
    Level.EMERGENCY: re.compile(
        rf"""
        \btomorrow\b | \b(?:see|call|go|visit|doctor|clinic)\b[^.;]{{0,30}}\bin\ the\ morning\b
        | {_CARED_FOR}(?:(?:with)?in\ (?:the\ next\ )?(?:12|24|48|a\ day)
          |on\ (?:mon|tues|wednes|thurs|fri|satur|sun)day)\b
        | \bappointments?\b(?!\ (?:is|are)\ not\b)
        | \bgps?\b(?!\ (?:position|location|coordinates|app|signal|can(?:not|'t)))
        | \b(?:family|primary\ care)\ (?:doctor|physician|provider|team) | \bpcp\b
        | ^(?!.*\b(?:hospital|ambulance|emergency)\b).*\bpharmac(?:y|ist)\b
        | \b(?:visit|call|contact|try|go\ to)\ (?:an?\ |the\ |your\ )?(?:\w+\ )?
          (?:walk-in|urgent\ care\ (?:center|clinic))\b
        | \bnext\ (?:\w+\ )?(?:visit|check-?\ ?up)\b
        | \b(?:rest|stay|remain|relax|recover|sleep|monitor|watch)(?:ing)?\ (?:\w+\ ){{0,2}}home\b
          (?!\ (?:only\ )?(?:until|till|while)\b)
        | ^(?!.*\b(?:now|immediately|at\ once|right\ away|again|911|999|112|115|ambulance|cpr)\b)
          .*\bif\b[^.;]{{0,40}}(?:\b(?:wors\w*|persists?|continues?|lasts?)
          |(?:\bnot|n't)\ (?:improve|get\ better|go\ away|resolve))\b
        | \b(?:ngay|sang|chieu)\ mai\b | \btrong\ (?:vong\ )?(?:12|24|48)\b
        | \b(?:lich|dat|cuoc)\ hen\b | \bhen\ (?:kham|bac\ si)\b | \bbac\ si\ gia\ dinh\b
        | \bnha\ thuoc\b | \b(?:nghi|nghi\ ngoi|theo\ doi)(?:\ \w+)?\ (?:tai|o)\ nha\b
        | ^(?!.*\b(?:115|cap\ cuu|benh\ vien\ ngay)\b)
          .*\bneu\b[^.;]{{0,40}}\b(?:nang\ hon|khong\ do|keo\ dai)\b
        """,
        re.VERBOSE,
    ),
}
"""Level -> times and places of care that contradict it and those above it."""
_LIKENESS = re.compile(
    rf"""(?:^|[,;:]\ )(?:(?:it|this|that)\ )?(?:\w+ly\ |just\ )?(?:sounds|looks|seems)\ like
    \ (?:an?\ )?(?:{_DISEASE})\b(?!\ (?:symptoms?|signs?|or|may|might|could|is\ possible)\b)""",
    re.VERBOSE,
)
"""A diagnosis as an impression: "sounds like a stroke"."""
_HARMFUL_AID = re.compile(
    r"""
    \b(?:induce|provoke)\ vomiting\b
    | (?:^|(?<=[,;:]\ )|(?<=\band\ )|(?<=\bthen\ )|(?<=\bor\ )
      |\b(?:to|please|you\ (?:can|may|should|must|could))\ )
      (?:make|get)\ (?:him|her|them|yourself|the\ \w+|your\ \w+)\ (?:to\ )?
      (?:vomit|throw\ up|puke|be\ sick)\b
    | \bsuck\ (?:out\ )?(?:the\ )?(?:snake\ )?(?:venom|poison)\b
    | \btourniquet\b[^.;]{0,40}\b(?:bite|bitten|snake|sting|venom)\b
    | \b(?:cut|slice)\ (?:open\ |into\ |around\ )?(?:the\ )?(?:snake\ ?)?bite\b
    | \bdrink\ (?:some\ |a\ glass\ of\ )?(?:milk|oil|vinegar|salt\ water|lemon\ juice)\b
      [^.;]{0,40}\b(?:neutrali[sz]e|dilute|bleach|poison|acid|vomit)\b
    | \b(?:put|apply|rub|use|spread|smear)\ (?:some\ )?
      (?:butter|toothpaste|oil|ice|mustard|mayonnaise|flour|egg\ whites?)
      \ (?:directly\ )?(?:on|onto|to|over)\ (?:the|your|his|her|a)\ burn
    | \b(?:put|place|push)\ (?:an?\ |your\ |the\ )?
      (?:spoon|wallet|belt|stick|cloth|fingers?|something|anything|object)
      \ (?:in|into|between)\ (?:the|his|her|their)\ (?:mouth|teeth)\b
    | \b(?:hold|pin|tie)\ (?:him|her|them|the\ \w+)\ down\b
    | \bhoney\ (?:is|can\ be)\ (?:\w+ly\ )?(?:fine|ok|okay|safe|good|all\ right)\b[^.;]{0,30}
      \b(?:bab(?:y|ies)|infants?|newborns?)\b
    | \b(?:put|place|sit|lay)\ (?:him|her|them|the\ \w+|your\ \w+)\ (?:in|into)\ (?:an?\ )?
      (?:ice|ice[-\ ]cold|cold)(?:\ water)?(?:\ bath)?\b[^.;]{0,40}\b(?:fever|temperature)\b
    | \b(?:rub|wipe|sponge|put)\ (?:some\ )?(?:rubbing\ )?(?:alcohol|vodka)\ (?:on|onto|over)
      \ (?:the|his|her|your|their)\ (?:\w+'s\ )?(?:skin|body|chest|forehead|feet)\b
      (?=[^.;]{0,30}\b(?:cool|fever|temperature)\b)
    | \btie\ (?:something|an?\ \w+)\ (?:\w+\ )?(?:around|above|over)\b[^.;]{0,40}
      \b(?:bite|sting|snake)\b
    | \bpull\ (?:out\ )?the\ (?:knife|blade|object|glass|arrow|nail)\b
    | (?:^|(?<=[,;:]\ )|\b(?:nen|can|phai|thu|tu)\ )gay\ non\b(?!\ va\ (?:dau|sot|tieu|chong|kho)\b)
    | \bmoc\ hong\b | \bhut\ (?:noc|mau)\ doc\b
    | \bga\ ?ro\b[^.;]{0,40}\b(?:ran|can|noc)\b
    | \bboi\ (?:kem\ danh\ rang|nuoc\ mam|mo\ tran|bo|dau)\b[^.;]{0,30}\b(?:bong|phong)\b
    | \b(?:nhet|dut|cho)\ (?:thia|muong|dua|khan|ngon\ tay)\ vao\ (?:mieng|mom)\b
    """,
    re.VERBOSE,
)
_WARNED = re.compile(
    r"\b(?:not|never|no|avoid|without|cannot|dont|nobody|không|đừng|tránh|chớ|khong|tranh)\b|n't\b"
    r"|\binstead of\b|\bkeep \w{1,20} from\b"
    r"|(?<!not )(?<!n't )\b(?:dangerous|unsafe|wrong|harmful|nguy hiểm|nguy hiem)\b"
)
_WARNED_LIST = re.compile(
    r"(?:tuyệt đối )?(?:không|đừng|tránh|chớ)(?: nên| được)? "
    r"(?:cạo|rạch|hút|garô|bôi|đắp|móc|gây nôn|nhét|chích|nặn)\b"
    r"(?:(?!\b(?:hãy|mà|rồi|cần)\b)[^.;:])*"
)
"""A Vietnamese denial that goes on past commas: "Không rạch da, hút nọc độc"."""
_WARNED_OFF = re.compile(
    r"(?<!not )(?<!n't )\b(?:dangerous|unsafe|wrong|risky|avoid|instead of|no need to)\b"
    r"|\b(?:not|never|n't) (?:let|allow|delay|try)\b|n't (?:let|allow|delay|try)\b"
    r"|\bnguy hiểm (?:nếu|khi)\b"
    r"|\b(?:không|đừng|chớ|tránh|khong|dung|tranh)"
    r"(?: (?:được|nên|thể|cố|gắng|để|duoc|nen|the|co|gang|de)){0,4} ?$"
)
"""Words before a delay that warn of it."""
# Comfort that keeps nobody from care beside "call 911 now".
_COMFORT = re.compile(
    r"\bnothing (?:serious|to worry)\b|\b(?:dont|do not|don't) worry\b|\bkhong sao dau\b"
    r"|\b(?:dung|khong phai|khong can) lo\b|\bkhong (?:co gi )?nghiem trong\b|\bkhong dang lo\b"
    r"|\bkhong nguy hiem\b"
)
_URGES = re.compile(
    r"(?:^|[,;:.]\s*)(?:please |hay )?(?:call|go|goi|den)\b[^.;]{0,40}"
    r"\b(?:911|999|112|115|er|emergency|ambulance|hospital|cap cuu|benh vien)\b"
)
_NEGATED = re.compile(
    r"(?:\b(?:not|never|cannot|dont|cant)|n't)\s+(?!hesitate|forget)(?:\w{1,20}\s+)?"
    r"(?:(?:be|ever|try|trying|attempt|safe(?:ly)?|wise|possible|something)\s+){0,3}(?:to\s+)?$"
    r"|\btoo\s+\w{1,20}\s+to\s+(?:be\s+)?$"
    r"|\b(?:doctors?|nurse|pharmacist|paramedics?|they)\s+(?:\w{1,10}\s+){0,3}"
    r"(?:tell|show|explain|advise|decide|say)\s+(?:\w{1,10}\s+)?(?:how|whether|if|when)\s+"
    r"(?:(?:to|you|it|is|can|this)\s+){0,3}$"
    r"|(?:\b(?:not|cannot)|n't)\s+(?:tell|say|know|judge)\s+(?:whether|if)\s+"
    r"(?:(?:you|it|is|can|this)\s+){0,3}$"
)
_NEAR = 60
"""Number of characters before a phrase in which its negation is looked for."""


def faults(sentence: str) -> set[Fault]:
    """Return the faults of a sentence; empty if it may be shown."""
    written = _written(sentence)
    plain = _plain(written)
    is_asked = _ASKED.match(plain) is not None
    found: set[Fault] = set()
    if any(
        not (_is_observation(written, plain, one) or _is_told(written, one.start()))
        for one in _doses(written, plain)
    ):
        found.add(Fault.DOSE)
    named = [] if is_asked else [one.span() for one in _NAMED.finditer(plain)]
    named += (
        [] if is_asked else [(at, end) for at, end, name in drugs(plain) if name not in _AT_HAND]
    )
    if any(
        _is_advised(written, plain, start, end) and not _is_told(written, start)
        for start, end in named
    ):
        found.add(Fault.MEDICINE)
    if _PRESCRIBED.search(plain) or _is_changed(written, plain):
        found.add(Fault.MEDICINE)
    is_question = _QUESTION.match(written) is not None
    if not is_question and any(
        not _is_hedged(written, plain, at) for at in _CERTAIN.finditer(plain)
    ):
        found.add(Fault.DIAGNOSIS)
    if not is_question and _LIKENESS.search(plain) and not _URGES.search(plain):
        found.add(Fault.DIAGNOSIS)
    if not is_asked and any(
        not _is_warned_of(written, one.start()) for one in _HARMFUL_AID.finditer(plain)
    ):
        found.add(Fault.HARMFUL)
    away = _STAY_AWAY.finditer(plain)
    is_comfort = _COMFORT.search(plain) and not _URGES.search(plain)
    if is_comfort or any(not _is_negated(plain, one.start()) for one in away):
        found.add(Fault.KEEPS_FROM_CARE)
    delays = [*_DELAY.finditer(plain)]
    delays += [] if _SAFETY_NET.search(plain) else _WATCHING.finditer(plain)
    if not is_asked and any(not _is_warned_off(written, plain, one.start()) for one in delays):
        found.add(Fault.KEEPS_FROM_CARE)
    return found


def _doses(written: str, plain: str) -> Iterator[re.Match[str]]:
    """Yield the doses; "nằm viện" is none, though "nam vien" is five tablets."""
    for dose in _DOSE.finditer(plain):
        if not written.startswith("nằm", dose.start()):
            yield dose


def _is_observation(written: str, plain: str, dose: re.Match[str]) -> bool:
    """Return whether a "dose" is how often something is observed."""
    is_amount = _AMOUNT.match(plain, dose.start()) is not None
    return not is_amount and _OBSERVED.fullmatch(_clause(written, dose.start())) is not None


def _is_told(written: str, start: int) -> bool:
    """Return whether a medicine or dose is what the user has taken, not what to take."""
    return _TAKEN.search(_clause(written, start)) is not None


def _is_warned_of(written: str, start: int) -> bool:
    """Return whether harmful first aid is denied in its clause, or in the one that "or" goes on."""
    before = written[max(start - _REACH, 0) : start]
    return (
        _WARNED.search(_denied_clause(written, start)) is not None
        or _WARNED_LIST.fullmatch(before) is not None
    )


def _is_warned_off(written: str, plain: str, start: int) -> bool:
    """Return whether a delay is denied or called dangerous."""
    return _is_negated(plain, start) or (
        _WARNED_OFF.search(_denied_clause(written, start)) is not None
    )


def _denied_clause(written: str, start: int) -> str:
    """Return the part of a clause before a place; after "or", also what comes before the clause."""
    before = written[max(start - _REACH, 0) : start]
    return before if before.endswith(" or ") else _clause(written, start)


def _is_negated(plain: str, start: int) -> bool:
    return _NEGATED.search(plain[max(start - _NEAR, 0) : start]) is not None


def _clause(text: str, end: int) -> str:
    """Return the part of a clause before a place."""
    return _TURN.split(text[max(end - _REACH, 0) : end])[-1]


def _is_hedged(written: str, plain: str, diagnosis: re.Match[str]) -> bool:
    """Return whether a diagnosis is called possible in its clause, or was told by the user."""
    clause = _clause(written, diagnosis.end())
    if _MAYBE.search(clause) or _TOLD.search(clause):
        return True
    if _REASON.search(_clause(written, diagnosis.start())):
        return True
    return written == plain and _MAYBE_FOLDED.search(clause) is not None


def _is_excused(written: str, plain: str, start: int, end: int) -> bool:
    """Return whether words before a medicine warn of it, ask about it or deny it."""
    if _NOT_TO_TAKE.search(written[start:end]):
        return True
    return written == plain and _NOT_TO_TAKE_FOLDED.search(plain[start:end]) is not None


def _is_advised(written: str, plain: str, start: int, end: int) -> bool:
    """Return whether the medicine `plain[start:end]` is to be taken; others are warnings."""
    first = max(start - _REACH, 0)
    before = written[:start]
    verbs = [
        verb
        for verb in _TAKING.finditer(before, first)
        if _UP_TO_SIX_WORDS.fullmatch(before, verb.end())
    ]
    begin, verb = first, start
    if verbs:
        # Only the words right before the verb can turn it around; "or" goes on with a denial.
        verb = verbs[-1].start()
        if not before.endswith(" or ", 0, verb):
            begin = max((turn.end() for turn in _TURN.finditer(before, first, verb)), default=first)
    if _is_excused(written, plain, begin, verb) or _TOO_MUCH.search(plain[verb:start]):
        return False
    return not _HARMFUL.match(plain, end)


def _is_changed(written: str, plain: str) -> bool:
    """Return whether a sentence tells to take more, less or none of a medicine."""
    return any(
        not _is_excused(written, plain, max(one.start() - _REACH, 0), one.start())
        for one in _CHANGED.finditer(plain)
    )


def contradicts(sentence: str, level: Level) -> bool:
    """Return whether a sentence of advice names a later or other care than a level needs."""
    written = _written(sentence)
    plain = _plain(written)
    return _QUESTION.match(written) is None and any(
        not _is_warned_of(written, one.start())
        for least, late in _TOO_LATE.items()
        if level.rank >= least.rank
        for one in late.finditer(plain)
    )


def allowed(text: str, level: Level = Level.SELF_CARE) -> str:
    """Return a text without faulty sentences and those in a language that is not checked.

    Args:
        text: Text of the model.
        level: Level that none of its sentences may contradict.
    """
    if split(text).is_foreign:
        return ""
    kept = [
        part
        for part in _SENTENCE.split(text)
        if part.strip()
        and not split(part).has_foreign()
        and not faults(part)
        and not contradicts(part, level)
    ]
    return " ".join(part.strip() for part in kept)


def is_in(text: str, language: Language) -> bool:
    """Return whether a text is in a language. Texts of very few words always pass."""
    words = split(text)
    return sum(word.isalpha() for word in words.words) < _FEW or words.language is language


def _written(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).lower().replace("’", "'").split())


def _plain(written: str) -> str:
    """Return a text without diacritics, of the same length."""
    return "".join(fold(letter) or letter for letter in written)
