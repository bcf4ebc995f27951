"""Fill the database with organizations that have rows of every kind, under names like people's own.

For tests of the admin's pages, their measurement (`bench/admin_pages.py`) and their pictures. It
writes rows past the services: nothing is enqueued, and what it made is no history that could be.
"""

import itertools
from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final, TypeVar

from allauth.account.models import EmailAddress
from allauth.idp.oidc.models import Client, Token
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django.utils import timezone

from accounts.audit_actions import AuditAction
from accounts.models import (
    ApiKey,
    AuditChain,
    AuditEvent,
    Group,
    GroupMember,
    Invitation,
    MailKind,
    MailStatus,
    Membership,
    Organization,
    OutgoingMail,
    User,
)
from accounts.principal import ActorKind
from assistants.models import Assistant, AssistantGrant, AssistantTool, ScenePrompt
from chats.models import Chat, ChatMessage, Feedback, Turn
from engine.events import TurnStatus
from libraries.models import (
    Document,
    DocumentStage,
    DocumentStatus,
    File,
    Library,
    LibraryGrant,
    Repository,
)
from memory.models import Memory
from providers.models import (
    Budget,
    BudgetCounter,
    EmbeddingModel,
    LanguageModel,
    Provider,
    UsageRecord,
)
from public_api.models import DeliveryStatus, Webhook, WebhookDelivery
from tools.models import CallOutcome, Tool, ToolCallRecord, ToolGrant, ToolKind

AnyRow = TypeVar("AnyRow")
SUBJECTS: Final = (
    *("Pump manual", "Spare parts of the north plant", "Travel expenses", "Holiday rules"),
    *("Onboarding", "Valve inspection", "Quarterly figures", "Suppliers in Finland", "Cooling"),
)
WORDS_OF_ERRORS: Final = {"provider_timeout": "The provider did not answer in time."}
_PEOPLE: Final = ("Ada", "Berta", "Cem", "Dana", "Emil", "Fatma", "Goran", "Hana", "Ivo", "Jun")


def furnish(*, organizations: int = 2, rows: int = 12) -> list[Organization]:
    """Make so many organizations, the first with `rows` rows of each kind, others with one or two."""
    models = _models()
    made = [
        Organization(name=f"{word} {number}", slug=f"org-{number}")
        for number, word in zip(
            range(organizations), itertools.cycle(("Acme", "Rival", "Northwind")), strict=False
        )
    ]
    Organization.objects.bulk_create(made, batch_size=500)
    for number, organization in enumerate(made):
        _Office(organization, number, rows if number == 0 else 1, models).fill()
    _save_all()
    for index, user in enumerate(User.objects.filter(memberships__organization=made[0])):
        _sign_in(user, index)
    return made


_waiting: list[Any] = []


def _keep(row: AnyRow) -> AnyRow:
    _waiting.append(row)
    return row


def _save_all() -> None:
    """Write rows model by model, in the order in which the first of each was made."""
    kinds: dict[type[Any], list[Any]] = {}
    for row in _waiting:
        kinds.setdefault(type(row), []).append(row)
    _waiting.clear()
    for model, rows in kinds.items():
        model._base_manager.bulk_create(rows, batch_size=500)


def _models() -> tuple[LanguageModel, EmbeddingModel]:
    provider = Provider.objects.create(name="Muse", base_url="https://muse.example/v1")
    for number in range(11):
        LanguageModel.objects.create(
            provider=provider,
            alias=f"muse-{number}",
            upstream_id=f"muse-2026-{number}",
            price_in=Decimal("2.5"),
            price_out=Decimal(10),
            vision=number % 2 == 0,
        )
    embedding = EmbeddingModel.objects.create(
        provider=provider, alias="muse-words", upstream_id="muse-words", dimensions=4
    )
    return LanguageModel.objects.get(alias="muse-0"), embedding


