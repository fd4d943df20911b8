"""Ages, durations and vital signs as people write and speak them."""

from __future__ import annotations

import pytest

from demos.medagen.measurements import measured
from demos.medagen.schemas import Language, Level
from demos.medagen.spoken_numbers import in_digits
from demos.medagen.triage_rules import shipped_rules


@pytest.mark.parametrize(
    ("text", "age"),
    [
        ("he is eighty-five years old with a fever and cough", 85),
        ("my mother is eighty-two years old and fell, hip hurts", 82),
        ("a twenty-one-year-old", 21),
        ("she is ninety and fell", 90),
        ("one hundred and two years old", 102),
        ("he is one and a half years old", 1.5),
        ("two-year-old", 2),
        ("a two-and-a-half-year-old", 2.5),
        ("I am a hundred percent sure", None),
        ("bà tám mươi hai tuổi sốt và ho", 82),
        ("ba tam muoi hai tuoi sot va ho", 82),
        ("bà tám hai tuổi", 82),
        ("bé hai ba tuổi", 3),  # two or three
        ("em hai mươi lăm tuổi", 25),
        ("ba sau muoi tuoi", 60),
        ("bé mười lăm tháng tuổi", 1.25),
        ("82F with chest pain", 82),
        ("I'm 45M, cough", 45),
        ("85F with a cough", 85),
        ("it is 85F outside", None),
        ("102F since last night", None),
        ("it is 50m away", None),
        ("my mother (82) fell", 82),
        ("mẹ tôi (82) bị ngã", 82),
        ("my mother, 82, fell", 82),
        ("my son (2 months) has a fever", 2 / 12),
        ("my brother (3 kids) has a cold", None),
        ("2y old", 2),
        ("my 2y has a fever", 2),
        ("6m old", 0.5),
        ("pain for 2y", None),
        ("I fell 2y ago", None),
    ],
)
def test_ages(text: str, age: float | None) -> None:
    assert measured([text]).age == (None if age is None else pytest.approx(age)), text


@pytest.mark.parametrize(
    ("text", "celsius"),
    [
        ("temperature a hundred and four", 40.0),
        ("temp is one oh four", 40.0),
        ("fever of thirty nine point five", 39.5),
        ("sốt ba mươi chín độ rưỡi", 39.5),
        ("sốt ba mươi tám phẩy năm", 38.5),
        ("sốt 39 độ 5", 39.5),
        ("sốt 39 độ 5 ngày nay", 39.0),
        ("82F with chest pain", None),
    ],
)
def test_temperatures_in_words(text: str, celsius: float | None) -> None:
    assert measured([text]).vital_signs.temperature_celsius == celsius


def test_other_facts_in_words() -> None:
    assert measured(["for twenty-five days"]).duration_days == 25
    assert measured(["tôi đau mười năm nay"]).duration_days == 3650  # ten years, not fifteen
    assert measured(["sau muoi phut"]).duration_days is None  # also "after ten minutes"
    assert measured(["heart rate one hundred and sixty"]).vital_signs.heart_rate == 160
    assert measured(["nhịp tim một trăm linh năm"]).vital_signs.heart_rate == 105
    assert measured(["oxygen eighty five"]).vital_signs.oxygen_saturation == 85
    pressure = measured(["bp one eighty over one ten"]).vital_signs
    assert (pressure.systolic_bp, pressure.diastolic_bp) == (180, 110)


def test_values_in_everyday_forms() -> None:
    for text, name, value in (
        ("My pressure is 220/130 and I have a headache", "systolic_bp", 220),
        ("my blood pressure reading is 220/130", "systolic_bp", 220),
        ("tire pressure 32/35", "systolic_bp", None),
        ("sugar reading 2.1", "glucose_mmol_l", 2.1),
        ("I take sugar 2 times a day", "glucose_mmol_l", None),
        ("thermometer reads 105", "temperature_celsius", 40.6),
        ("heart rate went from 60 to 170", "heart_rate", 170),
        ("nhịp tim tăng từ 70 lên 160", "heart_rate", 160),
    ):
        assert getattr(measured([text]).vital_signs, name) == value, text


def test_the_most_dangerous_of_several_values_counts() -> None:
    for text, name, value in (
        ("SpO2 98, 97, 82", "oxygen_saturation", 82),
        ("SpO2 98 → 82", "oxygen_saturation", 82),
        ("oxygen levels are 96, 95 and 80", "oxygen_saturation", 80),
        ("My oxygen dropped from 96 to 82", "oxygen_saturation", 82),
        ("his sats keep dropping to 85", "oxygen_saturation", 85),
        ("SpO2 tụt từ 97 xuống 80", "oxygen_saturation", 80),
        ("SpO2 sáng 98 giờ 82", "oxygen_saturation", 82),
        ("BP 120/80, then 70/40", "systolic_bp", 70),
        ("BP 120/80 at 8 am; 75/45 at 9 am", "diastolic_bp", 45),
        ("huyết áp hôm qua 120/80, hôm nay 70/40", "systolic_bp", 70),
        ("BP dropped from 130 to 75", "systolic_bp", 75),
        ("pulse was 72, now 190", "heart_rate", 190),
        ("pulse went from 190 to 72", "heart_rate", 190),
        ("mạch 80, giờ 150", "heart_rate", 150),
        ("breathing rate went from 16 to 40", "respiratory_rate", 40),
        ("temp 37 this morning, 41 now", "temperature_celsius", 41),
        ("sốt 37,5 sau đó 40,5", "temperature_celsius", 40.5),
        ("sugar 5.4 yesterday, today 1.8", "glucose_mmol_l", 1.8),
        ("glucose 6 at breakfast and 29 at lunch", "glucose_mmol_l", 29),
        ("đường huyết từ 6 lên 30", "glucose_mmol_l", 30),
    ):
        assert getattr(measured([text]).vital_signs, name) == value, text


def test_a_value_may_stand_before_its_name() -> None:
    for text, name, value in (
        ("82% SpO2", "oxygen_saturation", 82),
        ("she has 82% oxygen and is tired", "oxygen_saturation", 82),
        ("70/40 blood pressure", "systolic_bp", 70),
        ("190 heart rate", "heart_rate", 190),
        ("30 mmol/L glucose", "glucose_mmol_l", 30),
        ("102 fever", "temperature_celsius", 38.9),
    ):
        assert getattr(measured([text]).vital_signs, name) == value, text
    signs = measured(["98% SpO2, 72 pulse, 16 RR"]).vital_signs
    assert (signs.oxygen_saturation, signs.heart_rate, signs.respiratory_rate) == (98, 72, 16)


def test_other_numbers_beside_a_value_are_none_of_it() -> None:
    for text, name, value in (
        ("SpO2 97, 62 year old", "oxygen_saturation", 97),
        ("oxygen 98 and 72 bpm", "oxygen_saturation", 98),
        ("SpO2 98 pulse 72 temp 37 RR 16", "oxygen_saturation", 98),
        ("my dad is 82 oxygen is low", "oxygen_saturation", None),
        ("BP 120/80, 50 mg losartan", "systolic_bp", 120),
        ("temp 37.5, 38 weeks pregnant", "temperature_celsius", 37.5),
        ("sugar 7, 2 kids", "glucose_mmol_l", 7),
        ("sugar 7, 39.5, cough", "temperature_celsius", 39.5),
        ("SpO2 98%, 130/80", "oxygen_saturation", 98),
        ("SpO2 88.5%", "oxygen_saturation", 88),
        ("BP 28 today", "systolic_bp", None),
        ("glucose 6 after insulin 20 units", "glucose_mmol_l", 6),
    ):
        assert getattr(measured([text]).vital_signs, name) == value, text


