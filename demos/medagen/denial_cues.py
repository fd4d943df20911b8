"""Words by which a complaint is denied, past, invented or feared, in English and Vietnamese."""

from __future__ import annotations

from demos.medagen.lexicon import Lexicon

_PAST_YEARS = range(1950, 2026)
_YOUNG = range(2, 26)
"""Ages, in years, that lie in the past where a message says "when I was 12"."""

_NOT = "không|ko|kg|hok|chẳng"
_BACK = "came+back|comes+back|come+back|is+back|its+back|back+again|returned|returns"
_BACK_VI = "đau+lại|bị+lại|lại+đau|tái+phát|quay+lại|trở+lại"
_EXCEPT = "except|excluding|besides|apart+from|aside+from|other+than|save+for"
_PLACE = "chest|breastbone|heart|arm|jaw|head|stomach|belly|tummy|abdomen|back|leg|calf|side"
_SAID = "i|im|ive|he|hes|she|shes|we|they|it|and|but|now|still"
_TODAY = "today|tonight|again|this+morning|this+afternoon|this+evening|just+now|right+now"
_TODAY_VI = "giờ|nay|bây+giờ|hôm+nay|sáng+nay|tối+nay|đêm+qua|hôm+qua"
_KIN = "bà|ông|bố|ba|mẹ|má|cha|cụ|chú|bác|cô|dì|cậu|anh|chị"
_OWN = "em|tôi|mình|con|cháu|tui"
_ILLNESS = "stroke|heart+attack|seizure|blood+clot|aneurysm|meningitis|sepsis|appendicitis"
_ILLNESS_VI = "đột+quỵ|tai+biến|nhồi+máu|động+kinh|viêm+màng+não|viêm+ruột+thừa"
_LIKE_VI = "giống|như|giống+như|y+như|y+hệt|hệt+như|tương+tự|tương+tự+như"
_THEN_VI = "hồi|năm|lúc|lần|cơn|đợt|khi|trước"
_SENSED = "pain|pains|tightness|pressure|symptoms|feeling|sensation|headache|weakness|numbness"
_IT_IS = "it+is|its|it+was|this+is|that+is|thats|i+am|im|he+is|hes|she+is|shes|i|he|she"
_NEVER = "từng|bao+giờ|khi+nào|lần+nào"
_AMENDS = (
    "actually|wait|no+wait|sorry|correction|oops|whoops|i+mean|i+meant|in+fact|my+bad|my+mistake|"
    "i+was+wrong|i+lied|scratch+that|strike+that|take+that+back|on+second+thought|"
    "on+second+thoughts|come+to+think+of+it|now+that+i+think+about+it"
)
_AMENDS_VI = "thật+ra|thực+ra|khoan|nhầm|nói+nhầm|nói+lộn|xin+lỗi|sorry|đính+chính"
_IT_HAS_IT = "it|them|that|this|one|some"
_OTHERS = (
    "neighbor|neighbour|colleague|coworker|boss|teacher|classmate|landlord|celebrity|actor|singer"
)
_OTHERS_VI = "hàng+xóm|đồng+nghiệp|người+quen|bạn+học|sếp|thầy+giáo|cô+giáo"
_ANYONE = "someone|somebody|anyone|anybody|people|a+person|a+man|a+woman|a+child|a+kid|a+baby"
_ANYONE_VI = "ai|ai+đó|có+ai|có+người|người+ta|một+người|người+nào"
_SUPPOSED = "has|have|had|gets|is|faints|collapses|chokes|drinks|swallows|eats|starts"
_NO_PAIN = "no|not|isnt|dont|doesnt|didnt|without|denies|wouldnt"
_RATHER = "but|just|only|rather|more|more+like|more+of|its|its+more|its+more+like|its+just"
_PRESSURE = "pressure|tightness|heaviness|squeezing|tight|heavy|pressing"
_PRESSURE_VI = "tức|nặng|nghẹn|thắt|ép"
_WHOSE = "my|our|the|a|his|her|their"
_PET = "dog|dogs|cat|cats|puppy|pup|kitten|hamster|rabbit|bunny|pony|horse|parrot"
_PET_VI = "chó|mèo|cún"
_GONE = (
    "pain|pains|chest+pain|chest+pains|chest+tightness|chest+pressure|headache|headaches|seizure|"
    "seizures|fits|fever|vomiting|nausea|bleeding|dizziness|palpitations|symptoms|trouble+breathing|"
    "difficulty+breathing|shortness+of+breath|abdominal+pain|stomach+pain|back+pain"
)
_FOR_TESTS = (
    "covid|covid19|coronavirus|flu|influenza|strep|rsv|hiv|mono|malaria|dengue|tb|pregnancy|hcg"
)
_SHOWN = "movie|film|show|series|documentary|tv|television|telly|netflix|youtube|game|book"
_WRITTEN = "story|novel|book|screenplay|script|fanfic"
_SCHOOL = "homework|assignment|essay|exam|quiz|class|course"
BEFORE_PET = frozenset(["help", "hi", "hello", "hey", "please", "urgent"])
"""Words before a pet that is the subject, besides the end of a clause."""
AFTER_PET = frozenset(
    [
        "suddenly",
        "just",
        "cant",
        "couldnt",
        "keeps",
        "started",
        "tự",
        "nhiên",
        "đột",
        "ngột",
        "ngất",
    ]
)
"""Words between a pet and what it has, besides those before any complaint."""
AFTER_AGAIN = frozenset(["too", "again", "as", "also", "since", "nữa", "vậy"])
"""Words that may follow "five years ago and today", besides the end of a clause."""
AFTER_YES = frozenset(
    [
        *("now", "today", "tonight", "since", "this", "last", "for", "when", "sometimes", "but"),
        *("a", "in", "on", "only", "just", "still", "there", "again", "too", "and"),
        *("ạ", "từ", "nha", "nhé", "đấy", "đó", "rồi", "mà", "khi", "chút", "hơi", "nhưng"),
    ]
)
"""Words that may follow "actually yes", besides the end of a clause."""
AFTER_PRESSURE = frozenset(["like", "there", "now", "since", "when", "and", "that", "lắm", "quá"])
"""Words that may follow "no chest pain, just pressure", besides the end of a clause."""
EARS_AND_NOSE = frozenset(["ear", "ears", "nose", "sinus", "sinuses", "tai", "mũi", "xoang"])
"""Places of another pressure: "just pressure when I blow my nose"."""
AFTER_WHO = frozenset(
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
BEFORE_COMPLAINT = frozenset(_PASSED_OVER.split())
"""Words that may stand between a denial and the complaint that it denies."""
ANSWERED_NO = frozenset(
    ["no", "none", "nil", "nope", "negative", "absent", "n", "không", "ko", "khong", "k"]
)
"""Answers that deny a field of a form."""
ARE_YOU_SURE = frozenset(
    ["sure", "certain", "positive", "really", "all", "any", "ever", "it", "that", "chắc", "thật"]
)
"""Words of a question about the answer before it."""
NOT_BACK = frozenset(["hasnt", "havent", "not", "never", "didnt"])
"""Words before "come back" that say that a complaint stayed away."""
ASKS = frozenset(["do", "does", "did", "have", "has", "had", "are", "is", "any", "bạn", "có"])
"""First words of a question to the patient."""
CUES = Lexicon(
    {
        "denied": [
            "no|not|never|without|nor|neither|denies|deny|denied|denying",
            "dont|doesnt|didnt|havent|hasnt|hadnt|isnt|arent|wasnt|aint",
            "free of",
            "negative|neg for",
            f"{_NOT}|chưa|k",
            "=hông|hổng|chả",  # "hong" is also the throat, and "cha" the father
            "hết",
            "=đỡ|khỏi",
        ],
        "whole list": ["denies|deny|denied|denying", "negative for"],
        "one item": ["neg for", f"negative for {_FOR_TESTS}"],
        "never": ["never", f"{_NOT}|chưa {_NEVER}"],
        # Cues that cancel a denial, depending on the words that follow.
        "no denial": [
            "no idea|clue|longer|matter|one|relief|improvement|better|change|wonder|doubt|less",
            "no ordinary|normal|usual|regular _ headache|migraine|pain",
            "not|isnt your|my|the|a|an ordinary|normal|usual|regular headache|migraine|pain",
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
            # Twice denied.
            "no|not|never|hardly|rarely|seldom|cant|isnt|wasnt|dont without|free+of",
            "no|not|never|hardly|rarely|a|one|single day|hour|minute|moment|night|week _ without",
            *(
                f"{_NOT}|k|chưa lúc|khi|ngày|đêm|hôm|giờ|phút nào{who} {_NOT}|hết|khỏi|ngớt|đỡ|dứt"
                for who in ("", " mà|là|em|tôi|con")
            ),
            f"{_NOT}|k thể không|hết",
            # It went away, and came back.
            f"went|gone|goes away _ {_BACK}",
            f"went|gone|goes away , _ {_BACK}",
            f"is|are|has|have|was|were|had gone|resolved|stopped _ {_BACK}",
            f"is|are|has|have|was|were|had gone|resolved|stopped _ , _ {_BACK}",
            f"hết rồi|hẳn _ {_BACK_VI}",
            f"hết rồi|hẳn , _ {_BACK_VI}",
            f"đã|cũng|thì hết|khỏi _ {_BACK_VI}",
        ],
        # A chest pain that is called another name: "no chest pain, just pressure".
        "rather pressure": [
            *(
                f"{_NO_PAIN} _ chest{rest} {_RATHER}{a} {_PRESSURE}"
                for rest in ("", " _", " ,", " _ ,")
                for a in ("", " a|some|like|a+kind+of|like+a")
            ),
            *(
                f"{_NOT} _ ngực{apart} chỉ{sense} {_PRESSURE_VI}"
                for apart in ("", " ,")
                for sense in ("", " thấy|bị|hơi")
            ),
        ],
        "over": [
            f"no longer have|has|having|get|gets|getting|experience|experiencing {_GONE}",
            f"no longer have|has|having|get|gets|getting any|the|that|these|such {_GONE}",
            f"{_NOT}|k còn bị|đau|nhức|tức|sốt|nôn|ói|khó|co|chảy",
        ],
        # A complaint from long ago that is back. The second kind ends its clause.
        "again": [
            f"{_SAID} have|has|got|get|gets|feel|feels it|them|that|this|one|some again|back",
            f"{_SAID} have|has|got|get|gets|feel|feels it|them|that|this|one|some _ {_TODAY}|now",
            "again|back|returned|recurred now|today|tonight|since|this",
            "now|today|tonight|yesterday again",
            f"now|today|tonight {_IT_IS} again|back",
            "it|they|that|pain|pains|which came|comes|come|is|are|has+come|have+come back|again",
            "its|theyre|thats back|happening|starting",
            "it|they|pain|pains has|have|just returned|recurred|restarted",
            "it|they|pain|pains started|happened|began again",
            "it|they|pain|pains returned|recurred|returns|recurs",
            f"{_TODAY_VI} lại|cũng bị|đau|có|thấy|y|vậy",
            f"{_TODAY_VI} _ tái+phát|bị+lại|đau+lại",
        ],
        # Words between a complaint and the one of long ago that it is compared with. "I had a
        # stroke like 5 years ago" and "like my dad" compare no complaints.
        "compared": [
            "same as",
            "similar|identical|comparable to",
            "same|as _ as",
            f"same {_SENSED}|chest+{_SENSED.replace('|', '|chest+')} i|he|she|that|like",
            "like i|it|when|last|in|during|the|that|those|back|before",
            f"like my|his|her {_ILLNESS}",
            "like my|his|her last|first|previous|other|old",
            "than i|it|when|last|in|during|the|that|my",
            f"{_LIKE_VI} {_THEN_VI}",
        ],
        "again at the end": [
            "and|also|then|again now|today|tonight|yesterday|this+morning|last+night",
            f"và|lẫn|cả {_TODAY_VI}",
        ],
        "present": ["present|persists|persisting|ongoing|continues|continuing"],
        "after a story": [
            f"{_SHOWN} then|afterwards|after+that|and+then",
            f"{_SHOWN} ,|;|. then|afterwards|after+that|and+then",
            f"{_SHOWN} yesterday|today|tonight|together|last+night , then|afterwards|and+then",
            "phim|tivi|truyện|game xong|rồi thì|rồi|tự+nhiên",
            "phim|tivi|truyện|game xong|rồi|sau+đó",
            "phim|tivi|truyện|game ,|;|. xong|rồi|sau+đó",
        ],
        # Words after a denial that say when, where or for what it does not hold.
        "but for": [
            "until|till|unless",
            f"{_EXCEPT} in|on|around|at|when|whenever|while|if|during|after|since|once",
            f"{_EXCEPT} for my|the|his|her {_PLACE}",
            f"{_EXCEPT} for when|today|this|last",
            f"{_EXCEPT} today|tonight|now|yesterday|this|last|sometimes|occasionally",
            f"{_EXCEPT} my|the|his|her {_PLACE}",
            f"{_EXCEPT} my|the|his|her left|right|upper|lower|middle|center|centre {_PLACE}",
            f"{_EXCEPT} the left|right|middle|center|centre|side|front of my|the|his|her {_PLACE}",
            f"{_EXCEPT} {_PLACE}",
            f"but|only|just in|on|around my|the|his|her {_PLACE}",
            "anywhere|elsewhere|nowhere|else but|except|besides|apart|aside|other",
            "before|prior+to today|this|yesterday|last",
            "only|just when|if|while i|he|she|we walk|walks|climb|climbs|run|runs|breathe|breathes",
            "only|just when|if|while walking|climbing|running|breathing|exercising",
            "only|just on|with|during|after exertion|exercise|effort|stairs|walking|activity",
            "cho|mãi đến|tới",
            "đến|tới khi|lúc|sáng|trưa|chiều|tối|đêm|hôm|nay",
            "đâu|nào|gì trừ|ngoài|ngoại+trừ",
            "đâu|nào|gì khác trừ|ngoài|ngoại+trừ",
            "trừ|ngoài khi|lúc|ngực|ở|bụng|đầu|vùng|chỗ|bên|hôm|sáng|tối|đêm",
            "chỉ khi|lúc đi|leo|gắng|vận|chạy|thở",
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
            "none|nil",
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
            "now|today|tonight i|he|she do|does",
            "since lunch|dinner|breakfast|noon|then|yesterday|this+morning|today i|he|she do|does",
            f"{_KIN} {_OWN} thì|mới có|bị",
        ],
        "animal": [
            f"my|our {_PET} had|has|is|was|keeps|started",
            "chó|mèo|cún nhà|của em|mình|tôi|con bị|co|nôn",
        ],
        # A pet as the subject of what follows it: "my dog collapsed".
        "pet": [
            f"{_WHOSE} {_PET}",
            f"{_WHOSE} neighbors|neighbours|friends|old|little|elderly|poor {_PET}",
            f"={_PET_VI} nhà|của {_OWN}",
            f"=con|bé|em {_PET_VI} nhà|của {_OWN}",
            f"=con|bé|em {_PET_VI}",
        ],
        # Somebody who has what the pet has: "so did I".
        "as the pet": [
            "so|as did|do|does|am|is|are|was|were|has|have i|he|she|we|they|my|our|the",
            "neither|nor can|could|do|did|does|am|is|have|has i|he|she|we|they|my|our|the",
            "i|me|he|she|we|us|him|her|they|my _ too|also|as+well|either",
            "same _ me|us|him|her|my|our|i|here",
            "happened to me|us|him|her|my|our",
            f"{_OWN} cũng|giống+vậy",
            "cũng vậy|thế",
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
_YES = "yes|yeah|yep|yea|yup"
_WE = "i|he|she|they|we|it"
YES_AFTER_ALL = Lexicon(
    {
        f"taken back{apart}": [
            f"{_AMENDS}{apart} {_WE} do|does|did have|feel|get {_IT_HAS_IT}",
            f"{_AMENDS}{apart} {_WE} have|has|had|feel|feels|got {_IT_HAS_IT}",
            f"{_AMENDS}{apart} {_WE} do|does",
            f"{_AMENDS}{apart} {_YES} {_WE}|there do|does|have|has|is",
            f"{_AMENDS}{apart} {_YES}",
            f"{_AMENDS_VI}{apart} là+em+có|em+có|là+có|có+chứ|cũng+có|vẫn+có|có",
        ]
        for apart in ("", " ,|.|;|:|…|–|!")
    },
    reads_errors=False,
)
"""What takes back a denial before it, at the end of its clause."""
_THIS = "this|it|that|today|now|and|.|,|;"
_IS_IT = "its|it+is|this+is|that+is|thats|is+it|is+this|be"
_QUITE = "exactly|just|very|really|so|almost|pretty|much|a+lot|kind+of"
_SAME = "the+same|same|similar|identical|exactly+the+same|the+exact+same"
_SYMPTOMS = "symptoms|feeling|feelings|sensation|signs|thing|warning+signs"
_THEN = "then|last+time|that+time|back+then|the+first+time|the+last+time|it+did|i+did|i+felt"
RECURRENCES = Lexicon(
    {
        "back": [
            *(
                phrase
                for quite in ("", f" {_QUITE}")
                for phrase in (
                    f"{_THIS} feels|felt{quite} {_SAME}",
                    f"i|he|she feel|feels{quite} the+same way|now|today|again|as+then|as+when",
                    f"feel|feels|feeling|symptoms|same|its|is{quite} like|as {_THEN}",
                    f"this|it feels{quite} like it|that|my|his|her|when",
                    f"{_IS_IT}{quite} how|what _ felt|feels|started|starts|began|begins",
                )
            ),
            f"{_IS_IT} {_SAME} as|to",
            f"having|have|has|get|gets|got|getting|with|are|exact|these {_SAME} {_SYMPTOMS}",
            "im|hes|shes|am|is|are having it|one|that again|now",
            "hes|shes|is|are doing it|that again|now",
            "this+is it again|now",
            "looks|look the+same way|now|again",
            f"and|,|;|. {_SAME} {_SYMPTOMS}",
            f"{_IS_IT} happening|starting|coming|back again",
            f"{_IS_IT} happening|starting|coming+back",
            f"{_IS_IT}|having|think|has|had another one|attack|episode",
            "it|this|the+pain|symptoms is|are|has|have|came|comes|come|coming back",
            f"{_TODAY_VI}|lần+này|lại|cảm+giác|triệu+chứng _ y+hệt|y+như|giống+vậy|giống+hệt",
            f"{_TODAY_VI}|lần+này|cảm+giác|triệu+chứng _ giống|giống+như lần|hồi|lúc|cơn|đợt",
            f"{_TODAY_VI}|lần+này|lại _ tái+phát",
        ],
        "other": [
            "same _ as always|usual|ever|normal|usually|yesterday|everyone|everybody",
            "avoid|prevent|of|about|from|without having another",
            "can|could|will|would|does|did|in+case|if|whether it|this come|happening|back",
            "can|could|will|would|does|did|in+case|if|whether it|this comes|come back",
            "another one|attack|episode of my|hay|cold|flu|asthma|gout|migraine|hiccups",
            "not|dont|doesnt|didnt|never|isnt|arent|no|without having|have|feel|feeling|the|same",
            "không|chẳng giống|y+hệt|tái+phát",
        ],
    },
    reads_errors=False,
)
"""What says that a complaint of long ago, named before it or in its sentence, is there again."""
