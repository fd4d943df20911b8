"""Complaints that nobody has now raise nothing, and real ones near such words still do."""

from __future__ import annotations

import pytest

from demos.medagen.dictionary import fold
from demos.medagen.schemas import Language, Level
from demos.medagen.tokenizer import language_of
from demos.medagen.triage_rules import shipped_rules

NOBODY_HAS_IT = """
never had chest pain, never fainted, just want a check up
I have never had a seizure, do I need an EEG before diving?
I've never fainted or coughed up blood
my dad never had a stroke, he just wants a check up
i have never ever had chest pain
she has never had any trouble breathing
em chưa bao giờ bị co giật, có cần đo điện não không
em chua bao gio bi co giat
tôi chưa từng bị đau ngực
toi chua tung bi dau nguc
ba em chưa khi nào bị đột quỵ
trước giờ em chưa bao giờ ngất, chỉ muốn khám tổng quát
in the story im writing a boy drinks bleach, would he survive?
in my novel the hero has a seizure on the train
the character in my book gets stabbed in the chest
I dreamed that I had a stroke
last night i had a nightmare where my son was drowning, I feel fine
for my homework I have to explain what happens when a child drinks bleach
we have an exam question about a man with crushing chest pain
in this video game my character gets shot
saw a film where a man swallowed a battery
the leaflet says to call an ambulance for chest pain
there is a song about a heart attack
trong truyện em viết có đứa bé uống thuốc tẩy
trong truyen em viet co dua be uong thuoc tay
em nằm mơ thấy mình bị đột quỵ
em nam mo thay minh bi dot quy
bài tập của em hỏi về một người bị đau ngực
chơi game nhân vật bị co giật
my neighbor had a stroke last month, how do I lower my risk?
a colleague had a heart attack last week and now I want a check up
my neighbour just had a stroke, should I get tested at 35?
hàng xóm vừa bị đột quỵ, em lo quá, nên kiểm tra gì
hang xom vua bi dot quy, em nen kiem tra gi
đồng nghiệp em bị nhồi máu cơ tim tháng trước, em muốn tầm soát
dong nghiep em bi dot quy thang truoc, em muon tam soat
what if I faint on the plane?
what if I get a heart attack one day
could I get a stroke from eating salt?
can i get meningitis from sharing a cup?
I'm scared of having a stroke when I'm old
I worry that I will get a heart attack like grandpa
am I going to have a stroke because I smoke?
lỡ em bị đột quỵ thì sao
sợ sau này bị đột quỵ
so sau nay bi dot quy
what are the signs of a stroke
what are the signs of a heart attack in women, just so I know?
how do I recognize a stroke?
dấu hiệu đột quỵ là gì
dau hieu dot quy la gi
co giật ở trẻ em là gì, có những loại nào?
làm sao nhận biết đột quỵ
what should I do if someone has a seizure?
if somebody collapses, do I start with CPR?
what happens if a child drinks bleach?
if a person is choking, what is the first step
nếu có người bị đột quỵ thì phải làm gì
neu ai do bi co giat thi phai lam gi
giả sử có người uống thuốc tẩy thì sơ cứu sao
what happens when a child swallows a battery?
bị gai đâm vào ngón tay, lấy ra rồi
mẹ chồng bảo bầu nằm ngửa là hại con, đúng không
how do I recognise a heart attack?
have never had a heart attack or a stroke
he never had a seizure and never takes drugs
I've never once coughed up blood
never experienced numbness or slurred speech
chưa lần nào bị ngất
mẹ em chưa bao giờ bị đột quỵ hay nhồi máu cơ tim
đang viết truyện có nhân vật bị đâm vào ngực
em đọc truyện thấy nhân vật uống thuốc sâu
phim hôm qua có cảnh bị nhồi máu cơ tim
I'm writing a script where a woman overdoses on sleeping pills
writing a scene, the hero is shot and coughs up blood
dreamt i was having a heart attack, is it a sign of something
my dream where I was choking keeps coming back
class assignment: describe what happens in anaphylaxis
our biology exam asks about the signs of meningitis
my friend's father died of a heart attack last year, should I be screened
a teacher at school had a stroke, what should I do to avoid one
cô giáo em mới bị đột quỵ, em muốn phòng bệnh
what if I pass out during the flight next week?
could my son get meningitis at nursery?
can you get sepsis from a paper cut?
I'm afraid of getting a blood clot on the plane
lo sau này bị nhồi máu cơ tim
what to do when someone faints?
if anyone has a seizure at work what is the first aid
what are the symptoms of anaphylaxis
cách nhận biết nhồi máu cơ tim
triệu chứng của đột quỵ gồm những gì
if a baby chokes what should you do
nếu ai đó ngất thì làm gì trước
lỡ tôi bị nhồi máu cơ tim lúc ngủ thì sao
"""
"""Messages that deny, invent, suppose or ask, one a line."""

