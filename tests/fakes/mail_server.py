"""A real mail server on loopback (aiosmtpd): STARTTLS, TLS from the start, login, and faults to order."""

import datetime
import ipaddress
import ssl
from asyncio import Server
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword, Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

USER, PASSWORD = "amber", "p@ss:word/1"


@dataclass
class Mailbox:
    """What the server took. `refusals` are said first, one an attempt: at RCPT, or with DATA in front
    after the text. `hangs_up_after_data` closes the connection in place of an answer."""

    messages: list[EmailMessage] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    was_encrypted: list[bool] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    hangs_up_after_data: bool = False
    attempts: int = 0

    async def handle_RCPT(
        self, server: Any, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        self.attempts += 1
        if self.refusals and not self.refusals[0].startswith("DATA"):
            return self.refusals.pop(0)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Session, envelope: Envelope) -> str:
        if self.refusals:
            return self.refusals.pop(0).removeprefix("DATA ")
        content = envelope.content
        assert isinstance(content, bytes)
        self.messages.append(BytesParser(policy=policy.default).parsebytes(content))
        self.recipients += envelope.rcpt_tos
        self.was_encrypted.append(session.ssl is not None)
        if self.hangs_up_after_data:
            server.transport.abort()
        return "250 OK"

    def authenticate(
        self, server: Any, session: Any, envelope: Any, mechanism: str, data: Any
    ) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.logins.append(data.login.decode())
        is_known = (data.login, data.password) == (USER.encode(), PASSWORD.encode())
        return AuthResult(success=is_known, handled=is_known)


class _OnFreePort(Controller):
    """aiosmtpd's, which learns its port when it has one."""

    def _trigger_server(self) -> None:
        assert isinstance(self.server, Server)
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


@contextmanager
def smtp_server(box: Mailbox, **options: Any) -> Iterator[int]:
    """Serve on a free port, which is yielded. `options` are aiosmtpd's."""
    controller = _OnFreePort(box, hostname="127.0.0.1", port=0, ready_timeout=30, **options)
    controller.start()
    try:
        yield controller.port
    finally:
        controller.stop()


def with_login(box: Mailbox, context: ssl.SSLContext) -> dict[str, Any]:
    """Options of a server that wants STARTTLS and a login."""
    return {
        "tls_context": context,
        "require_starttls": True,
        "auth_required": True,
        "authenticator": box.authenticate,
    }


def self_signed(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """Return a context with a certificate for 127.0.0.1, and the certificate's file to trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    public, private = folder / "server.pem", folder / "server.key"
    public.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, private)
    return context, public
