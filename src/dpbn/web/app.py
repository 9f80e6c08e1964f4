"""The ASGI application: routes, assets, security headers."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpbn.errors import DpbnError
from dpbn.release import Release
from dpbn.web import problems
from dpbn.web.limits import Limits, OverloadedError
from dpbn.web.openapi import openapi_document
from dpbn.web.question import read_question
from dpbn.web.service import ANSWERS, Service, encode

CONTENT_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}

# Nothing runs or loads but this server's own files; markup can never be made from strings.
SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

_RAW_SECURITY_HEADERS = [(name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]


def build_app(
    release: Release,
    *,
    name: str = "release",
    limits: Limits | None = None,
    hosts: Sequence[str] | None = None,
    prepare: bool = False,
) -> ASGIApp:
    """The explorer and its API over one release; `prepare` readies error bars before they are asked for."""
    limits = limits or Limits()
    service = Service(release, name, limits)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(service.prepare_bars()) if prepare else None
        yield
        if task is not None:
            task.cancel()
        service.close()

    routes = [
        Route("/", _fixed(ASSETS["index.html"], "text/html")),
        Route("/assets/{file}", _asset),
        Route("/openapi.json", _fixed(encode(openapi_document(limits)), "application/json")),
        Route("/api/release", _fixed(service.view, "application/json")),
        *(Route(f"/api/{kind}", _answering(kind, service, limits), methods=["POST"]) for kind in ANSWERS),
    ]
    handlers = {
        HTTPException: problems.from_http,
        DpbnError: problems.from_error,
        OverloadedError: problems.from_error,
        Exception: problems.from_error,
    }
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)
    return Guard(app, hosts)


Endpoint = Callable[[Request], Awaitable[Response]]


def _answering(kind: str, service: Service, limits: Limits) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        question = read_question(await _body(request, limits))
        return Response(await service.answer(kind, question), media_type="application/json")

    return endpoint


async def _body(request: Request, limits: Limits) -> bytes:
    """The whole body, if it is JSON, small, and arrives in time."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "Content-Type must be application/json")
    declared = request.headers.get("content-length", "0")
    most = f"a body must have at most {limits.body_bytes} bytes"
    if not declared.isdecimal() or len(declared) > 15 or int(declared) > limits.body_bytes:
        raise HTTPException(413, most)
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limits.body_bytes:
                    raise HTTPException(413, most)
    except TimeoutError:
        raise HTTPException(408, f"a body must arrive within {limits.body_seconds:g} seconds") from None
    except ClientDisconnect:  # nobody reads this, but nobody fills the terminal with tracebacks either
        raise HTTPException(400, "a body must be as long as its head says") from None
    return bytes(body)


def _fixed(document: bytes, media_type: str) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return _cached(request, document, media_type)

    return endpoint


ASSETS = {file.name: file.read_bytes() for file in (files("dpbn.web") / "assets").iterdir() if file.is_file()}


async def _asset(request: Request) -> Response:
    name = request.path_params["file"]
    suffix = name[name.rfind(".") :]
    if name not in ASSETS or suffix not in CONTENT_TYPES:
        raise HTTPException(404, "no such asset")
    return _cached(request, ASSETS[name], CONTENT_TYPES[suffix])


def _cached(request: Request, content: bytes, media_type: str) -> Response:
    """Checked again at every visit, sent again only if changed."""
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=media_type)


class Guard:
    """Adds the security headers to every answer and refuses foreign Host names (DNS rebinding)."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str] | None):
        self._app = app
        self._hosts = None if hosts is None else {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*message.get("headers", ()), *_RAW_SECURITY_HEADERS]
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append((b"cache-control", b"no-store"))
                message["headers"] = headers
            await send(message)

        if self._hosts is not None and _host_name(scope) not in self._hosts:
            refused = problems.problem(421, "wrong-host", "This server does not answer to that host name")
            await refused(scope, receive, guarded)
            return
        try:
            await self._app(scope, receive, guarded)
        except asyncio.CancelledError:  # the server stops while an answer is computed
            stopping = problems.problem(503, "stopping", "The server is being stopped", close=True)
            await stopping(scope, receive, guarded)


def _host_name(scope: Scope) -> str:
    """The Host header without its port."""
    host: str = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1").lower()
    return host.partition("]")[0].lstrip("[") if host.startswith("[") else host.rpartition(":")[0] or host