SOMEBODY_HAS_IT = """
I've never had anything like it, crushing chest pain
he has never been so drowsy and his lips are blue
she never had chest pain but now she does, and it is crushing
I never had seizures. Today I had a seizure
never mind the cold, my chest is crushing
can you get help he collapsed
could we get an ambulance to someone having a stroke
if someone is having chest pain like me, what should they do
signs of a stroke: face drooping, slurred speech
not breathing, how do I do CPR?
crushing chest pain, how do I avoid a heart attack?
đau ngực dữ dội khó thở là bị gì
co giật sơ cứu sao
a colleague just had a seizure, how do we prevent her from hurting herself? she is unconscious
my neighbor had chest pain last week and now my chest is crushing, should I get checked
he was watching a movie and collapsed, not responding
he collapsed at the movie theater
I'm an actor in a film and I just got stabbed in the chest
I had a nightmare that I was drowning and my chest still hurts
my daughter told me a story and then had a seizure
my exam is tomorrow and I have crushing chest pain
em chưa bao giờ bị co giật nhưng hôm nay em co giật
em chua bao gio bi dau nguc. hom nay dau nguc du doi
con em chơi game xong thì co giật
nếu ba em bị méo miệng như vậy là bị gì
em sợ quá, ba em đột quỵ
lỡ uống nhầm thuốc trừ sâu, giờ sao
chưa bao giờ hết đau ngực
em bị đâm vào ngực
em muốn hại con
I never had chest pain like this before
never felt this bad, cannot breathe
I have never had chest pain before, it started an hour ago
I've never had a headache this bad, it hit like thunder
never had a seizure until this morning
never had chest pain, now I do
I never smoked, chest pain, sweating
he never stops vomiting blood
I never thought chest pain could be this strong
never been ill, but now crushing chest pain
chưa bao giờ đau ngực dữ vậy
chua bao gio dau nguc nhu the nay
em chưa từng bị co giật, hôm nay tự nhiên co giật
tôi chưa bao giờ bị khó thở như vậy
từ trước tới giờ chưa bao giờ bệnh, nay đau ngực quá
chưa từng hút thuốc, đau ngực, vã mồ hôi
I'm writing this because my son drank bleach
we were watching a movie and my dad collapsed
my dad collapsed while watching a film
my son copied a film and drank bleach
I had a nightmare and woke up with crushing chest pain
I was doing my homework when my chest started hurting, I can't breathe
he was playing a game and had a seizure
this is not a story, my son drank bleach
my husband is having a stroke, this isn't a dream
the leaflet says call for chest pain and I have chest pain
đang coi phim thì ba em ngã gục, bất tỉnh
em đang chơi game thì đau ngực dữ dội
dang xem tivi thi me em bi co giat
em bé đang làm bài tập thì lên cơn co giật
my neighbor is lying on the floor, she is having a stroke
my neighbor just had a stroke, what do I do?
our neighbor has chest pain and is sweating
hàng xóm đang nằm bất tỉnh dưới đất
hàng xóm vừa bị đột quỵ, giờ phải làm gì
hang xom dang nam bat tinh
đồng nghiệp em vừa ngất, gọi không dậy
what if I'm having a heart attack? my chest hurts
what if this is a stroke, half of my face is drooping
could I be having a stroke? my arm went numb and my face droops
could I get an ambulance, my dad collapsed
can I get help, I cannot breathe
I'm scared of dying, my chest hurts and my left arm is numb
what should I do, someone had a seizure here
what are the signs of a stroke? my dad's face is drooping
how do I treat a seizure, my son is shaking right now
if I stand up I faint, and my chest hurts
I don't know if he is having a stroke, his face droops
what if I took all my pills
lỡ uống nhầm thuốc tẩy rồi
dấu hiệu đột quỵ là gì, ba em méo miệng
nếu đau ngực lan ra tay như em thì có sao không
my friend says she never wants to wake up, she took all her pills
hàng xóm kêu cứu, chồng chị ấy co giật
in the story he told the doctor he drank bleach, he is my son and he is vomiting blood
someone has collapsed, what do I do
nghe nói ba em bị tai nạn xe, giờ bất tỉnh
never in my life have I had such crushing chest pain
I have chest pain that never goes away
I never drink but I took all my sleeping pills
he's never had an allergy, but now his throat is closing
I never want to wake up again
never thought I'd say this but I want to kill myself
đau ngực chưa bao giờ dữ như vậy
ba em chưa bao giờ kêu đau, nay đau ngực vã mồ hôi
my book fell on my son's head and he is unconscious
we're at the movies and my wife is having a stroke
my girlfriend swallowed bleach after we watched a series
I was writing a story when my arm went numb and my face drooped
my homework can wait, I'm coughing up blood
the quiz made me laugh until I collapsed and had a seizure
as in a film, he clutched his chest and collapsed
I dreamed of mum and woke up unable to breathe
it feels like a dream, I can't breathe and my lips are blue
my neighbour is having a seizure
chú hàng xóm bị điện giật nằm bất động
bạn em bị co giật, phải làm gì
what if he dies, he is not breathing
what if my baby stops breathing again? she turned blue just now
could I get meningitis like my brother? I have a stiff neck, fever and a rash that doesn't fade
I'm afraid of getting worse, I can't breathe
scared of having another seizure, I had two today
if someone is there, help, my dad collapsed
if I cough I bring up blood
what should I do if my son swallowed a battery
what are the signs of a heart attack? I have crushing chest pain
how do I recognise a stroke? his face droops and his speech is slurred
nếu con em nuốt pin thì làm sao, nó vừa nuốt
co giật sốt cao làm sao
em đang ở rạp phim thì đau ngực khó thở
con em bắt chước phim uống thuốc tẩy
nằm mơ dậy thấy liệt nửa người, méo miệng
"""
"""Emergencies in words like those above, one a line."""


