"""A mail on its whole way: asked for in a web process, sent by the ingest worker, read at a mail server,
and its link followed."""

import re
from urllib.parse import unquote

import httpx2
import pytest

from tests.e2e.kit.platform import Platform
from tests.e2e.kit.sessions import SESSION, new_account, send
from tests.fakes.mail_server import Mailbox, smtp_server
from tests.fixtures.ports import free_port

pytestmark = pytest.mark.e2e

AUTH = "/_allauth/browser/v1/auth"


def test_a_new_password_is_asked_for_mailed_and_chosen(platform: Platform) -> None:
    box, port = Mailbox(), free_port()
    with smtp_server(box) as mail_port:
        server = f"smtp://127.0.0.1:{mail_port}?tls=none"
        settings = {"AMBER_SMTP_URL": server, "AMBER_PUBLIC_URL": "http://amber.example"}
        platform.restore(ingest=settings)
        web = platform.start_web(port, **settings)
        try:
            email = new_account(platform, "forgetful")
            address = f"http://127.0.0.1:{port}"
            headers = {"Referer": address}
            with httpx2.Client(base_url=address, trust_env=False, headers=headers) as browser:
                browser.get(SESSION)
                send(browser, "POST", f"{AUTH}/password/request", {"email": email})
                platform.wait_for(lambda: box.messages, "a mail")
                plain = box.messages[0].get_body(("plain",))
                text = plain.get_content() if plain else ""
                key = re.search(r"http://amber\.example/reset-password/(\S+)", text)
                assert key is not None, text
                body = {"key": unquote(key[1]), "password": "another quite long sentence"}
                token = {"X-CSRFToken": browser.cookies["csrftoken"]}
                chosen = browser.post(f"{AUTH}/password/reset", json=body, headers=token)
                assert chosen.status_code == 401, "they sign in with it"
            assert box.recipients == [email]
            sql = "SELECT status, details_sealed FROM accounts_outgoingmail WHERE address = %s"
            platform.wait_for(lambda: platform.query(sql, email) == [("sent", "")], "the row's end")
        finally:
            platform.stop_member(web)
