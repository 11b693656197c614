"""An OpenAI-compatible server on the loopback that says what a test wants, and misbehaves as told."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DONE = b"data: [DONE]\n\n"
EVENTS = "text/event-stream"


def chunk(content=None, reasoning=None, finish=None, usage=None, **delta):
    """One event of a stream."""
    fields = {"content": content, "reasoning_content": reasoning, **delta}
    given = {name: value for name, value in fields.items() if value is not None}
    document = {"choices": [{"index": 0, "delta": given, "finish_reason": finish}]}
    return event(document | ({"usage": usage} if usage else {}))


def usage(prompt, completion, **more):
    """The event with counts, as `include_usage` asks for it."""
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, **more}
    return event({"choices": [], "usage": counts})


def event(document):
    return b"data: " + json.dumps(document).encode() + b"\n\n"


@dataclass
class Reply:
    """`parts`: bytes to send, seconds to wait, or an Event to wait for. `cut`: the connection breaks then."""

    parts: tuple = ()
    status: int = 200
    headers: dict = field(default_factory=lambda: {"Content-Type": EVENTS})
    cut: bool = False

    @classmethod
    def json(cls, document, status=200, **headers):
        return cls((json.dumps(document).encode(),), status, {"Content-Type": "application/json", **headers})

    @classmethod
    def html(cls, status=200):
        page = b"<!doctype html><html><body>please log in</body></html>"
        return cls((page,), status, {"Content-Type": "text/html"})


def answer(*words, tokens=None, finish="stop"):
    """A whole well-behaved answer."""
    parts = [chunk(role="assistant", content=""), *(chunk(word) for word in words), chunk(finish=finish)]
    return Reply((*parts, usage(11, tokens or len(words)), DONE))


@dataclass
class Request:
    method: str
    path: str
    headers: dict
    body: dict


class ChatServer:
    """`replies`: one for each question, the last one again and again. `models`: of the list, or its Reply.

    `gone` is set when a client left before its answer was whole.
    """

    def __init__(self, *replies, models=("small",)):
        self.replies, self.models, self.pages = list(replies), models, {}
        self.requests, self.gone = [], threading.Event()
        handler = type("Handler", (_Handler,), {"fake": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        self.host = f"127.0.0.1:{self._http.server_address[1]}"
        self.url = f"http://{self.host}/v1"

    def __enter__(self):
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self._http.shutdown()
        self._http.server_close()

    def questions(self):
        """Bodies of the chat completions that were asked for."""
        return [request.body for request in self.requests if request.method == "POST"]

    def reply(self, request):
        if request.path in self.pages:
            return self.pages[request.path]
        if request.path == "/v1/models":
            return self._listing()
        if request.path != "/v1/chat/completions":
            return Reply.json({"error": {"message": "no such place"}}, 404)
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    def _listing(self):
        if isinstance(self.models, Reply):
            return self.models
        entries = [{"id": model} if isinstance(model, str) else model for model in self.models]
        return Reply.json({"object": "list", "data": entries})


class _Handler(BaseHTTPRequestHandler):
    fake: ChatServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        self._answer({})

    def do_POST(self):
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, body):
        request = Request(self.command, self.path, dict(self.headers), body)
        self.fake.requests.append(request)
        reply = self.fake.reply(request)
        self.send_response(reply.status)
        for name, value in {**reply.headers, "Transfer-Encoding": "chunked"}.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self._send(reply)
        except OSError:
            self.fake.gone.set()
            self.close_connection = True

    def _send(self, reply):
        for part in reply.parts:
            if isinstance(part, bytes):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                self.wfile.flush()
            elif isinstance(part, threading.Event):
                part.wait(20)
            else:
                time.sleep(part)
        if reply.cut:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")
