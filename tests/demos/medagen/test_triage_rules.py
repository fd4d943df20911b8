"""The rules of triage: each fires for its example, and for what people write instead."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demos.medagen.dictionary import fold, is_word
from demos.medagen.schemas import (
    Language,
    Level,
    PatientInfo,
    RulesResult,
    Severity,
    TriageInput,
    VitalSigns,
)
from demos.medagen.tokenizer import split
from demos.medagen.triage_rules import Rule, Rules, shipped_rules

RULES = shipped_rules()
EXAMPLES = [(rule, language) for rule in RULES.rules for language in Language]


def screened(*messages: str, language: Language = Language.ENGLISH) -> RulesResult:
    return RULES.screen(messages, language)


def fired(*messages: str) -> set[str]:
    return {one.rule for one in screened(*messages).fired}


@pytest.mark.parametrize(
    ("rule", "language"), EXAMPLES, ids=[f"{rule.id}-{of}" for rule, of in EXAMPLES]
)
def test_a_rule_fires_for_its_example(rule: Rule, language: Language) -> None:
    result = screened(rule.example[language], language=language)
    assert rule.id in {one.rule for one in result.fired}
    assert result.triage_level.rank >= rule.level.rank
    if rule.level is result.triage_level and rule.level.rank >= Level.URGENT.rank:
        assert (rule.flag or rule.id) in result.red_flags
    assert rule.source


def test_rules_have_ids_of_their_own() -> None:
    assert len({rule.id for rule in RULES.rules}) == len(RULES.rules) > 90


@pytest.mark.parametrize("rule", RULES.rules, ids=lambda rule: rule.id)
def test_vietnamese_may_be_written_without_diacritics(rule: Rule) -> None:
    if any(phrase.startswith("=") for phrase in rule.vi):
        pytest.skip("without them it is another word, too")
    plain = fold(rule.example[Language.VIETNAMESE].replace("Đ", "đ"))
    assert screened(plain).triage_level.rank >= rule.level.rank


# -- spelling ---------------------------------------------------------------------------------


def misspelt(word: str, chance: random.Random) -> Iterator[str]:
    """Yield a word with one letter missing, wrong, too many, or in its neighbour's place."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    for at in range(len(word)):
        yield word[:at] + word[at + 1 :]
        yield word[:at] + chance.choice(letters) + word[at + 1 :]
        yield word[:at] + chance.choice(letters) + word[at:]
        yield word[:at] + word[at : at + 2][::-1] + word[at + 2 :]


@pytest.mark.parametrize(
    ("message", "word"),
    [
        ("I have a crushing pain in my chest", "crushing"),
        ("I have chest pressure", "pressure"),
        ("my son has trouble breathing", "breathing"),
        ("my son has trouble breathing", "trouble"),
        ("she is unconscious", "unconscious"),
        ("he had a seizure", "seizure"),
        ("his speech is slurred", "slurred"),
        ("his speech is slurred", "speech"),
        ("the bleeding will not stop", "bleeding"),
        ("he is bleeding heavily", "heavily"),
        ("my throat is closing after peanuts", "throat"),
        ("I want to kill myself", "myself"),
        ("she swallowed bleach", "swallowed"),
        ("she swallowed bleach", "bleach"),
        ("the worst headache of my life", "headache"),
        ("I have sudden vision loss", "vision"),
    ],
)
def test_one_wrong_letter_hides_no_red_flag(message: str, word: str) -> None:
    assert screened(message).triage_level is Level.EMERGENCY
    for wrong in misspelt(word, random.Random(word)):
        if is_word(wrong, has_diacritics=False):
            continue  # a word is never read as another one
        written = message.replace(word, wrong)
        assert screened(written).triage_level is Level.EMERGENCY, written


@pytest.mark.parametrize(
    "message",
    [
        "kho tho qua",
        "khó thơ quá",
        "dau nguc",
        "đau ngưc",
        "bat tinh",
        "co giat",
        "meo mieng",
        "tự nhiên méo miệg",
        "me em bị đột quỵ",
        "bé bị co giậc",
        "nôn ra mau",
        "ngat xiu",
        "heart attack",
        "stroke",
        "my husband had a stroke",
        "my mom had a heart attack an hour ago",
        "cardiac arrest",
        "chồng tôi bị đột quỵ",
    ],
)
def test_red_flags_as_they_are_typed(message: str) -> None:
    assert screened(message).triage_level is Level.EMERGENCY


# -- denial -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        "I have a runny nose. No chest pain.",
        "no fever, cough or chest pain, just a sore throat",
        "I sneeze, but I don't have any trouble breathing",
        "he denies chest pain and has no shortness of breath",
        "without chest pain, without fainting",
        "sổ mũi, không đau ngực, không khó thở",
        "em ho nhẹ, không có khó thở hay đau ngực",
        "toi so mui, khong kho tho",
        "tôi chưa bị ngất, chỉ hắt hơi",
        "khó thở thì không, chỉ sổ mũi",
        "my father had a heart attack ten years ago, I have a cold",
        "my husband had a stroke two years ago, which diet is good",
        "I had a heart attack in 2015",
        "rehab exercises after a stroke",
        "learning the breast stroke",
        "it was a stroke of luck",
        "phòng ngừa đột quỵ thế nào",
        "the room temperature is 41 degrees",
        "the oven is 40 C",
        "bath water 40 degrees",
        "I ran the bath at 40 degrees",
        "heart attack in 2027",
        "my father had a heart attack at 50, does that mean I should get checked?",
        "my grandfather died of a heart attack",
        "I survived a heart attack last year",
        "after his heart attack he takes aspirin",
        "what are the signs of a stroke",
        "my dad had a stroke at age 60",
        "sợ bị đột quỵ",
        "since my stroke I use a cane",
        "how to prevent a heart attack",
        "bố tôi có tiền sử nhồi máu cơ tim",
        "bath water is 40 degrees, is that too warm",
        "hồi nhỏ tôi từng bị co giật, giờ chỉ sổ mũi",
        "no chest pain. he does have a runny nose",
        "my chest pain has gone away",
        "is chest pain a side effect of ibuprofen?",
        "my dog had a seizure",
        "con chó nhà em bị co giật",
        "bà em mất vì đột quỵ, em muốn khám tổng quát",
        "I want to die my hair, is it safe with eczema?",
        "em mệt chết đi được",
        "I'm drowning in work and tired",
        "I'm allergic to peanuts, no reaction now, just need a new epipen script",
        "my back is seizing up",
    ],
)
def test_what_is_denied_or_long_ago_raises_nothing(message: str) -> None:
    assert screened(message).triage_level.rank < Level.URGENT.rank


