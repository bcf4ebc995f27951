"""When two statements are the same, and what a person asked to be remembered."""

import pytest

from memory.extraction.explicit_statements import explicit_statements
from memory.extraction.subjects import subjects_in
from memory.facts.attributes import attribute_of
from memory.facts.fact_matching import can_be_same, contradicts, fingerprint


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
    ("statement", "subject", "value"),
    [
        ("my favourite colour is blue", "favourite colour", "blue"),
        ("My cat is called Biscuit", "named cat", "Biscuit"),
        ("The user's cat's name is Biscuit", "named cat", "Biscuit"),
        ("My sister's phone number is 1234", "sister's phone number", "1234"),
        ("I have a new dentist, Dr. Weiss.", "dentist", "Dr. Weiss"),
        ("Dr. Patel is my new doctor", "doctor", "Dr. Patel"),
        ("I have just moved to Lisbon", "home", "Lisbon"),
        ("I now work for Globex", "employer", "Globex"),
        ("我的猫叫小白", "named 猫", "小白"),
        ("我的生日是五月三日", "生日", "五月三日"),
        ("我换了牙医，现在是周大夫", "牙医", "周大夫"),
        ("我搬到了青岛", "home", "青岛"),
    ],
)
def test_what_a_statement_gives_the_one_value_of(statement, subject, value):
    found = attribute_of(statement)
    assert found is not None
    assert (found.subject, found.value) == (subject, value)


@pytest.mark.parametrize(
    "statement",
    [
        "The user's cat is old",
        "My wife is a doctor",
        "My brother is called Tom",
        "I like tea",
        "blue is my colour",
        "My boss is German",
        "My old landlord is Mr. Kim",
        "I also work for Globex",
        "I live in a small flat",
        "我的老板是北京人",
        "我以前的房东是李女士",
        "我在北京工作",
    ],
)
def test_what_can_be_true_beside_another_is_no_attribute(statement):
    assert attribute_of(statement) is None


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
        ("my landlord is Mr. Novak", "my new landlord is Paul Whitfield", True),
        ("my boss is Anna", "The user's boss is now Tom", True),
        ("my dentist is Dr. Meyer", "I have a new dentist, Dr. Weiss", True),
        ("My dentist is Dr. Meyer", "Dr. Weiss is my new dentist", True),
        ("my doctor is Dr. Rossi", "my GP is Dr. Patel", True),
        ("my partner is Sam", "my partner is called Alex", True),
        ("my employer is Siemens", "I've just joined Globex", True),
        ("my address is 12 Mill Lane", "my new address is 7 Harbour Road", True),
        ("my phone number is 555 0134", "my phone number has changed to 555 0177", True),
        ("I live in Oslo", "I moved to Lisbon last month", True),
        ("My wife is called Clara", "My wife's name is Dana", True),
        ("我的房东叫王强", "我的新房东姓李", True),
        ("我的老板叫张伟", "我的老板现在是刘芳", True),
        ("我的牙医是林医生", "周大夫是我的新牙医", True),
        ("我的公司是远航物流", "我入职了蓝海科技", True),
        ("我的电话号码是13900001234", "我的电话号码改成了13800005678", True),
        ("我住在成都", "我搬到了青岛", True),
        ("my dentist is Dr. Meyer", "my dentist is very nice", False),
        ("my dentist is Dr. Meyer", "my dentist is Dr. Anna Meyer", False),
        ("my boss is Anna", "my boss is from Canada", False),
        ("my boss is Anna", "my boss's boss is Tom", False),
        ("my doctor is Dr. Rossi", "my eye doctor is Dr. Blau", False),
        ("my landlord is Mr. Novak", "my sister's landlord is Mr. Kim", False),
        ("I work for Acme", "I work at a bank", False),
        ("I work at Acme", "I work at home on Fridays", False),
        ("I live in Berlin", "I live in Berlin, Germany", False),
        ("I live in Oslo", "I live in a small flat", False),
        ("my phone is broken", "my phone number is 555 1234", False),
        ("my birthday is in May", "my birthday is on 3 May", False),
        ("my cat is called Biscuit", "my other cat is called Momo", False),
        ("我的牙医是林医生", "我的牙医很温柔", False),
        ("我的朋友叫小明", "我的朋友叫小红", False),
        ("我的房东姓王", "我的房东是王先生", False),
        ("我在北京工作", "我在腾讯公司工作", False),
        ("我的妻子叫小梅", "我的妻子是老师", False),
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
        ("Remember that my dentist is Dr. Meyer. Thanks!", ["my dentist is Dr. Meyer"]),
        ("Note that my boss is J. K. Rowling. She is nice.", ["my boss is J. K. Rowling"]),
        ("Remember that I was born in St. Louis. Ok?", ["I was born in St. Louis"]),
        ("Remember that I work for Acme Inc. in Rome. Hi!", ["I work for Acme Inc. in Rome"]),
        ("Remember that I need milk etc. My cat too.", ["I need milk etc"]),
        ("Remember that I take vitamin C. My doctor said so.", ["I take vitamin C"]),
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


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("By the way, I moved to Lisbon and my new landlord is Paul.", "landlord"),
        ("We finally found a new flat!", "address"),
        ("I quit. Starting at Globex on Monday.", "employer"),
        ("我上个月搬到青岛了，新房东姓李。", "房东"),
    ],
)
def test_a_message_touches_more_subjects_than_it_names(text, subject):
    assert subject in subjects_in(text)


def test_a_message_about_the_world_touches_none():
    assert not subjects_in("Explain how photosynthesis turns light into sugar.")
