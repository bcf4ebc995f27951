"""Furnish a person with one of everything that an erasure is about."""

from typing import Any

import pytest

from accounts.models import IdempotencyRecord
from chats.models import Turn
from chats.tests.rows import new_assistant, new_chat
from chats.tests.turns.leftovers import furnish, new_stored_file
from libraries.models import Document, DocumentChunk, Library
from providers.models import EmbeddingModel, UsageRecord
from tests.fixtures.personas import Persona
from tools.models import Tool, ToolCallRecord


@pytest.fixture(autouse=True)
def enqueued(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    heard: list[str] = []
    monkeypatch.setattr("operations.privacy.erasure_services.enqueue_periodic_job", heard.append)
    monkeypatch.setattr(
        "operations.privacy.erasure_services.enqueue_erasure", lambda: heard.append("libraries")
    )
    return heard


@pytest.fixture(autouse=True)
def embedder(provider: Any, settings: Any) -> EmbeddingModel:
    settings.AMBER_BLOCK_TOKENS = 50
    return EmbeddingModel.objects.create(
        provider=provider, alias="e", upstream_id="fake-embedding", dimensions=64, default=True
    )


class Estate:
    """One of everything a person can leave behind in an organization."""

    def __init__(self, persona: Persona, model: EmbeddingModel) -> None:
        mine = {"organization": persona.organization, "user": persona.user}
        self.chat = new_chat(persona, assistant=new_assistant(persona))
        self.memory = furnish(self.chat, persona)
        self.stateless = Turn.objects.create(
            **mine, status="completed", input={"messages": []}, manifest={"model": "m"}
        )
        self.file = new_stored_file(persona)
        self.key, self.secret = persona.new_key()
        self.usage = UsageRecord.objects.create(**mine, model="m", prompt_tokens=7)
        self.private = self._things(persona, model, shared=False)
        self.shared = self._things(persona, model, shared=True)
        ToolCallRecord.objects.create(
            **mine, tool=self.private[1], function="f", outcome="ok", latency_ms=1
        )
        IdempotencyRecord.objects.create(
            organization=persona.organization,
            principal=persona.principal.label,
            route="POST /",
            key="k",
            body_sha256="0" * 64,
            answer={"content": "what was said"},
        )

    def _things(self, persona: Persona, model: EmbeddingModel, *, shared: bool) -> tuple[Any, ...]:
        mine = {"organization": persona.organization, "user": persona.user, "shared": shared}
        library = Library.objects.create(**mine, name="L", embedding_model=model)
        document = Document.objects.create(
            organization=persona.organization, user=persona.user, library=library, name="D"
        )
        DocumentChunk.objects.create(
            organization=persona.organization,
            document=document,
            library=library,
            embedding_model=model,
            content="c",
            order=0,
            start=0,
            end=1,
            tokens=1,
        )
        tool = Tool.objects.create(**mine, name="T", discovery_url="https://t.example/")
        return new_assistant(persona, shared=shared), tool, library, document
