"""Answer operators' machines: /healthz (alive), /readyz (can work), /metrics (Prometheus)."""

import time
from collections.abc import Callable
from functools import lru_cache
from threading import Lock

from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect, JsonResponse
from django.middleware.common import CommonMiddleware
from prometheus_client import CONTENT_TYPE_LATEST
from redis.exceptions import RedisError

from amber.lib import redis as amber_redis
from amber.lib.database.tenant import NOBODY, as_tenant
from amber.lib.rest.drain import drain
from amber.lib.storage.files import file_storage
from amber.web.metrics import scrape
from amber.web.request_log import MACHINE_ADDRESSES
from chats.events.viewers import are_followed
from chats.models import Turn
from operations.maintenance.heartbeats import consuming_queues

REQUIRED_QUEUES = ("chat", "ingest")
FILES_SECONDS = 15
"""A bucket's requests cost money."""
FILES_WAIT_SECONDS = 1
"""How long a check waits while another asks the storage: one that hangs holds a single thread of this process."""
_asking_storage = Lock()


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
    """Answer 200 if all checks hold, else 503, naming what does not work.

    Database, Redis and the storage of files must answer, workers must consume, and this process must read
    the streams that are watched here and not be about to stop. `row_security` says whether Postgres keeps
    tenants apart from this process, and fails nothing. With `?of=process` a balancer asks about this process
    alone: while Postgres is away, fewer processes would help nobody.
    """
    if request.GET.get("of") == "process":
        return _answer({"accepting": _is_accepting()})
    checks = {
        "accepting": _is_accepting,
        "database": _database_answers,
        "redis": _redis_answers,
        "event_streams": are_followed,
        "files": files_answer,
    }
    results = {name: check() for name, check in checks.items()}
    consuming = consuming_queues() if results["database"] else set()
    results |= {f"{queue}_workers": queue in consuming for queue in REQUIRED_QUEUES}
    return _answer(results, row_security=results["database"] and is_walled())


def _answer(checks: dict[str, bool], **further: bool) -> HttpResponse:
    ready = all(checks.values())
    return JsonResponse(
        {"status": "ready" if ready else "not ready", "checks": {**checks, **further}},
        status=200 if ready else 503,
    )


def metrics(request: HttpRequest) -> HttpResponse:
    return HttpResponse(scrape(), content_type=CONTENT_TYPE_LATEST)


def _is_accepting() -> bool:
    return not drain.is_draining


def _database_answers() -> bool:
    return _answers(Turn.objects.exists)


def is_walled() -> bool:
    """Return whether the policies bind the role that requests are answered with."""
    with as_tenant(NOBODY), connection.cursor() as cursor:
        cursor.execute("SELECT row_security_active('chats_chat')")
        return bool(cursor.fetchone()[0])


def _redis_answers() -> bool:
    return _answers(amber_redis.check_writes)


def files_answer() -> bool:
    """Return whether files can be read and written; asked every FILES_SECONDS at most."""
    if not _asking_storage.acquire(timeout=FILES_WAIT_SECONDS):
        return False
    try:
        return _ask_storage(int(time.monotonic() / FILES_SECONDS))
    finally:
        _asking_storage.release()


@lru_cache(maxsize=1)
def _ask_storage(_: int) -> bool:
    return _answers(file_storage().check)


def _answers(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except (DatabaseError, RedisError, OSError):
        return False
    return True
