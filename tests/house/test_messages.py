"""Every text that people read is translated, in a file that is compiled, and nothing in it is left over."""

import ast
import re
from string import Formatter

import pytest

from tests.house import messages

HAN = re.compile(r"[一-鿿]")
NAMES = re.compile(r"[A-Za-z0-9 .\-/：]+")
PLACEHOLDER = re.compile(r"%\(\w+\)s|%[sd]")
MARKUP = re.compile(r"</?\w+[^>]*>")
NAMES_ALONE = {
    *("Amber", "Anthropic", "Azure OpenAI", "DeepSeek", "Gemini", "Groq", "LM Studio", "Mistral"),
    *("Ollama", "OpenAI", "OpenRouter", "Responses", "vLLM", "ID", "Web"),
    *("English", "Deutsch", "简体中文"),
}
ALSO_GERMAN = {
    *("Admin", "Budgets", "Chat", "Chats", "Discovery", "Embedding", "Feedback", "Name", "OK"),
    *("Person", "Rerank", "Test", "Tokens", "Webhooks"),
    *("%(minutes)s min %(seconds)02d s", "%(seconds)s s"),
}
UNCHANGED = {"de": NAMES_ALONE | ALSO_GERMAN, "zh_Hans": NAMES_ALONE}
"""What is the same in the language as in English."""


@pytest.fixture(scope="module", params=messages.LOCALES)
def path(request):
    return messages.LOCALES[request.param]


@pytest.fixture(scope="module")
def translations(path):
    return messages.translations_of(path)


def test_every_text_stands_in_the_file_and_nothing_else_does(path, translations):
    """`make messages` brings it up to date; then a person translates what is new."""
    assert messages.texts() == set(translations)


def test_nothing_is_left_untranslated_or_in_doubt(path, translations):
    assert not [text for text, said in translations.items() if not "".join(said)]
    assert not [
        message.id for message in messages.catalogue_of(path) if message.id and message.fuzzy
    ]
    same = {text for text, said in translations.items() if said == text}
    assert not same - UNCHANGED[path.parts[-3]]


def test_what_is_chinese_is_written_in_chinese():
    translations = messages.translations_of(messages.LOCALES["zh_Hans"])
    assert not [
        text for text, said in translations.items() if said != text and not says_something(said)
    ]


def says_something(said):
    words = PLACEHOLDER.sub("", "".join(said))
    return HAN.search(words) or NAMES.fullmatch(words)


def test_what_is_filled_in_agrees(translations):
    for text, said in translations.items():
        one, other = (text, said) if isinstance(text, str) else (text[-1], said[-1])
        assert filled_in(one) == filled_in(other), text


def filled_in(text):
    """The placeholders of both forms, and the markup, in the order of the alphabet."""
    names = (
        []
        if PLACEHOLDER.search(text)
        else [name or "" for _, name, _, _ in Formatter().parse(text) if name is not None]
    )
    return sorted(names), sorted(PLACEHOLDER.findall(text)), sorted(MARKUP.findall(text))


def test_the_file_is_compiled(path):
    wanted = messages.compiled(messages.catalogue_of(path))
    assert messages.compiled_path(path).read_bytes() == wanted, "make messages"


SHOWN = {"description", "label", "help_text", "title", "verbose_name"}


def test_texts_of_the_admins_pages_are_looked_up():
    """A text that is given to a page as it stands would be English for everybody."""
    bare = [
        f"{path.relative_to(messages.ROOT)}:{text.lineno}: {text.value}"
        for path in sorted(messages.ROOT.glob("*/admin.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        for text in shown_texts(node)
        if isinstance(text, ast.Constant)
        and isinstance(text.value, str)
        and " " in text.value
        and "==" not in text.value
    ]
    assert not bare, "\n".join(bare)


def shown_texts(node):
    """The expressions of a call, or of a table of help texts, that people read."""
    match node:
        case ast.Call(func=function, args=args, keywords=keywords):
            yield from (each.value for each in keywords if each.arg in SHOWN)
            name = getattr(function, "attr", getattr(function, "id", ""))
            if name in ("message_user", "success", "warning", "error", "add_error"):
                yield from args[1:2]
            elif name == "ValidationError":
                yield from args[:1]
        case ast.Dict(values=values):
            yield from (each for each in values if isinstance(getattr(each, "value", None), str))
