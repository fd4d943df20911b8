"""Numbers and doses of a summary are compared in any digits, in words, and in many languages."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exaid_core.checks.grounding import unsupported_terms
from exaid_core.checks.number_words import number_words


@pytest.mark.parametrize(
    ("summary", "support"),
    [
        # digits of any script
        ("5 mg", "٥ ملغ"),
        ("٥ ملغ", "5 mg"),
        ("الجرعة ٢٫٥ ملغ", "2.5 mg"),
        ("1250 mL", "١٬٢٥٠ مل"),
        ("٠،٥ ملغ", "0.5 mg"),
        ("ให้ยา ๕ มก.", "give 5 mg"),
        ("๑๒๐/๘๐ มิลลิเมตรปรอท", "120/80 mmHg"),
        ("५ mg", "5 mg"),
        ("５ｍｇ投与", "5 mg"),
        ("ปวด ๓ วัน", "pain for 3 days"),
        ("۱۲ mg", "12 mg"),
        # units of other languages, with and without a space
        ("给予5毫克阿司匹林", "aspirin 5 mg"),
        ("5mg阿司匹林", "5毫克"),
        ("アスピリン5ミリグラムを投与", "5 mg"),
        ("ヘパリン5,000単位", "5000 units"),
        ("500毫升，3天", "500 mL for 3 days"),
        ("体温38.5摄氏度", "38.5 °C"),
        ("心率110次/分", "110/min"),
        ("64岁男性", "64-year-old man"),
        ("64歳男性", "64-year-old man"),
        ("Dùng 2 viên trong 5 ngày", "2 tablets for 5 days"),
        ("500 miligam", "500 mg"),
        ("bệnh nhân 64 tuổi", "64-year-old"),
        ("insulina 10 unidades", "insulin 10 units"),
        ("1,5 miligramos", "1.5 mg"),
        ("38,5 °C", "38.5 °C"),
        ("Kalium 4,5 mmol/l", "K 4.5 mmol/L"),
        ("10 IE Insulin", "10 units of insulin"),
        ("64-jähriger Patient seit 3 Tagen", "64-year-old for 3 days"),
        ("un homme de 64 ans, 3 jours", "64 years old, 3 days"),
        ("5 mg par kg", "5 mg/kg"),
        ("5 mg por kg", "5 mg/kg"),
        ("5 mg pro kg", "5 mg/kg"),
        ("٣ أيام", "3 days"),
        # numbers in words
        ("twenty-five mg", "25 mg"),
        ("25 mg", "twenty five mg"),
        ("120 mg", "one hundred and twenty mg"),
        ("one hundred twenty mg", "120 mg"),
        ("two thousand five hundred units", "2500 units"),
        ("ninety-nine percent", "99 %"),
        ("thirteen lesions", "13 lesions"),
        ("between one hundred and two hundred mg", "100 mg, 200 mg"),
        ("two to three days", "2-3 days"),
        ("veinticinco miligramos", "25 mg"),
        ("25 mg", "treinta y veinticinco mg"),
        ("treinta y cinco mg", "35 mg"),
        ("doscientos cincuenta mg", "250 mg"),
        ("quatre-vingt-dix-neuf pour cent", "99 %"),
        ("vingt et un jours", "21 days"),
        ("soixante-quinze mg", "75 mg"),
        ("cent vingt mg", "120 mg"),
        ("fünfundzwanzig Milligramm", "25 mg"),
        ("einhundertzwanzig mg", "120 mg"),
        ("hai mươi lăm mg", "25 mg"),
        ("mười lăm ngày", "15 days"),
        ("hai mươi năm", "20 years"),
        ("chín mươi chín phần trăm", "99 %"),
        ("ba năm", "3 years"),
        ("năm ngày", "5 days"),
        ("一百二十毫克", "120 mg"),
        ("五毫克", "5 mg"),
        ("二錠を三日間", "2 tablets for 3 days"),
        ("两片", "2 tablets"),
        ("五千克", "5 kg"),
        # other words
        ("一些患者一般统一，三叉神经痛，十分疼痛，第三", "nothing"),
        ("un paciente, une douleur, ein Patient, eine Frau, một bệnh nhân, 一名患者", "nothing"),
        ("once daily, once per day; seize the dose; Dix-Hallpike; HAI; a hundred", "nothing"),
        ("thứ hai, tháng năm", "nothing"),
    ],
)
def test_what_the_support_says_in_other_words_is_not_flagged(summary: str, support: str) -> None:
    drugs_of_both = "aspirin heparin insulin"
    assert unsupported_terms([summary], f"{support} {drugs_of_both}") == ()


@pytest.mark.parametrize(
    ("summary", "support"),
    [
        ("给予阿司匹林", "aspirin"),
        ("アスピリン", "aspirin given"),
        ("ให้แอสไพริน", "阿司匹林"),
        ("الأسبرين و adrenaline", "asprin? no: aspirina y adrenalina"),
        ("métoprolol, héparine, ácido tranexámico", "metoprolol, heparin, tranexamic acid"),
        ("去甲肾上腺素", "norepinephrine"),
        ("Tiene que servir; vivir", "nothing"),
    ],
)
def test_drugs_by_their_names_in_other_languages(summary: str, support: str) -> None:
    assert unsupported_terms([summary], support) == ()


@pytest.mark.parametrize(
    ("summary", "support", "missing"),
    [
        ("给予阿司匹林", "给予肝素", ("阿司匹林",)),
        ("アドレナリン", "ノルアドレナリン", ("アドレナリン",)),
        ("أعط الأدرينالين", "نورأدرينالين", ("أدرينالين",)),
        ("Se da aspirina", "heparina", ("aspirina",)),
        ("Furosémide", "héparine", ("Furosémide",)),
        (
            "美托洛尔10毫克，赖诺普利25毫克",
            "给予美托洛尔25毫克和赖诺普利10毫克",
            ("美托洛尔 10毫克", "赖诺普利 25毫克"),
        ),
        (
            "ヘパリン5ミリグラム",
            "ヘパリン10ミリグラム、モルヒネ5ミリグラム",
            ("ヘパリン 5ミリグラム",),
        ),
        ("مورفين ٥ ملغ", "مورفين ١٠ ملغ، كيتامين ٥ ملغ", ("مورفين 5 ملغ",)),
        ("5 mg de morfina", "10 mg de morfina y 5 mg de ketamina", ("morfina 5 mg",)),
        ("มอร์ฟีน ๕ มก.", "มอร์ฟีน ๑๐ มก. และคีตามีน ๕ มก.", ("มอร์ฟีน 5 มก.",)),
    ],
)
def test_drugs_and_doses_that_the_support_does_not_give_in_other_languages(
    summary: str, support: str, missing: tuple[str, ...]
) -> None:
    assert unsupported_terms([summary], support) == missing


@pytest.mark.parametrize(
    ("summary", "support", "missing"),
    [
        ("٥ ملغ", "10 mg", ("5 ملغ",)),
        ("٢٫٥ ملغ", "25 mg", ("2.5 ملغ",)),
        ("๕ มก.", "๑๐ มก.", ("5 มก.",)),
        ("5毫克", "5克", ("5毫克",)),
        ("5微克", "5毫克", ("5微克",)),
        ("5ミリグラム", "5グラム", ("5ミリグラム",)),
        ("五毫克", "十毫克", ("五毫克",)),
        ("一百二十毫克", "一百毫克、二十毫克", ("一百二十毫克",)),
        ("三天", "两天", ("三天",)),
        ("Twenty-five mg", "20 mg, 5 mg", ("Twenty-five mg",)),
        ("thirteen lesions", "three lesions", ("thirteen",)),
        ("one hundred and twenty mg", "100 mg and 20 mg", ("one hundred and twenty mg",)),
        ("veinticinco mg", "cinco mg", ("veinticinco mg",)),
        ("fünfundzwanzig Milligramm", "fünfzig Milligramm", ("fünfundzwanzig Milligramm",)),
        ("soixante-quinze mg", "soixante mg", ("soixante-quinze mg",)),
        ("hai mươi lăm mg", "hai mươi mg", ("hai mươi lăm mg",)),
        ("once días", "12 días", ("once días",)),
        ("drei Läsionen", "zwei Läsionen", ("drei",)),
        ("两天 two days then 五天", "2天", ("五天",)),
        ("5 gélules", "5 g", ("5 gélules",)),
        ("11 lesions", "aspirin once daily", ("11",)),
    ],
)
def test_another_number_in_other_words_is_flagged(
    summary: str, support: str, missing: tuple[str, ...]
) -> None:
    assert unsupported_terms([summary], support) == missing


_DIGITS = ["٠١٢٣٤٥٦٧٨٩", "۰۱۲۳۴۵۶۷۸۹", "०१२३४५६७८९", "๐๑๒๓๔๕๖๗๘๙", "０１２３４５６７８９"]


@given(st.integers(0, 99999), st.sampled_from(_DIGITS), st.sampled_from(["mg", "%", "天", "วัน"]))
def test_digits_of_each_script_have_the_same_value(value: int, digits: str, unit: str) -> None:
    written = str(value).translate({ord("0") + i: digit for i, digit in enumerate(digits)})
    assert unsupported_terms([f"{value} {unit}"], f"{written} {unit}") == ()
    assert unsupported_terms([f"{written} {unit}"], f"{value} {unit}") == ()
    assert unsupported_terms([f"{written} {unit}"], f"{value + 1} {unit}") != ()


_BELOW_TWENTY: list[str] = re.findall(
    r"\w+",
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen",
)
_TENS: list[str] = re.findall(r"\w+", "twenty thirty forty fifty sixty seventy eighty ninety")


def _in_english(number: int) -> str:
    if number < 20:
        return _BELOW_TWENTY[number]
    if number < 100:
        rest = f"-{_BELOW_TWENTY[number % 10]}" if number % 10 else ""
        return _TENS[number // 10 - 2] + rest
    size, name = (100, "hundred") if number < 1000 else (1000, "thousand")
    rest = f" {_in_english(number % size)}" if number % size else ""
    return f"{_in_english(number // size)} {name}{rest}"


@given(st.lists(st.integers(1, 999_999), min_size=1, max_size=5))
def test_english_words_for_numbers(numbers: list[int]) -> None:
    text = ", ".join(map(_in_english, numbers))
    assert [number.value for number in number_words(text)] == numbers


@given(st.text(st.sampled_from("一二三十百千万〇5 毫克天第分"), max_size=30))
def test_any_text_in_chinese_characters_supports_itself(text: str) -> None:
    assert unsupported_terms([text], text) == ()


_WORDS = re.findall(
    r"\S+",
    "one two twenty hundred thousand and y et veinte cinco quatre vingt dix sept fünf und zwanzig"
    " hai mươi năm lăm trăm ngày mg 5 - , mil cent per 二十毫克 第 三 天",
)


@pytest.mark.sweep
@given(st.lists(st.sampled_from(_WORDS), max_size=20).map(" ".join))
def test_any_words_for_numbers_support_themselves(text: str) -> None:
    assert unsupported_terms([text], text) == ()
