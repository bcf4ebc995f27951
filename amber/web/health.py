"""Answer operators' machines: /healthz (alive), /readyz (can work), /metrics (Prometheus)."""

from collections.abc import Callable

from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect, JsonResponse
from django.middleware.common import CommonMiddleware
from prometheus_client import CONTENT_TYPE_LATEST
from redis.exceptions import RedisError

from amber.lib import redis as amber_redis
from amber.lib.database.tenant import NOBODY, as_tenant
from amber.web.metrics import scrape
from amber.web.request_log import MACHINE_ADDRESSES
from chats.events.viewers import are_followed
from chats.models import Turn
from operations.maintenance.heartbeats import consuming_queues

REQUIRED_QUEUES = ("chat", "ingest")


class HostsOfPeopleMiddleware(CommonMiddleware):
    """Refuses hosts that AMBER_ALLOWED_HOSTS does not name, as Django does, but not for machines.

    A container's health check, Kubernetes and Prometheus ask by an address that no setting knows.
    What they are told depends on no host.
    """

    def process_request(self, request: HttpRequest) -> HttpResponsePermanentRedirect | None:
        return None if request.path in MACHINE_ADDRESSES else super().process_request(request)


def healthz(request: HttpRequest) -> HttpResponse:
    """Answer 200 while this process answers at all."""
    return JsonResponse({"status": "ok", "version": settings.AMBER_VERSION})


def readyz(request: HttpRequest) -> HttpResponse:
    """Answer 200 when database and Redis answer, this process reads the streams that are watched
    here, and workers consume; else 503, naming what does not work.

    `row_security` only tells: whether Postgres keeps tenants apart from this process.
    """
    checks = {
        "database": _database_answers,
        "redis": _redis_answers,
        "event_streams": are_followed,
    }
    results = {name: check() for name, check in checks.items()}
    consuming = consuming_queues() if results["database"] else set()
    results |= {f"{queue}_workers": queue in consuming for queue in REQUIRED_QUEUES}
    ready = all(results.values())
    results["row_security"] = results["database"] and is_walled()
    return JsonResponse(
        {"status": "ready" if ready else "not ready", "checks": results},
        status=200 if ready else 503,
    )


def metrics(request: HttpRequest) -> HttpResponse:
    return HttpResponse(scrape(), content_type=CONTENT_TYPE_LATEST)


def _database_answers() -> bool:
    return _answers(Turn.objects.exists)


def is_walled() -> bool:
    """Return whether the policies bind the role that requests are answered with."""
    with as_tenant(NOBODY), connection.cursor() as cursor:
        cursor.execute("SELECT row_security_active('chats_chat')")
        return bool(cursor.fetchone()[0])


def _redis_answers() -> bool:
    return _answers(amber_redis.client().ping)


def _answers(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except (DatabaseError, RedisError, OSError):
        return False
    return True