def levels(messages: str) -> dict[str, Level]:
    """Return message -> level, with and without diacritics."""
    return {
        text: shipped_rules().screen([text], language_of([message])).triage_level
        for message in messages.strip().splitlines()
        for text in (message, fold(message))
    }


@pytest.mark.sweep
def test_what_nobody_has_now_raises_nothing() -> None:
    raised = {
        text for text, level in levels(NOBODY_HAS_IT).items() if level.rank >= Level.URGENT.rank
    }
    assert raised == set()


@pytest.mark.sweep
def test_what_somebody_has_raises_beside_such_words() -> None:
    found = levels(SOMEBODY_HAS_IT)
    assert {text for text, level in found.items() if level is not Level.EMERGENCY} == set()


BESIDE_A_DENIAL = """
no allergies throat closing up
no cough cant breathe
no fever or cough cant breathe
no fever, cough cant breathe, rash
no fever - chest pain for 1 hour
no rash -- he is unconscious
I don't smoke chest pain since this morning
denies allergies throat closing up
no diabetes crushing chest pain
no my chest hurts
không sốt đau ngực dữ dội
không ho khó thở
"""
"""Emergencies that follow what is denied without a comma, one a line."""

ONE_COMPLAINT_DENIED = """
no severe chest pain
no pain in my chest
no sign of a stroke
he does not have any trouble breathing
she has not had a seizure
he did not hit his head or lose consciousness
no fever, cough or shortness of breath
denies fever, cough, chest pain
runny nose - no chest pain
không hề bị đau ngực
không có dấu hiệu đột quỵ
không sốt, ho hay khó thở
I do not think I am having a stroke, just a small headache
I don't think it's a heart attack, I just have a cold
tôi không nghĩ là đột quỵ, chỉ đau đầu nhẹ
"""
"""Denials of one complaint, or of one an item, one a line."""

DENIED_BUT_FOR = """
no chest pain until an hour ago
No chest pain, until this morning
no chest pain before today
no cough or chest pain until today
denies fever, cough, chest pain until this morning
no pain except in my chest
no pain, except in my chest
no pain besides the left side of my chest
no pain anywhere but my chest
no symptoms apart from chest pain
no chest pain unless I walk
no chest pain except when I walk
no chest pain, only when I walk uphill
I had no chest pain before lunch, but since lunch I do
never without chest pain
not a day without chest pain
denies smoking, alcohol, chest pain radiating to arm present
không đau ngực cho đến sáng nay
không khó thở, cho đến tối qua
chưa đau ngực tới trưa nay
hết đau ngực cho đến sáng nay
không đau ở đâu ngoại trừ đau ngực
không đau, trừ ngực
không đau ngực trừ khi đi bộ
không lúc nào không đau ngực
không ngày nào hết đau ngực
"""
"""Emergencies that are denied with an exception, or denied twice, one a line."""

