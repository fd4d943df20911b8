"""Detects complaints that nobody has now: denied, long ago, invented, asked about or only feared.

In doubt, a complaint counts as present: a missed denial costs a visit, a false one may cost a life.
A denial therefore covers one complaint, which follows it at once or after words such as "any". It
continues past a comma only in a list, of which it covers one complaint an item: a list that ends
with "or", one that fills the rest of the sentence with three short items or more, or one after
"denies". "Never" denies no list without "or" ("I never smoked, chest pain, …"). In a form, an
answer denies its field ("Chest pain: no").
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from demos.medagen.lexicon import Found, Lexicon
from demos.medagen.tokenizer import Words

_FAR = 4
"""Maximum number of words between a denial and the complaint that it denies."""
_LONGEST_FIELD = 6
"""Maximum number of words of a field of a form, such as "shortness of breath"."""
_LONGEST_ITEM = 4
"""Maximum number of words of a list item."""

_LONGEST_LISTED = 3
"""Maximum number of words of an item in a list that fills the rest of a sentence."""
_LONGEST_QUESTION = 15
"""Maximum number of words of a question about an illness in general."""
_NEAR = 12
"""Maximum number of words between a denial and somebody else who has the complaint."""
_PAST_YEARS = range(1950, 2026)
_YOUNG = range(2, 26)
"""Ages, in years, that lie in the past where a message says "when I was 12"."""

_NOT = "không|ko|kg|hok|chẳng"
_BACK = "came+back|comes+back|come+back|is+back|its+back|back+again|returned|returns"
_BACK_VI = "đau+lại|bị+lại|lại+đau|tái+phát|quay+lại|trở+lại"
_KIN = "bà|ông|bố|ba|mẹ|má|cha|cụ|chú|bác|cô|dì|cậu|anh|chị"
_OWN = "em|tôi|mình|con|cháu|tui"
_ILLNESS = "stroke|heart+attack|seizure|blood+clot|aneurysm|meningitis|sepsis|appendicitis"
_ILLNESS_VI = "đột+quỵ|tai+biến|nhồi+máu|động+kinh|viêm+màng+não|viêm+ruột+thừa"
_IT_IS = "it+is|its|it+was|this+is|that+is|thats|i+am|im|he+is|hes|she+is|shes|i|he|she"
_NEVER = "từng|bao+giờ|khi+nào|lần+nào"
_OTHERS = (
    "neighbor|neighbour|colleague|coworker|boss|teacher|classmate|landlord|celebrity|actor|singer"
)
_OTHERS_VI = "hàng+xóm|đồng+nghiệp|người+quen|bạn+học|sếp|thầy+giáo|cô+giáo"
_ANYONE = "someone|somebody|anyone|anybody|people|a+person|a+man|a+woman|a+child|a+kid|a+baby"
_ANYONE_VI = "ai|ai+đó|có+ai|có+người|người+ta|một+người|người+nào"
_SUPPOSED = "has|have|had|gets|is|faints|collapses|chokes|drinks|swallows|eats|starts"
_WRITTEN = "story|novel|book|screenplay|script|fanfic"
_SCHOOL = "homework|assignment|essay|exam|quiz|class|course"
_AFTER_WHO = frozenset(
    [",", ".", "!", ";", "right", "now", "too", "and", "but", "though", "since", "today", "nữa"]
)
"""Words that may follow "my dad does", where no other verb does."""
_PASSED_OVER = """
    a an the any of in on at to with from for been being be was were have has had having do does
    did get gets got getting feel feels feeling felt seem seems look looks looking notice noticed
    noticing see seen saw experience experienced experiencing suffer suffered suffering show shows
    showing report reports complain complains ever once yet even really actually also all real
    much more such other new further recent obvious visible clear apparent noticeable significant
    particular specific associated unusual abnormal severe serious bad terrible worst strong
    intense major mild slight minor little light small big great sudden acute active current sharp
    dull constant persistent chronic high low left right upper lower front whole side sign signs
    symptom symptoms history episode episodes evidence kind type sort form sensation sense trace
    thought thoughts plan plans intention wish attack attacks bout bouts problem problems trouble
    issue issues suicidal
    bị có thấy hề cảm giác dấu hiệu triệu chứng cơn gì nữa là phải được lên chút tí mấy từng biểu
    hiện tình trạng ý định nhiều quá lắm thêm
    bi co thay cam giac dau hieu trieu chung con gi nua la phai duoc len chut ti may tung bieu
    hien tinh trang y dinh nhieu qua lam them
