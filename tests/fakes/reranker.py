"""An HTTP reranker that answers as it is told, and keeps what it was asked."""

import json
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class FakeReranker:
    """Answers as it is told; keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[dict[str, Any], str | None]] = []
        self.status = 200
        self.answer: Callable[[dict[str, Any]], Any] = by_length
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                service.asked.append((body, self.headers["Authorization"]))
                said = json.dumps(service.answer(body)).encode()
                self.send_response(service.status)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                with suppress(
                    BrokenPipeError, ConnectionResetError
                ):  # whoever asked waits no longer
                    self.wfile.write(said)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}/rerank"

    def __enter__(self) -> "FakeReranker":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def by_length(body: dict[str, Any]) -> Any:
    """The shortest text first, in the form of whoever asked."""
    if "texts" in body:
        return [{"index": n, "score": -len(text)} for n, text in enumerate(body["texts"])]
    texts = body["documents"]
    return {"results": [{"index": n, "relevance_score": -len(t)} for n, t in enumerate(texts)]}