def test_a_value_of_years_ago_does_not_count() -> None:
    for text, name, value in (
        ("my SpO2 was 82 last year, now 98", "oxygen_saturation", 98),
        ("In 2019 my BP was 70/40, now 120/80", "systolic_bp", 120),
        ("năm ngoái huyết áp 220/120, giờ 120/80", "systolic_bp", 120),
        ("last year I was fine. BP 70/40", "systolic_bp", 70),
        ("BP was 70/40 an hour ago, now 120/80", "systolic_bp", 70),
    ):
        assert getattr(measured([text]).vital_signs, name) == value, text


def test_degrees_as_they_are_typed() -> None:
    for degree in ("º", "˚", "⁰", "°", " º ", "o", " o"):
        assert measured([f"39.5{degree}C"]).vital_signs.temperature_celsius == 39.5, degree
    for text in ("39.5℃", "sốt 39,5º", "39·5 °C", "39°5", "３９．５°C", "fever of 39½"):
        assert measured([text]).vital_signs.temperature_celsius == 39.5, text
    assert measured(["103℉"]).vital_signs.temperature_celsius == 39.4
    assert measured(["spo2 of 82"]).vital_signs.oxygen_saturation == 82  # "2 of" is no degree
    assert measured(["40 of us have a cold"]).vital_signs.temperature_celsius is None


def test_what_is_no_temperature() -> None:
    for text in (
        "My BMI is 41.2",
        "creatinine 41.2, cough",
        "PSA: 40.5",
        "my ferritin came back at 38.2",
        "glucose 38.5 mg/dL",
        "I paid 39.50 for it",
        "39.50 dollars for the cough syrup",
        "FM 39.5 radio",
        "size 39.5 shoes",
        "no fever above 38, she is well",
        "không sốt trên 38 độ",
        "cân nặng 41,2",
    ):
        assert measured([text]).vital_signs.temperature_celsius is None, text
    for text in ("sodium 140, she is 39.6", "creatinine of 41.2 and temperature 39.6"):
        assert measured([text]).vital_signs.temperature_celsius == 39.6, text


@pytest.mark.parametrize(
    "filler",
    [
        " ",
        "\n",
        "-",
        "98, ",
        "98 then ",
        "spo2 ",
        "of ",
        "° ",
        "b ",
        "oximeter a ",
        "in the 80s ",
        "sats 0.",
        "inspired oxygen ",
    ],
)
def test_the_time_grows_with_the_length_only(filler: str) -> None:
    # A pattern that backtracks would take hours, not milliseconds.
    assert measured([f"spo2 97 {filler * 2_000} pulse 72"]).vital_signs.heart_rate == 72


def test_words_that_are_no_numbers_stay() -> None:
    for text in ("one of my legs", "half a pill", "bị muỗi cắn", "năm nay tôi bị ho"):
        assert in_digits(text) == text


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("temperature a hundred and four, stiff neck", Level.EMERGENCY),
        ("my mother is eighty-two years old and fell, hip hurts", Level.URGENT),
        ("my pressure is 220/130 and I have a headache", Level.EMERGENCY),
        ("heart rate went from 60 to 170 and I feel faint", Level.EMERGENCY),
        ("sugar reading 2.1", Level.EMERGENCY),
        ("glucose meter says LO", Level.EMERGENCY),
        ("the libre shows low", Level.EMERGENCY),
        ("thermometer reads 105", Level.URGENT),
        ("born 3 weeks ago, has 38.3", Level.EMERGENCY),
        ("my LO is 8 weeks and has a temp of 38.5", Level.EMERGENCY),
    ],
)
def test_levels_of_numbers_in_words(text: str, least: Level) -> None:
    level = shipped_rules().screen([text], Language.ENGLISH).triage_level
    assert level.rank >= least.rank


def test_a_flat_battery_is_no_low_sugar() -> None:
    for text in ("the meter reads low battery", "the bp monitor says low"):
        level = shipped_rules().screen([text], Language.ENGLISH).triage_level
        assert level.rank < Level.URGENT.rank, text


