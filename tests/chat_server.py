"""A server with an OpenAI-compatible address on this machine, which answers as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, Any, dict[str, str]]
"""Status, body (JSON, or bytes as they are), headers."""


def said(text: str | None, reason: str = "stop") -> Reply:
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": reason}
    return 200, {"choices": [choice]}, {}


class Server:
    """Answers as it is told, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answer: Callable[[dict[str, Any], int], Reply] = lambda body, number: said("hello")
        self.models = ["the-model"]
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.connections = 0
        self.lock = threading.Lock()
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                with server.lock:
                    server.connections += 1

            def do_GET(self) -> None:
                assert self.path == "/v1/models"
                self.reply(200, {"data": [{"id": name} for name in server.models]}, {})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with server.lock:
                    server.asked.append(body)
                    server.headers.append(dict(self.headers))
                    number = len(server.asked)
                if self.path != "/v1/chat/completions":
                    return self.reply(404, {"error": f"no {self.path}"}, {})
                return self.reply(*server.answer(body, number))

            def reply(self, status: int, body: Any, headers: dict[str, str]) -> None:
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler

    def __enter__(self) -> Server:
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()
