"""Regular expressions for words that change the meaning of a shortened text."""

from __future__ import annotations

import re

_ABBREVIATION = (
    r"(?<!\b[A-Za-z])(?<!\b(?:Dr|Mr|St|vs|No|cf|ca|al|Rx|Dx|Hx))(?<!\b(?:Mrs|Vit|Fig|e\.g|i\.e))"
    r"(?<!\b(?:incl|resp|spec))(?<!\bapprox)(?<!\s\d)(?<!^\d)"
)
# Where a statement ends and the next one begins: a sentence end before a capital letter or another
# script, a semicolon, a bar.
STATEMENT_END = re.compile(
    rf"{_ABBREVIATION}[.!]+[\"'”’)]*;?\s+(?=[^\W\da-z_])|;\s+|\s\|\s+|[。！；]\s*|[۔।]\s+"
)
COMMA = re.compile(r",\s+(?=[A-Za-z])")
# A list may be cut at its commas after these words, which govern all of it.
LIST = re.compile(
    r":\s|\b(?:include[sd]?|including|such as|perform|order|obtain|recommend)\s", re.IGNORECASE
)
_DENIAL = (
    r"\b(?:no|not|none|nil|never|neither|nor|non|without|cannot|unlikely|less likely|absent|absence"
    r"|negative|neg|den(?:y|ies|ied|ying)|exclud\w+|r/o|rul(?:e|es|ed|ing) (?:it )?out|lack\w*"
    r"|free of|contraindicated|avoid\w*|stop\w*|discontinu\w*|withhold\w*|withheld|held|hold"
    r"|ceas\w+|halted|resolved|withdrawn|retracted|reject\w*|refut\w*|disprov\w*|fail\w*|refus\w+"
    r"|declin\w+|against|instead|rather|replaced?|switched|revised|changed|normal|unremarkable"
    r"|false|incorrect|wrong|mistak\w+|error|hardly|rarely|spared?|doubt\w*|disagree\w*"
    r"|dissent\w*|object\w*|oppos\w*|challeng\w*|contest\w*|questioned"
    r"|un(?:able|confirmed|proven|clear))\b|n['’]t\b"
)
_CONDITION = (
    r"\b(?:if|unless|only|until|till|when|while|provided|providing|except\w*|but|apart|aside"
    r"|other than|however|although|though|despite|otherwise|then|later|afterwards|subsequently"
    r"|after|before|pending|which|who|whose|where|whether|so|because|suspected|possibl[ey]"
    r"|probabl[ey]|likely|considered|versus|vs|yet|nevertheless|or|in case|as long as|depending"
    r"|once|twice|thrice|daily|hourly|weekly|every|bid|tid|qid|prn|q\d+h?)\b|\?"
)
_VERB = (
    r"\b(?:is|are|was|were|be|been|has|have|had|may|might|can|could|will|would|should|must|does"
    r"|did)\b"
)
# Each of these takes an earlier statement back, wherever it stands.
_CORRECTION = (
    r"\b(?:corrections?|corrected|preclud\w+|unsafe|(?<!to )reduced?|halved?|updated?|extubated"
    r"|ha?emoly[sz]ed|repeat(?:ed)?|redraw\w*|redrawn|artifacts?|artefacts?|misread\w*"
    r"|non-?adheren\w+|self-discontinued|turned out|amended|changed to|(?<!is )(?<!are )meant"
    r"|(?:fell|down) to|minority|overturned|scratch|removed|cancel\w*|ignore|disregard|revoked?"
    r"|forbids?|too (?:late|risky)|typo|should read|make (?:that|it)|already given|belongs? to"
    r"|in error|addendum|misspoke|strike that|should (?:be|have been)(?= \d)|actually(?= \d)"
    r"|rescind\w*|correct (?:dose|value|number|result|reading|rate)|(?:another|different) patient"
    r"|erroneous\w*|spurious\w*|implausible|mislabel\w*|pseudo-?(?:hyp|thrombo)\w+"
    r"|(?:sample|specimen|tube|culture)s? (?:\w+ ){0,2}(?:clotted|contaminated)"
    r"|(?:clotted|contaminated) (?:sample|specimen|tube|culture)s?"
    r"|(?:re-?check(?:ed)?|second (?:sample|specimen|value|reading|measurement)):? "
    r"(?:(?!(?:in|at|after|within|every)\b)\w+:? ){0,3}\d+(?:[.,/]\d+)*+"
    r"(?! ?-?(?:h|hours?|hrs?|min\w*|days?|weeks?|months?|am|pm)\b)"
    r"|(?:probe|sensor|leads?|electrodes?|cuff|cable|transducer) (?:\w+ ){0,3}"
    r"(?:off|loose|disconnected|displaced|dislodged|detached|reversed)"
    r"|poor (?:waveform|tracing|signal)|over-?read"
    r"|final (?:read|report|pathology|histology|cytology|culture)"
    r"|on (?:(?:closer|further|second) )?(?:review|reflection|reconsideration)(?=,|\W*\Z)"
    r"|re-?vot(?:e|ed|ing)|now (?:prefer|favou?r|support|choose|lean|agree)s?"
    r"|(?:mov|switch|shift|chang)(?:ed|es|ing) to (?-i:[A-J])"
    r"|(?:lab|laboratory|radiology|pathology|microbiology) (?:called|phoned)"
    r"|otherwise(?! (?:healthy|normal|well|stable|unremarkable)\b))\b"
    r"|\b(?:first|before(?:hand)?)\W*\Z|\A\W*(?:sorry|actually|should be|i mean)\b"
)
_DOSE = r"(?P<number>\d+(?:[.,]\d+)*+) ?(?P<unit>mg|mcg|[µμ]g|g|units?|mL|mEq|mmol|IU|tablets?)\b"
GIVEN = re.compile(_DOSE, re.IGNORECASE)
ORDERED = re.compile(
    r"\b(?:(?:intended|ordered|prescribed|planned|requested|charted)"
    r"(?: (?:dose|rate|order|amount))?(?: (?:is|was|of))?:?"
    rf"|order (?:is|was|said|reads)(?: for)?) {_DOSE}",
    re.IGNORECASE,
)
# In the rest of a list, each of these may say something about the items that are kept.
QUALIFIES = re.compile(rf"{_DENIAL}|{_CONDITION}|{_VERB}|{_CORRECTION}|:", re.IGNORECASE)
DENIES = re.compile(rf"{_DENIAL}|\bpending\b", re.IGNORECASE)
# In the heading of a list, each of these says something about its items.
GOVERNS = re.compile(rf"{_DENIAL}|{_CONDITION}", re.IGNORECASE)
CORRECTS = re.compile(_CORRECTION, re.IGNORECASE)
# A statement that begins like this continues an earlier one; "No fever" does not.
CONTINUES = re.compile(
    r"\W*(?:(?:now|wait|sorry|actually)\W+)?"
    rf"(?!(?:no|normal) (?!longer|more\b))(?:{_DENIAL}|{_CONDITION})",
    re.IGNORECASE,
)
REFERS_BACK = re.compile(
    r"\W*(?:it|its|this|that|these|those|they|their|both|all|each|such|the (?:latter|former|same))"
    r"\b|.*\b(?:this|it|these|those|them)\b",
    re.IGNORECASE | re.DOTALL,
)
OWN_FINDING = re.compile(
    r"\W*(?:(?:no|normal)|(?:(?:he|she|(?:the )?patient) )?denie[sd]) (?!longer|more\b)\w",
    re.IGNORECASE,
)
# What is kept reassures, and what is left out may not.
REASSURES = re.compile(
    r"\b(?:no|denie[sd]|normal|stable|intact|negative|discharged?|improv\w+"
    r"|(?:is|are|was|feels?|doing|looks?|appears?|remains?) (?:well|fine)(?! \w+ed\b)"
    r"|clear(?! (?:fluids?|liquids?|margins?))|resolved|subsided|remission|recover(?:ed|ing)"
    r"|cured|gone|afebrile|relieved)\b",
    re.IGNORECASE,
)
RELAPSES = re.compile(
    r"\b(?:relaps(?!ing.remitting)\w+|recurs|recurr(?:ed|ing|ences?)|rebleed\w*|rebled|again"
    r"|came back|(?:is|are|was|were) back|deteriorat\w+|worsen(?:s|ed|ing)(?! (?:by|with|on)\b)"
    r"|returned(?! (?:to|from|home|for|normal|negative|clear|unremarkable)\b))\b",
    re.IGNORECASE,
)
# What happened to the patient after anything else that is kept.
WORST = re.compile(
    r"(?:\A\W*|\b(?:he|she|patient|pt|baby|infant|child) (?:\w+ )?)(?:expired|coded|arrested)\b"
    r"|\b(?:died|deceased|passed away|(?:pronounced|declared) dead|time of death"
    r"|(?:re-?)?intubated"
    r"|(?:transferred|moved|admitted) to (?:the )?\w{0,3}ICU|suicid(?:al|e attempt)"
    r"|(?:plan\w*|inten\w+|threat\w+|attempt\w*|wants?) (?:\w+ ){0,2}(?:suicide|overdose"
    r"|(?:kill|hang|harm|hurt) (?:him|her|them)sel(?:f|ves)))\b",
    re.IGNORECASE,
)
OTHERS = re.compile(
    r"\b(?:husband|wife|spouse|partner|father|mother|parents?|brother|sister|son|daughter|child"
    r"|uncle|aunt|grand\w+|cousin|relatives?|family|friend)\b",
    re.IGNORECASE,
)
# What is kept orders a treatment, and what is left out bars it.
TREATS = re.compile(
    r"\b(?:gave|give[ns]?|giving|administer\w*|prescrib\w+|infus(?:e|ed|ing)|inject(?:ed|ing)?"
    r"|receive[ds]?|receiving|treat(?:ed)? with|recommend\w*|advis\w+|favou?rs?|us(?:e|ed|ing))\b"
    r"|(?:\A|[.;:,|]\s+|\b(?:to|should|will|was|been|and) )"
    r"(?:start|begin|commence|initiat|continu|resum)\w*\b"
    r"|\d ?(?:mg|mcg|µg|g|units?|mL)\b(?! ?/)",
    re.IGNORECASE,
)
BARS = re.compile(
    r"\b(?:contraindicat\w+|allerg(?:y|ic|ies)|hypersensitiv\w+|overdosed?|severe reaction"
    r"|(?:anaphyla\w+|angio-?o?edema) (?:to|with|on|in|from)"
    r"|(?<!lactose )(?<!gluten )(?<!heat )(?<!cold )(?<!exercise )intoleran(?:t|ce)"
    r"|(?<!not )pregnant|breast-?feeding"
    r"|(?:pregnancy test|hcg|HIT antibod(?:y|ies)|HIT|hla-b\S+)\W{1,3}(?:\w+ ){0,2}positive"
    r"|positive (?:\w+ ){0,2}(?:pregnancy test|(?:beta-)?hcg|HIT antibod(?:y|ies)|hla-b\S+)"
    r"|(?:g6pd|iga|dpd|tpmt|pseudocholinesterase) deficien(?:t|cy))\b",
    re.IGNORECASE,
)
# What a drug did: a drug follows.
REACTION = re.compile(
    r"\b(?:hives|urticaria|rash|itching|pruritus|angio-?o?edema|wheez(?:e|es|ing)|bronchospasm"
    r"|anaphyla\w+|reaction|reacted"
    r"|swelling(?! (?:in|of) (?:(?:the|both|his|her) )?(?:legs?|ankles?|feet|knees?)\b))\b"
    r"(?: [\w/-]+){0,3}? (?:to|with|after|following|from|on"
    r"|(?:when|while) (?:\w+ )?(?:given|taking|took|on|using))\b",
    re.IGNORECASE,
)
# What a drug did, behind it: "penicillin (hives)", "Ramipril: angioedema", "causes a rash".
REACTED = re.compile(
    r"(?:s? allergy)?(?:(?: ?(?:[:(=>]|--?>|→)| [-–—])\s?|-induced "
    r"| (?:has |had |previously )*(?:cause[sd]?|gave|gives?|induce[sd]?|triggers?|triggered"
    r"|le(?:d|ads?) to|brought on)(?: (?:him|her|them|an?|in|severe|mild))* )"
    r"(?:[\w/-]+,? ){0,3}?"
    r"(?:hives|urticaria|rash|itching|pruritus|angio-?o?edema|wheez(?:e|es|ing)|bronchospasm"
    r"|anaphyla\w+|(?:allergic|severe) reaction"
    r"|(?:lips?|tongue|face|facial|throat|mouth|airway) swelling"
    r"|(?:swollen|swelling of (?:(?:the|his|her) )?)(?:lips?|tongue|face|throat|mouth))\b",
    re.IGNORECASE,
)
# Before a drug that is not tolerated, but not "Continue all: warfarin".
ALLERGY_TO = re.compile(r"\b(?:(?<![a-z] )all|adrs?|allerg(?:y|ies))\s?:\s?\Z", re.IGNORECASE)
# Drugs that treat a reaction, or a rash: "cetirizine (hives)", "nystatin (diaper rash)".
ANTIALLERGIC = re.compile(
    r".*(?:tirizine|ratadine|fenadine|hydramine|hydroxyzine|pheniramine|epinephrine"
    r"|adrenaline|cortisone|predni\w+|dexamethasone|betamethasone|triamcinolone|mometasone"
    r"|fluticasone|budesonide|beclomet\w+|clobetasol|terol|tropium|albuterol|salbutamol|lukast"
    r"|theophylline|magnesium|icatibant|omalizumab|dupilumab|tidine|furosemide"
    r"|nystatin|conazole|trimazole|methrin|vermectin|ciclovir|cyclovir|doxepin|chole?styramine"
    r"|ursodiol|ursodeoxycholic acid|tranexamic acid|txa)\Z"
)
DRUG_CLASS = re.compile(
    r"\b(?:sul(?:f|ph)a|penicillins|PCN|cephalosporins?|antibiotics?|NSAIDs|ACE ?(?:i|inhibitors?)"
    r"|(?:iodinated |IV )?contrast)\b",
    re.IGNORECASE,
)
TREATED = re.compile(
    r"\b(?:treated|managed|controlled|better|improv\w+|resol\w+|respond\w+|reliev\w+)\b",
    re.IGNORECASE,
)
NO_ALLERGY = re.compile(r"\b(?:nkda|nka|no (?:\w+ ){0,2}allerg(?:y|ies))\b", re.IGNORECASE)
_PERSON = (
    r"(?:patient|pt|he|she|they|family|husband|wife|spouse|partner|father|mother|parents?|brother"
    r"|sister|son|daughter|proxy|surrogate)"
)
LIMITS = re.compile(
    r"\b(?:max(?:imum)?\.?:? (?:\w+:? ){0,3}\d|at most|(?:to|not) exceed\w*|no (?:more|faster) than"
    r"|refus\w+|jehovah\w*"
    rf"|{_PERSON} (?:\w+ )?declin(?:es?|ed|ing)"
    # "Fatal if given intrathecally", "for intravenous use only", "infuse over 4 hours"
    r"|(?:fatal|lethal|deadly) (?:(?:if|when) (?:\w+ ){0,2}(?:given|administered|injected|used"
    r"|taken|infused)|(?:if|when|by) (?:any |other )?(?:intra\w+|routes?))"
    r"|(?:use|injection|infusion|route|IV|IM|intra\w+|subcut\w+|oral(?:ly)?|by mouth|line) only"
    r"|(?:infuse|inject|give|push|run|administer)(?:d|n|ed)?(?: it)?"
    r" (?:slowly|over [\d-]+ ?(?:h|hours?|min|minutes?|s|sec|seconds?)|deep"
    r"|(?:via|through) (?:a )?central)"
    r"|slow (?:IV|push|injection|infusion)|dilute[ds]? (?:in|to|with))\b",
    re.IGNORECASE,
)
# "Do not give if K is below 3.3", "Must not be given with calcium", "Please hold for SBP < 100"
WITHHELD = re.compile(
    r"\b(?:(?:(?:do|does|must|should|may|can)(?: not|n['’]t)|cannot|never|not to)(?: be)?"
    r" (?:given?|administer(?:ed)?|start(?:ed)?|us(?:e|ed)|inject(?:ed)?|infused?|taken?)"
    r"|(?<!\bon )(?:hold|withhold|skip|omit))"
    r"(?P<object>(?: [\w-]+){0,3}?)"
    r" (?:if|unless|until|when|while|before|after|for|with(?:out|in)?|by|via|in|IV|IM|undiluted)\b",
    re.IGNORECASE,
)
THE_DOSE = frozenset(
    {"it", "this", "that", "the", "any", "another", "further", "more", "next", "dose", "doses"}
    | {"drug", "medication", "medicine", "infusion", "bolus", "injection", "tablet", "tablets"}
)
"""Words for a treatment that was ordered before."""
# "Take it once a week", "To be given on Mondays", "Dosing is weekly", but not "Give fluids hourly"
TAKE = re.compile(
    r"\W*(?:(?:it|this) is (?:an? (?:\w+ ){0,3}(?:dose|drug|medicine|medication|tablet|injection)\b"
    r"|(?:only )?(?=(?:given|taken|used|dosed|injected|once|twice|weekly|monthly)\b))"
    r"|(?:(?:the|each) )?dos(?:es?|ing|age)\b|(?:frequency|schedule|interval)(?=:| is\b)"
    r"|(?:(?:he|she|they|it|this|(?:the )?(?:patient|pt)) (?:\w+ )?)?"
    r"(?:(?:should|must|to)(?: not)? be (?:taken|given|used|administered|injected|applied|infused)"
    r"|takes?|gives?|administers?|injects?|uses?|appl(?:y|ies)|swallows?|changes?"
    r"|(?P<past>given|taken|administered|injected|used|applied))"
    r"(?=:| (?:it|this|them|each|every|the (?:dose|drug|tablets?|medication|injection)|on|at|in"
    r"|with|by|before|after|once|one|twice|three|only|strictly|orally|subcut\w+|intra\w+|po|iv|im"
    r"|sc|q\w+|[bt]id|tds|[bo]d|daily|weekly|monthly|nightly|exactly|\d+)\b))",
    re.IGNORECASE,
)
EPINEPHRINE = re.compile(r"\b(?:epinephrine|adrenaline)\b", re.IGNORECASE)
ANAPHYLAXIS = re.compile("anaphyla", re.IGNORECASE)
# Each of these takes back the other.
CODE_STATUS = (
    re.compile(
        r"\bfull code\b|(?<!not )\battempt (?:CPR|resus\w*)"
        r"|(?:(?<!\w )|(?<=\b(?:is|pt) )|(?<=\b(?:was|now) )|(?<=\b(?:remains|patient) ))"
        r"\bfor (?:(?:full |active )*(?:CPR|resus(?:citation)?|escalation)|full treatment)\b"
        r"(?! (?:of|with|give|using|training))",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:DNR|DNAR|DNACPR|DNI|NFR|do not (?:attempt )?(?:resuscitate|intubate|CPR)"
        r"|not for (?:full |active )*(?:CPR|resus\w*|intubation|ventilation|escalation)"
        r"|(?:CPR|resuscitation) (?:is )?not (?:indicated|appropriate)|allow(?:ing)? natural death"
        r"|comfort (?:care|measures)|hospice)\b",
        re.IGNORECASE,
    ),
)
NONE_OF_IT = re.compile(r"\b(?:no|denie[sd]|without|none|nkda|nka|absent)\b", re.IGNORECASE)
NEWS = re.compile(
    r"\W*(?:(?:he|she|(?:the )?(?:patient|pt)|overnight|at \S+)\W+)?"
    r"(?:now|new|since|started|suddenly|spiked"
    r"|became(?! (?:more |fully )?(?:ambulatory|independent|able|afebrile|asymptomatic|alert|awake"
    r"|oriented|stable|continent|mobile|comfortable|pain-?free|stronger|better)\b)"
    r"|developed(?! (?:an? )?(?:mild|slight|minor|minimal|good|better)\b))\b",
    re.IGNORECASE,
)
_TEST = (
    r"\b(?:CT(?:PA|A|V)?|MR[IAV]|MRCP|ERCP|PET|x-?rays?|[CAK]XR|KUB|radiographs?|films?"
    r"|ultrasound|USS|dopplers?|duplex|(?-i:e?FAST)|POCUS|TTE|T[EO]E|[EO]GD|echo\w*|ECGs?|EKGs?|EEG"
    r"|angio\w+|\w{3,}ogra(?:m|phy)s?|\w+oscopy|laparotomy|scans?|biops(?:y|ies)|FNA|cytology"
    r"|histology|serology|smear|stain|dipstick|urinalysis|swabs?|(?:blood |urine )?cultures?"
    r"|lumbar puncture|LP|CSF|PCR|D-dimer|troponin)\b"
)
_NORMAL = r"\b(?:normal|negative|unremarkable|clear|benign)\b"
_SHOWS = r"\b(?:show|reveal|demonstrate|confirm|suggest|consistent|positive|found)"
_NOT_DONE = (
    r"(?!(?:yet |be |been |being |currently |(?:IV |oral )?contrast\b)*(?:done|needed|necessary"
    r"|indicated|performed|useful|required|recommended|available|diagnostic|contrast)\b)"
)
_NO_FINDING = (
    r"(?:(?:not|normal|negative|unremarkable|clear|benign|unchanged|stable|pending|planned|booked"
    r"|ordered|requested|scheduled|awaited|today|tomorrow|sent|done|preserved|intact|(?:LV)?EF"
    r"|ejection)\b)"
)
_EARLIER = (
    r"\b(?:(?:on|at|before|prior to) (?:the )?(?:admission|presentation|arrival|onset)"
    r"|(?:days|weeks|months|years) ago|previously|initially)\b"
)
# What is kept, what is left out and takes it back, and words with which it does not.
TAKEN_BACK = tuple(
    (
        re.compile(said, re.IGNORECASE),
        re.compile(by, re.IGNORECASE),
        re.compile(unless, re.IGNORECASE),
    )
    for said, by, unless in (
        (
            rf"{_TEST}[^.;]{{0,30}}(?:{_NORMAL}|\bno\b)"
            # "CT did not show a bleed", but not "CT shows appendicitis without abscess"
            rf"|{_TEST}(?:(?!{_SHOWS})[^.;]){{0,30}}\b(?:not|without) {_NOT_DONE}"
            rf"|(?:{_NORMAL}|\b(?:no|not|without)\b)[^.;]{{0,30}}\b(?:on|by|at) "
            rf"(?:[\w-]+ ){{0,4}}{_TEST}"
            rf"|{_NORMAL} (?:(?!(?:for|to|of|after|before|with|in)\b)[\w-]+ ){{0,4}}{_TEST}",
            rf"{_TEST}:? (?:(?!(?:to|will|would|may|might|could|should|if)\b)[\w:-]+ ){{0,8}}"
            r"(?:show|reveal|demonstrate|confirm|gr[eo]w|positive|found|finds|detect|identif|disclos"
            r"|suggest|consistent with|diagnos|suspicious)"
            # "MRI: subdural hematoma", "ECG at 30 min: ST elevation"
            rf"|{_TEST}(?! [^.;:]{{0,30}}\b(?:if|to)\b)(?: [^.;:]{{1,30}})?: "
            rf"(?!\W*\d|{_NO_FINDING})\w"
            # "fracture seen on plain films of the hip", "fracture on MRI"
            r"|\b(?:seen|found|visible|evident|noted|present|identified|detected) (?:on|by) "
            rf"(?:[\w-]+ ){{0,4}}{_TEST}|\w (?<!based )on (?:[\w-]+ ){{0,4}}{_TEST}\W*\Z",
            r"(?:show|reveal|demonstrate|confirm|found)\w* (?:(?:the|an?) )?(?:absence|normal)",
        ),
        (
            r"\b(?:stable|afebrile|well|improv\w+|discharged|(?:for|to) discharge|recovered"
            r"|discharge (?:home|today)|no fever|fever (?:\w+ )?resolved)\b",
            r"\b(?:(?:fever|febrile|temp\w*)(?: (?:up|spiked?|rose))? (?:to|of)"
            r"|(?:temp(?:erature)?|Tmax|(?-i:T))(?: (?:is|was))?:?) (?:3[89]|4[0-2]|10[1-7])\b",
            _EARLIER,
        ),
        (
            r"\b(?:no (?:\w+ ){0,2}bleeding|bleeding (?:\w+ )?(?:stopped|controlled|resolved))\b",
            r"\b(?:ha?ematemesis|mela?ena|ha?ematochezia|ha?emoptysis|epistaxis|bled|bleeds"
            r"|(?:vomited|passed|coughed up) (?:\w+ ){0,2}(?:blood|clots))\b",
            _EARLIER,
        ),
        (
            r"\bMRI\b",
            r"\b(?:pacemaker|ICD|defibrillator|cochlear implant|aneurysm clip|neurostimulator"
            r"|metal(?:lic)? (?:implant|fragment|foreign body|clip))s?\b",
            r"\b(?:conditional|compatible|MRI?[- ]safe|(?:will|to) be (?:placed|implanted))\b",
        ),
        (
            r"\b(?:nitroglycerin|nitrates?|isosorbide|GTN|NTG)\b",
            r"\b(?:\w*nafil|tadalafil|viagra|cialis|riociguat)\b",
            r"\b(?:weeks|months|years) ago\b",
        ),
    )
)
_GOOD_IF_HIGH = (
    r"(?:ha?emoglobin|Hb|Hgb|ha?ematocrit|Hct|saturations?|oxygen|sats?|S[pa]O2|GCS|platelets?"
    r"|plts?|pH)"
)
# A value has become worse: "BP dropped to 88/40", "Hb fell from 12 to 6", "lactate rose to 6".
MOVED = re.compile(
    rf"\b(?:{_GOOD_IF_HIGH}|BP|SBP|MAP|systolic|pressure)(?: \w+)?"
    r" (?:dropped|fell|plummeted|sank)(?: \w+){0,2} \d"
    rf"|\b(?!(?:{_GOOD_IF_HIGH}|he|she|patient)\b)[\w)]+"
    r" (?:rose|climbed|jumped|spiked|surged)(?: \w+){0,2} \d",
    re.IGNORECASE,
)
NEXT_ONE = re.compile(
    r"\W*(?:second|third|next|later|latest|follow-?up)(?! (?:dose|line|in|with)\b)"
    r"(?!.{0,100}\b(?:scheduled|advised|planned|recommended|booked|due)\b)",
    re.IGNORECASE,
)
STOPS = re.compile(r"\W*(?:stop|hold|withhold|discontinue)\b", re.IGNORECASE)
CONTENT = re.compile(r"[^\W\d_]{5,}|\b[A-Z]{2,}\b")
CLAUSE_END = re.compile(r"[,;:，、；：،؛]\s*")