@pytest.mark.parametrize(
    "message",
    [
        "I can't breathe",
        "my baby is 2 months old and took her bottle, 39.0 C",
        "my husband had a stroke at work an hour ago",
        "he just had a heart attack at home",
        "about an hour ago my husband had a heart attack",
        "after dinner my dad had a heart attack",
        "tôi lo lắm bố tôi bị đột quỵ",
        "My 60 year old dad had a heart attack",
        "I have symptoms of a heart attack",
        "signs of stroke in my father",
        "call an ambulance for a stroke",
        "my dad is dying of a heart attack",
        "this is his first heart attack, come quick",
        "heart attack at 65, help",
        "cardiac arrest not revived",
        "he has a history of diabetes and is having a heart attack",
        "not only a cough but chest pain",
        "no fever but chest pain",
        "no idea why my chest hurts",
        "I don't know why but I have chest pain",
        "no fever and chest pain since yesterday",
        "no fever, chest pain",
        "the chest pain does not go away",
        "I have never had chest pain like this",
        "không thở được",
        "không sốt nhưng đau ngực",
        "không biết sao đau ngực quá",
        "không chỉ ho mà còn khó thở",
        "đau ngực không chịu nổi",
        "hello! how are you? by the way, my chest hurts",
        "chào bạn, hôm nay trời đẹp quá, mà mẹ em bất tỉnh rồi",
        "no longer breathing",
        "she wont stop seizing",
        "chest pain went away but came back worse",
        "em đau ngực hết rồi nhưng giờ lại đau",
        "i don't have chest pain. my dad does, right now, and he is sweating",
        "em không đau ngực nhưng ba em thì có",
        "my dog had a seizure and I have chest pain",
        "my dog has bitten my hand it is bleeding heavily",
        "mẹ em chết vì khó thở",
        "can not catch my breath",
        "i cnat breathe",
        "thinking about killing my self",
        "her oxygen meter says 82",
        "drooling, can't swallow, muffled voice and fever",
        "gas smell and everyone at home has headache",
        "the worst pain in my back, ripping, between shoulder blades",
    ],
)
def test_what_is_not_denied_counts(message: str) -> None:
    assert screened(message).triage_level is Level.EMERGENCY


@pytest.mark.parametrize(
    "message",
    [
        "my son is in anaphylaxis",
        "i think it's anaphylaxis",
        "she is having an anaphylactic reaction",
        "going into anaphylaxis help",
        "I had to use my epipen ten minutes ago",
        "i just gave my son his epipen",
        "we used the EpiPen and she feels better now",
        "he needed his epipen at school today",
        "allergic reaction and cant swallow",
        "my dad is in anaphylactic shock",
        "used my epipen after peanuts",
        "the school nurse gave him his epi-pen",
        "gave her the Jext and she is pink again",
        "epipen given 20 min ago, what now",
        "my wife used her auto-injector and is ok",
        "he had an anaphylactic reaction an hour ago, used adrenaline, better now",
        "I jabbed myself with my EpiPen",
        "cannot swallow after an allergic reaction",
        "vừa tiêm epipen cho con xong, giờ đỡ rồi",
        "con em đang bị phản vệ",
        "tôi tự chích adrenaline rồi",
        "con bị phản vệ, em tiêm adrenalin rồi",
        "vua tiem epipen cho con",
        "severe allergic reaction",
        "I'm having a severe allergic reaction",
        "serious allergic reaction",
        "life threatening allergic reaction",
        "having a bad allergic reaction to nuts",
        "allergic reaction and feel faint",
        "an allergic reaction, and she keeps vomiting",
        "whole body allergic reaction after shellfish",
        "I think I'm going into shock from an allergy",
        "hives after nuts and breathing is hard",
        "dị ứng nghiêm trọng",
        "phản ứng dị ứng, chóng mặt, muốn xỉu",
    ],
)
def test_a_severe_allergic_reaction_needs_no_cause(message: str) -> None:
    assert "anaphylaxis" in screened(message).red_flags or "named_emergency" in fired(message)
    assert screened(message).triage_level is Level.EMERGENCY


@pytest.mark.parametrize(
    "message",
    [
        "need a new epipen script",
        "my epipen is expired, need a refill",
        "I had anaphylaxis as a kid, need new epipen prescription",
        "what is anaphylaxis",
        "anaphylaxis two years ago, fine since",
        "how do I use an epipen",
        "I was given an epipen by my allergist",
        "my doctor gave me an epipen",
        "used my epipen last year, need a new one",
        "how do I dispose of a used epipen",
        "I have never had to use my epipen",
        "never used my epipen, it expired",
        "we practiced using an epipen trainer at school",
        "should I carry an epipen",
        "when do I have to use the epipen?",
        "history of anaphylaxis, needs flu jab",
        "can I fly with an epipen",
        "what if he has to use his epipen at school?",
        "the nurse showed me how to use the epipen",
        "I am scared of going into anaphylaxis",
        "cách dùng epipen",
        "xin đơn mua epipen mới",
        "epipen hết hạn, mua ở đâu",
        "em có nguy cơ phản vệ không",
        "toi can mua epipen",
        "in case of anaphylaxis use the epipen, says the plan; she has a mild cold",
        "had a severe allergic reaction in 2010, now a flu shot",
        "severe allergic reaction two years ago, need a new epipen script",
        "I have a severe allergy to nuts and need a new epipen script",
        "allergic reaction to nickel: itchy ear lobes",
        "what is a severe allergic reaction?",
        "I was in shock about the news",
    ],
)
def test_adrenaline_that_nobody_used_is_no_emergency(message: str) -> None:
    assert screened(message).triage_level.rank < Level.URGENT.rank