class _Office:
    """Makes the rows of one organization."""

    def __init__(
        self,
        organization: Organization,
        number: int,
        rows: int,
        models: tuple[LanguageModel, EmbeddingModel],
    ) -> None:
        self.organization, self.number, self.rows = organization, number, rows
        self.language_model, self.embedding_model = models
        self.now = timezone.now()
        self.of = {"organization": organization}
        self.events = itertools.count(1)

    def fill(self) -> None:
        self.people = [self._person(index) for index in range(min(self.rows, len(_PEOPLE)))]
        self.groups = [
            _keep(Group(name=name, **self.of)) for name in ("Support", "Sales")[: self.rows]
        ]
        for user, group in zip(self.people, itertools.cycle(self.groups), strict=False):
            _keep(GroupMember(user=user, group=group, **self.of))
        _keep(AuditChain(number=3 * self.rows, hash="0" * 64, **self.of))
        for index in range(self.rows):
            self._accounts(index)
            self._knowledge(index)
            self._talk(index)
            self._ledger(index)

    def _person(self, index: int) -> User:
        name = _PEOPLE[index]
        email = f"{name.lower()}@org-{self.number}.example"
        user = _keep(User(email=email, name=f"{name} Example", password="!"))  # none
        _keep(Membership(user=user, role="member" if index else "owner", **self.of))
        return user

    def _who(self, index: int) -> User:
        return self.people[index % len(self.people)]

    def _accounts(self, index: int) -> None:
        user, name = self._who(index), f"{self.number}-{index}"
        self.key = _keep(
            ApiKey(
                user=user,
                name=f"Key of {SUBJECTS[index % 9]}",
                prefix=f"amb_live_{index:04}",
                sha256=name,
                revoked_at=self.now if index % 3 == 1 else None,
                **self.of,
            )
        )
        _keep(
            Invitation(
                email=f"new{name}@example.com",
                token_sha256=name,
                invited_by=user,
                expires_at=self.now + timedelta(days=index - 2),
                **self.of,
            )
        )
        _keep(
            OutgoingMail(
                address=user.email,
                kind=_turn_round(MailKind, index),
                cause=f"{self.key.pk}",
                status=_turn_round(MailStatus, index),
                due_at=self.now,
                error="The server refused the address." if index % 4 == 3 else "",
                **self.of,
            )
        )
        for action, kind, target, label in (
            (AuditAction.ASSISTANT_SHARED, "assistant", self.organization.pk, "Pump helper"),
            (AuditAction.MEMBER_JOINED, "user", user.pk, ""),
            (AuditAction.OPERATOR_READ, "api_key", self.key.pk, ""),
        ):
            self._event(action, kind, target, label, user)

    def _event(self, action: AuditAction, kind: str, target: Any, label: str, user: User) -> None:
        _keep(
            AuditEvent(
                number=next(self.events),
                created_at=self.now,
                action=action,
                actor_kind=ActorKind.USER,
                actor_user_id=user.pk,
                target_kind=kind,
                target_id=target,
                target_label=label,
                address="203.0.113.9",
                hash="0" * 64,
                **self.of,
            )
        )

    def _knowledge(self, index: int) -> None:
        user, subject = self._who(index), SUBJECTS[index % 9]
        own = {"user": user, **self.of}
        self.library = _keep(
            Library(name=f"Library of {subject}", embedding_model=self.embedding_model, **own)
        )
        _keep(LibraryGrant(library=self.library, group=self.groups[0], **self.of))
        status = _turn_round(DocumentStatus, index)
        repository = _keep(
            Repository(
                library=self.library,
                git_url=f"https://git.example/plant/{_slug(subject)}.git",
                status=status,
                progress={"new": 3, "removed": 1},
                started_at=self.now,
                **own,
            )
        )
        file = _keep(self._file(f"{_slug(subject)}.pdf", index, user))
        _keep(
            Document(
                library=self.library,
                file=file,
                repository=repository if index % 2 else None,
                name=f"{subject}, revision {index}.pdf",
                path=f"docs/{index}/{_slug(subject)}.pdf",
                mime_type="application/pdf",
                status=status,
                stage=_turn_round(DocumentStage, index),
                progress={"chunks": 1_234 + index, "embedded": 700},
                timings={"parse": 1_200, "embed": 8_400},
                error="The file is scanned." if status == DocumentStatus.FAILED else "",
                **own,
            )
        )
        self.tool = _keep(
            Tool(
                name=f"Search in {subject}",
                kind=_turn_round(ToolKind, index),
                discovery_url="https://tool.example/openapi.json",
                data={"functions": [{"name": "search"}]},
                last_error="It answered with status 500." if index % 4 == 3 else "",
                refreshed_at=self.now,
                **own,
            )
        )
        _keep(ToolGrant(tool=self.tool, group=self.groups[0], **self.of))

    def _file(self, name: str, index: int, user: User) -> File:
        place = f"{self.number}-{index}-{name}"
        return File(
            name=name,
            file_hash=place,
            mime_type="application/pdf",
            path=place,
            size=1_234_567 + index,
            user=user,
            **self.of,
        )

    def _talk(self, index: int) -> None:
        user, subject = self._who(index), SUBJECTS[index % 9]
        own = {"user": user, **self.of}
        self.assistant = assistant = _keep(
            Assistant(
                name=f"{subject} helper",
                slug=f"helper-{index}",
                model="muse-0",
                library=self.library,
                shared=index % 2 == 0,
                total_token_usage=1_234_567 + index,
                **own,
            )
        )
        _keep(AssistantGrant(assistant=assistant, group=self.groups[0], **self.of))
        _keep(AssistantTool(assistant=assistant, tool=self.tool, **self.of))
        _keep(ScenePrompt(assistant=assistant, label="Billing", prompt="Be exact.", **self.of))
        name = f"Why does {subject.lower()} leak?" if index % 5 else ""
        chat = _keep(Chat(name=name, assistant=assistant, **own))
        self.turn = self._turn(index, chat)
        _keep(
            Feedback(
                chat=chat,
                message=self.answer,
                assistant=assistant,
                value="down" if index % 3 else "up",
                reason="wrong" if index % 3 else "clear",
                comment="It is the other valve.",
                **own,
            )
        )
        _keep(
            Memory(
                content=f"Works on {subject}",
                content_md5=str(index),
                valid_from=self.now,
                **own,
            )
        )

    def _turn(self, index: int, chat: Chat) -> Turn:
        status = _turn_round(TurnStatus, index)
        code = next(iter(WORDS_OF_ERRORS))
        failed = {"code": code, "message": WORDS_OF_ERRORS[code]}
        asked = timezone.now()
        turn = _keep(
            Turn(
                chat=chat,
                user=chat.user,
                assistant=chat.assistant,
                status=status,
                error=failed if status == TurnStatus.FAILED else None,
                usage={"prompt_tokens": 12_345, "completion_tokens": 678},
                manifest={"model": "muse-0", "tokens": {"prompt": 12_345}},
                started_at=asked,
                first_token_at=asked + timedelta(seconds=0.84),
                ended_at=asked + timedelta(seconds=12.3),
                attempt=1,
                **self.of,
            )
        )
        self.answer = _keep(ChatMessage(chat=chat, role="ai", content="The seal.", **self.of))
        return turn

    def _ledger(self, index: int) -> None:
        user = self._who(index)
        _keep(
            UsageRecord(
                user=user,
                api_key_id=self.key.pk,
                assistant_id=self.assistant.pk,
                turn_id=self.turn.pk,
                model="muse-0",
                prompt_tokens=12_345,
                completion_tokens=678,
                cost=Decimal("0.03764250") * (index + 1) ** 3,
                latency_ms=12_300,
                outcome=("ok", "ok", "cancelled", "provider_timeout")[index % 4],
                **self.of,
            )
        )
        scope, subject = (
            ("organization", ""),
            ("user", str(user.pk)),
            ("key", str(self.key.pk)),
            ("assistant", str(self.assistant.pk)),
        )[index % 4]
        if index < 8:
            budget = _keep(
                Budget(
                    scope=scope,
                    subject=subject,
                    period="month" if index < 4 else "day",
                    unit=("money", "tokens")[index % 2],
                    limit=Decimal(1_000) * (index + 1),
                    **self.of,
                )
            )
            start = self.now.date().replace(day=1) if index < 4 else self.now.date()
            _keep(BudgetCounter(budget=budget, subject=subject, period_start=start, used=412))
        _keep(
            ToolCallRecord(
                tool=self.tool,
                user=user,
                assistant_id=self.assistant.pk,
                turn_id=self.turn.pk,
                function="search",
                call_id=f"call_{index}",
                outcome=_turn_round(CallOutcome, index),
                http_status=200,
                latency_ms=840,
                detail="It answered with status 500." if index % 5 == 2 else "",
                **self.of,
            )
        )
        hook = _keep(
            Webhook(
                user=user,
                name=f"Desk {index}" if index % 2 else "",
                url=f"https://hooks.example/{self.number}/{index}",
                events=["turn.completed"],
                secret_sealed="x",  # nothing
                failures=index % 3,
                disabled_at=self.now if index % 5 == 4 else None,
                **self.of,
            )
        )
        _keep(
            WebhookDelivery(
                webhook=hook,
                turn_id=self.turn.pk,
                event="turn.completed",
                payload={},
                status=_turn_round(DeliveryStatus, index),
                due_at=self.now,
                http_status=200,
                latency_ms=120,
                **self.of,
            )
        )


def _sign_in(user: User, index: int) -> None:
    """Make allauth's rows, whose keys the database gives."""
    EmailAddress.objects.create(user=user, email=user.email, primary=True, verified=index % 2 == 0)
    app = SocialApp.objects.create(
        provider="google", name=f"Sign-in {index}", client_id=f"c{index}"
    )
    account = SocialAccount.objects.create(user=user, provider="google", uid=f"10{index}")
    SocialToken.objects.create(app=app, account=account, token="t")
    client = Client.objects.create(name=f"Desktop client {index}", owner=user)
    Token.objects.create(client=client, user=user, type=Token.Type.ACCESS_TOKEN, hash=f"h{index}")


def _turn_round(choices: Iterable[Any], index: int) -> Any:
    values = list(choices)
    return values[index % len(values)]


def _slug(words: str) -> str:
    return words.lower().replace(" ", "-")
