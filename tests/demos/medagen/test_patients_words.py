"""Messages in the words of patients: spelling, diacritics, denial, emergencies without terms."""

from __future__ import annotations

from pathlib import Path

import pytest

from demos.medagen.dictionary import is_foreign, is_rather_vietnamese, is_word
from demos.medagen.evaluate import Case, measures
from demos.medagen.schemas import Language, Level
from demos.medagen.tokenizer import language_of
from demos.medagen.triage_rules import FOREIGN, shipped_rules
from mdagents_llm.files.json_text import load_json

RULES = shipped_rules()
CORPUS = Path(__file__).parents[2] / "corpus"
MILD = {Level.ROUTINE, Level.SELF_CARE}


def level(*messages: str, language: Language = Language.ENGLISH) -> Level:
    return RULES.screen(messages, language).triage_level


def flags(*messages: str) -> tuple[str, ...]:
    return RULES.screen(messages, Language.ENGLISH).red_flags


@pytest.mark.parametrize(
    "message",
    [
        "the soup was delicious and now I am bloated",  # not "suicidal", not "unconscious"
        "I had a protein shake and feel full",  # not "shaking"
        "I was painting the fence and my thumb is sore",  # not "fainting"
        "I have heel spurs",
        "I stubbed my toe",  # not "stabbed"
        "my mother has a cold",
        "he is afebrile and has a runny nose",  # the "a" denies
        "I am granting my leave form, I only have a sniffle",  # not "grunting"
        "my baby is a bit fussy while streaming films",  # not "screaming"
        "I have hay fever and itchy eyes",
        "my resting heart rate is 62 beats per minute",
    ],
)
def test_a_word_is_not_another_one_misspelt(message: str) -> None:
    assert level(message) in MILD, flags(message)


@pytest.mark.parametrize(
    ("message", "raised"),
    [
        ("Tôi bị đau đầu và sốt 38.5", False),
        ("đầu em không đau, em chỉ gội đầu rồi sấy tóc", False),
        ("khong dau nguc, chi ho", False),
        ("toi bi dau dau va met", False),
        ("toi bi dau nguc", True),
        ("đau ngực", True),
        ("me toi bi meo mieng, noi khong ro", True),
    ],
)
def test_diacritics_are_read_where_they_are_written(message: str, raised: bool) -> None:
    found = level(message, language=Language.VIETNAMESE)
    assert (found is Level.EMERGENCY) is raised, flags(message)
    assert not {"head_injury", "burn"} & set(flags(message))


@pytest.mark.parametrize(
    ("message", "raised"),
    [
        ("no fevers, chills, weight loss, chest pain", False),
        ("hết đau ngực rồi, giờ chỉ hơi mệt", False),
        ("vẫn chưa hết đau ngực", True),
        ("what are the signs of a stroke?", False),
        ("my wife has no chest pain but she cannot breathe", True),
    ],
)
def test_what_is_denied(message: str, raised: bool) -> None:
    assert (level(message) is Level.EMERGENCY) is raised, flags(message)


@pytest.mark.parametrize(
    "message",
    [
        "my baby is blue",
        "grandma's face went droopy",
        "I'm going to take all my pills tonight",
        "I'm 32 weeks and haven't felt the baby move since yesterday",
        "my friend got struck by lightning",
        "I gave myself 80 units of insulin instead of 8",
        "my jaw is locked since I stepped on a rusty nail last week",
        "con tôi uống nhầm thuốc diệt chuột",
        "tôi muốn uống hết thuốc ngủ để chết",
        "my lips and tongue are swelling after a bee sting",
    ],
)
def test_emergencies_in_everyday_words(message: str) -> None:
    assert level(message) is Level.EMERGENCY


@pytest.mark.parametrize(
    ("signs", "is_emergency"),
    [
        ("she keeps tripping", False),
        ("things slip out of her hand", False),
        ("she keeps tripping, and things slip out of her hand", True),
        ("he looks pale", False),
        ("he looks pale and cannot type his own name", True),
        ("no pale skin, and he keeps tripping", False),
        ("người lạnh ngắt", False),
        ("người lạnh ngắt, nằm im", True),
    ],
)
def test_two_signs_are_an_emergency(signs: str, is_emergency: bool) -> None:
    assert (level(signs) is Level.EMERGENCY) is is_emergency, flags(signs)