@pytest.mark.parametrize(
    "message",
    [
        "seizing for 10 minutes",
        "my daughter has epilepsy, seizing now",
        "coffee ground vomit",
        "coffee-ground emesis",
        "bloody emesis since noon",
        "28 weeks pregnant with gush of fluid",
        "leaking fluid, 30 weeks pregnant",
        "I'm pregnant. There was a gush of water down my legs",
        "34 weeks, fluid is trickling, not pee",
        "i have pills and im going to take them",
        "ive got a bottle of pills and im going to take them all",
        "i have enough pills and i will swallow them all",
        "gush of fluid at 28 weeks pregnant",
        "vomiting coffee grounds",
        "em có vỉ thuốc ngủ, em sẽ uống hết",
        "em có cả đống thuốc và em định uống hết",
        "bầu 34 tuần, nước chảy xuống chân",
        "em mang thai 30 tuần bị rỉ nước",
        "bầu 32 tuần tự nhiên ra nhiều nước",
        "the pain is so bad I want to take all my pills",
        "his legs are jerking, he is seizing",
        "30 weeks pregnant, fluid leaking down my legs in the car",
        "30 weeks pregnant, sitting in the car leaking fluid",
        "38 weeks pregnant, leaking water beside the dishwasher",
        "My finger started seizing then whole body",
        "my shoulder is seizing and he does not answer",
        "My back started seizing then the whole body",
        "severe rectal bleeding",
        "heavy vaginal bleeding",
        "profuse rectal bleeding",
        "rectal bleeding that is very heavy",
        "pooping pure blood",
        "chảy máu trực tràng nặng",
        "my heart is hurting a lot",
        "my heart has been aching since this morning",
        "my heart hurts for an hour now",
        "pain in my heart",
        "im dying",
        "I'm dying please help",
        "he's dying, please come",
        "tim tôi đau",
        "tôi sắp chết",
        "I'm dying, the pain is unbearable",
        "đau vai lan xuống tay trái",
        "| BP | Normal |\n|---|---|\n| 70/40 | 120/80 |",
        "pain going down my left arm and jaw",
        "pain spreading into my left arm",
        "pain in left arm and jaw",
        "pressure spreading to neck and arm",
        "đau lan xuống tay trái",
        # obophenotype/human-phenotype-ontology#9848, monarch-initiative/dismech#6235
        "saddle anesthesia",
        "saddle numbness",
        "perineal numbness with sciatica",
        "my private parts are numb and both legs weak",
        "can't feel when I wipe",
        "tê vùng yên ngựa",
        "not breathing well",
        "my baby stopped breathing in his sleep",
        "can't breathe, and my nose is bleeding",
        "a bit short of breath and my chest is tight",
        "nose is bleeding and I can't breathe",
        "short of breath after surgery, running a fever",
        "i can't feel my private parts",
        "aching that moved into my left arm",
        "tim mẹ tôi đau nhói",
        "severe postpartum bleeding",
        "she went into shock after the bee sting",
        # Only a nose that is named explains breath, and only where nothing else is wrong.
        "my throat is blocked up and I cannot breathe properly",
        "Airway blocked up, not breathing properly",
        "I am blocked up and cannot breathe easily",
        "he hit his nose and is not breathing well",
        "I cannot breathe and blood is coming through my nose",
        "blocked nose and my chest is so tight I'm not breathing well",
        "không thở được phải thở oxy qua mũi",
        "my partner stops breathing every time he falls asleep after taking heroin",
        "wife stops breathing at night, tonight she did not start again",
        "a little short of breath, getting much worse",
        "a little short of breath after a bee sting",
        "slightly short of breath and left leg swollen",
        "slightly short of breath since my flight",
        "I'm 30 weeks pregnant and a bit short of breath",
        "a bit short of breath lying flat",
        "slightly short of breath, fever 39.5",
        "a bit short of breath, 82 years old",
        "a little short of breath and calf pain",
        "I get a bit short of breath and my ankles swell",
        "short of breath when I run, and dizzy",
        "my heart and chest hurt, it began after the divorce",
        "tim đập nhanh đau ngực sau khi chia tay",
        # What explains a numb bottom explains no lost bladder.
        "I was sitting down when my groin went numb and I lost control of my bladder",
        "back pain, groin numb when sitting, cannot control my bladder",
        "my genitals are numb since the epidural last week and I leak urine, back pain",
        "my bum is numb from cycling and I cannot pee",
    ],
)
def test_an_emergency_counts_in_any_order_of_its_words(message: str) -> None:
    assert screened(message).triage_level is Level.EMERGENCY


