"""Models that follow a script, behind the two HTTP APIs that Claude Code and Codex speak.

A step is chosen by how many tool results the conversation already holds, so that a request sent again gets the same
answer; it may depend on what those results say. Every request is kept: what a real client shows its model is what the
tests look at.
"""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Use:
    """The model calls a tool."""

    tool: str
    arguments: Json = field(default_factory=dict)
    namespace: str = ""


@dataclass(frozen=True)
class Say:
    """The model says something and ends its turn."""

    words: str


@dataclass(frozen=True)
class Then:
    """The model calls a tool with what it has learnt: the function is given the results that it was shown so far."""

    use: Callable[[list[Json]], Use]


Step = Use | Say | Then


class ScriptedModel:
    """What the API handlers share: the script, and everything they were sent."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps
        self.requests: list[Json] = []
        self.lock = threading.Lock()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def step(self, results: list[Json]) -> Use | Say:
        chosen = self.steps[min(len(results), len(self.steps) - 1)]
        if not isinstance(chosen, Then):
            return chosen
        try:
            return chosen.use(results)
        except (LookupError, AssertionError) as fault:
            # A client would send the request again and again, were the API to fail; so the turn ends, and the test.
            return Say(f"the script cannot go on from what it was shown: {fault!r}")

    def keep(self, body: Json) -> int:
        with self.lock:
            self.requests.append(body)
            return len(self.requests)


class _Handler(BaseHTTPRequestHandler):
    """The parts of an HTTP API that both share."""

    protocol_version = "HTTP/1.1"
    model: ScriptedModel

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing on stderr."""

    def read_json(self) -> Json:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        body: Json = json.loads(raw or b"{}")
        return body

    def send_json(self, status: int, data: Json) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def send_event(self, kind: str, **data: Any) -> None:
        self.wfile.write(f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode())
        self.wfile.flush()


class _AnthropicHandler(_Handler):
    """`POST /v1/messages`, streamed or not."""

    def do_HEAD(self) -> None:
        self.send_json(200, {})

    def do_GET(self) -> None:
        self.send_json(404, {"type": "error", "error": {"type": "not_found_error", "message": "not here"}})

    def do_POST(self) -> None:
        body = self.read_json()
        if not self.path.startswith("/v1/messages"):
            self.do_GET()
        elif "count_tokens" in self.path:
            self.send_json(200, {"input_tokens": 10})
        else:
            self.answer(body)

    def answer(self, body: Json) -> None:
        number = self.model.keep(body)
        # Claude Code asks for titles and the like without offering tools; those requests are no part of the script.
        step = self.model.step(tool_results(body)) if body.get("tools") else Say("ok")
        if isinstance(step, Use):
            block: Json = {"type": "tool_use", "id": f"toolu_{number:06d}", "name": step.tool, "input": step.arguments}
        else:
            block = {"type": "text", "text": step.words}
        message: Json = {
            "id": f"msg_{number:06d}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model", "scripted"),
            "content": [block],
            "stop_reason": "tool_use" if isinstance(step, Use) else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }
        if body.get("stream"):
            self.stream(message, block)
        else:
            self.send_json(200, message)

    def stream(self, message: Json, block: Json) -> None:
        if block["type"] == "text":
            empty: Json = {"type": "text", "text": ""}
            delta: Json = {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        self.begin_stream()
        self.send_event("message_start", message={**message, "content": [], "stop_reason": None})
        self.send_event("content_block_start", index=0, content_block=empty)
        self.send_event("content_block_delta", index=0, delta=delta)
        self.send_event("content_block_stop", index=0)
        ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        self.send_event("message_delta", delta=ending, usage={"output_tokens": 5})
        self.send_event("message_stop")


class _OpenAIHandler(_Handler):
    """`POST /v1/responses`, streamed."""

    def do_GET(self) -> None:
        self.send_json(200, {"object": "list", "data": [], "models": []})

    def do_POST(self) -> None:
        body = self.read_json()
        number = self.model.keep(body)
        step = self.model.step(call_outputs(body))
        if isinstance(step, Use):
            item: Json = {
                "type": "function_call",
                "id": f"fc_{number}",
                "call_id": f"call_{number}",
                "name": step.tool,
                "arguments": json.dumps(step.arguments),
            }
            if step.namespace:
                item["namespace"] = step.namespace
        else:
            content = [{"type": "output_text", "text": step.words}]
            item = {"type": "message", "role": "assistant", "id": f"m_{number}", "content": content}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        usage_details = {"input_tokens_details": None, "output_tokens_details": None}
        self.begin_stream()
        self.send_event("response.created", response={"id": f"resp_{number}"})
        self.send_event("response.output_item.done", output_index=0, item=item)
        self.send_event("response.completed", response={"id": f"resp_{number}", "usage": {**usage, **usage_details}})


def tool_results(body: Json) -> list[Json]:
    """Return the `tool_result` blocks of a Messages request, in order."""
    contents = [message["content"] for message in body.get("messages", []) if isinstance(message.get("content"), list)]
    return [block for content in contents for block in content if block.get("type") == "tool_result"]


def call_outputs(body: Json) -> list[Json]:
    """Return the outputs of calls in a Responses request, in order."""
    items = body.get("input")
    return [item for item in items if item.get("type", "").endswith("call_output")] if isinstance(items, list) else []


@contextmanager
def _serving(handler: type[_Handler], model: ScriptedModel) -> Iterator[ScriptedModel]:
    bound = type("Bound", (handler,), {"model": model})
    server = ThreadingHTTPServer(("127.0.0.1", 0), bound)
    server.daemon_threads = True
    model.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def anthropic(steps: Sequence[Step]) -> Iterator[ScriptedModel]:
    """Serve the Messages API on loopback for as long as the block runs."""
    with _serving(_AnthropicHandler, ScriptedModel(steps)) as model:
        yield model


@contextmanager
def openai(steps: Sequence[Step]) -> Iterator[ScriptedModel]:
    """Serve the Responses API on loopback for as long as the block runs."""
    with _serving(_OpenAIHandler, ScriptedModel(steps)) as model:
        yield model