DANGEROUS_READINGS = """
my newborn's temperature is 38.6
the newborn's got a fever
my newborn's not feeding
my newborn's breathing is very fast
my newborns temp is 101
neonate with temp 38.5
preemie temp 38.5
10 days of age temp 38.5
baby under 3 months fever
my baby is not even 3 months old and has a fever
nearly 3 months old, temp 38.4
bé chưa đầy 3 tháng bị sốt
bé dưới 3 tháng tuổi sốt
trẻ sinh non sốt 38.5
my wife's blood pressure's 70/40
her BP's 70/40
her pulse's 35
newborn temperature 101
B/P 70/40
b.p. 70/40
b/p: 68/40
SYS 70 DIA 40 PULSE 130
sys. 72 dia. 44
HR in the 30s
heart rate in the 180s
pulse in the low 30's
his sats are in the 80s
oxygen dropped into the low 80s
sats down to the 70s
systolic in the 70s
blood sugar in the 40s
60 breaths a minute
40 breaths/min at rest
thở 50 nhịp thở một phút
oxygen sat. is 82
temp. 41.5, shivering? newborn
4 week old, 102 Fahrenheit
6 week old 100.8 rectal
my 4 week old is 101.2
my 4 week old is 102
6 week old, 38.5 Celsius
SpO2 97 yesterday, 82 now
oximeter says 98, 97, 82
oximeter says 85 and 72
oximeter reads 97 and 185
heart rate 185 at rest
my max heart rate was 185 in bed last night
SpO2 82 PR 84
bp 84/50
resp 40 and shallow
glucose HI and vomiting
glucose: HI
my BG is LO
đường huyết: HI
bp 60-70
bp 70-40
bp is 70 by 40
máy đo spo2 báo 82
temp 41.5 degrees celsius
18 days old, fever of 100.5
our 6 week old had 102!!!
my 3-week-old's temp is 100.9
SpO2: 88 PR: 47
huyết áp 85/50, mạch 120
oximeter says 97 and 82
oximeter says 98 and 72
oximeter 98 and 80 after walking
pulse oximeter 97 82
máy đo spo2 báo 98 và 72
pulse oximeter 97, pulse 190
Target heart rate 140, mine is 190 at rest
target HR 130 but now 200 sitting
target heart rate 120-150, now 195
Target heart rate 120. Mine is 190.
my target heart rate is 150, I am at 35 now
max HR 190 while sitting, no exercise
max heart rate of 210 while resting, gym tomorrow
BP 90/60 PR 150
PR 150, SpO2 97
BP 80s/40s
blood sugar: hi, I feel awful
glucose: HI, I want to vomit
sats 0.84
SpO2 .86 on air
SpO2 0,86
sats dropped from 0.96 to 0.82
0.84 sats
độ bão hòa 0,83
"""
"""Readings and ages as people and devices write them, one a line."""