@pytest.mark.parametrize(
    "message",
    [
        "what should I do if I ever get chest pain?",
        "can low iron make you short of breath? I feel ok",
        "can stress cause chest pain in general?",
        "I had a seizure when I was 12, is spicy food a problem?",
        "my friend collapsed at a gig last summer, how do I avoid that?",
        "watched a thing on telly about carbon monoxide, where do I put the detector?",
        "I don't want to die or anything, just asking about sleeping tablets",
        "ba em bị đột quỵ năm 2018, em muốn phòng ngừa",
        "xem tin thấy có bé nuốt pin, làm sao phòng cho con ở nhà",
    ],
)
def test_what_is_asked_told_or_over_is_mild(message: str) -> None:
    assert level(message) in MILD, flags(message)


@pytest.mark.parametrize(
    "message",
    [
        "dau hong kho tho",  # "hong" is the throat, not "hông" (no)
        "cha toi xuat huyet nao",  # "cha" is the father, not "chả" (no)
        "đau đầu dữ dội chưa từng bị",  # never before, so it is now
        "heart rate won't come down from 170",
        "my baby is 8 weeks and is 38.6",
    ],
)
def test_what_is_no_denial_and_what_is_measured(message: str) -> None:
    assert level(message) is Level.EMERGENCY, flags(message)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("I have no spleen and a fever", Level.EMERGENCY),
        ("my spleen was removed, and I have a temperature of 38.5", Level.EMERGENCY),
        ("tôi bị cắt lách, đang sốt", Level.EMERGENCY),
        ("I take clozapine and have a fever", Level.EMERGENCY),
        ("on carbimazole, sore throat and fever", Level.EMERGENCY),
        ("I take methotrexate and I have a fever of 38.2", Level.EMERGENCY),
        ("on clozapine with a sore throat", Level.URGENT),
        ("no fever, I have no spleen", Level.ROUTINE),
        ("my leg is cold, white and I can't feel it", Level.EMERGENCY),
        ("my hands are cold and white when it is cold weather", Level.ROUTINE),
        ("I have cold feet in winter and can't feel my toes", Level.ROUTINE),
        ("numb around my bottom and can't hold my wee", Level.EMERGENCY),
        ("numb down there after cycling, otherwise fine", Level.ROUTINE),
        ("I can't hold my wee when I laugh", Level.ROUTINE),
    ],
)
def test_few_white_cells_cold_limbs_and_numb_bottoms(message: str, expected: Level) -> None:
    assert level(message) is expected, flags(message)


@pytest.mark.parametrize("message", ["tôi chán sống lắm rồi", "chan song qua"])
def test_who_is_tired_of_living_is_seen_soon(message: str) -> None:
    assert level(message, language=Language.VIETNAMESE).rank >= Level.URGENT.rank


@pytest.mark.parametrize(
    "message",
    [
        "me duele el pecho y no puedo respirar",
        "j'ai très mal à la poitrine depuis ce matin",
        "ich habe starke Schmerzen in der Brust",
        "我胸口很痛",
        "у меня болит грудь",
        "عندي ألم في الصدر",
    ],
)
def test_other_languages_are_urgent(message: str) -> None:
    result = RULES.screen([message], Language.ENGLISH)
    assert result.triage_level is Level.URGENT
    assert FOREIGN in result.red_flags


