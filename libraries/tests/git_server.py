"""Run a real Git server on 127.0.0.1, over TLS, with a token; and make repositories to serve.

`tls.test` is its name. dulwich's own server needs nothing installed; Git's `http-backend` is the
one that most of the world runs.
"""

import base64
import os
import shutil
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from dulwich import porcelain
from dulwich.repo import Repo
from dulwich.server import DictBackend
from dulwich.web import make_wsgi_chain

AUTHOR = b"A <a@example.com>"
HAS_GIT = shutil.which("git") is not None
Respond = Callable[..., Any]


class Repository:
    """A repository in a folder; each `commit` is the state of all its files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.repo: Any = Repo.init(str(folder), default_branch=b"main")

    def commit(self, files: Mapping[str, bytes | str], branch: str = "main") -> str:
        """The commit's name. What is not among `files` is removed."""
        for path in [p for p in self.folder.rglob("*") if p.is_file() or p.is_symlink()]:
            if ".git" not in path.relative_to(self.folder).parts:
                path.unlink()
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return self.commit_all(branch)

    def commit_all(self, branch: str = "main") -> str:
        porcelain.add(self.repo, paths=None)
        self._stage_removed()
        made = porcelain.commit(self.repo, message=b"x", author=AUTHOR, committer=AUTHOR)
        self.repo.refs[b"refs/heads/" + branch.encode()] = made
        return made.decode()

    def tag(self, name: str) -> None:
        porcelain.tag_create(self.repo, name.encode(), author=AUTHOR, message=b"t", annotated=True)

    def _stage_removed(self) -> None:
        index = self.repo.open_index()
        for path in list(index):
            if not os.path.lexists(self.folder / os.fsdecode(path)):
                del index[path]
        index.write()


@dataclass
class GitServer:
    """Serves `folders` below its address; with a `token`, only to who has it."""

    certificate: Path
    repositories: dict[str, Repository]
    token: str = ""
    uses_git: bool = False
    redirect: str = ""
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    """Method, path, and Authorization header."""

    def __enter__(self) -> "GitServer":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate)
        backend = DictBackend({f"/{name}": each.repo for name, each in self.repositories.items()})
        self._app = self._git if self.uses_git else make_wsgi_chain(backend)
        self._server = make_server(
            "127.0.0.1", 0, self._guard, server_class=WSGIServer, handler_class=_Quiet
        )
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port: int = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def url(self, name: str) -> str:
        return f"https://tls.test:{self.port}/{name}"

    def _guard(self, environ: dict[str, Any], start_response: Respond) -> Iterable[bytes]:
        given = environ.get("HTTP_AUTHORIZATION", "")
        self.requests.append((environ["REQUEST_METHOD"], environ["PATH_INFO"], given))
        if self.redirect and environ["PATH_INFO"].startswith("/moved"):
            rest = environ["PATH_INFO"].removeprefix("/moved") + "?" + environ["QUERY_STRING"]
            start_response("302 Found", [("Location", self.redirect + rest)])
            return [b""]
        if self.token:
            _, _, pair = base64.b64decode(given.partition(" ")[2]).decode().partition(":")
            if pair != self.token:
                start_response("401 Unauthorized", [("WWW-Authenticate", "Basic")])
                return [b""]
        return self._app(environ, start_response)

    def _git(self, environ: dict[str, Any], start_response: Respond) -> Iterable[bytes]:
        """Git's own CGI program."""
        length = int(environ.get("CONTENT_LENGTH") or 0)
        folder = next(iter(self.repositories.values())).folder.parent
        ended = subprocess.run(
            ["git", "http-backend"],
            input=environ["wsgi.input"].read(length),
            capture_output=True,
            check=True,
            env={
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(folder),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_COUNT": "2",
                "GIT_CONFIG_KEY_0": "safe.directory",
                "GIT_CONFIG_VALUE_0": "*",
                "GIT_CONFIG_KEY_1": "uploadpack.allowFilter",
                "GIT_CONFIG_VALUE_1": "true",
                "PATH_INFO": environ["PATH_INFO"],
                "QUERY_STRING": environ["QUERY_STRING"],
                "REQUEST_METHOD": environ["REQUEST_METHOD"],
                "CONTENT_TYPE": environ.get("CONTENT_TYPE", ""),
                "HTTP_GIT_PROTOCOL": environ.get("HTTP_GIT_PROTOCOL", ""),
                "GIT_PROTOCOL": environ.get("HTTP_GIT_PROTOCOL", ""),
            },
        )
        head, _, body = ended.stdout.partition(b"\r\n\r\n")
        headers = [tuple(line.split(": ", 1)) for line in head.decode().split("\r\n")]
        status = dict(headers).pop("Status", "200 OK")
        start_response(status, [pair for pair in headers if pair[0] != "Status"])
        return [body]


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass
