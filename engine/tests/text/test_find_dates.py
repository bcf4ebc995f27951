"""Test that dates in questions and in messages become the same words."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text import dates
from engine.text.dates import (
    HOW_MANY,
    WHEN,
    DatesFound,
    asked_kind,
    day_words,
    find_dates,
    told_words,
)

TODAY = date(2023, 5, 10)  # a Wednesday


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What did Ines do in March 2024?", "@2024-03"),
        ("on 8 May, 2023", "@2023-05-08 @2023-05"),
        ("May 8th, 2023", "@2023-05-08 @2023-05"),
        ("on the 8th of May", "@05-08 @05"),
        ("in May", "@05"),
        ("in June", "@06"),
        ("since july", "@07"),
        ("im Juli", "@07"),
        ("in 2022", "@2022"),
        ("2023-05-08", "@2023-05-08 @2023-05"),
        ("yesterday", "@2023-05-09 @2023-05"),
        ("last Wednesday", "@2023-05-03 @2023-05"),
        ("last week", "@2023-W18"),
        ("two weeks ago", "@2023-W17"),
        ("five months ago", "@2022-12"),
        ("am 8. Mai 2023", "@2023-05-08 @2023-05"),
        ("3.5.2023", "@2023-05-03 @2023-05"),
        ("vor drei Wochen", "@2023-W16"),
        ("letzten Dienstag", "@2023-05-09 @2023-05"),
        ("8 мая 2023 года", "@2023-05-08 @2023-05"),
        ("в мае", "@05"),
        ("два месяца назад", "@2023-03"),
        ("в прошлый вторник", "@2023-05-09 @2023-05"),
        ("في مايو", "@05"),
        ("الثلاثاء الماضي", "@2023-05-09 @2023-05"),
        ("الأسبوع الماضي", "@2023-W18"),
        ("2023年5月8日", "@2023-05-08 @2023-05"),
        ("十二月", "@12"),
        ("上周三", "@2023-05-03 @2023-05"),
        ("三天前", "@2023-05-07 @2023-05"),
        ("12个月前", "@2022-05"),
    ],
)
def test_a_date_is_found_however_it_is_said(text, words):
    assert find_dates(text, TODAY).words == tuple(words.split())


@pytest.mark.parametrize(
    "text", ["I may go", "march on", "June told me", "a dec", "call me at 12", "room 305", "31.13."]
)
def test_what_is_no_date_is_left_alone(text):
    assert find_dates(text, TODAY) == DatesFound((), text)


def test_the_rest_of_the_question_is_without_the_date():
    assert find_dates("What did Ines sell on 8 May 2023?", TODAY).rest.split() == [
        "What",
        "did",
        "Ines",
        "sell",
        "on",
        "?",
    ]


@given(st.dates(date(1950, 1, 1), date(2090, 1, 1)))
def test_a_day_that_is_spelt_out_is_found_by_the_words_of_that_day(day):
    for text in (f"{day:%Y-%m-%d}", f"{day:%d} {day:%B} {day:%Y}", f"{day:%B} {day:%Y}"):
        found = find_dates(f"it was {text} then", TODAY).words
        assert found
        assert set(found) <= set(day_words(day))


@given(st.dates(date(1950, 1, 1), date(2090, 1, 1)), st.integers(1, 400))
def test_days_ago_are_counted(day, count):
    assert set(find_dates(f"{count} days ago", day).words) <= set(
        day_words(day - timedelta(days=count))
    )


@given(st.text(max_size=200), st.dates())
def test_any_text_can_be_read(text, day):
    assert all(word.startswith("@") for word in told_words(text, day))


def test_a_question_for_a_date_or_a_number_asks_for_what_tells_one():
    assert asked_kind("When did Clara move?") == (WHEN,)
    assert asked_kind("Wie viele Hunde hat sie?") == (HOW_MANY,)
    assert asked_kind("Who moved?") == ()
    assert set(told_words("She moved yesterday with 3 dogs.", TODAY)) >= {WHEN, HOW_MANY}


_PARTS = (
    "the day before yesterday last past night week weekend month year days weeks months years ago two a three 12 couple of"
    " vor zwei tagen einer woche monaten jahren vorgestern gestern letzte letzten letztes wochenende monat jahr"
    " позавчера вчера прошлой прошлую неделе недели месяц год две дня лет назад أول أمس الأسبوع الشهر العام السنة"
    " الماضي الماضية 前天 昨天 昨晚 上 个 星期 周 月 上周三 去年 两 三 天 年 以 前 Иван Ann 天气"
)


@given(
    st.lists(st.sampled_from(_PARTS.split()), max_size=6), st.sampled_from(("", " ")), st.booleans()
)
def test_what_is_looked_for_first_is_in_every_date_that_is_found(parts, between, upper):
    text = between.join(parts).upper() if upper else between.join(parts)
    if dates._AGO.search(text):
        assert dates._MAYBE_AGO.search(text)
    if any(pattern.search(text) for pattern, _, _ in dates._RELATIVE):
        assert dates._MAYBE_RELATIVE.search(text)


@pytest.mark.parametrize("today", [date.min, date.max])
@pytest.mark.parametrize("text", ["last Monday", "yesterday", "上周一", "last week", "9 years ago"])
def test_there_is_nothing_before_or_after_the_calendar(text, today):
    assert told_words(text, today) is not None
