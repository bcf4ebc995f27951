"""Put rows into every table that the admin shows, with names as long as people make them: a script with Django.

`python -m tests.e2e.admin.world EMAIL`, where an account with this address exists, who becomes an operator.
What only happens (a chat, a turn with its manifest, chunks) comes of asking, in tests/e2e/admin/conftest.py.
"""

import os
import sys
from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, Final

import django

WORDS: Final = (
    "Operating manual of the hydraulic pressure relief valve, second edition with corrections"
)


def main(email: str) -> None:
    os.environ["AMBER_CONNECT_AS"] = "owner"
    django.setup()
    world = _people(email)
    for fill in (_fill_accounts, _fill_providers, _fill_libraries, _fill_tools, _fill_talk):
        fill(world)


def _people(email: str) -> Any:
    from accounts.models import Organization, User

    operator = User.objects.get(email=email)
    operator.is_staff = operator.is_superuser = True
    operator.save()
    organization = Organization.objects.get(personal=True, memberships__user=operator)
    of_both = {"organization": organization, "user": operator}
    return SimpleNamespace(operator=operator, organization=organization, of_both=of_both)


def _fill_accounts(world: Any) -> None:
    from allauth.account.models import EmailAddress
    from allauth.idp.oidc.models import Client, Token
    from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
    from django.contrib.auth.models import Group as RightsGroup
    from django.utils import timezone

    from accounts.models import (
        ApiKey,
        Group,
        GroupMember,
        Invitation,
        MailKind,
        MailStatus,
        OutgoingMail,
    )

    user, organization, soon = (
        world.operator,
        world.organization,
        timezone.now() + timedelta(days=7),
    )
    EmailAddress.objects.get_or_create(user=user, email=user.email, defaults={"verified": True})
    # The pages of signing in, which other tests open on this platform, tell of its server.
    app = SocialApp.objects.create(
        provider="openid_connect",
        name="Company sign-in",
        client_id="amber",
        settings={"server_url": "https://sign-in.example"},
    )
    account = SocialAccount.objects.create(user=user, provider="openid_connect", uid="0" * 36)
    SocialToken.objects.create(app=app, account=account, token="token-" + "x" * 40)
    client = Client.objects.create(name="A desktop application", owner=user)
    OutgoingMail.objects.create(
        organization=organization,
        address=user.email,
        kind=MailKind.values[0],
        cause="a cause",
        status=MailStatus.FAILED,
        due_at=timezone.now(),
        error="The server refused the address.",
    )
    Token.objects.create(client=client, user=user, type=Token.Type.ACCESS_TOKEN, hash="1" * 64)
    RightsGroup.objects.create(name="Support")
    group = Group.objects.create(organization=organization, name="Maintenance", description=WORDS)
    GroupMember.objects.create(organization=organization, group=group, user=user)
    for number, revoked in enumerate((None, timezone.now())):
        ApiKey.objects.create(
            **world.of_both, name=f"Key of the night shift {number}", prefix=f"amb_live_4fGh{number}",
            sha256=f"{number}" * 64, expires_at=soon, revoked_at=revoked,
        )  # fmt: skip
    Invitation.objects.create(
        organization=organization, email="a.rather.long.name.of.somebody@department.example.com",
        token_sha256="2" * 64, invited_by=user, expires_at=soon,
    )  # fmt: skip


def _fill_providers(world: Any) -> None:
    from providers.models import Budget, UsageRecord

    Budget.objects.create(
        organization=world.organization, scope="organization", period="month", unit="money",
        limit=Decimal("120.5"),
    )  # fmt: skip
    UsageRecord.objects.create(
        **world.of_both, model="fake-model", prompt_tokens=128_345, completion_tokens=2_345,
        cost=Decimal("0.12345678"), first_token_ms=312, latency_ms=2_345,
    )  # fmt: skip


def _fill_libraries(world: Any) -> None:
    from libraries.models import Document, Library, Repository
    from providers.models import EmbeddingModel

    model = EmbeddingModel.objects.get(alias="fake-embedding")
    library = Library.objects.create(
        **world.of_both, name=WORDS, description=WORDS, embedding_model=model
    )
    Document.objects.create(
        **world.of_both, library=library, name=f"{WORDS}.pdf", status="failed", attempt=3,
        mime_type="application/pdf", error="The file is encrypted: enter it without its password.",
    )  # fmt: skip
    Repository.objects.create(
        **world.of_both, library=library, git_url="https://git.example.com/manuals/hydraulics.git",
        ref="main", commit="3" * 40, status="ready", progress={"files": 1_234},
    )  # fmt: skip


def _fill_tools(world: Any) -> None:
    from tools.models import Tool, ToolCallRecord

    parameters = {
        "type": "object",
        "required": ["part"],
        "properties": {"part": {"type": "string"}},
    }
    function = {"name": "find_spare_part", "description": WORDS, "parameters": parameters}
    tool = Tool.objects.create(
        **world.of_both, name="Spare parts", description=WORDS,
        discovery_url="https://tools.example.com/spare-parts/.well-known/tools.json",
        data={"functions": [function]}, last_error="The service answered 502 instead of its manifest.",
    )  # fmt: skip
    for outcome in ("ok", "failed"):
        ToolCallRecord.objects.create(
            **world.of_both, tool=tool, function="find_spare_part", outcome=outcome,
            http_status=200, latency_ms=1_234, detail=WORDS,
        )  # fmt: skip


def _fill_talk(world: Any) -> None:
    from django.utils import timezone

    from chats.models import Turn
    from memory.models import Memory
    from public_api.models import Webhook, WebhookDelivery

    fault = {"code": "provider_rate_limited", "message": "The provider refused: too many requests."}
    Turn.objects.create(
        **world.of_both, input={"messages": []}, status="failed", error=fault, attempt=2,
        started_at=timezone.now(), ended_at=timezone.now(),
    )  # fmt: skip
    Memory.objects.create(
        **world.of_both, content="Prefers metric units.", content_md5="4" * 32,
        valid_from=timezone.now(),
    )  # fmt: skip
    webhook = Webhook.objects.create(
        **world.of_both, name="Ticket system", url="https://tickets.example.com/hooks/amber?team=7",
        events=["turn.completed"], secret_sealed="", failures=12, disabled_at=timezone.now(),
        disabled_reason="It failed 12 times in a row.",
    )  # fmt: skip
    WebhookDelivery.objects.create(
        organization=world.organization, webhook=webhook, turn_id=webhook.pk, event="turn.completed",
        payload={"event": "turn.completed"}, status="failed", due_at=timezone.now(), attempt=8,
        http_status=503, latency_ms=842, error="The receiver answered 503.",
    )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1])
