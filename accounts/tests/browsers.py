"""Ask allauth's browser API, as a page does.

allauth counts attempts by address and by email, in Redis: every test comes as somebody new.
"""

import json
from random import randrange
from typing import Any

from django.test import Client

AUTH = "/_allauth/browser/v1/auth"


def new_browser(**options: Any) -> Client:
    return Client(REMOTE_ADDR=f"198.51.{randrange(256)}.{randrange(256)}", **options)


def post(client: Client, path: str, body: object, **headers: str) -> Any:
    return client.post(
        f"{AUTH}/{path}", json.dumps(body), content_type="application/json", headers=headers
    )
