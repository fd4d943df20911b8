"""Fixed texts of Medagen in both languages: the advice of each level, and fallbacks."""

from __future__ import annotations

from demos.medagen.schemas import Language, Level

_ADVICE = {
    Level.EMERGENCY: {
        Language.ENGLISH: "Call the emergency number now (115 in Vietnam), or have somebody bring "
        "you to the nearest emergency department. Do not wait, and do not drive yourself.",
        Language.VIETNAMESE: "Hãy gọi cấp cứu 115 ngay, hoặc nhờ người đưa đến khoa cấp cứu gần "
        "nhất. Không chờ đợi, không tự lái xe.",
    },
    Level.URGENT: {
        Language.ENGLISH: "Go to a doctor or a hospital within 24 hours. If it gets worse, call "
        "the emergency number (115 in Vietnam).",
        Language.VIETNAMESE: "Hãy đến cơ sở y tế khám trong vòng 24 giờ. Nếu nặng hơn, gọi cấp "
        "cứu 115.",
    },
    Level.ROUTINE: {
        Language.ENGLISH: "Have a doctor look at it within some days. If it gets worse, or "
        "something new comes, go earlier.",
        Language.VIETNAMESE: "Bạn nên đi khám trong vài ngày tới. Nếu nặng hơn hoặc có dấu hiệu "
        "mới, hãy đi khám sớm hơn.",
    },
    Level.SELF_CARE: {
        Language.ENGLISH: "You can look after this at home. See a doctor if it gets worse, does "
        "not get better within some days, or you are worried.",
        Language.VIETNAMESE: "Bạn có thể tự chăm sóc tại nhà. Hãy đi khám nếu nặng hơn, không đỡ "
        "sau vài ngày, hoặc bạn lo lắng.",
    },
}
_NOT_READ = {
    Language.ENGLISH: "Medagen reads only English and Vietnamese, and cannot read this message.",
    Language.VIETNAMESE: (
        "Medagen chỉ đọc được tiếng Việt và tiếng Anh, không đọc được tin nhắn này."
    ),
}
_NOT_ASSESSED = {
    Language.ENGLISH: "The complaint could not be assessed with certainty.",
    Language.VIETNAMESE: "Không thể phân tích chính xác triệu chứng.",
}
_PICTURE = {
    Language.ENGLISH: "A picture was sent.",
    Language.VIETNAMESE: "Người dùng gửi một hình ảnh.",
}


def advice(level: Level, language: Language) -> str:
    """Return the advice for a level."""
    return _ADVICE[level][language]


def advice_in_both(level: Level) -> str:
    """Return the advice for a message in a language that is not read, in both languages."""
    return "\n".join(f"{_NOT_READ[language]} {_ADVICE[level][language]}" for language in _NOT_READ)


def not_assessed(language: Language) -> str:
    """Return the text that replaces a missing summary."""
    return _NOT_ASSESSED[language]


def picture_sent(language: Language) -> str:
    """Return the text that replaces an empty message with a picture."""
    return _PICTURE[language]