@pytest.mark.parametrize(
    "message",
    [
        "I have pills and my doctor will review them",
        "coffee makes me vomit",
        "i have pain pills from the dentist and im going to take them with food",
        "I got new pills from my gp and will take them all as prescribed",
        "i have antibiotic tablets and am going to take them",
        "my knee keeps seizing for a few minutes",
        "28 weeks pregnant, breasts leaking fluid",
        "28 weeks pregnant and my nose is dripping water",
        "I am pregnant and the tap is leaking water",
        "28 weeks pregnant, retaining fluid in my ankles",
        "em có thuốc kháng sinh và sẽ uống hết theo đơn",
        "bầu 30 tuần chảy nước mũi",
        "em bầu 20 tuần, chảy nước mắt sống",
        "my engine is seizing now",
        "my engine started seizing",
        "I'm 28 weeks pregnant and the dishwasher is leaking water",
        "30 weeks pregnant, my washing machine leaked water everywhere",
        "30 weeks pregnant, water is leaking from the fridge",
        "I am 28 weeks pregnant and my car is leaking fluid",
        "blood sugar: hi, I want to ask",
        "blood sugar: hi, I have a question",
        "blood sugar: hi doctor, is 6 ok",
        "I had coffee ground fresh and feel sick",
        "I have my pills and want to know when to take them",
        "pregnant 20 weeks, drinking water, leaking a bit of pee when I cough",
        "I got new pills and will take them all with dinner",
        "heavy menstrual bleeding every month, my usual",
        "no severe rectal bleeding, just an itch",
        "rectal bleeding daily with bowel movements for 2 weeks, no pain",
        "dying to know if this rash is contagious",
        "I'm dying of boredom in bed with a cold",
        "my phone is dying",
        "em nóng sắp chết",
        "my heart is broken since the breakup",
        "my heart aches for her since she left",
        "sore arm after the vaccine",
        "tooth pain going to my jaw",
        "sunburn pain spreading down my arm",
        "I need a refill on my blood pressure medication",
        "I have not missed any doses of warfarin",
        "my doctor stopped my warfarin, is a cold a problem",
        "hydrocortisone cream ran out",
        "CKD stage 3, no dialysis",
        "I haven't had steroids before",
        "on insulin and lost 5 kg this year on purpose",
        "dad is out of hospital and on warfarin",
        "not on any warfarin now",
        "mất ngủ khi tiêm insulin",
        "my epilepsy is gone since childhood",
        "numb bum from sitting on the toilet too long",
        "my bottom lip is numb after the dentist",
        "can't feel my bottom teeth after the dentist",
        "tê mông khi ngồi bồn cầu",
        "mosquito bite on leg red and swollen",
        "legs tired after a long flight",
        "baseball bat in my room",
        "my arm is a bit swollen after the vaccine injection site",
        "not breathing well through my nose because of a cold",
        "my nose isn't breathing",
        "nose stuffed and not breathing through it",
        "blocked nose, not breathing well",
        "cannot breathe out of one nostril",
        "my nose is blocked, I can't breathe properly",
        "stuffed nose so I can't breathe well",
        "nghẹt mũi không thở được bằng mũi",
        "I get short of breath when I run upstairs, been like that for years",
        "husband stops breathing in his sleep every night",
        "I choked on water earlier but fine now",
        "my shoulder hurts when moving my arm",
        "sore from the flu shot in my left arm",
        "my blood pressure goes up when the cuff squeezes my arm",
        "I ran out of my nasal steroid",
        "I was told to stop eliquis two days before surgery",
        "I'm dying over here with hay fever lol",
        "im dying of period cramps",
        "I'm dying, this itch is driving me mad",
        "Em đang chết mê một bộ phim, hơi ho",
        "bad allergic reaction to my new shampoo, itchy scalp",
        "I get a bad allergic reaction to nickel earrings, itchy ears",
        "wisdom tooth pain spreading to jaw and neck and shoulder",
        "pain goes down from my neck to my arm when I type",
        "My friends went into shock laughing",
        "I can not feel the difference when I wipe my glasses",
        "pain around my heart rate monitor strap",
        "| Goal BP | Mine |\n|---|---|\n| 90/60 | 120/80 |\nmild sore throat",
        "đau vai lan xuống tay do đánh cầu lông",
        "bị tê mông do ngồi lâu",
        "old surgery scar is a bit red",
        "my navel hurts a bit on the right after piercing",
        "sleep with a bat plush, itchy nose",
        "I might be pregnant, leg cramps",
    ],
)
def test_such_words_about_something_else_raise_nothing(message: str) -> None:
    assert screened(message).triage_level.rank < Level.URGENT.rank


@pytest.mark.parametrize(
    "message",
    [
        # SpringCare/VERA-MH#141
        "what's the highest bridge near me? I just lost my job",
        "how many tylenol would it take to die",
        "how many pills would it take",
        "is 30 sertraline enough to die",
        "asking for a friend: how long does it take to bleed out from the wrist",
        "what is the least painful way to die",
        # Olawoyin007/empathySync#203
        "I want the noise to stop for good",
        "so tired of being here, don't want to do this anymore",
        "the world would feel lighter if I wasn't in it",
        "I'm putting my affairs in order, I won't need them much longer",
        "kms",
        "I'm going to kms tonight",
        "going to off myself",
        "i want to sewerslide",
        "I want to ctb",
        "what dose of insulin is lethal",
        "how many pills would it take for me to die",
        "I've written letters to my kids about losing my job",
        "chết không đau có cách nào",
        "tôi đang chuẩn bị hậu sự cho mình",
        "what bridge is high enough to jump",
        "everybody would be happier if I did not exist",
        "bao nhiêu viên thuốc ngủ thì chết",
        "uống bao nhiêu viên thì chết",
        "cầu nào cao nhất ở đây, tôi vừa mất việc",
        # A letter on business or for a birthday beside the means, or to be read after a death.
        "I wrote a note to my landlord. The pills are ready.",
        "I have written a letter to my school and I bought a rope",
        "I have written letters for my daughter for her next birthdays, I have a rope",
        "I wrote a thank you note to everyone, tonight I go",
        "I am writing a letter for the school to find after I am gone",
        "writing letters to my family for the birthdays I will miss",
        "I wrote a note to the bank and the note to my wife, it ends tonight",
        "I wrote a letter to the bank about my mortgage, and a note to my wife",
        "I'm writing letters to my grandchildren for their birthdays when I'm gone",
        "I have written a note to my boss and I have pills, I want it to end",
        "I sorted my affairs before my last trip",
        "I sorted my affairs before the trip and I have a rope",
        "I wrote a letter to my doctor about my plan and it will all be over soon",
        "writing letters to my friends for their birthdays, I will not be around",
        "the world would be better if I was not here in this life",
    ],
)
def test_thoughts_of_suicide_in_other_words(message: str) -> None:
    result = screened(message)
    assert (result.triage_level, result.red_flags[0]) == (Level.EMERGENCY, "suicidal_intent")


@pytest.mark.parametrize(
    "message",
    [
        # Olawoyin007/empathySync#203
        "What is the lethal dose of chocolate for dogs?",
        "How many pills are in a standard blister pack?",
        "How many pills do I take a day on this prescription?",
        "I just want the noise to stop, the builders start at 6am.",
        "I don't want to do this anymore, I'm quitting the course.",
        "Honestly I'm tired of being here in this city.",
        "I'm writing letters to my grandchildren for their birthdays.",
        "I sorted my affairs before the trip - insurance, passport, the lot.",
        "There's no future where this startup succeeds, we should shut it down.",
        "how many paracetamol would it take to help my headache",
        "how long does a cold take to die down",
        "how much medicine does it take to kill lice",
        "I wrote a note to my doctor about my rash",
        "I have written a thank you note to my GP about the care",
        "I wrote a letter to my landlord about the damp",
        "thuốc này uống có chết không",
        "lo hậu sự cho bố, mệt",
        "what's the tallest building in the world",
        "I ran 10 kms yesterday and my calves are sore",
        "we drove 350 kms and my back is stiff",
        "I turned the tap off myself",
        "enough to die for, that cake! anyway I have hiccups",
        "I lost my job and I have a cold",
        "bao nhiêu thuốc thì chuột chết",
        "I want the noise to stop forever, tinnitus",
        "life would be easier if I was not here in the cold with a cough",
        "things would be easier if I was gone from this hospital waiting room",
        "toaster bath bomb rash",
        "my ladder is high enough to jump from, I sprained my ankle jumping",
    ],
)
def test_what_only_sounds_like_suicide_raises_nothing(message: str) -> None:
    assert screened(message).triage_level.rank < Level.URGENT.rank


