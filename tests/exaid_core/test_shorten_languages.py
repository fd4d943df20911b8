"""A text in any language is cut between its words, and its meaning stays."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exaid_core.checks.shortening import shorten
from exaid_core.schema.agent_summary import LIMITS
from exaid_core.tokenizer import character_ends, word_spans
from tests.exaid_core.languages import SAMPLES

texts = pytest.mark.parametrize("text", [sample.text for sample in SAMPLES])


@pytest.mark.parametrize(
    ("before", "whole", "after"),
    [
        *(
            ("发热；", whole, "；立即复查血压和心率")
            for whole in (
                "5毫克",
                "5 毫克",
                "五毫克",
                "5万单位",
                "10至20毫克",
                "5国际单位",
                "120毫米汞柱",
                "5毫克/公斤",
                "5 mg",
                "5微克每分钟",
                "无咳嗽",
                "没有出血",
                "未见异常",
                "否认胸痛",
                "不考虑肺栓塞",
                "肺栓塞可能性不大",
                "肺栓塞：排除",
                "血培养阴性",
                "沒有出血",
                "避免使用造影剂",
                "两片",
                "别用阿司匹林",
                "5×10⁹/升",
            )
        ),
        *(
            ("発熱。", whole, "。直ちに血圧を再検する")
            for whole in (
                "5ミリグラム",
                "5マイクログラム",
                "15リットル毎分",
                "5万単位",
                "出血はない",
                "出血を認めない",
                "出血はありません",
                "出血はなかった",
                "出血を認めず",
                "出血なし",
                "出血無し",
                "造影剤は使用しない",
                "肺塞栓は否定的",
                "可能性は低い",
                "所見に乏しい",
                "0.5mg/kg/時",
                "出血を伴わない",
            )
        ),
        *(
            ("มีไข้ ", whole, " ตรวจความดันโลหิตซ้ำทันที")
            for whole in (
                "5 มก.",
                "๕ มก.",
                "5มก.",
                "120 มม.ปรอท",
                "15 ลิตรต่อนาที",
                "ไม่มีเลือดออก",
                "ไม่ไอ",
                "ปฏิเสธโรคหัวใจ",
                "ห้ามให้เฮพาริน",
                "อย่าให้แอสไพริน",
            )
        ),
        *(
            ("حمى؛ ", whole, "؛ إعادة قياس الضغط فورًا")
            for whole in ("5 ملغ", "٥ ملغ", "90 مم زئبق", "لا نزف", "ليس هناك دليل", "دون نزف")
        ),
        *(
            ("Sốt; ", whole, "; đo lại huyết áp ngay")
            for whole in (
                "5 đơn vị",
                "5 viên",
                "không ho",
                "chưa loại trừ",
                "không có dấu hiệu chảy máu",
                "chống chỉ định aspirin",
                "phủ nhận đau ngực",
            )
        ),
        *(
            ("Fiebre; ", whole, "; repetir la tensión enseguida")
            for whole in (
                "5 mg",
                "5 a 10 mg",
                "5 unidades",
                "sin tos",
                "Niega dolor",
                "embolia descartada",
            )
        ),
        *(
            ("Fieber; ", whole, "; Blutdruck sofort messen")
            for whole in (
                "5 Tropfen",
                "5 mg pro kg",
                "40 Einheiten",
                "kein Husten",
                "ohne Blutung",
                "Lyse nicht indiziert",
            )
        ),
        *(
            ("Fièvre; ", whole, "; contrôler la tension")
            for whole in (
                "5 unités",
                "5 à 10 mg",
                "n'est pas indiqué",
                "sans toux",
                "n'a pas de toux",
                "aucun saignement",
            )
        ),
        ("Жар; ", "5 мг", "; измерить давление"),
        ("Жар; ", "без кашля", "; измерить давление"),
        ("발열; ", "출혈이 없음", "; 혈압을 다시 측정"),
        ("ज्वर; ", "खांसी नहीं", "; रक्तचाप फिर से मापें"),
        ("ज्वर; ", "5 मिलीग्राम", "; रक्तचाप फिर से मापें"),
    ],
)
def test_what_belongs_together_stays_or_goes_whole(before: str, whole: str, after: str) -> None:
    text = before + whole + after
    first = before.rstrip("；。; ؛")
    for limit in range(1, len(text)):
        kept = shorten(text, limit)
        assert first.startswith(kept[:-1]) or kept.startswith(before + whole.rstrip(".")), limit


@texts
def test_a_clinical_text_is_cut_at_every_limit(text: str) -> None:
    ends = {end for _, end in word_spans(text)}
    for limit in range(1, len(text)):
        kept = shorten(text, limit)
        assert len(kept) <= limit
        assert kept.endswith("…")
        assert text.startswith(kept[:-1])
        if limit >= 45:
            assert len(kept) > limit / 4, "much more would have fitted"
            assert any(end >= len(kept) - 1 for end in ends)


@pytest.mark.parametrize("limit", sorted(set(LIMITS.values())))
@pytest.mark.parametrize("language", sorted({sample.language for sample in SAMPLES}))
def test_a_field_of_a_summary_is_well_filled(language: str, limit: int) -> None:
    text = " ".join(sample.text for sample in SAMPLES if sample.language == language)
    assert 0.75 * limit < len(shorten(text, limit)) <= limit


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("クロピドグレル", 5, "クロピド…"),
        ("患者无发热", 2, "患…"),
        ("无发热", 2, "…"),
        ("5毫克肝素", 3, "…"),
        ("ไข้", 2, "…"),
        ("ไข้สูง", 4, "ไข้…"),
        ("x" * 100, 50, "x" * 49 + "…"),
        ("7" * 100, 50, "…"),
        ("7" * 99 + "x" * 99, 150, "7" * 99 + "x" * 50 + "…"),
        ("x" * 40 + "500mg" + "x" * 60, 45, "x" * 40 + "…"),
        ("e\u0301" * 100, 9, "e\u0301" * 4 + "…"),
        ("👨‍👩‍👧" * 100, 12, "👨‍👩‍👧👨‍👩‍👧…"),
        ("!" * 20, 5, "!!!!…"),
        ("。、" * 20, 5, "。、。、…"),
        (" " * 20, 5, "…"),
    ],
)
def test_where_no_word_fits(text: str, limit: int, expected: str) -> None:
    assert shorten(text, limit) == expected


_CHARACTERS = "患者无发热，。、没有5毫克はないヘパリン👨‍👩‍👧ผู้ป่วยไม่มีไข้نمكa\u0301\n\r.!?\ud800नमस्ते"
_PHRASES = ("fever ", " no ", " 5 mg", ". ", "x" * 70, "ไม่", " لا ", " không ", "ません")
MIXED = st.lists(st.sampled_from([*_CHARACTERS, *_PHRASES]), max_size=40).map("".join) | st.text()


@given(MIXED, st.integers(1, 80))
def test_any_text_is_cut_between_characters(text: str, limit: int) -> None:
    kept = shorten(text, limit)
    assert len(kept) <= limit
    assert bool(kept) == bool(text)
    if kept != text:
        assert kept.endswith("…")
        assert text.startswith(kept[:-1])
        cut = len(kept) - 1
        assert not any(start < cut < end for start, end in pairwise([0, *character_ends(text)]))
        assert shorten(kept, limit) == kept


@given(MIXED, st.integers(1, 80))
def test_more_room_never_keeps_less(text: str, limit: int) -> None:
    assert len(shorten(text, limit)) <= len(shorten(text, limit + 1))
