"""Fetch one commit of a Git repository, without its history, as a pack of bounded size.

dulwich speaks Git's smart HTTP protocol (https://git-scm.com/docs/protocol-v2); every request it
makes goes through the guarded client. Nothing is unpacked here: a pack is a stranger's file.

Refuses anything but https (where the installation does not say otherwise), the "dumb" protocol,
which asks for objects one by one, and addresses with a password in them: it would be stored and
shown with the address.
"""

import base64
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast
from urllib.parse import urlsplit

from amber.lib.egress import FetchError, FetchLimits, Response, fetch_sync, installation_policy
from amber.lib.errors import AmberError, FieldText, Invalid

if TYPE_CHECKING:
    from dulwich.client import AbstractHttpGitClient
    from dulwich.refs import Ref

FETCH_SECONDS: Final = 180.0
MAX_REFS_BYTES: Final = 20_000_000
"""Limit of the list of branches and tags; the largest repositories have some megabytes."""
MAX_TALK_BYTES: Final = 20_000_000
_ADVERTISEMENT: Final = "application/x-git-upload-pack-advertisement"

NOT_GIT: Final = "There is no Git repository at this address, or the token may not read it."
NO_ACCESS: Final = "The repository requires a token that may read it."
BAD_TOKEN: Final = "The repository refuses the token."
NOT_HTTPS: Final = "A repository's address must begin with https://."
HAS_PASSWORD: Final = "The address must not contain a user name or password. Send a token instead."
BROKEN: Final = "The server does not follow Git's protocol."
TOO_LARGE: Final = "The repository is too large: one commit of it is over {most:,} bytes packed."


class GitRefused(Exception):
    """The repository cannot be imported as it is; the message is for people."""


@dataclass(frozen=True, slots=True)
class FetchedPack:
    """A fetched pack: `pack` as it came, at its beginning, and `commit` in hexadecimal.

    `commit` may be the tag that names the commit.
    """

    commit: str
    pack: BinaryIO
    pack_bytes: int


def check_git_url(url: str) -> None:
    """Check an address before it is fetched. Raises Invalid, UnsafeAddress; both name `git_url`."""
    host = url.partition("://")[2].partition("/")[0]
    if not url.startswith("https://") or not host:
        raise Invalid(NOT_HTTPS, fields={"git_url": [FieldText(NOT_HTTPS, "not_https")]})
    if "@" in host:
        raise Invalid(HAS_PASSWORD, fields={"git_url": [HAS_PASSWORD]})
    try:
        installation_policy().check_url(url)
    except AmberError as error:
        error.fields = {"git_url": [error.message]}
        raise


def fetch_commit(
    url: str, *, ref: str, token: str, into: BinaryIO, max_bytes: int, max_file_bytes: int
) -> FetchedPack:
    """Fetch the commit that `ref` names: a branch, a tag, a commit; empty for the default branch.

    `into` takes the pack. Files over `max_file_bytes` are left out where the server can filter.
    Raises GitRefused, UnsafeAddress, FetchError.
    """
    from dulwich.errors import GitProtocolError

    check_git_url(url)
    received = _Sink(into, max_bytes)
    choice = CommitChoice(ref)
    try:
        with ExitStack() as bodies:
            result = _client(_Requester(url, token, max_bytes, bodies)).fetch_pack(
                "",
                choice,
                cast(Any, NothingHere()),
                received.write,
                depth=1,
                filter_spec=b"blob:limit=%d" % max_file_bytes,
            )
    except GitProtocolError as error:
        raise GitRefused(f"{BROKEN} It says: {str(error)[:200]}") from None
    # What dulwich raises beside it for lines that it cannot read.
    except (AssertionError, LookupError, ValueError):
        raise GitRefused(BROKEN) from None
    if result.object_format not in (None, "sha1"):
        raise GitRefused("Repositories with SHA-256 object names are not supported.")
    into.seek(0)
    return FetchedPack(choice.commit, into, received.bytes)


class NothingHere:
    """Tells a server that asks which objects are here already: none."""

    def __init__(self) -> None:
        self.shallow: set[bytes] = set()

    def __next__(self) -> None:
        return None

    def ack(self, sha: bytes) -> None:
        pass

    def nak(self) -> None:
        pass