BACK_AGAIN = """
used to have chest pain, have it again now
I used to have chest pain. It is back
I used to get chest pain, and it came back
had chest pain as a child, now it's back
chest pain 5 years ago and today
chest pain last year, and again today
history of seizures, he has one again right now
hồi nhỏ từng bị co giật, nay lại bị
năm ngoái bị đau ngực, hôm nay lại đau
năm ngoái đau ngực và hôm nay
saw a movie, then chest pain
watched a film, afterwards severe chest pain
xem phim xong thì đau ngực
xem phim rồi đau ngực
"""
"""Emergencies after what is over or told, one a line."""

STILL_DENIED = """
no chest pain so far
no chest pain, runny nose until yesterday
No fever or chest pain but no appointment until Friday, runny nose
no chest pain or fever and can't see my GP until Monday
no chest pain, except a runny nose
no chest pain but my head is full and I have a runny nose
no chest pain, only when I swallow my throat hurts
no chest pain, before this week I was fine
no cough, fever or chest pain present
denies chest pain at present
không đau ngực, chỉ khi nuốt thì đau họng
không đau ngực đến mức phải đi khám
không khó thở, không đau ngực, trừ sổ mũi
I used to have chest pain, now I have a cold
my dad had a stroke last year, he is back home and fine
my husband had a stroke two years ago and today he has a cold
I had a stroke 5 years ago, I need my prescription again
had a heart attack last year and am scared of having it again
saw a film, then the hero had a seizure
watched a movie where a man had chest pain and then collapsed
xem phim có người bị đau ngực rồi ngất
"""
"""Denied, past and told complaints beside such words, one a line."""

FORMS = """
Chest pain: no. Shortness of breath: no. Fainting: no. Runny nose: yes.
Chest pain: no Fainting: no Runny nose: yes
Chest pain - no, fainting - no, cough - yes
chest pain = none; runny nose = yes
Chest pain / tightness: nil. Cough: yes
Any chest pain? No. Any fainting? No. Runny nose? Yes.
đau ngực: không. khó thở: không. sổ mũi: có
"""
"""Forms whose dangerous fields are denied, one a line."""

FORMS_WITH_DANGER = """
Chest pain: no Fainting: yes
Chest pain: yes. Fainting: no
Medication: none. Chest pain: yes
Allergies: none. Chest pain.
Chest pain: no idea why it started
Chest pain? No fever
I can't breathe - no!
my chest hurts - no fever
"""
"""Forms and answers that deny something else than the emergency, one a line."""


def test_a_denial_covers_one_complaint() -> None:
    found = levels(BESIDE_A_DENIAL)
    assert {text for text, level in found.items() if level is not Level.EMERGENCY} == set()
    for text in ONE_COMPLAINT_DENIED.strip().splitlines():
        assert levels(text)[text].rank < Level.URGENT.rank, text


def test_a_denial_with_an_exception_denies_nothing() -> None:
    found = levels(DENIED_BUT_FOR) | levels(BACK_AGAIN)
    assert {text for text, level in found.items() if level is not Level.EMERGENCY} == set()
    raised = {
        text for text, level in levels(STILL_DENIED).items() if level.rank >= Level.URGENT.rank
    }
    assert raised == set()


def test_an_illness_that_somebody_doubts_hides_no_sign() -> None:
    text = "I don't think I'm having a stroke but my face is drooping"
    assert levels(text)[text] is Level.EMERGENCY


def test_an_answer_denies_its_field_of_a_form() -> None:
    assert {level for text in FORMS.strip().splitlines() for level in levels(text).values()} <= {
        Level.SELF_CARE,
        Level.ROUTINE,
    }
    found = levels(FORMS_WITH_DANGER)
    assert {text for text, level in found.items() if level is not Level.EMERGENCY} == set()