HARMLESS_READINGS = """
my newborn's temperature is 36.8
my newborn's clothes are too big
her BP's 118/76
I am a neonatal nurse with a cold
I work with newborns and have a fever
he was a preemie and now has a fever
my gran is 104
he is 103 years old
B/P 118/76
heart rate in the 60s
sats in the 90s
bp in the 120s
sugars in the 100s
98.6 Fahrenheit
85 fahrenheit outside
16 breaths a minute
SpO2 97 PR 84
PR 72 SpO2 98
SYS 118 DIA 76 PUL 72
pulse ox 97/68
PR 150
my pr 180 deadlift today
target heart rate 120-150
target heart rate 150 for 30 minutes
BP 110s/70s
target heart rate 150
max heart rate 185 on treadmill
nhịp tim mục tiêu 150
tổng quát ok, huyết áp 118/76, PR 72
my creatinine is 100.8
cholesterol 101.2
I paid 101.2 for it
radio 101.2 FM
I weigh 102.5 lbs
HR 72 in her 30s
bp 118-76
baby under 1 year with a cold
4 week old weighs 102 oz
my child is under 5 and has a cold
my 4 month old drank 104 ml
taking tablets for less than 3 months
kids on a sugar high
hi, my glucose is 6
glucose 6.1. Hi, I have a cold
bp 140 by 85
102 degrees fahrenheit
85°F outside, I have a cold
đường huyết, lo quá
SYS 128 mmHg DIA 82 mmHg PULSE 70 /min
SpO2 98% PR 76 bpm PI 5.2
ECG: PR 200 ms
garmin max HR 190 at the marathon
10 week old, 99.1 under the arm, happy
what is a normal heart rate, mine is in the 70s
SpO2 0.97
sats 0.95-0.97
on oxygen 0.75 L/min as always
home O2 0.8 lpm
FiO2 0.60
fraction of inspired oxygen of 0.60
we sat 0.75 hours in the sun
"""
"""Normal readings, and other numbers beside such words, one a line."""


@pytest.mark.parametrize("text", DANGEROUS_READINGS.strip().splitlines())
def test_dangerous_readings_as_people_and_devices_write_them(text: str) -> None:
    level = shipped_rules().screen([text], Language.ENGLISH).triage_level
    assert level is Level.EMERGENCY


@pytest.mark.parametrize("text", HARMLESS_READINGS.strip().splitlines())
def test_harmless_readings_as_people_and_devices_write_them(text: str) -> None:
    level = shipped_rules().screen([text], Language.ENGLISH).triage_level
    assert level.rank < Level.URGENT.rank


def test_values_as_devices_show_them() -> None:
    for text, name, value in (
        ("SYS 118 DIA 76 PUL 72", "systolic_bp", 118),
        ("SYS 118 DIA 76 PUL 72", "heart_rate", 72),
        ("SpO2 97 PR 84", "heart_rate", 84),
        ("oximeter says 98 and 72", "oxygen_saturation", 72),
        ("oximeter says 98 and 72", "heart_rate", None),
        ("oximeter says 98 and pulse 72", "oxygen_saturation", 98),
        ("oximeter says 98 and 72 bpm", "oxygen_saturation", 98),
        ("oximeter says 98 and 105", "heart_rate", 105),
        ("target heart rate 140, mine is 90", "heart_rate", 90),
        ("oximeter says 98 and now 82", "oxygen_saturation", 82),
        ("oximeter between 98 and 82", "oxygen_saturation", 82),
        ("bp 118-76", "diastolic_bp", 76),
        ("SpO2 0.845", "oxygen_saturation", 84.5),
        ("sats are 0.9", "oxygen_saturation", 90),
        ("her HR is in the 80s", "heart_rate", 80),
        ("pulse in the 40s", "heart_rate", 49),
        ("sugars in the 300s", "glucose_mmol_l", 16.7),
        ("98.6 Fahrenheit", "temperature_celsius", 37.0),
        ("102 degrees fahrenheit", "temperature_celsius", 38.9),
        ("she is 102.4", "temperature_celsius", 39.1),
        ("target heart rate is 150", "heart_rate", None),
        # ohcnetwork/care_fe#12433
        ("| SpO2 | BP |\n|---|---|\n| 78% | 70/40 |", "oxygen_saturation", 78),
        ("| SpO2 | BP |\n|---|---|\n| 78% | 70/40 |", "systolic_bp", 70),
        ("Time | SpO2", "oxygen_saturation", None),
        ("| Goal BP | Mine |\n|---|---|\n| 90/60 | BP 120/80 |", "systolic_bp", 120),
        (
            "| Time | SpO2 |\n| :-- | --: |\n| 08:00 | 97% |\n| 09:00 | 74% |",
            "oxygen_saturation",
            74,
        ),
    ):
        assert getattr(measured([text]).vital_signs, name) == value, text