"""
_BEFORE_COMPLAINT = frozenset(_PASSED_OVER.split())
"""Words that may stand between a denial and the complaint that it denies."""
_ANSWERED_NO = frozenset(
    ["no", "none", "nil", "nope", "negative", "absent", "n", "không", "ko", "khong", "k"]
)
"""Answers that deny a field of a form."""
_LEXICON = Lexicon(
    {
        "denied": [
            "no|not|never|without|nor|neither|denies|deny|denied|denying",
            "dont|doesnt|didnt|havent|hasnt|hadnt|isnt|arent|wasnt|aint",
            "free of",
            "negative for",
            f"{_NOT}|chưa|k",
            "=hông|hổng|chả",  # "hong" is also the throat, and "cha" the father
            "hết",
            "=đỡ|khỏi",
        ],
        "whole list": ["denies|deny|denied|denying", "negative for"],
        "never": ["never", f"{_NOT}|chưa {_NEVER}"],
        # Cues that cancel a denial, depending on the words that follow.
        "no denial": [
            "no idea|clue|longer|matter|one|relief|improvement|better|change|wonder|doubt|less",
            "no response|answer|pulse|way|sleep|appetite|energy|good",
            "not only|just|sure|certain|better|improving|stopping|relieved|helping|able|right",
            "not well|good|ok|okay|normal|getting|going|sleeping|eating|drinking|feeling|stop",
            "not know|think|breathing|responding|peeing",
            "dont|doesnt|didnt know|understand|think|want|stop|remember|help|work|improve|let",
            "dont|doesnt|didnt feel|look|seem well|good|right|ok|okay|normal|great",
            "never _ like|this|before|until|till|such|worse|today|tonight",
            "never _ so|as bad|badly|strong|strongly|sick|ill|much",
            "never been|felt|seen|hurt so|as",
            "never _ ,|.|;|but now|today|tonight|until|till|suddenly|this",
            "never stop|stops|stopped|stopping|ending|ends|goes|went|thought|expected|knew|mind",
            "never imagined|woke|wakes|recovered|came|noticed|want|wanted|wanna",
            "without warning|reason|cause|help|stopping",
            "isnt|arent|wasnt getting|going|stopping|breathing|responding|well|right|normal",
            "havent|hasnt|hadnt slept|eaten|stopped|been|drunk|improved|gone",
            f"{_NOT}|k|chưa biết|hiểu|rõ|chắc|chỉ|những|đỡ|khỏi|giảm|hết|ngừng|dứt|thuyên|cầm",
            f"{_NOT}|k|chưa ngủ|ăn|uống|khỏe|khoẻ|ổn|yên|may|ngờ|tự|nhớ|tin|còn|đủ|bú|chịu",
            f"{_NOT}|k|chưa thể|được|nổi|kịp|tả|nói|đi|đứng|cử|trả|phản|làm|tỉnh|dậy|ngớt",
            f"{_NOT}|chưa {_NEVER} _ vậy|này|thế|trước",
            f"{_NOT}|chưa {_NEVER} _ ,|.|;|nhưng nay|giờ|bây|hôm|sáng|trưa|chiều|tối|đêm|tự|mà",
            f"{_NOT}|chưa {_NEVER} hết|đỡ|khỏi|dứt|ngừng|ngưng|giảm|nghĩ|ngờ|tưởng",
            f"{_NOT}|chưa|mãi|không+thể hết|đỡ|khỏi",
            "hết sức|hơi|thuốc|chịu|cả|cách|nước|muốn|thiết|hồn|nổi",
            "đỡ _ thì|lại|rồi+lại",
            "cannot|cant|couldnt not",
            "why|if|whether _ not",
            # It went away, and came back.
            f"went|gone|goes away _ {_BACK}",
            f"went|gone|goes away , _ {_BACK}",
            f"is|are|has|have|was|were|had gone|resolved|stopped _ {_BACK}",
            f"is|are|has|have|was|were|had gone|resolved|stopped _ , _ {_BACK}",
            f"hết rồi|hẳn _ {_BACK_VI}",
            f"hết rồi|hẳn , _ {_BACK_VI}",
            f"đã|cũng|thì hết|khỏi _ {_BACK_VI}",
        ],
        "thought not": [
            *(
                f"dont|doesnt|not think|believe|suspect {_IT_IS}{having}{a} {_ILLNESS}"
                for having in ("", " have|has|had|having")
                for a in ("", " a|an")
            ),
            *(
                f"{_NOT}|k nghĩ{who} là|bị|là+bị {_ILLNESS_VI}"
                for who in ("", " mình|em|tôi|nó|đây|đó")
            ),
        ],
        "denied after it": [
            f"thì {_NOT}|k|chưa",
            "is|are absent",
            "none",
            "is|are|has|have|was|were gone now|away|completely",
            "went|gone|goes away",
            "has|have resolved|stopped",
            "đã|cũng|thì hết|khỏi",
            "hết rồi|hẳn",
        ],
        "somebody else": [
            "my|our dad|father|mum|mom|mother|husband|wife|son|daughter|baby|child does|has+it",
            "my|our brother|sister|friend|partner|grandma|grandpa|uncle|aunt does|has+it",
            "he|she does|has+it",
            f"{_KIN} {_OWN} thì|mới có|bị",
        ],
        "animal": [
            "my|our dog|dogs|cat|puppy|kitten|hamster|rabbit|pony had|has|is|was|keeps|started",
            "chó|mèo|cún nhà|của em|mình|tôi|con bị|co|nôn",
        ],
        "hurt by it": [
            "i|im|ive|me|my|he|hes|him|his|she|shes|her|we|us|our|they|them|baby|child|kid|son",
            "daughter|mum|mom|dad|husband|wife|bit|bite|bitten|biting|scratched|attacked|mauled",
            "grandma|grandpa|girl|boy|man|woman|someone|people|friend|neighbour|neighbor|knocked",
            "cắn|cào|tay|chân|mặt|tôi|em|mình",
        ],
        "turn": [
            "but|however|although|though|yet|except|now|then|because|since|so|just|only|and",
            "nhưng|mà|tuy|song|giờ|chỉ|vì|nên|rồi|và|còn|lại|bây",
        ],
        "or": ["or|nor", "hoặc|hay|lẫn"],
        "knowledge": [
            "what is|are|causes|happens",
            "how do|can|could|should|would i|you|we|one recognize|recognise|spot",
            "just so i|we know",
            "how is|are|do|does|can|should",
            "can|should|do people|children|adults|doctors|women|men",
            "symptoms|signs|causes|types|kinds of",
            "how to|do prevent|recognize|recognise|spot|avoid|treat|know",
            "is|are|can|could _ a|the side effect|effects",
            "can|could|does|do|will _ cause|causes|trigger|lead+to",
            "là gì|bệnh+gì",
            "triệu+chứng|dấu+hiệu|nguyên+nhân _ của|gây|gồm|nào",
            "làm+sao nhận+biết",
            "có những loại",
            "cách|sao phòng|phòng+tránh|nhận+biết|xử+trí|sơ+cứu",
        ],
        "explained": [
            "what|which _ signs|symptoms of",
            "triệu+chứng|dấu+hiệu _ là+gì|gồm",
            "làm+sao|cách nhận+biết",
        ],
        "nobody": ["trẻ em|nhỏ"],
        "person": [
            "i|im|ive|my|me|he|hes|his|him|she|shes|her|we|our|they|their|it|its|this|you",
            "baby|mum|mom|dad|father|mother|son|daughter|wife|husband|friend|kid|child|man|woman",
            "=tôi|mình|em|con|bé|cháu|mẹ|má|bố|ba|cha|ông|bà|chồng|vợ|anh|chị|nó|bạn|tui|tao",
            "toi|minh|em|con|be|chau|me|ma|bo|ba|cha|ong|chong|vo|anh|chi|no|ban|tui",
            "nay|bây+giờ|lúc+nãy|vừa|now|today|yesterday|just|tonight|since",
        ],
        "story": [
            f"trong truyện|kịch+bản|tiểu+thuyết {_OWN} viết",
            f"in a|the|my|this {_WRITTEN.replace('book|', '')}",
            "on tv|television|telly|netflix|youtube",
            "movie|film|documentary|novel|videogame|sitcom",
            "watching|watched _ show|series",
            "news|article|radio|podcast said|says|about|that",
            "in|on the news|paper|papers|radio",
            "character _ novel|book|game|story",
            f"{_WRITTEN} i|im|i+am|ive _ writing|wrote|write",
            f"writing a|the|my {_WRITTEN}|scene",
            "character|hero|villain|protagonist _ book|game|story|novel",
            "video game _ my|the character|hero",
            f"for a|the|my|our {_SCHOOL} _ explain|describe|write|discuss|what",
            f"i|we _ {_SCHOOL}|test question|questions about",
            f"{_SCHOOL}|test question|questions about",
            "leaflet|poster|booklet|brochure|textbook says|said|mentions|lists|warns",
            "song|poem|joke about",
            "coi|xem|trên|trong phim|tivi|truyện|báo",
            "nghe|đọc|xem _ đài|báo|tin|clip|video",
            "trong truyện|kịch+bản|tiểu+thuyết|game",
            "nhân vật",
            "đọc|xem|coi truyện|phim|sách",
            "phim|truyện _ cảnh|đoạn",
            "bài+tập|đề+thi|đề+bài _ hỏi|nói|về|có",
        ],
        "dream": [
            "dreamed|dreamt",
            "dream|nightmare where|that|about|of|i",
            "in my|a|the dream|nightmare",
            "nằm+mơ|giấc+mơ|ác+mộng|mơ+thấy",
        ],
        "awake": ["woke|wake|waking|awake|now|since|still|real|really", "giờ|dậy|tỉnh"],
        "self": [
            "i|im|ive|ill|my|me|we|our|us|dad|daddy|mum|mom|mother|father|husband|wife|son",
            "daughter|brother|sister",
            "em|tôi|mình|con|cháu|ba|bố|mẹ|má|vợ|chồng|tui",
        ],
        "busy": [
            "was|were|is|are|been watching|playing|reading|seeing|doing",
            "as|like in a film|movie|dream",
            "đang coi|xem|chơi|làm|đọc",
        ],
        "others": [
            f"{_OTHERS} had|suffered|died",
            f"{_OTHERS} just|has|recently|suddenly|also had|suffered|died",
            f"{_OTHERS_VI} _ bị|mất|đột",
        ],
        "prevention": [
            "prevent|avoid|lower|reduce|risk|checkup|screening|screened|tested|checked",
            "check up",
            "phòng ngừa|tránh|bệnh",
            "tầm+soát|kiểm+tra|xét+nghiệm|đi+khám|nên+khám|khám+tổng",
        ],
        "them": ["her|him|them|herself|himself", "ấy"],
        "happening": [
            "lying|lies|breathing|unconscious|ambulance|help|moving|responding|response|still",
            "here|front|right+now|next+to|just+now|happening",
            "like me|mine|him|her|this",
            "đang|nằm|vẫn|gọi|ngay|trước+mặt|như+vậy|lúc+này|thế+này|kêu+cứu|cứu+với",
        ],
        "supposed": [
            "what if i|he|she|they|we|you|one get|gets|catch|faint|faints|collapse|develop|suffer",
            "what if i|he|she|they|we|you|one ever|suddenly get|faint|collapse|have",
            "could|can|will|would|might i|he|she|you|we|they|people get|catch|develop|end",
            "scared|afraid|terrified|frightened|fear|worried of|about getting|having|catching",
            "worry|worried|fear|scared|afraid i|ill|that+i will|might|could|may get|develop",
            "worry|worried|scared|afraid ill|that+ill get|develop|have",
            "am i going to|gonna have|get",
            f"if {_ANYONE} {_SUPPOSED}",
            f"what happens|to+do when {_ANYONE} {_SUPPOSED}",
            f"lỡ|nhỡ|giả+sử|lỡ+như|nếu+lỡ {_OWN} bị|lên|gặp",
            f"nếu|giả+sử|nếu+như|ví+dụ {_ANYONE_VI} bị|lên|gặp|uống|nuốt|ngất",
            "sợ|lo|ngại sau+này|mai+mốt|về+già|có+ngày _ bị",
        ],
        "supposed until": [
            "from|after|because|since|when|with|taken|took|pills|tablets|overdose|overdosed",
            "another|again|himself|herself|themselves|vì|do|từ",
        ],
        "not yet": [
            "if i|you|he|she|they|we|someone|anyone ever get|have|feel|notice|see|experience|start",
            "can|could|does|do|will|would _ make|give you|someone|people|somebody",
            "in case i|you|he|she|they|we|someone|anyone ever",
            "lỡ|nếu sau+này|mai+mốt|có+ngày _ bị|gặp",
        ],
        "not now": [
            "years|yrs ago",
            "last year|summer|winter|spring|autumn|christmas",
            "as a child|kid|teenager|toddler|baby",
            "childhood",
            "when i|he|she was young|little",
            f"when i|he|she was {'|'.join(map(str, _YOUNG))}",
            "in my|his|her teens|twenties|thirties|youth",
            "history of",
            "family history",
            "used to",
            "runs in",
            "back in",
            f"in {'|'.join(map(str, _PAST_YEARS))}",
            "out of the hospital",
            "released|discharged from",
            "năm ngoái|trước|xưa",
            f"năm {'|'.join(map(str, _PAST_YEARS))}",
            "hồi|ngày nhỏ|bé|xưa|trẻ",
            "tiền sử",
            "từng bị|mắc",
            "cách đây _ năm",
            "qua đời vì|do",
            *(
                phrase
                for who in (_KIN, f"{_KIN} {_OWN}", f"{_KIN} nội|ngoại {_OWN}", f"{_KIN} {_OWN} đã")
                for phrase in (f"{who} mất vì", f"={who} mất do")  # "mat do" is also a red eye
            ),
            "died of|from",
        ],
    },
    reads_errors=False,
)


def standing(words: Words, found: Sequence[Found]) -> list[Found]:
    """Return the findings that are not denied, not from long ago, and somebody's own.

    What a film or a dream tells is nobody's own, and neither is a question about an illness in
    general or about what to do if a complaint ever comes. What a pet has is no patient's, and the
    illness of a neighbor is over if the message asks how to prevent it.

    Args:
        words: Words of the message.
        found: Complaints found in the message.
    """
    marks = _marks(words)
    ends: dict[int, int] = defaultdict(int)
    for one in found:
        ends[one.start] = max(ends[one.start], one.end)
    denied = _denied_places(words, marks, ends) | _answered_no(words, marks)
    denied |= marks["named in doubt"]
    parts = _parts(words, marks["turn"])
    not_now = {parts[at] for at in marks["not now"]}
    is_question = words.words[-1:] == ["?"] or bool(marks["explained"])
    is_short = len(words.words) <= _LONGEST_QUESTION
    if is_short and is_question and marks["knowledge"] and not marks["person"]:
        return []  # a question about an illness, and nobody who has it
    sentences = _parts(words, None)
    awake = {sentences[at] for at in marks["awake"]}
    not_real = {sentences[at] for at in marks["dream"]} - awake
    not_real |= {sentences[at] for at in marks["not yet"]}
    elsewhere = _pets(parts, marks)
    if marks["prevention"] and not marks["happening"] | marks["them"]:
        elsewhere |= {parts[at] for at in marks["verb of others"]}
    supposed = _supposed_places(words, marks)
    return [
        one
        for one in found
        if one.start not in denied
        and not marks["denied"].intersection(one.between)
        and one.end not in marks["denied after it"]
        and parts[one.start] not in not_now
        and parts[one.start] not in elsewhere
        and sentences[one.start] not in not_real
        and one.start not in supposed
        and not _is_of_a_story(one, sentences, marks)
    ]


def _is_of_a_story(one: Found, sentences: Sequence[int], marks: dict[str, set[int]]) -> bool:
    """Return whether a finding follows the mention of a story, and nobody real stands before it."""
    before = {
        kind: any(at < one.end and sentences[at] == sentences[one.start] for at in marks[kind])
        for kind in ("story", "self")
    }
    return before["story"] and not before["self"]


def _marks(words: Words) -> dict[str, set[int]]:
    """Return the start positions of each kind of cue."""
    marks: dict[str, set[int]] = defaultdict(set)
    cancelled: set[int] = set()
    reasons: set[int] = set()  # "vì" in "mất vì" begins no new part
    for one in _LEXICON.find(words):
        marks[one.concept].add(one.start)
        if one.concept == "no denial":
            cancelled.update(range(one.start, one.end))
        elif one.concept == "not now":
            reasons.add(one.end - 1)
        elif one.concept == "never":
            marks["words of never"].update(range(one.start + 1, one.end))
        elif one.concept == "thought not":
            marks["named in doubt"].update(range(one.start, one.end))
        elif one.concept == "animal":
            marks["its words"].update(range(one.start, one.end))
        elif one.concept in ("story", "knowledge", "nobody"):
            marks["told"].update(range(one.start - 1, one.end))
        elif one.concept in ("supposed", "others"):
            marks[f"verb of {one.concept}"].add(one.end - 1)
        elif one.concept == "somebody else" and _AFTER_WHO.issuperset(
            words.words[one.end : one.end + 1]
        ):
            cancelled.update(range(one.start - _NEAR, one.start))
    marks["denied"] -= cancelled
    marks["denied after it"] -= cancelled
    marks["not now"] = {at for at in marks["not now"] if at - 1 not in marks["denied"]}
    marks["turn"] -= reasons | marks["words of never"]
    marks["person"] -= marks["told"]
    marks["self"] = marks["self"] - marks["told"] | marks["busy"]
    return marks


def _pets(parts: Sequence[int], marks: dict[str, set[int]]) -> set[int]:
    """Return the parts about a pet in which nobody else appears."""
    people = {parts[at] for at in marks["hurt by it"] - marks["its words"]}
    return {parts[at] for at in marks["animal"]} - people


def _supposed_places(words: Words, marks: dict[str, set[int]]) -> set[int]:
    """Return the positions at which a complaint begins that is only supposed or feared.

    They reach from the verb of the supposition to the end of its clause, to another person and to
    what is not supposed: a cause, or medicines that somebody took.
    """
    ends = marks["turn"] | marks["person"] | marks["self"] | marks["supposed until"]
    places: set[int] = set()
    if marks["happening"]:
        return places
    for verb in marks["verb of supposed"]:
        places.add(verb)
        for at in range(verb + 1, len(words.words)):
            if words.parts_clauses(at) or at in ends:
                break
            places.add(at)
    return places


def _answered_no(words: Words, marks: dict[str, set[int]]) -> set[int]:
    """Return the positions of the fields of a form that are answered with "no"."""
    places: set[int] = set()
    for at in range(2, len(words.words)):
        if words.words[at] in _ANSWERED_NO and words.words[at - 1] in ":–—?(":
            field = _field_before(words, at - 1)
            is_answer = at + 1 == len(words.words) or words.parts_clauses(at + 1)
            if (is_answer or _is_field(words, at + 1)) and not marks["person"].intersection(field):
                places.update(field)
    return places


def _field_before(words: Words, end: int) -> range:
    """Return the positions of the field that ends at a position; none if it is too long."""
    start = end
    while start and end - start <= _LONGEST_FIELD:
        if words.parts_clauses(start - 1) or words.words[start - 1] in _ANSWERED_NO:
            break
        start -= 1
    return range(start, end) if end - start <= _LONGEST_FIELD else range(0)


def _is_field(words: Words, start: int) -> bool:
    """Return whether a field of a form begins at a position: a few words and a colon."""
    following = words.words[start : start + _LONGEST_FIELD + 1]
    breaks = [at for at in range(start, start + len(following)) if words.parts_clauses(at)]
    return bool(breaks) and words.words[breaks[0]] == ":"


def _denied_places(words: Words, marks: dict[str, set[int]], ends: Mapping[int, int]) -> set[int]:
    """Return the positions at which a denied complaint begins.

    Args:
        words: Words of the message.
        marks: Start positions of each kind of cue.
        ends: Position at which a complaint begins -> the position after its last word.
    """
    places: set[int] = set()
    for cue in marks["denied"]:
        if words.words[cue - 1 : cue] == [":"] and _is_field(words, cue + 1):
            continue  # "Chest pain: no Fainting: yes"
        is_whole_list = cue in marks["whole list"]
        items, ends_in_or = _items(words, cue + 1, marks, past_and=is_whole_list)
        places.update(_one_complaint(words, items[0], ends))
        rest = [item for item in items[1:] if item]
        is_short = all(len(item) <= _LONGEST_LISTED for item in items)
        if (
            is_whole_list
            or (ends_in_or and all(len(item) <= _LONGEST_ITEM for item in items[:-1]))
            or (cue not in marks["never"] and len(rest) >= 2 and is_short)
        ):
            for item in rest:
                places.update(_one_complaint(words, item, ends))
    return places


def _one_complaint(words: Words, item: Sequence[int], ends: Mapping[int, int]) -> Sequence[int]:
    """Return the positions of a list item up to the end of its first complaint.

    A word that neither names a complaint nor leads to one is what is denied, as in "no allergies".
    """
    for at in item[: _FAR + 1]:
        if words.words[at] not in _BEFORE_COMPLAINT:
            return [each for each in item if each <= at or each < ends.get(at, 0)]
    return item[: _FAR + 1]


def _items(
    words: Words, start: int, marks: dict[str, set[int]], *, past_and: bool
) -> tuple[list[list[int]], bool]:
    """Return the items of a list, and whether "or" connects its last items.

    If "or" connects two items, the words after the last one that it connects are left out. Without
    "or", a list that is cut short by a turn or by another denial has only its first item.
    """
    items: list[list[int]] = [[]]
    connected = 0  # number of items up to the one after the last "or"
    is_whole = True
    for at in range(start, len(words.words)):
        if words.is_break(at):
            break
        if at in marks["words of never"]:  # "giờ" in "bao giờ" is no item
            continue
        if words.words[at] == "and" and past_and:
            items.append([])
        elif at in marks["turn"] or at in marks["denied"]:
            is_whole = False
            break
        elif at in marks["or"]:
            items.append([])
            connected = len(items)
        elif words.words[at] in ",/":
            items.append([])
        else:
            items[-1].append(at)
    if connected:
        return items[:connected], True
    return (items if is_whole else items[:1]), False


def _parts(words: Words, turns: set[int] | None) -> list[int]:
    """Return the number of the message part that each word belongs to.

    Args:
        words: Words of the message.
        turns: Positions of words that begin a new part, as commas do; None splits at sentence ends
            only.
    """
    numbers: list[int] = []
    number = 0
    for at in range(len(words.words)):
        ends = words.is_break(at) if turns is None else words.parts_clauses(at) or at in turns
        number += ends
        numbers.append(number)
    return numbers