BOXES = (
    "[ ] chest pain [ ] trouble breathing [x] runny nose",
    "☐ chest pain ☐ trouble breathing ☑ runny nose",
    "[ ] chest pain\n[ ] trouble breathing\n[x] runny nose",
    "Symptoms: ( ) chest pain ( ) fainting (x) runny nose",
    "Chest pain: [ ] yes [x] no. Runny nose: [x] yes",
    "Chest pain [ ] Yes [x] No\nRunny nose [x] Yes [ ] No",
    "Q: Any chest pain? A: No. Q: What is wrong? A: runny nose",
    "Q: Any chest pain?\nA: No\nQ: What is wrong?\nA: runny nose",
    "Chest pain (Y/N): N\nRunny nose (Y/N): Y",
    "neg for chest pain, neg for dyspnea, needs bp med refill",
    "chest pain (-), runny nose (+)",
    "chest pain (-) runny nose (+)",
    "(-) chest pain (+) runny nose",
    "chest pain [ ]\nfainting [ ]\nrunny nose [x]",
    "no longer have chest pain, doctor said muscle strain",
    "Chest pain: no. Runny nose: yes",
    "em không còn đau ngực nữa",
    "[ ] đau ngực [ ] khó thở [x] sổ mũi",
    "☐ Đau ngực ☐ Khó thở ☑ Sổ mũi",
    "Đau ngực: [ ] có [x] không. Sổ mũi: [x] có",
    "đau ngực (-), sổ mũi (+)",
    "Hỏi: đau ngực không? Đáp: không",
    "1) [ ] chest pain 2) [x] runny nose",
    "- [ ] chest pain\n- [x] runny nose",
    "ông không còn khó thở nữa",
    "neg for chest pain or dyspnea",
    "Do you have chest pain? [ ] Yes [x] No\nCough? [x] Yes [ ] No",
    "Cardiac: [ ] chest pain [ ] syncope\nENT: [x] runny nose",
    "ROS: (-) chest pain, (-) dyspnea, (+) rhinorrhea",
    "Do you have chest pain? No. Do you have a cough? Yes",
    "no longer having seizures since the new pills",
    "no longer have any chest pain",
    "negative for covid, I have a runny nose",
    "[ ] chest pain, [x] negative covid test",
    # K-Tanish/symptom-assist#107
    "- chest pain ❌\n- runny nose ✅",
    "- chest pain ❌\ufe0f\n- runny nose ✔\ufe0f",
    "chest pain ✗, itchy eyes ✓",
    "đau ngực ❌, sổ mũi ✅",
    "chest pain -> no",
    "chest pain → no",
    "chest pain nil",
    "chest pain: never",
    "chest pain: not present",
    "chest pain: 0/10",
    "chest_pain: false",
    '"chest_pain": false, "itchy_eyes": true',
    "Symptoms I do NOT have: chest pain, trouble breathing. Symptoms I have: itchy eyes",
    "I have none of the following: chest pain, trouble breathing",
    "tôi không có các triệu chứng: đau ngực, khó thở",
)
"""Forms and notes in which nobody has an emergency."""

BOXES_WITH_DANGER = (
    "[x] chest pain [ ] runny nose",
    "☑ chest pain ☐ runny nose",
    "Q: chest pain? A: yes",
    "Chest pain? Yes.",
    "Chest pain: [x] yes [ ] no",
    "Chest pain: [ ] yes [ ] no",
    "chest pain [x] runny nose [ ]",
    "chest pain (+), runny nose (-)",
    "(+) chest pain (-) runny nose",
    "runny nose [ ] chest pain [x]",
    "[ ] runny nose [x] chest pain [ ] ",
    "[ ] fever\nI have chest pain",
    "[ ] fever [x] cough. Also chest pain",
    "no longer breathing",
    "she no longer responds",
    "ông không còn thở",
    "mẹ không còn biết gì",
    "[x] đau ngực [ ] sổ mũi",
    "chest pain (10 min)",
    "I have crushing chest pain [ ]yes",
    "[ ] runny nose. chest pain since noon",
    "chest pain (neg covid test)",
    "[ ] fever [ ] cough I have chest pain and cannot breathe",
    "[ ] runny nose [ ] cough, crushing chest pain",
    "❌ chest pain ❌ sleep",
    "chest pain ✅\nfever ❌",
    "❌ fever\n✅ chest pain",
    "chest pain: true",
    '"chest_pain": true, "fever": false',
    "chest pain: 10/10",
    "chest pain: 0/10, now 9/10",
    "chest pain: no, until today",
    "chest pain: never this bad",
    "chest pain: not going away",
    "Symptoms I have: chest pain. Symptoms I do not have: fever",
    "none of the following: fever. I do have chest pain",
    "đau ngực ✅, sốt ❌",
    "cannot breathe [ ] yes",
    "ông không còn khó thở nữa nhưng đau ngực dữ dội",
    "he no longer has a fever but can't breathe",
    "she no longer has a pulse",
    "I have chest pain? No",
    "Do you have chest pain? No idea",
    "Do you have chest pain? [x] Yes [ ] No",
    "Triệu chứng: [x] khó thở [ ] sốt",
    "[ ] crushing chest pain",
    "[] crushing chest pain since noon",
    "- [ ] chest pain",
    "[ ] chest pain [ ] trouble breathing [ ] runny nose",
    "[ ] cannot breathe\n[ ] runny nose",
    "☐ crushing chest pain since noon",
    "☐ crushing chest pain, rapid covid test (+)",
    "( ) chest pain ( ) fainting",
    "(-) crushing chest pain",
    "chest pain [ ]",
    "- [ ] đau ngực dữ dội",
    "I no longer have control of my bladder, back pain",
    "I no longer have control of my bowels and my legs are numb",
    "I no longer have any reason to live",
    "no longer have pain, weak left arm, slurred speech",
    "no longer have fever, crushing chest pain, sweating",
    "neg for covid, chest pain crushing",
    "neg for covid, chest pain, trouble breathing",
    "Covid test neg for me, crushing chest pain and sweating",
    "neg for flu, stiff neck and fever 39",
    "negative for flu, stiff neck and fever 39",
    "tested negative for covid, can't breathe, chest pain",
)
"""Forms and notes with an emergency that is ticked, unanswered or beside what they deny."""


