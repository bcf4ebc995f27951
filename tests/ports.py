"""Find ports for servers that are started by their number."""

import random
import socket
from contextlib import suppress
from typing import Final

NOBODY_IS_GIVEN: Final = range(20_000, 32_000)
"""Below the ports that systems give to whoever asks for any, as many tests beside this one do: what was free would
be taken before the server has started, and its clients would talk to another one."""


def free_port() -> int:
    """Return a port of 127.0.0.1 on which nobody listens."""
    while True:
        port = random.choice(NOBODY_IS_GIVEN)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
