import pytest

from amber.lib.errors import Invalid
from tools.mcp.source import MCPSource
from tools.source import Connection

BEARER = {"type": "bearer"}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"auth": BEARER},
        {"auth": {"type": "basic"}},
        {"auth": {"type": "header", "name": "X-Api-Key"}},
        {"ask_first": ["send_mail"]},
        {"auth": BEARER, "ask_first": []},
    ],
    ids=str,
)
def test_options_are_stored_as_they_are(options):
    assert MCPSource().check_options(options) == options


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"headers": {"Authorization": "Bearer secret"}}, "options.headers"),
        ({"auth": "bearer"}, "options.auth"),
        ({"auth": {}}, "options.auth.type"),
        ({"auth": {"type": "digest"}}, "options.auth.type"),
        ({"auth": {"type": ["bearer"]}}, "options.auth.type"),
        ({"auth": {"type": "bearer", "token": "secret"}}, "options.auth.token"),
        ({"auth": {"type": "bearer", "name": "X"}}, "options.auth.name"),
        ({"auth": {"type": "header"}}, "options.auth.name"),
        ({"auth": {"type": "header", "name": "X-Api-Key: secret"}}, "options.auth.name"),
        ({"auth": {"type": "header", "name": "Host"}}, "options.auth.name"),
        ({"auth": {"type": "header", "name": "mcp-session-id"}}, "options.auth.name"),
        ({"auth": {"type": "header", "name": "Content-Type"}}, "options.auth.name"),
        ({"ask_first": "all"}, "options.ask_first"),
        ({"ask_first": [1]}, "options.ask_first"),
        ({"ask_first": ["x"] * 1_000}, "options.ask_first"),
    ],
    ids=str,
)
def test_what_is_no_option_is_refused_by_name(options, place):
    with pytest.raises(Invalid) as caught:
        MCPSource().check_options(options)
    assert list(caught.value.fields or {}) == [place]
    assert "secret" not in str(caught.value.fields)


def test_functions_that_ask_first_are_the_owners_choice():
    listed = [{"name": n, "description": n, "parameters": dict[str, str]()} for n in ("a", "b")]
    connection = Connection("https://mcp.example.com/", options={"ask_first": ["b"]}, name="T")
    functions = MCPSource().functions(connection, {"functions": listed})
    assert [(each.spec.name, each.source, each.asks_first) for each in functions] == [
        ("a", "T", False),
        ("b", "T", True),
    ]