def level_of(message: str) -> Level:
    return shipped_rules().screen([message], language_of([message])).triage_level


@pytest.mark.parametrize("message", BOXES)
def test_an_empty_box_denies_what_stands_at_it(message: str) -> None:
    assert level_of(message).rank < Level.URGENT.rank


@pytest.mark.parametrize("message", BOXES_WITH_DANGER)
def test_a_box_hides_nothing_else(message: str) -> None:
    assert level_of(message) is Level.EMERGENCY


@pytest.mark.parametrize(
    "piece",
    [
        "[ ] chest pain ",
        "[x] ",
        "(-)",
        "? a: ",
        "   ",
        "my dog ",
        ":",
        ": no",
        "none of these ",
        "no actually yes ",
        "it feels the same ",
        "no chest , just ",
        "no? actually yes ",
    ],
)
def test_the_time_of_forms_grows_with_their_length_only(piece: str) -> None:
    assert level_of(f"{piece * 500}. I have chest pain") is Level.EMERGENCY


PETS = """
my dog collapsed
my dog passed out
my cat can't breathe
the dog had a seizure
our puppy fainted
my dog had a seizure
help, my dog just collapsed
hi, the cat suddenly passed out
our rabbit is unconscious
my dog can not stop seizing
my neighbors dog collapsed
chó nhà em bị ngất
con chó nhà em tự nhiên ngất xỉu
con mèo nhà tôi khó thở
mèo của em co giật
my cat stopped breathing yesterday
the vet says my cat is having seizures
"""
"""What a pet has, one a line."""

BESIDE_PETS = """
my dog bit my throat
the dog knocked her down and she collapsed
collapsed while walking the dog
fainted near the cat
he was walking the dog collapsed
my cat makes my chest tight and I can't breathe
I can't breathe around my cat
my dog scratched my face, it's bleeding heavily and won't stop
my dog jumped and my son is unconscious
the dog pulled grandad over, unconscious
my cat died and I passed out
con chó cắn bé, bé ngất
chó cắn con em ngất xỉu
my dog found my wife unconscious
my dog and I had a car crash, I can't breathe
the dog collapsed on the baby and the baby is not breathing
my guide dog collapsed and I fell and passed out
my dog collapsed and so did I
my dog collapsed, me too
my dog passed out and then I did too
my dog collapsed and my wife did as well
my cat can't breathe, same with me
the cat can't breathe and neither can I
our dog fainted, then so has my mom
my dog had a seizure and so did I
chó nhà em bị ngất, em cũng vậy
"""
"""What a person has beside a pet, one a line."""


def test_what_a_pet_has_raises_nothing() -> None:
    raised = {text for text in PETS.strip().splitlines() if level_of(text) is Level.EMERGENCY}
    assert raised == set()
    missed = {
        text for text in BESIDE_PETS.strip().splitlines() if level_of(text) is not Level.EMERGENCY
    }
    assert missed == set()


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("SOB: yes", Level.EMERGENCY),
        ("chest pain (no), SOB (yes)", Level.EMERGENCY),
        ("CP since 1h", Level.EMERGENCY),
        ("chest pain (no), SOB (no)", Level.ROUTINE),
    ],
)
def test_abbreviations_of_notes_are_answered(message: str, expected: Level) -> None:
    assert shipped_rules().screen([message], Language.ENGLISH).triage_level is expected


