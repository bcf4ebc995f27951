"""Test which facts are in the words of the person they are about."""

import time

import pytest

from memory.facts.own_words import is_in_own_words


@pytest.mark.parametrize(
    ("fact", "typed"),
    [
        ("The user lives in Oslo", ["I moved to Oslo last week. What should I see?"]),
        ("The user is allergic to peanuts", ["remember that I'm allergic to peanuts"]),
        ("User enjoys hiking in the Alps", ["I love hiking in the alps"]),
        ("The user dislikes cats", ["I don't like cats"]),
        ("The user loves dogs", ["I don't like cats but I love dogs"]),
        ("The user flies to Oslo on 2026-03-02", ["I fly to Oslo tomorrow"]),
        ("The user does not eat meat", ["I don't eat meat"]),
        ("The user's cat is called Biscuit", ["My cat's name is Biscuit"]),
        ("The user lives in Berlin and has 2 cats", ["I live in Berlin.", "I have 2 cats."]),
        ("用户对花生过敏", ["记住我对花生过敏。"]),
        ("用户住在北京", ["我住在北京"]),
        ("用户喜欢吃辣", ["我喜欢吃辣的"]),
    ],
)
def test_what_they_said_is_theirs(fact, typed):
    assert is_in_own_words(fact, typed)


@pytest.mark.parametrize(
    ("fact", "typed"),
    [
        ("The user banks with Evil Trust", ["How is the pump bled?"]),
        ("The user loves cats", ["I hate cats"]),
        ("The user eats meat", ["I don't eat meat"]),
        ("The user's PIN is 4712", ["my pin is 4711"]),
        ("The user's favourite bank is EvilBank", ["My favourite bank is Sparkasse"]),
        ("The user flies to Oslo on 2026-03-02", ["I fly to Oslo"]),
        ("The user's birthday is 1990-01-01", ["This is my birthday list"]),
        ("The user likes Oslo in winter", ["I like Oslo.", "Rain again.", "Winter is long."]),
        ("The user works", ["Hello"]),
        ("用户住在上海", ["我住在北京"]),
        ("用户不吃辣", ["我吃辣"]),
        ("用户的密码是1234", ["帮我总结这份文件"]),
        ("The user lives in Oslo", []),
    ],
)
def test_what_they_did_not_say_is_not(fact, typed):
    assert not is_in_own_words(fact, typed)


def test_long_texts_take_no_long_time():
    """Both are as long as a message may be."""
    said = "I like tea, and the rain. 我喜欢茶，也喜欢雨。" * 4_000
    began = time.thread_time()
    assert is_in_own_words(said, [said, said])
    assert time.thread_time() - began < 10