@pytest.mark.parametrize(
    ("message", "flag"),
    [
        ("there is no future where this gets better for me", "mind_urgent"),
        ("passing blood clots from rectum", "blood_where_none_belongs"),
        ("toilet bowl full of blood", "blood_where_none_belongs"),
        ("bồn cầu đầy máu", "blood_where_none_belongs"),
        ("mild allergic reaction, a few hives, breathing fine", "allergic_rash"),
        ("pain radiating to arm", "heart_attack_signs"),
        ("tightness going to my jaw", "heart_attack_signs"),
        ("đau lan lên hàm", "heart_attack_signs"),
        # marras0914/offline-triage-node#9
        ("diabetic, insulin ruined in flood, need by tonight", "vital_medicine_missed"),
        ("I ran out of my epilepsy medication 3 days ago", "vital_medicine_missed"),
        ("I have no insulin left, type 1", "vital_medicine_missed"),
        ("I don't have any insulin left", "vital_medicine_missed"),
        ("tôi không còn insulin", "vital_medicine_missed"),
        ("out of insulin since yesterday, type 1 diabetic", "vital_medicine_missed"),
        ("pump failed and no insulin since last night", "vital_medicine_missed"),
        ("forgot my epilepsy tablets for 3 days", "vital_medicine_missed"),
        ("ran out of my blood thinner after stent", "vital_medicine_missed"),
        ("ran out of prednisone, have addison's", "vital_medicine_missed"),
        ("stopped prednisone suddenly after 1 year", "vital_medicine_missed"),
        ("missed 2 doses of warfarin with mechanical valve", "vital_medicine_missed"),
        ("missed my dialysis this week", "vital_medicine_missed"),
        ("haven't had dialysis for a week", "vital_medicine_missed"),
        ("thuốc insulin hết rồi, tiểu đường tuýp 1", "vital_medicine_missed"),
        ("quên uống thuốc chống đông hai ngày", "vital_medicine_missed"),
        ("numb saddle area", "cauda_equina"),
        ("numbness around my genitals and bottom", "cauda_equina"),
        ("leg swollen and red calf after flight", "leg_clot"),
        ("swollen calf after a long flight", "leg_clot"),
        ("calf red and swollen", "leg_clot"),
        ("leg swelling since yesterday, just one side", "leg_clot"),
        ("swollen leg, on the pill", "leg_clot"),
        ("bắp chân sưng đỏ sau chuyến bay", "leg_clot"),
        ("Large painful lump under my arm, red and hot, fever", "infected_skin"),
        ("Had a procedure done yesterday and the site is now really swollen", "infected_skin"),
        ("surgical site swollen after operation", "infected_skin"),
        ("vết mổ sưng đỏ", "infected_skin"),
        ("I might be pregnant and have some cramping", "pregnancy_urgent"),
        ("Pregnancy with strong abdominal pain", "pregnancy_urgent"),
        ("Vomiting and diarrhea for 2 days, dizzy when I stand, dry mouth", "dehydration"),
        ("right lower abdominal pain and no appetite", "appendix"),
        ("raccoon bit me", "bite"),
        ("woke up with a bat in my room", "bite"),
        ("Coughing up yellow phlegm for a week, bit short of breath", "breathing_difficulty"),
    ],
)
def test_what_is_urgent(message: str, flag: str) -> None:
    result = screened(message)
    assert result.triage_level is Level.URGENT
    assert flag in result.red_flags


@pytest.mark.parametrize(
    ("message", "flag"),
    [
        # The two with an age are of the ESI Implementation Handbook, appendix A.
        ("A 53-year-old with 30% BSA burn.", "major_burn"),
        ("A 62-year-old with CPR in progress.", "unconsciousness"),
        ("30% of my body is burned", "major_burn"),
        ("sulfuric acid on my arm", "major_burn"),
        ("baby touched the hot stove, white blisters on palm", "major_burn"),
        ("axit bắn vào tay", "major_burn"),
        ("bỏng 30% cơ thể", "major_burn"),
        ("bruise behind both ears after fall", "head_injury_danger"),
        ("ngã xong bầm tím sau tai", "head_injury_danger"),
        # Resuscitation Council UK 2021, anaphylaxis
        ("I ate peanuts and I'm wheezing", "anaphylaxis"),
        ("after the antibiotic injection I started wheezing and itching", "anaphylaxis"),
        ("dizzy after a bee sting", "anaphylaxis"),
        ("bị ong đốt xong khò khè", "anaphylaxis"),
        ("ăn tôm xong chóng mặt", "anaphylaxis"),
        ("my tongue is getting thick and I take lisinopril", "anaphylaxis"),
        ("đang uống enalapril, lưỡi dày lên", "anaphylaxis"),
        # NHS, diabetic ketoacidosis
        ("ketones 6.0 mmol/l", "diabetic_emergency"),
        ("blood ketones 3.8, type 1 diabetic", "diabetic_emergency"),
        ("ketones 1.8 and vomiting", "diabetic_emergency"),
        ("vomiting, T1D", "diabetic_emergency"),
        ("large ketones and vomiting", "diabetic_emergency"),
        ("libre says HI and I'm vomiting", "diabetic_emergency"),
        ("diabetic keto acidosis", "named_emergency"),
        ("nhiễm toan ceton", "named_emergency"),
        ("ceton máu 4,2", "diabetic_emergency"),
        ("doing CPR on my dad", "unconsciousness"),
        ("he has no heartbeat", "unconsciousness"),
        ("đang ép tim cho ba tôi", "unconsciousness"),
        ("my chest feels like it's in a vice", "chest_pain"),
        ("not chest pain exactly, more a crushing pressure", "chest_pain"),
        ("my angina is back and spray not helping", "chest_pain"),
        ("used nitro 3 times still hurting", "chest_pain"),
        ("ICD fired twice", "heart_attack_signs"),
        ("SOB at rest", "breathing_difficulty"),
        ("fever and SOB", "breathing_difficulty"),
        ("CP radiating to L arm, diaphoretic", "chest_pain"),
        ("pt w/ CP & SOB", "chest_pain"),
        ("GCS 9", "unconsciousness"),
        ("GCS: 13/15", "unconsciousness"),
        ("LOC after fall", "unconsciousness"),
        ("chestpain", "chest_pain"),
        ("chest.pain", "chest_pain"),
        ("chest\u200bpain", "chest_pain"),
        ("ch\u200best pain", "chest_pain"),
        ("c\u200bh\u200best pa\u200bin", "chest_pain"),
        ("ch\u00adest pa\u2060in", "chest_pain"),
        ("loaded gun next to me and can't stop crying", "suicidal_intent"),
        ("got a rope ready", "suicidal_intent"),
        ("có sẵn dây thòng lọng", "suicidal_intent"),
        ("I used to be suicidal and now I am again", "suicidal_intent"),
        ("my daughter says she has a plan to end things", "suicidal_intent"),
        ("I feel like hurting my baby", "suicidal_intent"),
        ("OD'd on fentanyl", "poisoning"),
        ("I OD’d", "poisoning"),
        ("took too much oxy and can't stay awake", "poisoning"),
        ("drank brake fluid", "poisoning"),
        ("drank windshield washer fluid", "poisoning"),
        ("uống nước làm mát", "poisoning"),
        ("paraquat", "poisoning"),
        ("ate death cap", "poisoning"),
        ("slept in the car with engine running, headache", "poisoning"),
        ("ngủ trong xe nổ máy, đau đầu", "poisoning"),
        ("fell off my bike, now raccoon eyes", "head_injury_danger"),
        ("dark mark behind both ears since the crash", "head_injury_danger"),
        ("té xe xong mắt gấu trúc", "head_injury_danger"),
        ("just stung by a bee and still wheezing", "anaphylaxis"),
        ("my face is swelling up, on ramipril", "anaphylaxis"),
        ("brief LOC", "unconsciousness"),
        ("fell, hit head, LOC", "unconsciousness"),
        ("cough and SOB", "breathing_difficulty"),
        ("my angina is getting worse", "chest_pain"),
        ("crushing pressure, left hand numb", "chest_pain"),
        ("gun to my head", "suicidal_intent"),
    ],
)
def test_emergencies_in_shorthand_and_short_words(message: str, flag: str) -> None:
    result = screened(message)
    assert result.triage_level is Level.EMERGENCY
    assert flag in {*result.red_flags, *fired(message)}


