"""Signatures of webhooks, checked as docs/public-api.md tells receivers to: its snippets are run."""

import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from public_api.webhooks.signing import MARK, new_secret, signature

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "public-api.md").read_text()
BODY = '{"id": "…"}'.encode()


def snippet(language):
    """The one that checks a signature."""
    blocks = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    (found,) = [block for block in blocks if "timingSafeEqual" in block or "hmac.new" in block]
    return found


def by_python(secret, header, body):
    names: dict[str, Any] = {}
    exec(snippet("python"), names)
    return names["is_from_amber"](secret, header, body)


def by_node(secret, header, body):
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed.")
    script = (
        snippet("js")
        + "const [secret, header, body] = process.argv.slice(-3);"
        + "console.log(isFromAmber(secret, header, Buffer.from(body, 'hex')));"
    )
    told = subprocess.run(
        [node, "--input-type=module", "-e", script, "--", secret, header, body.hex()],
        capture_output=True,
        check=True,
        text=True,
        timeout=60,
    )
    return told.stdout.strip() == "true"


@pytest.mark.parametrize("check", [by_python, by_node], ids=["python", "node"])
def test_receivers_know_what_is_ours(check):
    secret, other, now = new_secret(), new_secret(), int(time.time())
    assert check(secret, signature([secret], BODY, at=now), BODY)
    assert check(secret, signature([other, secret], BODY, at=now), BODY), "while it is changed"
    assert not check(secret, signature([other], BODY, at=now), BODY)
    assert not check(secret, signature([secret], BODY, at=now), BODY + b" ")
    assert not check(secret, signature([secret], BODY, at=now - 3600), BODY), "too old"


def test_secrets_are_long_and_marked():
    assert new_secret().startswith(MARK)
    assert len({new_secret() for _ in range(10)}) == 10
    assert len(new_secret()) >= len(MARK) + 43
