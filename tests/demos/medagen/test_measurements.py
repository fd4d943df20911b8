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
