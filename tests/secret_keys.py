"""Make keys for `AMBER_SECRET_KEYS`."""

import base64
import os


def new_secret_key() -> str:
    return base64.b64encode(os.urandom(32)).decode()