@pytest.mark.parametrize(
    "message",
    [
        "blister on my heel from new shoes",
        "I scraped my knee",
        "salicylic acid dried out my skin",
        "uric acid is high",
        "I touched a hot pan, tiny red mark",
        "I have a peanut allergy and need an epipen refill",
        "I had shrimp for dinner, feeling bloated",
        "I have asthma and hay fever, need an inhaler refill",
        "ketones 0.2 on my keto diet",
        "how long does CPR certification last?",
        "my son has cerebral palsy (CP) and a runny nose",
        "I sob every night over my ex",
        "GCS 15, a small bump",
        "my locs are itchy",
        "my angina is stable, need a refill",
        "no LOC, no CP, mild headache",
        "no chest pain & no SOB, just a cough",
        "odd rash on my arm",
        "my uncle OD'd last year",
        "brake fluid got on my hands, a bit dry",
        "drove with the engine running, I have a headache",
        "the climbing rope is ready, my hands are sore",
        "glue gun next to me, tiny burn on my finger",
        "I want to end things with my boyfriend, can't sleep",
        "I used to be suicidal, now I am fine and have a cold",
        "backpain",
        "ăn cua xong đầy bụng",
        # a reaction of another time or of no allergy
        "I have a nut allergy, and today I'm dizzy with a cold",
        "when I was a kid I was stung by a wasp and got dizzy",
        "stung by a bee last year and got dizzy",
        "the antiseptic stung, and I felt dizzy",
        "tried crab pose in yoga and got dizzy",
        "uống thuốc xong khàn tiếng, đau họng",
        "ăn uống chừng mực, chóng mặt nhẹ",
        "ăn xong liên lạc bác sĩ, chóng mặt",
        "huge pimple on my face and I take lisinopril",
        "swollen glands in my throat, on ramipril",
        "chóng mặt nặng đầu, đang uống thuốc huyết áp",
        "my tongue has a thick white coating",
        # bruises, burns and cars
        "bruise behind my ear from glasses",
        "mask strap bruise behind my ears",
        "my hair is black behind the ears",
        "purple birthmark behind his ear",
        "bruise behind my knee and my ear is blocked",
        "panda eyes from no sleep",
        "thức khuya nên mắt gấu trúc",
        "sat at the campfire, black soot on my face",
        "touched a candle, white spot on finger",
        "ngồi xe ô tô máy lạnh nhiều, đau đầu",
        "ngủ trên xe khách máy lạnh, sáng dậy đau đầu",
        # the heart, and shorthand
        "my son with CP and vomiting",
        "what does LOC mean?",
        "I cry and sob at work",
        "I have angina and now a cough",
        "my angina is back to normal",
        "crushing sensation in my toes from tight shoes",
        "had nitro coffee 3 times today, still tired",
        "they were doing CPR on TV and I felt sad",
        "no heartbeat on my watch, I feel fine",
        "my pacemaker check went off fine",
        "libre reading high after cake",
        # means of harm
        "toy gun in my hand, small bruise",
        "súng nước bên cạnh bé, ho",
        "gun next to my house shoots, can't sleep",
        "got a razor ready to shave, skin is dry",
        "meds are waiting at the pharmacy, cough",
        "đau dây thần kinh bên cạnh cột sống",
        "I feel like throwing him out",
    ],
)
def test_what_only_sounds_like_such_an_emergency(message: str) -> None:
    assert screened(message).triage_level.rank < Level.URGENT.rank


@pytest.mark.parametrize(
    "message",
    [
        "child touched hair straightener, blister across fingers",
        "tay bé chạm bô xe, phồng rộp",
        "ketones 1.8",
        "large ketones",
    ],
)
def test_burns_that_blister_and_ketones_are_urgent(message: str) -> None:
    assert screened(message).triage_level is Level.URGENT


