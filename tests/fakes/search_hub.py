"""A hub on this machine's loopback that answers searches as the public one does: query in, JSON list out."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


def entry(repo, model_type="llama", parameters=None, **changes):
    """One repository as the hub lists it with the fields that were asked for."""
    return {
        "_id": "0",
        "id": repo,
        "modelId": repo,
        "downloads": 10,
        "gated": False,
        "pipeline_tag": "text-generation",
        "library_name": "transformers",
        "tags": ["transformers", "safetensors", model_type, "license:apache-2.0"],
        "config": {"model_type": model_type},
        "safetensors": {"parameters": parameters or {"BF16": 1000}, "total": 1000},
        **changes,
    }


MODELS = [
    entry("Qwen/Qwen3-0.6B", "qwen3", {"BF16": 600_000_000}, downloads=5_000_000),
    entry("meta/Llama-gated", parameters={"BF16": 10, "F32": 1}, gated="manual", downloads=900),
    entry("owner/mixed-qwen2", "qwen2", {"F8_E4M3": 8, "BF16": 2}),
    entry("owner/mamba-qwen", "mamba"),
    entry("owner/awq-qwen", "qwen2", tags=["safetensors", "qwen2", "awq"]),
    entry("owner/packed-qwen", "qwen2", config={"model_type": "qwen2", "quantization_config": {"bits": 4}}),
    entry("owner/lora-qwen", "qwen2", library_name="peft"),
    entry("owner/pictures-qwen", "qwen2", pipeline_tag="image-text-to-text"),
    entry("../../etc/qwen", "qwen2"),
    {"id": "bare/qwen-mirror"},
]


class Handler(BaseHTTPRequestHandler):
    """`queries` collects what was asked; `answer` replaces the list: a status, or bytes."""

    queries: list
    answer: object = None

    def log_message(self, *args):
        pass

    def do_GET(self):
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        if url.path != "/api/models":
            return self._send(404, b"{}")
        self.queries.append(query)
        if isinstance(self.answer, int):
            return self._send(self.answer, b"{}")
        return self._send(200, self.answer or json.dumps(self._matching(query)).encode())

    def _send(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _matching(self, query):
        words = query.get("search", [""])[0].lower()
        return [model for model in MODELS if words in model["id"].lower()]


def start():
    """The server, running; `.handler` has `queries` and `answer`, `.endpoint` is for HF_ENDPOINT."""
    handler = type("Handler", (Handler,), {"queries": [], "answer": None})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.handler, server.endpoint = handler, f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
