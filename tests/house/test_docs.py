"""Documents that cannot rot: what they say of settings, events, tools, codes and links is held
against the code (after datasette's tests/house/test_docs.py)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from django.urls import Resolver404, resolve

from accounts.audit_actions import AuditAction
from amber.lib.errors import CODES, RETRYABLE
from amber.lib.tracing import names
from engine.events import EVENT_TYPES, LAST_EVENTS
from tests.house import structure
from tools.calling.registry import builtin_names

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md"), *ROOT.glob("examples/*.md")])
SOURCES = sorted(
    path
    for place in [ROOT / "manage.py", *(ROOT / app for app in structure.APPS)]
    for path in ([place] if place.is_file() else place.rglob("*.py"))
    if "tests" not in path.parts
)
INTERNAL = {"AMBER_SUPERVISED_BY", "AMBER_ROLE", "AMBER_CONNECT_AS"}
"""Set by Amber for its own processes."""

SETTING = re.compile(r"(AMBER|OPENAI)_[A-Z_]+|DATABASE(_REPLICA)?_URL|REDIS_URL")
READERS = {
    "read_storage",
    *("text", "number", "integer", "flag", "words", "choice", "origins", "hosts", "folder", "get"),
    *("database", "database_place", "replica", "mail_server", "secret_keys", "address", "numeral"),
    *("line", "logo", "colour"),
}
UNKNOWN = object()
"""A default that is computed."""


def rows(text: str) -> Iterator[list[str]]:
    """The cells of each row of Markdown's tables."""
    for line in text.splitlines():
        if line.startswith("|") and not re.fullmatch(r"[|\s:-]+", line):
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def section(text: str, heading: str) -> str:
    """From a heading to the next of its rank."""
    rank = heading.partition(" ")[0]
    found = re.search(
        rf"^{re.escape(heading)}\n(.*?)(?=^{rank} |\Z)", text, re.DOTALL | re.MULTILINE
    )
    assert found is not None, f"no section {heading!r}"
    return found[1]


# -- Settings ----------------------------------------------------------------------------------


def read_settings() -> dict[str, set[object]]:
    """Every name read from the environment, with the literal defaults it is read with."""
    found: dict[str, set[object]] = {}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            for name, default in _reads(node):
                found.setdefault(name, set())
                if default is not UNKNOWN:
                    found[name].add(default)
    return found


def _reads(node: ast.AST) -> Iterator[tuple[str, object]]:
    match node:
        case ast.BoolOp(values=[ast.Call() as call, ast.Constant(value=default)]):
            yield from ((name, default) for name, _ in _reads(call))
        case ast.Call(func=ast.Attribute(attr=reader), args=[ast.Constant(value=str(name)), *rest]):
            if reader in READERS and SETTING.fullmatch(name):
                yield name, _default(reader, rest)
        case ast.Subscript(value=ast.Attribute(attr="environ"), slice=ast.Constant(value=name)):
            if isinstance(name, str) and SETTING.fullmatch(name):
                yield name, UNKNOWN
        case ast.Assign(targets=[ast.Name(id=target)], value=ast.Constant(value=str(name))):
            if name in INTERNAL:
                yield name, target and UNKNOWN


def _default(reader: str, rest: list[ast.expr]) -> object:
    if not rest:
        return UNKNOWN if reader == "get" else ""
    try:
        return ast.literal_eval(rest[0])
    except ValueError:
        return UNKNOWN


def written(default: object) -> str:
    """A default as the page writes it."""
    match default:
        case bool():
            return "1" if default else "0"
        case tuple():
            return ",".join(default)
        case _:
            return str(default)


def documented_settings() -> dict[str, str]:
    cells = (row for row in rows((DOCS / "settings.md").read_text()) if len(row) == 3)
    return {
        row[0].strip("`"): "" if row[1] == "(empty)" else row[1].strip("`")
        for row in cells
        if SETTING.fullmatch(row[0].strip("`"))
    }


def test_every_setting_that_is_read_is_documented():
    missing = set(read_settings()) - set(documented_settings()) - INTERNAL
    assert not missing
    assert all(f"`{name}`" in (DOCS / "settings.md").read_text() for name in INTERNAL)


def test_every_documented_setting_is_read():
    assert not set(documented_settings()) - set(read_settings())


def test_settings_are_documented_with_their_defaults():
    said = documented_settings()
    defaults = {n: found for n, found in read_settings().items() if n not in INTERNAL}
    # A name may be looked at in several places; where some have no default, the others count.
    literal = {
        n: {written(d) for d in found} - {""} or {""} for n, found in defaults.items() if found
    }
    assert literal == {name: {said[name]} for name in literal}


OF_BOTO = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
"""Read by boto3 itself, where files are in a bucket."""
COMPOSED = {"POSTGRES_PASSWORD", "AMBER_APP_PASSWORD", "AMBER_SYSTEM_PASSWORD"}
"""Passwords that only docker-compose.yml reads."""