@pytest.mark.parametrize(
    "message",
    [
        # As saffsd/langid.py 58 and pemistahl/lingua-py 153: Hindi in Latin letters is no English.
        *("tum kahaan ja rahe ho", "Bhai aapka isme", "papa ko seene mein dard ho raha hai"),
        *("lagta hai lakwa ho gaya", "abbu behosh ho gaye doctor ke paas jana hai"),
        *("saans phool rahi hai papa ki", "ulti mein khoon aaya", "ne mogu dyshat"),
        *("boli me grudi", "smerter i brystet", "xiong kou teng", "sans nahi aa rahi"),
        *("mal di petto", "Ich habe Brustschmerzen", "j'ai très mal à la poitrine"),
        # Beside English, and single words.
        "My mother says: me duele el pecho. She is 70.",
        "Doctor please help, mera beta behosh hai",
        *("Brustschmerzen", "Atemnot", "Herzinfarkt!", "infarto"),
    ],
)
def test_other_languages_in_latin_letters_are_urgent(message: str) -> None:
    result = RULES.screen([message], Language.ENGLISH)
    assert result.triage_level.rank >= Level.URGENT.rank
    assert FOREIGN in result.red_flags
    assert language_of([message]) is Language.ENGLISH, "what is no Vietnamese is not answered so"


@pytest.mark.parametrize(
    "message",
    [
        *("profuse rectal bleeding", "diabetic keto acidosis", "tonsilar exudates on the left"),
        *("noi me day ngua", "em bi dau hong, sot nhe", "bé lừ đừ, bú kém"),
        *("ceton 1,8", "hydroxyvitamin D 20 ng/ml", "calamine or hydrocortisone?", "háng tê rần"),
        *(
            "bé bị fever",
            "today morining he cough contiuously",
            "stomache",
            "diarrhoea",
            "y/o m, ok",
        ),
        *("diarhea", "headche", "nausia", "feverr", "diarhea and vomitting", "okela", "xquang"),
        *("ibuprofin dosnt help", "mild feverr since yesteday", "semaglutide", "penicilin"),
        *("metformin, amlodipine, atorvastatin", "acne tretinoin adapalene", "hx HTN, DM, HLD"),
        *("plantar fasciitis", "seborrheic dermatitis", "polyuria, polydipsia, polyphagia"),
    ],
)
def test_medical_and_misspelled_words_are_not_foreign(message: str) -> None:
    assert FOREIGN not in flags(message)


@pytest.mark.parametrize("message", ["buon non", "moi mat", "te chan", "o nong"])
def test_two_words_of_vietnamese_are_answered_in_vietnamese(message: str) -> None:
    assert language_of([message]) is Language.VIETNAMESE


@pytest.mark.parametrize(
    "message",
    ["hi", "ok thanks", "toi bi ho", "my knee hurts", "sốt xuất huyết", "ibuprofen 400mg?", "👍"],
)
def test_short_messages_are_not_foreign(message: str) -> None:
    assert FOREIGN not in flags(message)


def test_words_of_the_dictionary() -> None:
    assert is_word("delicious", has_diacritics=False)
    assert is_word("dau", has_diacritics=False)
    assert not is_word("brething", has_diacritics=False)
    assert not is_word("nguc", has_diacritics=True)
    assert is_rather_vietnamese(["toi", "bi", "dau", "bung"])
    assert not is_rather_vietnamese(["my", "stomach", "hurts"])
    assert is_foreign(["me", "duele", "la", "cabeza"])
    assert not is_foreign([])


def test_the_words_of_an_earlier_message() -> None:
    english = Language.ENGLISH
    assert RULES.earlier_words(["my chest hurts", "I also have a cold"], english) == "chest hurts"
    assert RULES.earlier_words(["I have a cold", "my chest hurts"], english) == ""
    assert RULES.earlier_words(["my chest hurts"], english) == ""
    assert RULES.earlier_words(["I have a cold", "and a cough"], english) == ""


# -- messages of patients that were collected -------------------------------------------------


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("file", "recall", "alarms"),
    [
        ("triage_seen.jsonl", 404 / 445, 8 / 469),
        ("triage_vignettes_45.jsonl", 12 / 15, 3 / 15),
    ],
)
def test_what_was_measured_is_kept(file: str, recall: float, alarms: float) -> None:
    """Also of use to whoever changes a rule: the numbers may only improve."""
    lines = (CORPUS / file).read_text(encoding="utf-8").splitlines()
    cases = [Case.model_validate(load_json(line, file)) for line in lines]
    found = measures(cases, {one.id: level(one.text, language=one.language) for one in cases})
    assert found.emergency_recall.count / found.emergency_recall.of >= recall
    assert found.mild_alarms.count / found.mild_alarms.of <= alarms
