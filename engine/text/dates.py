"""Find the dates that a text speaks of, and name days as words of an index: "@2023-05", "@05-08".

A question says "in May", "last Tuesday" or "2023"; the message that answers it says "yesterday", or
no date at all, but was written then. Both become the same words. English, German, Russian, Arabic and
Chinese. Pure: whoever asks says which day it is. It resolves no time of day, and no future ("next
week"): what is looked for has been said. Imported messages can be of the calendar's first or last day.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final

WHEN: Final = "@when"
"""The word of texts that tell a date, and of questions that ask for one."""

HOW_MANY: Final = "@number"
"""The word of texts with a number, and of questions that ask for one."""

_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar jänner январь января январе يناير",
            "february feb februar февраль февраля феврале فبراير",
            "march mar märz maerz март марта марте مارس",
            "april apr апрель апреля апреле أبريل ابريل",
            "may mai май мая мае مايو",
            "june jun juni июнь июня июне يونيو",
            "july jul juli июль июля июле يوليو",
            "august aug август августа августе أغسطس اغسطس",
            "september sept sep сентябрь сентября сентябре سبتمبر",
            "october oct oktober октябрь октября октябре أكتوبر اكتوبر",
            "november nov ноябрь ноября ноябре نوفمبر",
            "december dec dezember декабрь декабря декабре ديسمبر",
        ),
        1,
    )
    for name in names.split()
}
_ALSO_WORDS: Final = frozenset({"may", "march", "mar", "jan", "sep", "dec", "мая", "mai"})
"""These are also words or names: alone they only are a month after one of _BEFORE_A_MONTH."""

_PREPOSITIONS: Final = "in last this since until till during early late mid by of from every im seit bis letzten в с до"
_BEFORE_A_MONTH: Final = frozenset(_PREPOSITIONS.split())
_WEEKDAYS: Final = {
    name: number
    for number, names in enumerate(
        (
            "monday montag понедельник الاثنين الإثنين",
            "tuesday dienstag вторник الثلاثاء",
            "wednesday mittwoch среду الأربعاء",
            "thursday donnerstag четверг الخميس",
            "friday freitag пятницу الجمعة",
            "saturday samstag sonnabend субботу السبت",
            "sunday sonntag воскресенье الأحد",
        )
    )
    for name in names.split()
}
_TWO_WEEKS: Final = 14
_CHINESE_NUMBERS: Final = {digit: number for number, digit in enumerate("一二三四五六七八九十", 1)}
_NUMBERS: Final = {
    **{
        word: number
        for number, words in enumerate(
            (
                "a an one ein einem einer один одну",
                "two zwei couple два две",
                "three drei три",
                "four vier четыре",
                "five fünf пять",
                "six sechs шесть",
                "seven sieben семь",
                "eight acht восемь",
                "nine neun девять",
                "ten zehn десять",
            ),
            1,
        )
        for word in words.split()
    },
    **_CHINESE_NUMBERS,
    "两": 2,
}

_TOKEN = re.compile(r"\d+|[^\W\d_]+")
_YEAR = re.compile(r"(?:19|20)\d\d")
_ISO = re.compile(r"(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)")
_DOTTED = re.compile(r"(?<![\d.])(\d{1,2})\.(\d{1,2})\.(\d{4})?(?!\d)")
_CHINESE = re.compile(
    r"(?:(\d{4})年)?(?:(\d{1,2}|十[一二]?|[一二三四五六七八九])月(?!前))(?:(\d{1,2})[日号])?|(\d{4})年"
)
_ORDINALS = frozenset({"st", "nd", "rd", "th", "of", "the", "го"})
_NUMBER = r"(\d{1,3}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True)) + r")(?:\s+of)?"
_AGO = re.compile(
    rf"\b{_NUMBER}\s+(day|week|month|year)s?\s+ago\b"
    rf"|\bvor\s+{_NUMBER}\s+(tag|woche|monat|jahr)\w*"
    rf"|\b{_NUMBER}\s+(дн|ден|недел|месяц|год|лет)\w*\s+назад\b"
    rf"|{_NUMBER}个?(天|周|星期|月|年)以?前",
    re.IGNORECASE,
)
_MAYBE_AGO = re.compile("ago|vor|назад|前", re.IGNORECASE)
"""Each of its matches has one of these: to look for them takes a tenth of the time, or less."""
_UNITS: Final = {
    **dict.fromkeys(("day", "tag", "дн", "ден", "天"), "day"),
    **dict.fromkeys(("week", "woche", "недел", "周", "星期"), "week"),
    **dict.fromkeys(("month", "monat", "месяц", "月"), "month"),
    **dict.fromkeys(("year", "jahr", "год", "лет", "年"), "year"),
}
_LAST_WEEKDAY = re.compile(
    r"\b(?:last|past|letzten|letztem|vorigen|прошлый|прошлую|прошлое)\s+(\w+)\b"
    r"|\b(?:يوم\s+)?(\w{2,12})\s+الماضي(?!ة)|上(?:周|个?星期)([一二三四五六日天])",
    re.IGNORECASE,
)
_RELATIVE: Final[list[tuple[re.Pattern[str], str, int]]] = [
    (re.compile(pattern, re.IGNORECASE), unit, count)
    for pattern, unit, count in (
        (r"\bday before yesterday\b|\bvorgestern\b|\bпозавчера\b|أول أمس|前天", "day", 2),
        (r"\byesterday\b|\blast night\b|\bgestern\b|\bвчера\b|\bأمس\b|昨[天晚]", "day", 1),
        (
            r"\blast week(?:end)?\b|\bletzte[sn]? (?:woche|wochenende)\b|\bпрошл\w+ (?:недел|выходн)\w+|الأسبوع الماضي|上(?:个?星期|周)(?![一二三四五六日天])",
            "week",
            1,
        ),
        (
            r"\blast month\b|\bletzte[nm] monat\b|\bпрошл\w+ месяц\w*|الشهر الماضي|上个?月",
            "month",
            1,
        ),
        (
            r"\blast year\b|\bletzte[sn]? jahr\b|\bпрошл\w+ год\w*|العام الماضي|السنة الماضية|去年",
            "year",
            1,
        ),
    )
]
_MAYBE_RELATIVE = re.compile(
    "yesterday|last|gestern|letzte|вчера|прошл|أمس|الماضي|前天|昨|上|去年", re.IGNORECASE
)
_ASKS_WHEN = re.compile(
    r"\bwhen\b|\bwhat (?:date|day|month|year)\b|\bwann\b|\bкогда\b|متى|什么时候|哪[天年]|几月|何时",
    re.IGNORECASE,
)
_ASKS_HOW_MANY = re.compile(
    r"\bhow (?:much|many|long|old|far|tall|big)\b|\bwie ?(?:viele?|lange|alt|weit)\b"
    r"|\bсколько\b|\bكم\b|多少|几[个次天年岁]|多[大长久远]",
    re.IGNORECASE,
)
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class DatesFound:
    """The words of the dates in a text, the most exact of each date first; and the text without
    them."""

    words: tuple[str, ...]
    rest: str


def in_zone(at: datetime, zone: tzinfo) -> datetime:
    """Return `at` (aware) on the clock of `zone`; as it is on the first and last day of the calendar,
    which has no day beyond. Imported messages are of the year 1 where a program knew no time."""
    try:
        return at.astimezone(zone)
    except OverflowError:
        return at


def day_words(day: date) -> tuple[str, ...]:
    """Return all words by which a day is found: its year, its month, itself, its week."""
    return (
        f"@{day:%Y}",
        f"@{day:%m}",
        f"@{day:%Y-%m}",
        f"@{day:%m-%d}",
        f"@{day:%Y-%m-%d}",
        _week_word(day),
    )


def told_words(text: str, day: date) -> tuple[str, ...]:
    """Return the words of the dates and numbers that a text tells, written on this day."""
    found = find_dates(text, day).words
    when = (WHEN,) if found else ()
    return (*found, *when, *((HOW_MANY,) if _DIGIT.search(text) else ()))


def asked_kind(question: str) -> tuple[str, ...]:
    """Return the words that the answer should have: of a date, of a number."""
    when = (WHEN,) if _ASKS_WHEN.search(question) else ()
    return (*when, *((HOW_MANY,) if _ASKS_HOW_MANY.search(question) else ()))


def find_dates(text: str, today: date) -> DatesFound:
    """Find dates, spelt out or relative to `today`; of the rest nothing is changed."""
    words: list[str] = []
    rest = text
    for find in _FINDERS:
        spans = []
        for found, start, end in find(rest, today):
            words += found
            spans.append((start, end))
        for start, end in reversed(spans):
            rest = f"{rest[:start]} {rest[end:]}"
    return DatesFound(tuple(dict.fromkeys(words)), rest)


_Found = tuple[list[str], int, int]


def _find_numeric(text: str, today: date) -> Iterator[_Found]:
    for match in _ISO.finditer(text):
        year, month, day = map(int, match.groups())
        yield from _at(match, _date_words(year, month, day))


def _find_dotted(text: str, today: date) -> Iterator[_Found]:
    for match in _DOTTED.finditer(text):
        day, month, year = match.groups()
        yield from _at(match, _date_words(int(year) if year else None, int(month), int(day)))


def _find_chinese(text: str, today: date) -> Iterator[_Found]:
    for match in _CHINESE.finditer(text):
        year, month, day, year_alone = match.groups()
        number = _chinese_number(month) if month else None
        years = int(year or year_alone) if year or year_alone else None
        yield from _at(match, _date_words(years, number, int(day) if day else None))


def _find_ago(text: str, today: date) -> Iterator[_Found]:
    if not _MAYBE_AGO.search(text):
        return
    for match in _AGO.finditer(text):
        count, unit = (part.lower() for part in match.groups() if part)
        many = int(count) if count.isdigit() else _NUMBERS[count]
        yield from _at(match, _words_ago(today, _UNITS[unit], many))


def _find_relative(text: str, today: date) -> Iterator[_Found]:
    if not _MAYBE_RELATIVE.search(text):
        return
    for pattern, unit, count in _RELATIVE:
        for match in pattern.finditer(text):
            yield _words_ago(today, unit, count), *match.span()


def _find_last_weekday(text: str, today: date) -> Iterator[_Found]:
    if today.toordinal() <= _TWO_WEEKS:
        return  # the calendar begins later
    for match in _LAST_WEEKDAY.finditer(text):
        named, arabic, chinese = match.groups()
        if chinese:
            monday = today - timedelta(days=today.weekday() + 7)
            day = monday + timedelta(days="一二三四五六日".find(chinese.replace("天", "日")))
            yield _exact_words(day), *match.span()
        elif (weekday := _WEEKDAYS.get((named or arabic).lower())) is not None:
            back = (today.weekday() - weekday - 1) % 7 + 1
            yield _exact_words(today - timedelta(days=back)), *match.span()


def _find_spelt(text: str, today: date) -> Iterator[_Found]:
    """Yield "8 May 2023", "May 8th, 2023", "May 2023", "in May" and "2023"."""
    tokens = list(_TOKEN.finditer(text))
    used: set[int] = set()
    for at, token in enumerate(tokens):
        month = _MONTHS.get(token[0].lower())
        if month is None:
            continue
        before, after = _day_before(tokens, at), _day_at(tokens, at + 1)
        first = before if before is not None else at
        last = at
        day = int(tokens[before][0]) if before is not None else None
        if day is None and after is not None:
            day, last = after, at + 1
            last += _is_ordinal(tokens, last + 1)
        year = _year_at(tokens, last + 1)
        if day is None and year is None and not _is_month_alone(tokens, at):
            continue
        last += year is not None
        used |= set(range(first, last + 1))
        yield (
            _date_words(year, month, day),
            tokens[first].start(),
            tokens[last].end(),
        )
    for at, token in enumerate(tokens):
        if at not in used and (year := _year_at(tokens, at)) is not None:
            yield [f"@{year}"], *token.span()


_FINDERS: Final[tuple[Callable[[str, date], Iterator[_Found]], ...]] = (
    _find_numeric,
    _find_dotted,
    _find_ago,
    _find_chinese,
    _find_last_weekday,
    _find_relative,
    _find_spelt,
)


def _at(match: re.Match[str], words: list[str]) -> Iterator[_Found]:
    if words:
        yield words, *match.span()


def _date_words(year: int | None, month: int | None, day: int | None) -> list[str]:
    """Return the words of a date, the most exact first; nothing if there is no such day."""
    if month is None:
        return [f"@{year}"] if year else []
    if not 1 <= month <= 12 or (day is not None and not 1 <= day <= 31):
        return []
    if day is None:
        return [f"@{year}-{month:02}"] if year else [f"@{month:02}"]
    if year:
        return [f"@{year}-{month:02}-{day:02}", f"@{year}-{month:02}"]
    return [f"@{month:02}-{day:02}", f"@{month:02}"]


def _exact_words(day: date) -> list[str]:
    return _date_words(day.year, day.month, day.day)


def _words_ago(today: date, unit: str, count: int) -> list[str]:
    if unit == "day":
        return _exact_words(_back(today, count))
    if unit == "week":
        return [_week_word(_back(today, 7 * count))]
    if unit == "year":
        return [f"@{today.year - count}"]
    months = today.year * 12 + today.month - 1 - count
    return [f"@{months // 12:04}-{months % 12 + 1:02}"]


def _back(today: date, days: int) -> date:
    return date.fromordinal(max(today.toordinal() - days, 1))


@lru_cache(maxsize=1_000)
def _week_word(day: date) -> str:
    year, week, _ = day.isocalendar()
    return f"@{year}-W{week:02}"


def _chinese_number(text: str) -> int:
    if text.isdigit():
        return int(text)
    return 10 + _CHINESE_NUMBERS[text[1]] if len(text) == 2 else _CHINESE_NUMBERS[text]


def _day_at(tokens: list[re.Match[str]], at: int) -> int | None:
    if not 0 <= at < len(tokens) or not tokens[at][0].isdecimal() or len(tokens[at][0]) > 2:
        return None
    day = int(tokens[at][0])
    return day if 1 <= day <= 31 else None


def _day_before(tokens: list[re.Match[str]], at: int) -> int | None:
    """Return where the day stands in "8 May", "8th of May", "8. Mai"; None if there is none."""
    place = at - 1
    while place >= 0 and tokens[place][0].lower() in _ORDINALS:
        place -= 1
    return place if _day_at(tokens, place) is not None else None


def _is_ordinal(tokens: list[re.Match[str]], at: int) -> bool:
    return at < len(tokens) and tokens[at][0].lower() in ("st", "nd", "rd", "th")


def _year_at(tokens: list[re.Match[str]], at: int) -> int | None:
    if not 0 <= at < len(tokens) or not _YEAR.fullmatch(tokens[at][0]):
        return None
    return int(tokens[at][0])


def _is_month_alone(tokens: list[re.Match[str]], at: int) -> bool:
    """Whether a month without a day or year is meant.

    Short names, and names that are also ordinary words, only count after a preposition ("in May").
    """
    name = tokens[at][0]
    is_named = at > 0 and tokens[at - 1][0].lower() in _BEFORE_A_MONTH
    if name.lower() in _ALSO_WORDS:
        return is_named and (name[0].isupper() or not name.isascii())
    return is_named or len(name) > 4 or not name.isascii()