def test_example_environment_names_only_settings():
    named = re.findall(r"^#?([A-Z][A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE)
    assert set(named) <= set(documented_settings()) | COMPOSED | OF_BOTO


# -- Events ------------------------------------------------------------------------------------

PROTOCOL = (DOCS / "stream-protocol.md").read_text()


def test_every_event_is_documented_and_no_other():
    assert set(re.findall(r"^### `([a-z.]+)`$", PROTOCOL, re.MULTILINE)) == set(EVENT_TYPES)


@pytest.mark.parametrize("name", EVENT_TYPES)
def test_event_is_documented_with_all_its_fields(name):
    text = section(section(PROTOCOL, "## Events"), f"### `{name}`")
    named = {field for row in rows(text) for field in re.findall(r"`(\w+)`", row[0])}
    assert named == set(EVENT_TYPES[name].model_fields) - {"seq", "turn_id", "event"}
    assert ("nds the stream" in text) == EVENT_TYPES[name].is_last


@pytest.mark.parametrize("name", EVENT_TYPES)
def test_example_of_event_is_one(name):
    text = section(section(PROTOCOL, "## Events"), f"### `{name}`")
    examples = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    assert examples
    for example in examples:
        assert EVENT_TYPES[name].model_validate_json(example).event == name  # type: ignore[attr-defined]


def test_clients_know_the_last_events():
    said = re.search(r"LAST = new Set\(\[(.*?)\]", PROTOCOL, re.DOTALL)
    assert said is not None
    assert set(re.findall(r'"([a-z.]+)"', said[1])) == LAST_EVENTS


@pytest.mark.parametrize("client", ["examples/ask.py", "web/shared/follow.js"])
def test_amber_s_own_clients_know_after_which_events_a_stream_goes_on(client):
    """They take every other `turn.…` for a last one, and need no change for a new one."""
    said = re.search(r"GOES_ON = [^\"]*(.*?)[\]}]", (ROOT / client).read_text(), re.DOTALL)
    assert said is not None
    of_turns = {name for name in EVENT_TYPES if name.startswith("turn.")}
    assert set(re.findall(r'"([a-z.]+)"', said[1])) == of_turns - LAST_EVENTS
    assert of_turns >= LAST_EVENTS


EVENT_OF_RESPONSES = re.compile(r"response\.[a-z_.]+|error")


def events_of_responses() -> set[str]:
    """Names of the events that /v1/responses streams, as they stand in its code."""
    code = ast.parse((ROOT / "public_api/responses/events.py").read_text())
    texts = (node.value for node in ast.walk(code) if isinstance(node, ast.Constant))
    return {text for text in texts if isinstance(text, str) and EVENT_OF_RESPONSES.fullmatch(text)}


def test_every_event_of_responses_is_documented_and_no_other():
    page = (DOCS / "public-api.md").read_text()
    (said,) = re.findall(r"^\*\*Events\.\*\*.*?\n\n", page, re.DOTALL | re.MULTILINE)
    both = re.sub(r"`([a-z_.]+)\.delta` and `\.done`", r"`\1.delta` `\1.done`", said)
    named = {name for name in re.findall(r"`([^`]+)`", both) if EVENT_OF_RESPONSES.fullmatch(name)}
    assert named == events_of_responses()


# -- Tools, errors -------------------------------------------------------------------------------


def test_every_builtin_tool_is_documented():
    named = {row[0].strip("`") for row in rows((DOCS / "tools.md").read_text())}
    assert set(builtin_names()) <= named


def test_table_of_audited_actions_is_the_code_s():
    table = section((DOCS / "audit.md").read_text(), "## Actions")
    said = [(row[0].strip("`"), row[1]) for row in rows(table)][1:]
    assert said == AuditAction.choices


def test_spans_and_their_attributes_are_documented_and_no_other():
    text = (DOCS / "tracing.md").read_text()
    shown = {
        name
        for row in rows(section(text, "## What is recorded"))
        for name in re.findall(r"`([^`]+)`", row[0])
    }
    written = (value for name, value in vars(names).items() if name.isupper())
    assert shown == {value for value in written if isinstance(value, str)}


def test_table_of_error_codes_is_the_code_s():
    table = [row for row in rows((DOCS / "errors.md").read_text()) if len(row) == 4][1:]
    said = {row[0].strip("`"): (int(row[1]), row[2] == "yes", row[3]) for row in table}
    assert said == {
        code: (status, code in RETRYABLE, meaning) for code, (status, meaning) in CODES.items()
    }


# -- Links, addresses, places ----------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        led_to = (page.parent / path).resolve() if path else page
        assert led_to.exists(), target
        assert not anchor or anchor in anchors(led_to), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_addresses_exist(page):
    """`POST chats/{id}/messages/` and the like are routes; relative ones lie below /api/v1/."""
    found = re.findall(r"`(?:GET|POST|PUT|PATCH|DELETE) (/?[\w{}/-]+/)[^`]*`", page.read_text())
    for address in found:
        path = re.sub(r"\{\w+\}", str(uuid4()), address)
        try:
            resolve(path if path.startswith("/") else f"/api/v1/{path}")
        except Resolver404:
            pytest.fail(f"There is no {address}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_name_no_place_of_one_machine(page):
    places = {str(ROOT), str(Path.home())} - {"/"}
    assert not [place for place in places if re.search(rf"{place}\b", page.read_text())]