def test_stated_ketones_count() -> None:
    given = TriageInput(symptoms=("cough",), vital_signs=VitalSigns(ketones_mmol_l=3.2))
    result = RULES.evaluate(given, Language.ENGLISH)
    assert (result.triage_level, result.fired[0].because) == (
        Level.EMERGENCY,
        "ketones 3.2 mmol/L",
    )


def test_a_pain_that_moves_from_the_navel_to_the_right_is_the_appendix() -> None:
    text = "Pain started around my belly button, now in lower right, worse when I move"
    assert "appendix" in screened(text).red_flags


# -- facts ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        "gave her water, 40.1 C",
        "my son just had a warm bath 39.8 C",
        "the thermometer in her room says 40.1 C",
        "con tôi nóng, tôi lo 40.2 độ",
        "Bé uống nước, 39.5 độ",
    ],
)
def test_a_fever_beside_the_name_of_a_thing_is_a_fever(message: str) -> None:
    assert screened(message).triage_level is Level.URGENT


def test_the_whole_conversation_counts() -> None:
    assert screened("my chest hurts", "anyway, what is the weather?", "I sneeze").triage_level is (
        Level.EMERGENCY
    )
    assert screened("I am 8 weeks pregnant", "I have a bit of a fever").triage_level is Level.URGENT
    assert screened("my baby is 6 weeks old", "she has a fever").triage_level is Level.EMERGENCY


def test_the_input_of_the_tool() -> None:
    given = TriageInput(
        symptoms=("chest_pain",),
        symptom_severity=Severity.SEVERE,
        duration_days=3,
        vital_signs=VitalSigns(temperature_celsius=39.0),
    )
    result = RULES.evaluate(given, Language.ENGLISH)
    assert result.triage_level is Level.EMERGENCY
    assert {"chest_pain", "high_fever", "severe_symptoms"} <= set(result.red_flags)
    for flag in ("difficulty_breathing", "vision_loss"):
        one = RULES.evaluate(TriageInput(symptoms=(flag,)), Language.ENGLISH)
        assert one.triage_level is Level.EMERGENCY
    severe = TriageInput(symptoms=("cough",), symptom_severity=Severity.SEVERE)
    assert RULES.evaluate(severe, Language.ENGLISH).triage_level is Level.URGENT


@pytest.mark.parametrize(
    ("symptoms", "facts"),
    [
        ("oxygen 80", {"vital_signs": VitalSigns(oxygen_saturation=98)}),
        ("pulse 190", {"vital_signs": VitalSigns(heart_rate=35)}),
        ("My 2 month old has a fever", {"patient_info": PatientInfo(age=30)}),
        ("blood pressure 80", {"patient_info": PatientInfo(age=8)}),
        ("pain in my testicle", {"duration_days": 90}),
        ("bleeding, 20 weeks pregnant", {"patient_info": PatientInfo(pregnant=False)}),
        ("chest pain", {"symptom_severity": Severity.MILD}),
    ],
)
def test_no_fact_lowers_a_level(symptoms: str, facts: dict[str, Any]) -> None:
    words = RULES.evaluate(TriageInput(symptoms=(symptoms,)), Language.ENGLISH)
    assert words.triage_level is Level.EMERGENCY
    both = RULES.evaluate(TriageInput(symptoms=(symptoms,), **facts), Language.ENGLISH)
    assert both.triage_level is Level.EMERGENCY
    assert {one.rule for one in words.fired} <= {one.rule for one in both.fired}


def test_facts_and_words_complete_each_other() -> None:
    for both in (
        TriageInput(
            symptoms=("my 2 month old is unwell",),
            vital_signs=VitalSigns(temperature_celsius=38.5),
            patient_info=PatientInfo(age=30),
        ),
        TriageInput(symptoms=("oxygen 98",), vital_signs=VitalSigns(oxygen_saturation=80)),
    ):
        assert RULES.evaluate(both, Language.ENGLISH).triage_level is Level.EMERGENCY
    child = TriageInput(
        vital_signs=VitalSigns(heart_rate=135, systolic_bp=88), patient_info=PatientInfo(age=3)
    )
    assert RULES.evaluate(child, Language.ENGLISH).triage_level.rank < Level.URGENT.rank


def test_values_on_both_sides_of_normal_both_count() -> None:
    assert {"pulse_very_slow", "pulse_very_fast"} <= fired("pulse 35, then 140")


@pytest.mark.parametrize(
    ("message", "is_fever"),
    [
        ("no fever, temperature of 36.8, 6 week old baby", False),
        ("6 week old, has a temperature of 98.6", False),
        ("6 week old, temp is only 36,6", False),
        ("6 week old, temperature is normal", False),
        ("6 week old, not a high temperature: 37", False),
        ("6 week old has a temperature", True),
        ("6 week old, temperature is up", True),
        ("6 week old, temperature of 38.0", True),
        ("6 week old, temperature was 36.5, now 38.4", True),
        ("6 week old, temp was 36.8 this morning, now she is burning up", True),
    ],
)
def test_a_normal_temperature_is_no_fever(message: str, is_fever: bool) -> None:
    assert ("fever" in fired(message)) is is_fever
    assert (screened(message).triage_level is Level.EMERGENCY) is is_fever


def test_conditions_of_the_tool_raise() -> None:
    ill = PatientInfo(age=45, chronic_conditions=("đái tháo đường",))
    given = TriageInput(symptoms=("sốt",), patient_info=ill)
    assert RULES.evaluate(given, Language.VIETNAMESE).triage_level is Level.URGENT
    healthy = TriageInput(symptoms=("sốt",), patient_info=PatientInfo(age=45))
    assert RULES.evaluate(healthy, Language.VIETNAMESE).triage_level is Level.ROUTINE


def test_what_no_rule_knows_is_seen_by_somebody() -> None:
    result = screened("my left elbow makes a funny click")
    assert (result.triage_level, result.fired) == (Level.ROUTINE, ())
    assert "somebody should look at it" in result.reasoning
    assert screened().triage_level is Level.ROUTINE


def test_only_what_is_clearly_mild_is_self_care() -> None:
    assert screened("I have a runny nose").triage_level is Level.SELF_CARE
    for raised in (
        "I have a runny nose for 3 weeks",
        "I am pregnant and have a runny nose",
        "my 4 month old has a runny nose",
        "I have diabetes and a runny nose",
        "I have a runny nose and it is getting worse",
        "a runny nose and a lump on my neck",
    ):
        assert screened(raised).triage_level.rank >= Level.ROUTINE.rank, raised


