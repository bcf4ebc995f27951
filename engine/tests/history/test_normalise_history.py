"""The history normaliser: the shared cases, and a table for every rule."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from engine.history.normaliser import NoHumanMessage
from engine.history.prompt import LIBRARY_EMPTY_PROMPT, LIBRARY_PROMPT, TOOL_FAILED
from engine.messages import Message
from engine.tests.history.cases import CASES, load_cases, main, run_case
from engine.tests.history.rows import (
    AT,
    BO,
    CAT,
    CAT_PART,
    NOTES,
    SENT,
    WARNING,
    answer,
    attached,
    called,
    calling,
    human,
    knowledge,
    result,
    run,
    said,
    system,
    text,
    told,
)
from engine.tool_calls import ToolCall


@pytest.mark.parametrize("case", load_cases(CASES), ids=lambda case: case["name"])
def test_shared_case(case):
    assert run_case(case["input"]) == case["expected"]


def test_the_runner_says_how_many_passed_and_fails_when_one_fails(tmp_path, capsys):
    assert main([str(CASES)]) == 0
    passed = len(load_cases(CASES))
    assert capsys.readouterr().out.endswith(f"{passed} passed, 0 failed\n")
    wrong = tmp_path / "wrong.json"
    wrong.write_text('{"cases": [{"name": "n", "input": {"messages": []}, "expected": []}]}')
    assert main([str(wrong)]) == 1
    shown = capsys.readouterr().out
    assert "NoHumanMessage" in shown
    assert shown.endswith("0 passed, 1 failed\n")
    assert main([]) == 2


Q = human("q")


@pytest.mark.parametrize(
    ("made", "prompt"),
    [
        (lambda: run(Q, prompts=["a", " \n", "b "]), "a\nb "),
        (lambda: run(system("s"), Message("hide_system", "h"), Q, prompts=["a"]), "a\ns\nh"),
        (lambda: run(system(" "), system("s"), Q), "s"),
        (lambda: run(system("a\n\n\nb\r\n"), Q), "a\n\n\nb\r\n"),
        (lambda: run(system("s"), Q, cut=True), "s"),
        (lambda: run(system("s"), Q, prompts=["a", "s0"], cut=True), "a\ns0\ns"),
    ],
)
def test_rule_1_the_system_prompt(made, prompt):
    assert made() == [said("system", prompt), said("user", "q")]


def test_rule_1_only_what_opens_the_history_joins_the_prompt():
    made = run(system("s"), answer("hi"), system("later"), Q, prompts=["a"])
    assert made[0] == said("system", "a\ns")
    assert made[2] == said("system", "later")


def test_rule_2_later_system_messages_stay_in_place_and_empty_ones_go():
    made = run(Q, answer("a"), Message("hide_system", "x"), system(" \n"), system("y "), Q)
    assert made == [
        said("user", "q"),
        said("assistant", "a"),
        said("system", "x\ny "),
        said("user", "q"),
    ]


@pytest.mark.parametrize(
    ("message", "content"),
    [
        (human("a\r\n\r\nb", AT), f"{SENT}a\nb"),
        (human("a\n\n\nb"), "a\nb"),
        (human("  a  \n", AT), f"{SENT}  a  \n"),
        (human("```\n\n\n"), "```\n\n\n"),
        (Message("hide_human", "a\n\nb", AT), "a\nb"),
    ],
)
def test_rule_3_human(message, content):
    assert run(message) == [said("user", content)]


def test_rule_3_later_humans_collapse_and_carry_no_time():
    assert run(Message("human_later", "a\n\nb", AT), Q) == [said("user", "a\nb\nq")]


@pytest.mark.parametrize("role", ["human", "hide_human", "human_later"])
def test_rule_3_white_space_is_dropped(role):
    assert run(Message(role, " \r\n\t", AT), Q) == [said("user", "q")]


def test_rule_3_time_zones_with_daylight_saving():
    made = run(human("q", datetime(2024, 7, 1, tzinfo=UTC)), time_zone="Europe/Berlin")
    assert made == [said("user", "[Sent at 2024-07-01 02:00:00]\nq")]
    assert run(human("q", AT), time_zone="No/Where") == [said("user", f"{SENT}q")]


def test_rule_4_answers_carry_the_time_and_keep_their_newlines():
    assert run(answer("a\n\n\r\nb\n", at=AT), Q)[0] == said("assistant", f"{SENT}a\n\n\r\nb\n")
    assert run(answer(" \n"), Q) == [said("user", "q")]


@pytest.mark.parametrize(
    ("author", "responding", "at", "warning"),
    [
        (BO, "a1", AT, f"{WARNING}, replied at 2024-03-21 03:14:01"),
        (BO, "a1", None, WARNING),
        (BO, None, None, WARNING),
        (BO, "b2", AT, None),
        (None, "a1", AT, None),
    ],
)
def test_rule_4_another_assistants_answer_is_announced(author, responding, at, warning):
    made = run(Q, answer("x", author, at), Q, responding=responding)
    assert made[1:-1] == [
        *([said("system", warning)] if warning else []),
        said("assistant", (SENT if at else "") + "x"),
    ]


def test_rule_4_an_empty_answer_is_not_announced_and_each_full_one_is():
    made = run(Q, answer(" ", BO), answer("x", BO), answer("y", BO), answer("z"), Q)
    roles = [message["role"] for message in made]
    assert roles == ["user", "system", "assistant", "system", "assistant", "user"]
    assert made[4] == said("assistant", "y\nz")


def test_rule_5_calls_of_one_reply_stand_together_with_the_first_text():
    made = run(Q, called("a", "r", " "), called("b", "r", "Look "), called("c", "r", "no"))
    failed = [told(call_id, TOOL_FAILED) for call_id in "abc"]
    assert made[1:] == [calling("a", "b", "c", text="Look "), *failed]


def test_rule_5_calls_without_a_reply_stand_alone():
    made = run(Q, called("a"), called("b"), result("b", "2"), result("a", "1"))
    assert made[1:] == [calling("a"), told("a", "1"), calling("b"), told("b", "2")]


def test_rule_5_results_are_fetched_from_later_and_never_from_earlier():
    made = run(result("a", "early"), Q, called("a"), human("wait"), answer("ok"), result("a"))
    assert made == [said("user", "q"), calling("a"), told("a"), *made[3:]]
    assert made[3:] == [said("user", "wait"), said("assistant", "ok")]
    assert run(result("a", "early"), Q, called("a"))[-1] == told("a", TOOL_FAILED)


def test_rule_5_calls_of_one_reply_are_gathered_where_the_first_stands():
    made = run(Q, called("a", "r"), human("x"), called("b", "r"), result("b"), result("a"))
    assert made[1:] == [calling("a", "b"), told("a"), told("b"), said("user", "x")]


def test_rule_5_a_reused_id_takes_the_next_result():
    made = run(Q, called("x"), called("x"), result("x", "1"), result("x", "2"), result("x", "3"))
    assert made[1:] == [calling("x"), told("x", "1"), calling("x"), told("x", "2")]
    made = run(Q, called("x", "r"), called("x", "r"), result("x", "1"))
    assert made[1:] == [calling("x", "x"), told("x", "1"), told("x", TOOL_FAILED)]
    made = run(Q, called("x"), result("x", "1"), result("x", "2"), called("x"))
    assert made[1:] == [calling("x"), told("x", "1"), calling("x"), told("x", TOOL_FAILED)]


def test_rule_5_results_are_kept_as_they_are_even_empty_ones():
    made = run(Q, called("a", arguments="{bad"), result("a", ""))
    assert made[1]["tool_calls"][0]["function"]["arguments"] == "{bad"
    assert made[2] == told("a", "")
    assert run(Q, called("a"), result("a", " \n\n "))[2] == told("a", " \n\n ")


def test_rule_5_rows_without_a_call_are_dropped():
    assert run(Message("tool", "x"), Message("tool_call", "y"), Q) == [said("user", "q")]


@pytest.mark.parametrize(
    ("files", "content"),
    [
        ([attached(CAT)], [CAT_PART, text("q")]),
        ([attached(CAT, "my cat")], [CAT_PART, text("my cat\nq")]),
        ([attached(NOTES)], "[file: notes.md]\n# Notes\nq"),
        ([attached(replace(NOTES, text=None))], "[file: notes.md]\nq"),
        ([attached(replace(NOTES, text=" \n"))], "[file: notes.md]\nq"),
        ([attached(replace(NOTES, text="a\n\n\nb "))], "[file: notes.md]\na\n\n\nb \nq"),
        (
            [attached(NOTES), attached(CAT)],
            [text("[file: notes.md]\n# Notes"), CAT_PART, text("q")],
        ),
        ([attached(CAT), attached(CAT)], [CAT_PART, CAT_PART, text("q")]),
        ([attached(replace(CAT, url=""))], "[image: cat.png]\nq"),
        ([attached(None)], "[a file that was deleted]\nq"),
        ([attached(None, "my cat")], "[a file that was deleted]\nmy cat\nq"),
    ],
)
def test_rule_6_files_join_the_human_message_after_them(files, content):
    assert run(*files, Q) == [said("user", content)]


def test_rule_6_a_model_without_vision_reads_the_name():
    assert run(attached(CAT), Q, vision=False) == [said("user", "[image: cat.png]\nq")]
    assert run(attached(NOTES), Q, vision=False) == [said("user", "[file: notes.md]\n# Notes\nq")]


def test_rule_6_a_file_without_a_question_after_it_is_kept():
    assert run(Q, answer("a"), attached(CAT))[-1] == said("user", [CAT_PART])
    assert run(Q, attached(CAT)) == [said("user", [text("q"), CAT_PART])]


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ([Q, knowledge("k")], [f"{LIBRARY_PROMPT}\nk"]),
        ([Q, knowledge("k"), answer("a")], [f"{LIBRARY_PROMPT}\nk"]),
        ([Q, knowledge("old"), knowledge("k ")], [f"{LIBRARY_PROMPT}\nk "]),
        ([Q, knowledge("old"), knowledge(" \n")], [LIBRARY_EMPTY_PROMPT]),
        ([Q, knowledge("k"), Message("human_later", "x")], [f"{LIBRARY_PROMPT}\nk"]),
        ([knowledge("k"), Q], []),
        ([Q, knowledge("k"), Message("hide_human", "x")], []),
    ],
)
def test_rule_7_knowledge_counts_after_the_last_question_only(messages, found):
    made = run(*messages, prompts=["p"], volatile=["v"])
    varying = "\n".join(["v", *found])
    assert [m for m in made if m["role"] == "system"] in (
        [said("system", f"p\n{varying}")],
        [said("system", "p"), said("system", varying)],
    )


def test_rule_8_neighbours_of_different_names_stay_apart():
    ann, bo = (human(text)._replace(name=name) for text, name in (("a", "ann"), ("b", "bo")))
    pictured = attached(CAT)._replace(name="ann")
    assert run(ann, pictured, bo, human("c")) == [
        {"role": "user", "content": [text("a"), CAT_PART], "name": "ann"},
        {"role": "user", "content": "b", "name": "bo"},
        {"role": "user", "content": "c"},
    ]


def test_rule_8_neighbours_merge_after_everything_between_them_is_gone():
    made = run(
        answer("a"), answer(" "), answer("b"), knowledge("x"), answer("c"), called("1", text="t"),
        answer("d"), Q, result("9"), attached(CAT), Message("human_later", "l"), system(""), Q,
    )  # fmt: skip
    assert made == [
        said("assistant", "a\nb\nc"),
        calling("1", text="t"),
        told("1", TOOL_FAILED),
        said("assistant", "d"),
        said("user", [text("q"), CAT_PART, text("l\nq")]),
    ]


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [system("s")],
        [answer("a")],
        [Message("human_later", "x")],
        [attached(CAT)],
        [human(" ")],
        [human("\n"), answer("a"), system("s")],
        [called("a"), result("a")],
    ],
)
@pytest.mark.parametrize("position", ["first", "last", "only_first"])
def test_rule_9_nobody_asked(messages, position):
    with pytest.raises(NoHumanMessage):
        run(*messages, prompts=["p"], volatile=["v"], system_position=position)


def test_rule_9_an_empty_question_counts_when_something_to_answer_is_left():
    assert run(attached(CAT), human(" ")) == [said("user", [CAT_PART])]
    assert run(Message("human_later", "x"), human(" ")) == [said("user", "x")]


TOOLS = [human("q1"), answer("a1"), human("q2"), called("c"), result("c")]


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (
            "first",
            [
                said("system", "p"),
                said("user", "q1"),
                said("assistant", "a1"),
                said("system", "v1\nv2"),
                said("user", "q2"),
                calling("c"),
                told("c"),
            ],
        ),
        (
            "last",
            [
                said("user", "q1"),
                said("assistant", "a1"),
                said("user", "q2"),
                calling("c"),
                told("c"),
                said("system", "p\nv1\nv2"),
            ],
        ),
        (
            "only_first",
            [
                said("system", "p\nv1\nv2"),
                said("user", "q1"),
                said("assistant", "a1"),
                said("user", "q2"),
                calling("c"),
                told("c"),
            ],
        ),
    ],
)
def test_rule_10_position(position, expected):
    made = run(*TOOLS, prompts=["p"], volatile=["v1", " ", "v2"], system_position=position)
    assert made == expected


def test_what_a_tool_made_is_shown_behind_its_round_and_is_nobodys_question():
    """What varies stays in front of the question: the prefix up to it is the same in each step."""
    made = Message("file", file=CAT, tool_call=ToolCall("c", "f", ""))
    chat = [human("q"), called("c"), result("c")]
    shown = [said("user", "q"), calling("c"), told("c"), said("user", [CAT_PART])]
    assert run(*chat, made, volatile=["v"]) == [said("system", "v"), *shown]
    assert run(*chat, made, vision=False)[-1] == said("user", "[image: cat.png]")
    again = run(*chat, made, human("q2"), volatile=["v"])
    assert again[-1] == said("user", [CAT_PART, text("q2")])
    assert again[-2] == said("system", "v")


def test_a_document_that_a_tool_made_is_only_named():
    """The result says what the model shall know of it; the text may be as long as it likes."""
    made = Message("file", file=NOTES, tool_call=ToolCall("c", "f", ""))
    assert run(Q, called("c"), result("c"), made)[-1] == said("user", "[file: notes.md]")


def test_something_a_tool_made_asks_nothing():
    made = Message("file", file=CAT, tool_call=ToolCall("c", "f", ""))
    with pytest.raises(NoHumanMessage):
        run(human(" "), called("c"), result("c"), made)


def test_rule_10_placed_prompts_merge_with_the_system_messages_beside_them():
    chat = [human("q1"), answer("a"), system("s"), Q]
    assert run(*chat, volatile=["v"])[-2:] == [said("system", "s\nv"), said("user", "q")]
    made = run(*chat, system("t"), prompts=["p"], volatile=["v"], system_position="last")
    assert made[-1] == said("system", "t\np\nv")
    assert run(answer("x", BO), Q, prompts=["p"])[0] == said("system", f"p\n{WARNING}")


def test_rule_10_only_first_folds_system_messages_into_the_next_user_message():
    made = run(
        Q, system("a"), system("b"), answer("x"), system("c"), attached(CAT), Q,
        answer("y"), system("d"), answer("z", BO), system_position="only_first",
    )  # fmt: skip
    assert made == [
        said("user", "q"),
        said("assistant", "x"),
        said("user", [text("[System] a\nb\n[System] c"), CAT_PART, text("q")]),
        said("assistant", "y\nz"),
        said("user", f"[System] d\n{WARNING}"),
    ]


def test_rule_10_only_first_without_prompts_has_no_system_message():
    made = run(system("s"), Q, cut=True, system_position="only_first")
    assert made == [said("user", "[System] s\nq")]
