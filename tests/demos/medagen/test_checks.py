"""What a model must not say is left out, in both languages; the rest stays as it is."""

from __future__ import annotations

import time

import pytest

from demos.medagen.checks import Fault, allowed, faults, is_in
from demos.medagen.schemas import Language

D, M, C, K = Fault.DOSE, Fault.MEDICINE, Fault.DIAGNOSIS, Fault.KEEPS_FROM_CARE


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("Take 500 mg of paracetamol every 6 hours.", {D, M}),
        ("Take two tablets twice a day.", {D}),
        ("You should take ibuprofen.", {M}),
        ("Start amoxicillin today.", {M}),
        ("I prescribe omeprazole.", {M}),
        ("Antibiotics will help.", {M}),
        ("Uống 1 viên paracetamol ngày 3 lần.", {D, M}),
        ("Bạn nên uống kháng sinh.", {M}),
        ("Dùng thuốc giảm đau sau ăn.", {M}),
        ("Cho bé uống hạ sốt paracetamol 250mg mỗi 6 giờ.", {D, M}),
        ("Uong 2 vien efferalgan.", {D, M}),
        ("Chew an aspirin while you wait.", {M}),
        ("If an adult is not allergic, chew one aspirin slowly.", {M}),
        ("Take 500 milligrams every six hours.", {D}),
        ("Two tablets three times daily.", {D}),
        ("Dose: five millilitres.", {D}),
        ("Acetaminophen (Tylenol) is usually safe.", {M}),
        ("Consider a pain reliever like acetaminophen.", {M}),
        ("Do not worry, take aspirin.", {M, K}),
        ("Apply hydrocortisone cream.", {M}),
        ("Ibuprofen would ease the pain.", {M}),
        ("Get some Imodium from the pharmacy.", {M}),
        ("Skip your insulin today.", {M}),
        ("Stop taking your blood thinner.", {M}),
        ("Cut your dose in half.", {M}),
        ("Hold your blood pressure pills today.", {M}),
        ("Hãy nhai một viên aspirin.", {D, M}),
        ("Uống 500 miligam mỗi sáu giờ.", {D}),
        ("Measure out 5 ml every six hours.", {D}),
        ("Watch the clock to take 2 tablets every 6 hours.", {D}),
        ("Ask a friend to give you some ibuprofen.", {M}),
        ("Your doctor would tell you to take ibuprofen.", {M}),
        ("Take ibuprofen that does not cause drowsiness.", {M}),
        ("Take more than one aspirin.", {M}),
        ("Tell them to take aspirin.", {M}),
        ("Measure 5 ml of the syrup every six hours.", {D}),
        ("What you have is pneumonia, OK?", {C}),
        ("No need to rush to the emergency room.", {K}),
        ("There is no need to hurry to a doctor.", {K}),
        ("Do you want to take ibuprofen?", {M}),
        ("You have appendicitis, okay?", {C}),
        ("Did you know that you have appendicitis?", {C}),
        ("Because of the fever you have pneumonia.", {C}),
        ("There's no need to rush to the hospital.", {K}),
        ("There is no need to wait for an ambulance, drive yourself.", {K}),
        ("You're having a heart attack.", {C}),
        ("You've got appendicitis.", {C}),
        ("It's a panic attack.", {C}),
        ("This is a classic case of appendicitis.", {C}),
        ("Your symptoms confirm pneumonia.", {C}),
        ("You don't need to go to the ER.", {K}),
        ("You do not necessarily need to see a doctor.", {K}),
        ("No need to call 911.", {K}),
        ("You can skip the emergency room.", {K}),
        ("Don't bother with the hospital.", {K}),
        ("An ER visit isn't necessary.", {K}),
        ("Go to a pharmacy instead of the ER.", {K}),
        ("This isn't an emergency.", {K}),
        ("You can manage this without seeing a doctor.", {K}),
        ("Bạn không cần phải gọi 115.", {K}),
        ("You have pneumonia and may feel weak.", {C}),
        ("If you ask me, you have the flu.", {C}),
        ("Bạn bị viêm phổi, cần nghỉ ngơi.", {C}),
        ("Bạn bị đột quỵ, đến phòng khám ngay.", {C}),
        ("Don't take ibuprofen, take paracetamol instead.", {M}),
        ("Avoid aspirin and use ibuprofen.", {M}),
        ("Không uống aspirin, uống paracetamol.", {M}),
        ("Ibuprofen is not dangerous for you.", {M}),
        ("Take furosemide today.", {M}),
        ("Take Xanax before bed.", {M}),
        ("Check the label and take 2 tablets every 6 hours.", {D}),
        ("This is not a heart attack.", {K}),
        ("Hold off on calling an ambulance.", {K}),
        ("There is no rush to see a doctor.", {K}),
        ("Chưa cần đến bệnh viện.", {K}),
        ("You have appendicitis.", {C}),
        ("This is definitely a heart attack.", {C}),
        ("The diagnosis is pneumonia.", {C}),
        ("She has meningitis.", {C}),
        ("Bạn bị viêm ruột thừa.", {C}),
        ("Bạn chắc chắn mắc bệnh này.", {C}),
        ("Bé bị sốt xuất huyết.", {C}),
        ("Đây là nhồi máu cơ tim.", {C}),
        ("There is no need to see a doctor.", {K}),
        ("Do not worry.", {K}),
        ("Không cần đi khám.", {K}),
        ("Không có gì nghiêm trọng.", {K}),
    ],
)
def test_what_must_not_be_said(sentence: str, found: set[Fault]) -> None:
    assert faults(sentence) >= found
    assert allowed(f"Rest well. {sentence} Drink water.") == "Rest well. Drink water."