class CommitChoice:
    """Chooses the wanted commit of a repository. Raises GitRefused if it has none of that name."""

    def __init__(self, ref: str) -> None:
        self._ref = ref
        self.commit = ""

    def __call__(self, refs: "Mapping[Ref, bytes]", depth: int | None = None) -> list[Any]:
        found = self._find_ref({bytes(name): sha for name, sha in refs.items()})
        if found is None:
            raise GitRefused(f"The repository has no branch, tag or commit {self._ref!r}.")
        self.commit = found.decode("ascii")
        return [found]

    def _find_ref(self, refs: Mapping[bytes, bytes]) -> bytes | None:
        if not refs:
            raise GitRefused("The repository is empty.")
        name = self._ref.encode()
        # `HEAD%s` without a name is HEAD. A branch comes before a tag of the same name.
        for place in (b"%s", b"refs/heads/%s", b"refs/tags/%s") if name else (b"HEAD%s",):
            if place % name in refs:
                return refs[place % name]
        is_commit = len(name) == 40 and not set(name) - set(b"0123456789abcdef")
        return name if is_commit else None


class _Sink:
    """Writes the pack, and raises GitRefused at the limit."""

    def __init__(self, into: BinaryIO, most: int) -> None:
        self._into = into
        self._most = most
        self.bytes = 0

    def write(self, data: bytes) -> int:
        self.bytes += len(data)
        if self.bytes > self._most:
            raise GitRefused(TOO_LARGE.format(most=self._most))
        return self._into.write(data)


@dataclass
class _Answer:
    """The part of a response that dulwich looks at."""

    content_type: str
    redirect_location: str

    def close(self) -> None:
        pass


def _client(requester: "_Requester") -> "AbstractHttpGitClient":
    """Return dulwich's client; its 14 MB are loaded by the first import of a process."""
    from dulwich.client import AbstractHttpGitClient

    class GuardedGitClient(AbstractHttpGitClient):
        """dulwich's client, sending Amber's guarded requests."""

        def _http_request(
            self,
            url: str,
            headers: dict[str, str] | None = None,
            data: bytes | Iterator[bytes] | None = None,
            raise_for_status: bool = True,
        ) -> tuple[Any, Callable[[int], bytes]]:
            content = data if data is None or isinstance(data, bytes) else b"".join(data)
            return _request(requester, url, headers or {}, content)

    return GuardedGitClient(requester.url, quiet=True)


@dataclass(frozen=True, slots=True)
class _Requester:
    """Where requests go and what they carry.

    The token goes to the address's own origin only. `bodies` closes all that was received, since
    dulwich forgets one of them.
    """

    url: str
    token: str = field(repr=False)
    max_bytes: int
    bodies: ExitStack

    def authorization(self, url: str) -> dict[str, str]:
        """Return the Basic header, or none for another origin.

        GitHub, GitLab and Gitea take tokens under any name; others require `name:token`.
        """
        if not self.token or _origin(url) != _origin(self.url):
            return {}
        pair = self.token if ":" in self.token else f"x-access-token:{self.token}"
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def _request(
    requester: _Requester, url: str, headers: Mapping[str, str], content: bytes | None
) -> tuple[_Answer, Callable[[int], bytes]]:
    """Make one request. Its answer goes to the disk: a pack may be too large for memory."""
    file = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the others)
    body = requester.bodies.enter_context(file)
    # Lines of the protocol around the pack, and what the server says of its progress.
    most = MAX_REFS_BYTES if content is None else requester.max_bytes * 11 // 10 + MAX_TALK_BYTES
    try:
        answer = fetch_sync(
            "GET" if content is None else "POST",
            url,
            headers={**headers, **requester.authorization(url)},
            content=content,
            limits=FetchLimits(total_seconds=FETCH_SECONDS, max_bytes=most),
            into=body,
        )
    except FetchError as error:
        if error.reason == "too_large":
            raise GitRefused(TOO_LARGE.format(most=requester.max_bytes)) from None
        raise
    _check(answer, requester, is_list=content is None)
    body.seek(0)
    moved = answer.url if answer.url != url else ""
    return _Answer(answer.headers.get("content-type", ""), moved), body.read


def _check(answer: Response, requester: _Requester, *, is_list: bool) -> None:
    if answer.status in (401, 403):
        raise GitRefused(BAD_TOKEN if requester.token else NO_ACCESS)
    if answer.status == 404:
        raise GitRefused(NOT_GIT)
    if not answer.is_success:
        raise GitRefused(f"The repository's server answers with status {answer.status}.")
    if is_list and answer.mime_type != _ADVERTISEMENT:
        raise GitRefused(NOT_GIT)


def _origin(url: str) -> tuple[str, str | None, int]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or 443
