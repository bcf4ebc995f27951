"""The admin's front page: its figures are right, it is cheap, and it shows nobody more than they may see."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import get_resolver, reverse
from django.utils import timezone

from accounts.models import MailKind, MailStatus, OutgoingMail, User
from amber import embedded
from amber.front_page import advice
from amber.front_page.health import _Calls
from amber.lib import redis as amber_redis
from amber.lib.ids import new_id
from amber.web.metrics import TurnCollector
from assistants.models import Assistant
from chats.models import Turn
from engine.events import TurnStatus
from engine.provider.model import Usage
from libraries.models import Document, DocumentStage, DocumentStatus, Library
from operations.models import BackupRecord, WorkerHeartbeat
from providers.models import (
    OFFLINE_URL,
    EmbeddingModel,
    LanguageModel,
    Provider,
    UsageRecord,
)
from providers.usage import day_sums, ledger
from public_api.models import DeliveryStatus, Webhook, WebhookDelivery
from tools.models import CallOutcome, Tool, ToolCallRecord

assert get_resolver().url_patterns, "the URLconf registers the pages"


@pytest.fixture(autouse=True)
def no_sums_kept() -> None:
    client = amber_redis.client()
    for key in client.scan_iter("amber:usage-day:*"):
        client.delete(key)


@pytest.fixture
def provider(db: None) -> Provider:
    return Provider.objects.create(name="Example", base_url="https://provider.example/v1")


@pytest.fixture
def new_model(provider: Provider) -> Any:
    return lambda alias, **fields: LanguageModel.objects.create(
        provider=provider, alias=alias, upstream_id=alias, **fields
    )


@pytest.fixture
def new_embedding_model(provider: Provider) -> Any:
    return lambda alias, **fields: EmbeddingModel.objects.create(
        provider=provider, alias=alias, upstream_id=alias, **fields
    )


def page_of(client: Client) -> str:
    answer = client.get(reverse("admin:index"))
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def words_of(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def beat(queue: str, **fields: Any) -> None:
    WorkerHeartbeat.objects.create(
        worker=f"{queue}-{new_id()}", queue=queue, beat_at=timezone.now(), **fields
    )


def failed_turn(persona: Any, code: str, **fields: Any) -> Turn:
    return Turn.objects.create(
        organization=persona.organization,
        user=persona.user,
        status=TurnStatus.FAILED,
        error={"code": code, "message": "…"},
        ended_at=fields.pop("ended_at", timezone.now()),
        **fields,
    )


# -- Health --------------------------------------------------------------------------------------


def test_tells_which_part_does_not_work(operator):
    words = words_of(page_of(operator))
    assert "Not working: Chat workers, Ingestion workers." in words
    assert "No workers are running: questions and documents wait." in words
    for queue in ("chat", "chat", "ingest"):
        beat(queue)
    words = words_of(page_of(operator))
    assert "Chat workers Works 2 running. 0 turns run, 0 wait." in words
    assert re.search(
        r"Postgres Works Version \d+\.\d+, [\d.]+.[KMG]B, \d+ of \d+ connections", words
    )
    assert re.search(r"Redis Works Version \d", words)
    WorkerHeartbeat.objects.update(beat_at=timezone.now() - timedelta(minutes=5))
    assert "No workers are running" in words_of(page_of(operator))


def oldest_queued_seconds() -> float:
    (sample,) = next(
        metric.samples
        for metric in TurnCollector().collect()
        if metric.name == "amber_turn_oldest_queued_seconds"
    )
    return sample.value


def test_a_turn_that_waits_for_long_is_told(operator, alice):
    for queue in ("chat", "ingest"):
        beat(queue)
    turn = Turn.objects.create(organization=alice.organization, user=alice.user)
    assert "0 turns run, 1 wait." in words_of(page_of(operator))
    asked_at = timezone.now() - timedelta(seconds=45)
    Turn.objects.filter(pk=turn.pk).update(created_at=asked_at)  # and queued again just now
    assert "The oldest has waited" not in words_of(page_of(operator))
    assert oldest_queued_seconds() < 45
    Turn.objects.filter(pk=turn.pk).update(updated_at=asked_at)
    assert oldest_queued_seconds() >= 45
    words = words_of(page_of(operator))
    assert re.search(r"The oldest has waited for \d+ s\.", words)
    assert "Everything runs, but check Chat workers" in words


def test_without_redis_the_page_says_so(operator, monkeypatch, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    words = words_of(page_of(operator))
    assert "Redis Fails Not responding" in words
    assert "Today, and in 14 days" in words


def test_a_redis_that_answers_but_writes_nothing_is_not_well(operator, settings, tmp_path):
    server = embedded.prepare_redis(embedded.make_var(tmp_path))
    with (tmp_path / "log").open("ab") as log, embedded.running(server, output=log):
        settings.REDIS_URL = server.url
        assert Client().get("/readyz").json()["checks"]["redis"] is True
        amber_redis.client().config_set("maxmemory", 1)
        assert Client().get("/readyz").json()["checks"]["redis"] is False
        assert "Redis Fails It refuses to write" in words_of(page_of(operator))


def test_a_provider_is_as_its_last_calls_went(operator, alice, new_model):
    model = new_model("m1")
    name = model.provider.name

    def call(outcome: str) -> None:
        ledger.record(model, Usage(1), outcome=outcome, organization_id=alice.organization.pk)

    Provider.objects.create(name="Empty", base_url="https://empty.example/v1")
    words = words_of(page_of(operator))
    assert f"{name} Idle No calls in the last day." in words
    assert "Empty Needs attention No models yet." in words
    call("cancelled")
    assert f"{name} Idle" in words_of(page_of(operator))
    call("ok")
    assert f"{name} Works 1 of the last 1 calls went well." in words_of(page_of(operator))
    for _ in range(2):
        call("provider_timeout")
    words = words_of(page_of(operator))
    assert f"{name} Fails 1 of the last 3 calls went well. The last failed" in words
    assert "mostly with provider_timeout" in words


@pytest.mark.parametrize(
    ("outcomes", "state"),
    [
        ("", "neutral"),
        ("ok", "ok"),
        ("bad", "failed"),
        ("bad ok", "warning"),
        ("ok " * 30 + "bad", "warning"),
        ("bad " + "ok " * 30, "ok"),
        ("ok bad bad", "failed"),
        ("lost released cancelled", "neutral"),
    ],
)
def test_one_failure_is_no_outage(outcomes, state):
    calls = _Calls()
    for n, outcome in enumerate(outcomes.split()):
        calls.add(outcome, 1, datetime(2030, 1, 1, 0, n, tzinfo=UTC))
    assert calls.state == state


# -- Figures -------------------------------------------------------------------------------------


def record(persona: Any, model: Any, days_ago: float = 0, **fields: Any) -> None:
    row = ledger.record(model, Usage(100, 20), organization_id=persona.organization.pk, **fields)
    at = timezone.now() - timedelta(days=days_ago)
    UsageRecord.objects.filter(pk=row.pk).update(created_at=at)


def test_the_figures_of_all_organizations_are_summed(operator, alice, mallory, new_model):
    model, turn = new_model("m", price_in=1_000), new_id()
    record(alice, model, turn_id=turn)
    record(alice, model, turn_id=turn)
    record(mallory, model, turn_id=new_id())
    record(mallory, model, days_ago=3, turn_id=new_id())
    record(mallory, model, days_ago=13)
    record(mallory, model, days_ago=14)
    page = page_of(operator)
    words = words_of(page)
    assert "Turns 2 3 in 14 days" in words
    assert "Tokens 360 600 in 14 days" in words
    assert "Calls 3 5 in 14 days" in words
    assert "Cost (USD) 0.30 0.50 in 14 days" in words
    assert page.count('<rect class="series-0" x=') == 3
    today = str(datetime.now(UTC).date())
    assert f"<title>{today}: tokens: 360</title>" in page
    assert 'aria-label="Tokens a day in the last 14 days, 600 in all. A table follows."' in page
    assert f'<th scope="row">{today}</th><td>2</td><td>3</td><td>360</td>' in page


def test_a_day_that_is_over_is_summed_once(
    alice, new_model, django_assert_num_queries, monkeypatch
):
    model = new_model("m")
    record(alice, model)
    record(alice, model, days_ago=2)
    assert [each.calls for each in day_sums.recent_days()[-3:]] == [1, 0, 1]
    with django_assert_num_queries(0):
        day_sums.recent_days()
    today = datetime.now(UTC).date()
    amber_redis.client().delete(day_sums.day_sum_key(today))
    record(alice, model)
    record(alice, model, days_ago=2)
    with django_assert_num_queries(1):
        assert [each.calls for each in day_sums.recent_days()[-3:]] == [1, 0, 2]
    kept = amber_redis.client().ttl(day_sums.day_sum_key(today))
    past = amber_redis.client().ttl(day_sums.day_sum_key(today - timedelta(days=2)))
    assert kept <= day_sums.FRESH_SECONDS < 86_400 < past


# -- What failed ---------------------------------------------------------------------------------


@pytest.fixture
def trouble(alice, new_embedding_model):
    """One failure of each kind, and what is none or was too long ago."""
    of = {"organization": alice.organization}
    failed_turn(alice, "provider_timeout"), failed_turn(alice, "provider_timeout")
    failed_turn(alice, "internal")
    failed_turn(alice, "internal", ended_at=timezone.now() - timedelta(days=2))
    library = Library.objects.create(**of, name="L", embedding_model=new_embedding_model("e"))
    about = {**of, "library": library, "ended_at": timezone.now(), "name": "a.pdf"}
    Document.objects.create(**about, status=DocumentStatus.FAILED, stage=DocumentStage.STORED)
    Document.objects.create(**about, status=DocumentStatus.READY, stage=DocumentStage.READY)
    library.repositories.create(
        **of, git_url="https://x.example", status=DocumentStatus.FAILED, ended_at=timezone.now()
    )
    tool = Tool.objects.create(**of, name="T")
    for outcome in (CallOutcome.OK, CallOutcome.DECLINED, CallOutcome.TIMEOUT):
        ToolCallRecord.objects.create(**of, tool=tool, function="f", outcome=outcome, latency_ms=1)
    hook = Webhook.objects.create(
        **of, user=alice.user, url="https://x.example", events=[], secret_sealed=""
    )
    for http_status in (500, None):
        WebhookDelivery.objects.create(
            **of,
            webhook=hook,
            turn_id=new_id(),
            payload={},
            status=DeliveryStatus.FAILED,
            due_at=timezone.now(),
            http_status=http_status,
        )
    for status, kind, days_ago in (
        (MailStatus.FAILED, MailKind.BUDGET, 0),
        (MailStatus.FAILED, MailKind.BUDGET, 2),
        (MailStatus.CANCELLED, MailKind.INVITATION, 0),
    ):
        OutgoingMail.objects.create(
            **of,
            address="alice@example.com",
            kind=kind,
            cause=f"{kind}:{days_ago}",
            status=status,
            due_at=timezone.now(),
            ended_at=timezone.now() - timedelta(days=days_ago),
        )


def failures_of(page: str) -> dict[str, tuple[str, str]]:
    """Return by words what failed: how often, and the list it links to."""
    found = re.findall(
        r'<a href="([^"]+)"><span class="name">([^<]+)</span> ([^<]+)</a><span class="number">([^<]+)</span>',
        page,
    )
    return {f"{kind} {why}": (n, link.replace("&amp;", "&")) for link, kind, why, n in found}


def test_counts_what_failed_in_the_last_day_and_links_to_it(operator, trouble):
    found = failures_of(page_of(operator))
    assert {name: n for name, (n, _) in found.items()} == {
        "Turns provider_timeout": "2",
        "Turns internal": "1",
        "Documents could not be read": "1",
        "Git imports could not be imported": "1",
        "Calls of tools took too long": "1",
        "Webhook deliveries 500": "1",
        "Webhook deliveries got no answer": "1",
        "Mails budget warning": "1",
    }
    for count, link in found.values():
        listed = operator.get(link)
        assert listed.status_code == 200, link
        assert listed.context["cl"].result_count == int(count), link


def test_nothing_failed_is_said(operator):
    assert "Nothing: no turn, document, import" in page_of(operator)


# -- What to do next -----------------------------------------------------------------------------


def steps_of(client: Client) -> str:
    page = page_of(client)
    return words_of(page[page.index('id="next-steps"') : page.index('id="health"')])


def test_says_what_to_do_next_and_stops_once_it_is_done(
    operator, alice, new_model, new_embedding_model, settings, monkeypatch
):
    settings.DEBUG, settings.AMBER_OPEN_SIGNUP = True, True
    settings.AMBER_PUBLIC_URL = "http://amber.example"
    settings.ACCOUNT_EMAIL_VERIFICATION = "none"
    first = User.objects.create_superuser("admin@localhost")
    Provider.objects.update(base_url=OFFLINE_URL)
    said = steps_of(operator)
    for words in (
        "No provider is set up",
        "No default model is set",
        "No default embedding model is set",
        "There is no assistant that people can talk to yet.",
        "No backup has been made yet.",
        "The first administrator is still admin@localhost",
        "AMBER_DEBUG is on",
        "Sign-up is open",
        "Amber sends no email",
        "People reach Amber without TLS",
    ):
        assert words in said
    settings.DEBUG, settings.AMBER_OPEN_SIGNUP = False, False
    settings.AMBER_PUBLIC_URL = "https://amber.example"
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    first.delete()
    Provider.objects.update(base_url="https://provider.example/v1")
    assert "no enabled model yet" in steps_of(operator)
    new_model("m", default=True), new_embedding_model("e", default=True)
    Assistant.objects.create(organization=alice.organization, user=alice.user, name="A", slug="a")
    BackupRecord.objects.create()
    monkeypatch.setattr(advice, "SYSTEM", "default")  # as if there were a second login
    assert 'id="next-steps"' not in page_of(operator)
    BackupRecord.objects.update(created_at=timezone.now() - timedelta(days=9))
    assert "The last backup was made 1 week ago. How to make one" in steps_of(operator)


@pytest.mark.parametrize(
    ("password", "user", "guessable"),
    [
        ("amber", "x", True),
        ("Me", "me", True),
        ("", "", False),
        (None, "me", False),
        ("9f2c", "me", False),
    ],
)
def test_default_passwords_of_the_database_are_told(password, user, guessable):
    assert advice._is_guessable({"PASSWORD": password, "USER": user}) is guessable


def test_what_it_links_to_in_the_docs_is_there():
    source = Path(advice.__file__).read_text()
    links = re.findall(r'docs_link\("([^"]+)", "([^"]+)"\)', source)
    assert links
    for page, heading in links:
        lines = Path(f"docs/{page}.md").read_text().splitlines()
        names = {
            re.sub(r"[^\w -]", "", line.lstrip("# ")).lower().replace(" ", "-")
            for line in lines
            if line.startswith("#")
        }
        assert heading in names, (page, heading)


# -- Whose page, and what it costs ---------------------------------------------------------------


def test_operators_see_what_they_have_a_right_to(db, trouble, alice, new_model):
    ledger.record(new_model("m"), Usage(1), organization_id=alice.organization.pk)
    person = User.objects.create_user("some@example.com", is_staff=True)
    client = Client()
    client.force_login(person)
    words = words_of(page_of(client))
    assert "Health" in words
    for hidden in (
        "Turns",
        "Tokens",
        "Documents",
        "Webhook",
        "Mails",
        "Git imports",
        "fake",
        "backup",
    ):
        assert hidden not in words, hidden
    person.user_permissions.add(Permission.objects.get(codename="view_turn"))
    words = words_of(page_of(client))
    assert "Turns provider_timeout 2" in words
    assert "Documents" not in words
    assert "Tokens" not in words


def test_people_who_are_no_operators_are_sent_away(alice):
    client = Client()
    assert client.get(reverse("admin:index")).status_code == 302
    client.force_login(alice.user)
    assert client.get(reverse("admin:index")).status_code == 302


def test_it_costs_few_statements_whatever_there_is(
    operator, trouble, alice, new_model, django_assert_max_num_queries
):
    for n in range(8):
        ledger.record(new_model(f"m{n}"), Usage(1), organization_id=alice.organization.pk)
    for queue in ("chat", "ingest"):
        beat(queue)
    with django_assert_max_num_queries(12) as made:
        page_of(operator)
    counting = [each["sql"] for each in made.captured_queries if "COUNT(*)" in each["sql"]]
    assert counting == [], "rows are counted by what they are grouped by, and within bounds"