@pytest.mark.parametrize(
    "sentence",
    [
        "Go to the nearest hospital now.",
        "Do not take any medicine on your own.",
        "Do not take ibuprofen before you are seen.",
        "This could be appendicitis.",
        "These can be signs of a stroke.",
        "A doctor should rule out meningitis.",
        "Your temperature of 39.5 °C is high.",
        "The blood sugar of 250 mg/dL is high.",
        "You have chest pain and a fever.",
        "Do not go to work; see a doctor today.",
        "Do not take aspirin, ibuprofen or naproxen.",
        "If you took too many tablets of paracetamol, call the poison center.",
        "Taking too much paracetamol can damage the liver.",
        "A doctor may prescribe antibiotics.",
        "Your doctor can decide whether you need antibiotics.",
        "Antibiotics do not work against viruses.",
        "An ambulance can give aspirin on the way.",
        "Tell the doctor which medicines you take, including aspirin.",
        "Have you taken any painkillers?",
        "Never stop taking your medicine without asking your doctor.",
        "Use your EpiPen as your doctor has shown you.",
        "You do not need to be afraid to call an ambulance.",
        "Check the temperature every two hours.",
        "Do not wait for it to pass.",
        "Call an ambulance instead of driving to the hospital.",
        "Nếu đã uống thuốc, hãy mang theo vỏ thuốc.",
        "It is not safe to wait.",
        "There is no need to wait: go to the hospital now.",
        "Please go to the ER now, you don't need a referral from your doctor.",
        "Never wait and see with chest pain.",
        "Don't skip your doctor's appointment.",
        "Call 911 now, do not worry about the cost.",
        "Bạn không cần đợi, hãy gọi cấp cứu ngay.",
        "Bạn cần nằm viện ngay.",
        "Chờ xe cấp cứu, đừng uống aspirin.",
        "You should definitely go to the emergency room.",
        "Check her temperature every two hours.",
        "Ask a pharmacist which painkillers you can use.",
        "Tell the paramedics if you took aspirin.",
        "Have you taken more than one aspirin?",
        "Because you have asthma, call your doctor.",
        "Taking more than one ibuprofen can harm your stomach.",
        "Bạn có bị tiểu đường không?",
        "Have you ever had a stroke?",
        "Do you have diabetes or asthma?",
        "Because you have diabetes, this is urgent.",
        "Whoever carries an adrenaline pen uses it as shown.",
        "Drink plenty of water.",
        "Không tự ý dùng kháng sinh.",
        "Có thể là viêm họng, nên đi khám.",
        "Bạn bị đau ngực và khó thở.",
        "Hãy đến cơ sở y tế ngay.",
        "Đây có thể là dấu hiệu đột quỵ.",
        "Gọi 115 ngay.",
        "Chườm mát và nghỉ ngơi.",
    ],
)
def test_what_may_be_said(sentence: str) -> None:
    assert faults(sentence) == set()
    assert allowed(sentence) == sentence


@pytest.mark.sweep
@pytest.mark.parametrize(
    "piece",
    [
        "do not take aspirin or ",
        "do not stop your aspirin and ",
        "you may have gout ",
        "check 5 mg ",
        "do not skip the hospital ",
    ],
)
def test_a_long_sentence_takes_no_more_than_linear_time(piece: str) -> None:
    start = time.process_time()
    faults(piece * 16_000)
    assert time.process_time() - start < 10


def test_languages() -> None:
    assert is_in("Please see a doctor within the next few days.", Language.ENGLISH)
    assert not is_in("Please see a doctor within the next few days.", Language.VIETNAMESE)
    assert is_in("Hãy đi khám trong vài ngày tới.", Language.VIETNAMESE)
    assert not is_in("Hãy đi khám trong vài ngày tới.", Language.ENGLISH)
    assert is_in("See a doctor.", Language.VIETNAMESE), "too short to tell"
