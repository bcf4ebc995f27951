"""When two statements are the same, and what a person asked to be remembered."""

import pytest

from memory.extraction.explicit_statements import explicit_statements
from memory.facts.fact_matching import can_be_same, contradicts, fingerprint, subject_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I like tea.", "i like  TEA"),
        ("我喜欢茶。", "我喜欢茶"),
        ("ＡＢＣ", "abc"),
    ],
)
def test_case_punctuation_and_width_do_not_matter(one, other):
    assert fingerprint(one) == fingerprint(other)


def test_other_words_matter():
    assert fingerprint("I like tea") != fingerprint("I like coffee")
    assert fingerprint("我喜欢茶") != fingerprint("我喜欢酒")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("The user likes tea", "The user enjoys tea", True),
        ("The PIN is 1234", "The PIN is 1235", False),
        ("The user likes tea", "The user doesn't like tea", False),
        ("The user works at Acme", "The user no longer works at Acme", False),
        ("用户喜欢茶", "用户不喜欢茶", False),
        ("用户2024年搬到北京", "用户2023年搬到北京", False),
    ],
)
def test_numbers_and_negations_must_agree(one, other, expected):
    assert can_be_same(one, other) is expected


@pytest.mark.parametrize(
    ("statement", "subject"),
    [
        ("my favourite colour is blue", "favourite colour"),
        ("My cat is called Biscuit", "cat"),
        ("The user's cat's name is Biscuit", "cat"),
        ("My sister's phone number is 1234", "sister's phone number"),
        ("我的猫叫小白", "猫"),
        ("我的生日是五月三日", "生日"),
        ("The user's cat is old", None),
        ("My wife is a doctor", None),
        ("My brother is called Tom", None),
        ("I like tea", None),
        ("blue is my colour", None),
    ],
)
def test_what_a_statement_tells_of(statement, subject):
    said = subject_of(statement)
    assert (said and said.partition(" ")[2]) == subject


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("My favourite colour is blue", "my favourite colour is green", True),
        ("The user lives in Rome", "The user lives in Oslo", True),
        ("I am 40 years old", "I am 41 years old", True),
        ("我住在北京", "我住在上海", True),
        ("The user likes tea", "The user doesn't like tea", True),
        ("I eat meat", "I do not eat meat any more", True),
        ("The user works at Acme", "The user no longer works at Acme", True),
        ("我吃肉", "我不吃肉", True),
        ("The user likes tea", "the user likes TEA.", False),
        ("The user likes tea", "The user doesn't like coffee", False),
        ("My cat is old", "My cat is black", False),
        ("My friend is called Tom", "My friend is called Bob", False),
        ("My cat is called Biscuit", "My dog is called Rex", False),
    ],
)
def test_one_value_at_a_time_and_denials_contradict(one, other, expected):
    assert contradicts(one, other) is expected
    assert contradicts(other, one) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Please remember that my cat is called Biscuit.", ["my cat is called Biscuit"]),
        ("Remember: I live in Rome. What is on today?", ["I live in Rome"]),
        ("Hi!\nRemember that I am 40.\nAnd note that I smoke.", ["I am 40", "I smoke"]),
        ("Don't forget that v1.2 ships on 3 May. Thanks!", ["v1.2 ships on 3 May"]),
        ("记住我的猫叫小白。", ["我的猫叫小白"]),
        ("你好。请帮我记住：我对花生过敏", ["我对花生过敏"]),
        ("别忘了我周五休息！", ["我周五休息"]),
        ("Do you remember that song?", []),
        ("Remember that song?", []),
        ("I remember that day well.", []),
        ("你记得我叫什么吗？", []),
        ("What is the capital of France?", []),
        ("", []),
    ],
)
def test_only_explicit_statements_are_found(text, expected):
    assert explicit_statements(text) == expected
