"""The three batch APIs over HTTP: OpenAI's files and batches, Gemini's, Anthropic's.

Shapes follow the types of the three SDKs.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from aiohttp import BodyPartReader, web
from aiohttp.typedefs import Handler

from tests.fake_provider.batches import Batches, BatchStatus, SeenBatch

_URLS = {"/v1/chat/completions": "openai", "/v1/responses": "responses"}
"""Address that the requests of a batch are for -> API."""
_DAY = 86_400  # seconds
_OPENAI = {
    BatchStatus.AT_WORK: "in_progress",
    BatchStatus.DONE: "completed",
    BatchStatus.EXPIRED: "expired",
    BatchStatus.CANCELLED: "cancelled",
    BatchStatus.REFUSED: "failed",
}
_GEMINI = {
    BatchStatus.AT_WORK: "BATCH_STATE_RUNNING",
    BatchStatus.DONE: "BATCH_STATE_SUCCEEDED",
    BatchStatus.EXPIRED: "BATCH_STATE_EXPIRED",
    BatchStatus.CANCELLED: "BATCH_STATE_CANCELLED",
    BatchStatus.REFUSED: "BATCH_STATE_FAILED",
}
_EXPIRED = {
    "code": "batch_expired",
    "message": "This request could not be executed before the completion window expired.",
}


class BatchRoutes:
    """Serves batches.

    Args:
        batches: Those of the server.
    """

    def __init__(self, batches: Batches) -> None:
        self._batches = batches

    def routes(self) -> Iterable[web.RouteDef]:
        """Return what is served."""
        routes = [
            web.post("/v1/files", self._openai_file),
            web.get("/v1/files/{name}/content", self._openai_content),
            web.post("/v1/batches", self._openai_create),
            web.get("/v1/batches", self._openai_list),
            web.get("/v1/batches/{name}", self._openai_get),
            web.post("/v1/batches/{name}/cancel", self._openai_cancel),
            web.post("/v1/messages/batches", self._anthropic_create),
            web.get("/v1/messages/batches", self._anthropic_list),
            web.get("/v1/messages/batches/{name}", self._anthropic_get),
            web.get("/v1/messages/batches/{name}/results", self._anthropic_results),
            web.post("/v1/messages/batches/{name}/cancel", self._anthropic_cancel),
            web.post("/v1beta/models/{model}:batchGenerateContent", self._gemini_create),
            web.get("/v1beta/batches", self._gemini_list),
            web.get("/v1beta/batches/{name}", self._gemini_get),
            web.post("/v1beta/batches/{name}:cancel", self._gemini_cancel),
        ]
        return [
            web.RouteDef(one.method, one.path, self._unless_it_fails(one.handler), {})
            for one in routes
        ]

    def _unless_it_fails(self, handler: Any) -> Handler:
        async def serve(http: web.Request) -> web.StreamResponse:
            is_creation = http.method == "POST" and not http.path.endswith(("cancel", "files"))
            if self._batches.failing and self._batches.failing[0] > 0:
                status = self._batches.failing.pop(0)
                error = {"code": status, "message": "It failed.", "type": "error", "status": "X"}
                return web.json_response({"type": "error", "error": error}, status=status)
            is_lost = is_creation and bool(self._batches.failing)
            if is_lost:
                self._batches.failing.pop(0)
            response: web.StreamResponse = await handler(http)
            if is_creation:
                await asyncio.sleep(self._batches.delay)
            if is_lost:
                transport = http.transport
                assert transport is not None
                transport.abort()
            return response

        return serve

    def _full(self, body: dict[str, Any]) -> web.Response:
        headers = {"retry-after": "1"} if self._batches.says_when else {}
        return web.json_response(body, status=429, headers=headers)

    def _named(self, http: web.Request) -> SeenBatch:
        batch = self._batches.find(http.match_info["name"])
        if batch is None:
            raise web.HTTPNotFound(text="{}", content_type="application/json")
        return batch

    # -- OpenAI ---------------------------------------------------------------------------------

    async def _openai_file(self, http: web.Request) -> web.Response:
        # Not `http.post()`, which leaves a temporary file open when a client goes away half way.
        form: dict[str, str] = {}
        file_name = None
        async for part in await http.multipart():
            assert isinstance(part, BodyPartReader)
            assert part.name is not None
            form[part.name] = await part.text()
            file_name = file_name or part.filename
        assert form["purpose"] == "batch"
        name = self._batches.keep_file(form["file"])
        return web.json_response(
            {"id": name, "object": "file", "bytes": len(form["file"]), "created_at": 0,
             "filename": file_name, "purpose": "batch", "status": "processed"}
        )  # fmt: skip

    async def _openai_content(self, http: web.Request) -> web.Response:
        return web.Response(text=self._batches.files[http.match_info["name"]])

    async def _openai_create(self, http: web.Request) -> web.Response:
        asked = await http.json()
        lines = [
            json.loads(line)
            for line in self._batches.files[asked["input_file_id"]].split("\n")
            if line
        ]
        keys = [line["custom_id"] for line in lines]
        url = asked["endpoint"]
        is_wrong = len(set(keys)) < len(keys) or any(line["url"] != url for line in lines)
        problem = "duplicate_custom_id" if is_wrong else ""
        if self._batches.is_full(len(keys)):
            problem = "token_limit_exceeded"
        batch = self._batches.create(
            _URLS[url],
            keys,
            [line["body"] for line in lines],
            tag=(asked.get("metadata") or {}).get("mdagents", ""),
            refused=problem,
        )
        return web.json_response(self._openai_batch(batch))

    async def _openai_list(self, http: web.Request) -> web.Response:
        data = [self._openai_batch(batch) for batch in self._batches.of(*_URLS.values())]
        return web.json_response({"object": "list", "data": data, "has_more": False})

    async def _openai_get(self, http: web.Request) -> web.Response:
        return web.json_response(self._openai_batch(self._named(http)))

    async def _openai_cancel(self, http: web.Request) -> web.Response:
        batch = self._named(http)
        self._batches.cancel(batch)
        return web.json_response(self._openai_batch(batch))

    def _openai_batch(self, batch: SeenBatch) -> dict[str, Any]:
        well: list[dict[str, Any]] = []
        badly: list[dict[str, Any]] = []
        for key, (status, body) in batch.results.items():
            line = {
                "id": f"batch_req_{key[:8]}",
                "custom_id": key,
                "response": {"status_code": status, "request_id": "r", "body": body},
                "error": None,
            }
            (well if status == 200 else badly).append(line)
        if batch.status is BatchStatus.EXPIRED:
            badly += [
                {"id": f"batch_req_{key[:8]}", "custom_id": key, "response": None,
                 "error": _EXPIRED}
                for key in batch.keys if key not in batch.results
            ]  # fmt: skip
        created = int(batch.created)
        return {
            "id": batch.id,
            "object": "batch",
            "endpoint": next(url for url, api in _URLS.items() if api == batch.api),
            "completion_window": "24h",
            "input_file_id": "file-in",
            "created_at": created,
            "expires_at": created + _DAY,
            "status": _OPENAI[batch.status],
            "output_file_id": self._file_of_replies(batch, well),
            "error_file_id": self._file(badly),
            "metadata": {"mdagents": batch.tag} if batch.tag else None,
            "request_counts": {
                "total": len(batch.keys), "completed": len(well), "failed": len(badly),
            },
            "errors": {
                "object": "list",
                "data": [{"code": batch.refused, "message": "It cannot be worked on.", "line": 1}],
            } if batch.refused else None,
        }  # fmt: skip

    def _file_of_replies(self, batch: SeenBatch, lines: list[dict[str, Any]]) -> str | None:
        if batch.status is BatchStatus.DONE and self._batches.late:
            self._batches.late -= 1
            return None
        return self._file(lines, self._batches.rewrite)

    def _file(
        self, lines: list[dict[str, Any]], rewrite: Callable[[list[str]], list[str]] = list
    ) -> str | None:
        if not lines:
            return None
        written = rewrite([json.dumps(line) for line in lines])
        return self._batches.keep_file("".join(f"{line}\n" for line in written))

    # -- Anthropic ------------------------------------------------------------------------------

    async def _anthropic_create(self, http: web.Request) -> web.Response:
        asked = (await http.json())["requests"]
        keys = [one["custom_id"] for one in asked]
        if self._batches.is_full(len(keys)):
            error = {"type": "rate_limit_error", "message": "Too many requests are in the queue."}
            return self._full({"type": "error", "error": error})
        batch = self._batches.create("anthropic", keys, [one["params"] for one in asked])
        return web.json_response(_anthropic_batch(batch))

    async def _anthropic_list(self, http: web.Request) -> web.Response:
        data = [_anthropic_batch(batch) for batch in self._batches.of("anthropic")]
        ids = {"first_id": None, "last_id": None}
        return web.json_response({"data": data, "has_more": False, **ids})

    async def _anthropic_get(self, http: web.Request) -> web.Response:
        return web.json_response(_anthropic_batch(self._named(http)))

    async def _anthropic_cancel(self, http: web.Request) -> web.Response:
        batch = self._named(http)
        self._batches.cancel(batch)
        return web.json_response(_anthropic_batch(batch))

    async def _anthropic_results(self, http: web.Request) -> web.Response:
        batch = self._named(http)
        left = "canceled" if batch.status is BatchStatus.CANCELLED else "expired"
        lines = []
        for key in batch.keys:
            result: dict[str, Any] = {"type": left}
            if key in batch.results:
                status, body = batch.results[key]
                result = {"type": "errored", "error": body}
                if status == 200:
                    usage = body["usage"] | {"service_tier": "batch"}
                    result = {"type": "succeeded", "message": body | {"usage": usage}}
            lines.append(json.dumps({"custom_id": key, "result": result}))
        # In another order than they were asked, as the API reserves the right to.
        return web.Response(text="\n".join(self._batches.rewrite(lines[::-1])) + "\n")

    # -- Gemini ---------------------------------------------------------------------------------

    async def _gemini_create(self, http: web.Request) -> web.Response:
        asked = (await http.json())["batch"]
        requests = asked["inputConfig"]["requests"]["requests"]
        if self._batches.is_full(len(requests)):
            message = "You exceeded your current quota."
            error = {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED"}
            return self._full({"error": error})
        batch = self._batches.create(
            "gemini",
            [one["metadata"]["key"] for one in requests],
            [one["request"] for one in requests],
            tag=asked.get("displayName", ""),
            model=http.match_info["model"],
        )
        return web.json_response(_gemini_batch(batch))

    async def _gemini_list(self, http: web.Request) -> web.Response:
        found = [_gemini_batch(batch) for batch in self._batches.of("gemini")]
        return web.json_response({"operations": found})

    async def _gemini_get(self, http: web.Request) -> web.Response:
        return web.json_response(_gemini_batch(self._named(http)))

    async def _gemini_cancel(self, http: web.Request) -> web.Response:
        self._batches.cancel(self._named(http))
        return web.json_response({})


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _anthropic_batch(batch: SeenBatch) -> dict[str, Any]:
    has_ended = batch.status is not BatchStatus.AT_WORK
    well = sum(status == 200 for status, _ in batch.results.values())
    left = len(batch.keys) - len(batch.results)
    counts = {
        "processing": 0 if has_ended else len(batch.keys),
        "succeeded": well,
        "errored": len(batch.results) - well,
        "canceled": left if batch.status is BatchStatus.CANCELLED else 0,
        "expired": left if batch.status is BatchStatus.EXPIRED else 0,
    }
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": "ended" if has_ended else "in_progress",
        "request_counts": counts,
        "created_at": _timestamp(batch.created),
        "expires_at": _timestamp(batch.created + _DAY),
        "results_url": f"/v1/messages/batches/{batch.id}/results" if has_ended else None,
    }


def _gemini_batch(batch: SeenBatch) -> dict[str, Any]:
    responses: list[Mapping[str, Any]] = []
    if batch.status is BatchStatus.DONE:
        for key, (status, body) in batch.results.items():
            told = {"response": body} if status == 200 else {"error": _rpc(status, body)}
            responses.append({**told, "metadata": {"key": key}})
    name = f"batches/{batch.id}"
    metadata: dict[str, Any] = {
        "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
        "name": name,
        "model": f"models/{batch.model}",
        "displayName": batch.tag,
        "state": _GEMINI[batch.status],
        "createTime": _timestamp(batch.created),
    }
    if responses:
        metadata["output"] = {"inlinedResponses": {"inlinedResponses": responses}}
    has_ended = batch.status is not BatchStatus.AT_WORK
    return {"name": name, "metadata": metadata, **({"done": True} if has_ended else {})}


def _rpc(status: int, body: Mapping[str, Any]) -> dict[str, Any]:
    codes = {400: 3, 401: 16, 404: 5, 429: 8, 500: 13, 503: 14}
    return {"code": codes.get(status, 13), "message": body["error"]["message"]}