TAKEN_BACK = """
Chest pain: no. Wait, actually yes, since this morning
Chest pain: no, sorry, yes
Chest pain? no, actually yes
no chest pain. Sorry, I do have it
No chest pain. Actually, yes I do.
no chest pain, actually i do have some
I don't have chest pain. Correction: I do.
I have no chest pain and no sweating. Actually, yes
Chest pain: none. No wait, yes!
my chest pain is gone. Actually, I do have it still
Denies chest pain or syncope. On second thought, yes.
không đau ngực. Thật ra là có
Đau ngực: không. À thật ra có, từ sáng nay
Chest pain? No. Are you sure? Actually, yes.
No chest pain. Did you have it before? Actually, yes
No chest pain? Actually, yes
Chest pain? No. Wait, yes
Any chest pain? Nope. Actually, yes.
"""
"""Denials that are taken back, one a line."""
STILL_STANDING = """
No chest pain. Actually I just have a cough
I have no chest pain. I'm sorry, I have a cough
I have no chest pain. Sorry, there is a typo above
no chest pain. In fact I am fine
Chest pain: no. Fainting: no. Cough: no, wait, yes
No chest pain, no fainting. I can wait, i do not mind
I don't smoke. Actually I do, ten a day. No chest pain.
Chest pain? No. Smoker? Actually, yes.
Doctor: Any chest pain? Patient: No. Doctor: Do you smoke? Patient: Actually, yes.
không đau ngực. Xin lỗi, có ai không
"""
"""Denials beside such words that are not taken back, one a line."""


def test_a_denial_that_is_taken_back_denies_nothing() -> None:
    found = levels(TAKEN_BACK)
    assert {text for text, level in found.items() if level is not Level.EMERGENCY} == set()
    raised = {
        text for text, level in levels(STILL_STANDING).items() if level.rank >= Level.URGENT.rank
    }
    assert raised == set()


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        ("actually yes, I do", Level.EMERGENCY),
        ("I was wrong, I do have it", Level.EMERGENCY),
        ("scratch that, yes since noon", Level.EMERGENCY),
        ("thật ra là có ạ", Level.EMERGENCY),
        ("yes I take paracetamol", Level.ROUTINE),
        ("sorry, I have had this cold since monday", Level.ROUTINE),
    ],
)
def test_the_next_message_may_take_a_denial_back(later: str, expected: Level) -> None:
    rules, messages = shipped_rules(), ["no chest pain, just a cough", later]
    assert rules.screen(messages, Language.ENGLISH).triage_level is expected
    words = rules.earlier_words(messages, Language.ENGLISH)
    assert words == ("chest pain" if expected is Level.EMERGENCY else "")


COMPARED = """
I have chest pain same as last year
I have crushing chest pain like my heart attack last year
it feels just like my heart attack last year
I have the same chest pain I had last year
the same chest pain as in 2015
chest pain exactly like I used to get
my chest hurts like when I was 20
my chest pain is worse than last year
my chest is as tight as it was last year
trouble breathing similar to last winter
I can't breathe again like last winter
I had crushing chest pain last year. This feels the same.
đau ngực giống năm ngoái
đau ngực giống như cơn nhồi máu năm ngoái
khó thở y hệt hồi năm 2019
"""
"""Complaints that are compared with some of long ago, one a line."""
ONLY_LONG_AGO = """
I had a stroke like 5 years ago
I had the same stroke as my father years ago
years ago I had chest pain like my father
I don't want to end up like my dad who died of a heart attack
I have the same doctor I had last year for my stroke
I felt like I was having a heart attack last year
when I was 12 I had a seizure like the ones my cousin has
I had a stroke in 2015. My diet is the same as last year.
my headaches are better than last year when I had a stroke
năm ngoái em bị đột quỵ giống ba em
"""
"""Comparisons beside complaints of long ago, one a line."""


def test_a_complaint_that_is_compared_with_one_of_long_ago_is_present() -> None:
    found = levels(COMPARED)
    assert {text for text, level in found.items() if level is not Level.EMERGENCY} == set()
    raised = {
        text for text, level in levels(ONLY_LONG_AGO).items() if level.rank >= Level.URGENT.rank
    }
    assert raised == set()