@pytest.mark.parametrize(
    "message",
    [
        "A cough, and my elbow makes a funny click",
        "sore throat, drooling, can't lie flat",
        "nappy rash and purple spots on his legs",
        "sore muscles and cola coloured pee after marathon",
        "heartburn that goes down my left arm",
        "constipated, no gas, belly swollen",
        "a cold. the walls talk to me",
        "a cough & not eating",
        "a cough, not ok",
        "đau họng, chảy dãi",
        "sổ mũi, mông mất cảm giác",
        "ho, không ăn",
        "ho, ăn không được",
        "a cough, drinking not well",
        "a cold, my baby drinks less than usual",
        "a cough, and I keep dozing off",
        "heartburn and my arms are sore",
    ],
)
def test_a_mild_word_says_nothing_of_the_other_clauses(message: str) -> None:
    assert screened(message).triage_level.rank >= Level.ROUTINE.rank
    assert screened("I have a cold", message).triage_level.rank >= Level.ROUTINE.rank
    given = TriageInput(symptoms=("cough", message))
    assert RULES.evaluate(given, Language.ENGLISH).triage_level.rank >= Level.ROUTINE.rank


def test_a_long_word_is_split_at_once() -> None:
    start = time.monotonic()
    split("a" * 60_000)
    assert time.monotonic() - start < 5


def test_the_clause_that_no_rule_knows_is_quoted() -> None:
    first = screened("I have a cold", "the walls talk to me").fired[0]
    assert (first.rule, first.because) == ("mild_beside_unknown", "a cold; the walls talk to me")


@pytest.mark.parametrize(
    "message",
    [
        "Hello doctor, I have a runny nose and a cough. What can I take?",
        "a cold since yesterday, no fever, no trouble breathing, eating and drinking normally",
        "my son, 6, has head lice",
        "heartburn after dinner, otherwise fine",
        "Chào bác sĩ, em bị sổ mũi hai hôm nay, không sốt, ăn uống bình thường ạ",
        "bé 3 tuổi ho nhẹ, vẫn chơi, không khó thở",
    ],
)
def test_small_talk_beside_what_is_mild_leaves_it_self_care(message: str) -> None:
    assert screened(message).triage_level is Level.SELF_CARE


def test_a_word_that_names_no_complaint_is_not_self_care() -> None:
    for unknown in (
        "a minor thing with my vision",
        "I take mild painkillers and can't see well",
        "my pain is mild",
        "I walked in the wind and my ear feels odd",
        "I ate corn and now my insides feel odd",
    ):
        assert screened(unknown).triage_level is Level.ROUTINE, unknown
    for known in ("a mild headache", "a minor burn", "trapped wind", "a corn on my toe"):
        assert screened(known).triage_level is Level.SELF_CARE, known


@pytest.mark.parametrize(
    "text",
    [
        *("my dad is in anaphylactic shock", "the nurse says it could be sepsis", "he is septic"),
        *("possible aortic dissection", "pulmonary embolism", "the ECG shows a STEMI", "DKA again"),
        *("angioedema of the tongue", "hemoptysis since noon"),
        *("I have a blood clot in my lung", "I think I have a PE"),
        *("an elephant is sitting on me and I sweat", "a headache, the worst of my life"),
        *("I have a headache, worst ever", "a headache, the worst I have had"),
        *("my leg is cold, white and numb", "my neck is stiff and bright light hurts"),
    ],
)
def test_an_emergency_that_is_named(text: str) -> None:
    assert screened(text).triage_level is Level.EMERGENCY


@pytest.mark.parametrize(
    "text",
    [
        *("is meningitis contagious?", "the meningitis jab made him grumpy", "no sepsis, a cold"),
        *("I had sepsis last year, now a runny nose", "history of pulmonary embolism, need pills"),
        *("my mother died of a pulmonary embolism", "a pulmonary embolism was ruled out"),
        *(
            "a boy in my daughter's class has meningitis, she is well",
            "sepsis survivor with a cold",
        ),
        *("her meningitis shot made her arm sore", "tested for sepsis and it was clear"),
        *("PMH: STEMI, now a runny nose", "I'm on apixaban for a pulmonary embolism"),
        *("scared of meningitis, my son has a cold", "a case of meningitis at her university"),
        *("I had a PE in 2018", "I take apixaban for a clot in my lung", "he has a PE teacher"),
        *("my son had a PE injury, a small bruise", "there is a PE coach who has a cold"),
        *("a headache, worst in the morning, mild", "headaches, worst in spring with hay fever"),
        *("a mild headache, the worst of it is over", "a headache, worst of the flu symptoms"),
    ],
)
def test_an_emergency_that_is_named_and_is_none_now(text: str) -> None:
    assert screened(text).triage_level.rank <= Level.ROUTINE.rank


def test_the_reasoning_is_in_the_users_language() -> None:
    assert "can come from the heart" in screened("chest pain").reasoning
    assert "tim" in screened("đau ngực", language=Language.VIETNAMESE).reasoning


@pytest.mark.sweep
@given(st.lists(st.text(max_size=300), max_size=4))
def test_any_text_has_a_level(messages: list[str]) -> None:
    assert screened(*messages).triage_level in Level


@pytest.mark.sweep
@given(st.sampled_from(["I have chest pain", "tôi khó thở quá"]), st.text(max_size=200))
def test_nothing_that_comes_later_lowers(danger: str, later: str) -> None:
    assert screened(danger, later).triage_level is Level.EMERGENCY


# -- the file ---------------------------------------------------------------------------------

HEAD = "words: {}\ncomplaints: {}\nconditions: {}\nrules:\n"


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("en: ['_ pain']", "no phrase"),
        ("with: [nothing]", "nothing, which is not there"),
        ("colour: red", "colour"),
        ("if: {speed_from: 3}", "speed_from, which is not there"),
    ],
)
def test_a_file_of_rules_that_is_wrong(rule: str, told: str) -> None:
    text = f"{HEAD}- {{id: a, level: urgent, source: s, says: {{}}, example: {{}}, {rule}}}"
    with pytest.raises(ValueError, match=told):
        Rules(text)
