"""Relay the provider's stream in a plain Django view: what Amber's streaming is measured against.

It is the obvious implementation, without middleware, database or any promise: if the viewer
disconnects, the answer is lost. uvicorn serves `application`; OPENAI_BASE_URL and OPENAI_API_KEY
say where the provider is.
"""

from collections.abc import AsyncIterator
from typing import Any

import orjson
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import path
from openai import AsyncOpenAI  # noqa: TID251  (the yardstick uses the client as anybody would)

settings.configure(
    ROOT_URLCONF=__name__, ALLOWED_HOSTS=["127.0.0.1"], SECRET_KEY="signs nothing", USE_TZ=True
)

client = AsyncOpenAI()


async def chat(request: HttpRequest) -> StreamingHttpResponse:
    """Serve POST with an OpenAI chat body that has `stream`."""
    body = orjson.loads(request.body)
    return StreamingHttpResponse(_relayed(body), content_type="text/event-stream")


async def _relayed(body: dict[str, Any]) -> AsyncIterator[str]:
    async for chunk in await client.chat.completions.create(**body):
        yield f"data: {chunk.model_dump_json()}\n\n"
    yield "data: [DONE]\n\n"


def health(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok")


urlpatterns = [path("v1/chat/completions", chat), path("healthz", health)]
application = get_asgi_application()