THERE_AGAIN = """
I had a heart attack last year. This feels the same.
I had a heart attack last year... this feels exactly the same
I had a heart attack in 2019 and this feels just like it
I had a stroke last year and I'm having the same symptoms
I had a heart attack last year. Same thing now.
I had a heart attack 6 weeks ago. I think it's another one.
I had a stroke 5 years ago. It's happening again.
I've had a previous heart attack and I feel the same way now
history of stroke, same symptoms today
This is exactly how I felt when I had my heart attack in 2015
I had a heart attack last year. The pain is back.
I had a heart attack last year. Not sure, but it feels the same.
I had a PE 3 months ago and it feels like that again
I had a heart attack last year. I feel like I'm having one again.
I had a heart attack last summer. I get the same feeling walking upstairs.
my dad had a heart attack last year and he looks the same way now
my baby had a seizure last year and he's doing it again
năm ngoái tôi bị nhồi máu cơ tim. Lần này y hệt.
năm ngoái tôi bị đột quỵ, bây giờ cảm giác giống vậy
"""
"""Illnesses of long ago that are there again, one a line."""
NOT_AGAIN = """
I had a heart attack last year. I feel fine now.
I had a heart attack last year. It does not feel the same.
I had a heart attack last year. I don't have the same symptoms.
I had a heart attack last year. My new medication feels the same as the old one.
I had a stroke last year. It is the same as usual.
I had a stroke in 2010 and I have the same doctor
I had a stroke in 2010. I have another question.
I had a stroke last year and am scared of having it again
I had a heart attack last year, my GP says everything is the same
I had a stroke 2 years ago. My hay fever is back.
I had a PE 3 months ago and take apixaban
I had a heart attack in 2015. Could it come back?
I had a heart attack in 2015. What if it comes back?
I had a heart attack in 2015. I'm afraid of having another one.
I had a stroke in 2015. How do I avoid having another one?
I had a stroke in 2015. What are the chances of having another one?
I had a heart attack in 2015. It's another episode of hay fever.
I had a heart attack in 2015. It's another one of my colds.
I had a heart attack in 2015. Today feels the same as yesterday, just a cough.
I had a heart attack in 2015. Same symptoms as everyone at work: sneezing.
I had a stroke two years ago. I am doing it again: jogging every day.
năm ngoái tôi bị đột quỵ. Lần này không giống.
"""
"""Illnesses of long ago beside such words, one a line."""


def test_an_illness_of_long_ago_that_is_there_again_counts() -> None:
    found = levels(THERE_AGAIN)
    assert {text for text, level in found.items() if level is not Level.EMERGENCY} == set()
    raised = {text for text, level in levels(NOT_AGAIN).items() if level.rank >= Level.URGENT.rank}
    assert raised == set()


@pytest.mark.parametrize(
    ("later", "expected"),
    [("This feels the same.", Level.EMERGENCY), ("I have a cold.", Level.ROUTINE)],
)
def test_the_next_message_may_say_that_it_is_there_again(later: str, expected: Level) -> None:
    messages = ["I had a heart attack last year.", later]
    assert shipped_rules().screen(messages, Language.ENGLISH).triage_level is expected


NOT_CALLED_PAIN = """
Not chest pain exactly, more like tightness
not really chest pain but pressure
it isn't chest pain as such, more a tightness
it's not a pain in my chest, it's a tightness
no pain in my chest, just tightness
I don't have chest pain but pressure like a brick
chest pain went away but has come back
this is no ordinary headache, worst of my life
không đau ngực, chỉ thấy tức
"""
"""Emergencies of which only a name or a time is denied, one a line."""
DENIED_ALL_THE_SAME = """
no chest pain, just sinus pressure
no chest pain, just pressure in my sinuses
no chest pain, just a tight hamstring
no chest pain but my blood pressure is 120/80
no chest pain but heavy legs
no chest pain but pressure and pain in my ears
no chest pain, just pressure when blowing my nose
my chest pain went away last week and hasn't come back
không đau ngực, chỉ nặng chân
"""
"""Denials beside such words, one a line."""


def test_a_chest_pain_by_another_name_is_present() -> None:
    found = levels(NOT_CALLED_PAIN)
    assert {text for text, level in found.items() if level is not Level.EMERGENCY} == set()
    raised = {
        text
        for text, level in levels(DENIED_ALL_THE_SAME).items()
        if level.rank >= Level.URGENT.rank
    }
    assert raised == set()
