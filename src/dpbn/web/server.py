"""The explorer on a socket: uvicorn, with slow and idle connections shed."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from contextlib import suppress

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from dpbn.errors import InputError
from dpbn.release import Release
from dpbn.web.app import Guard, build_app
from dpbn.web.limits import Limits
from dpbn.web.problems import problem

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class ImpatientProtocol(H11Protocol):
    """HTTP/1.1 where a connection that stays in one place too long is cut.

    uvicorn waits for ever for the rest of a request's head and for a client to read its answer. Here every
    connection must finish its head, and then its request, within `seconds` each; time in which the answer is
    computed does not count. Connections above `most` are told to come back, above twice as many are cut; those that
    were there before are still served (uvicorn's own limit would refuse them too).
    """

    seconds, most = 30.0, 256

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most:
            self.app = crowded
        if len(self.connections) > 2 * self.most:
            transport.abort()
        self._place = self._where()
        self._watch = self.loop.call_later(self.seconds, self._look)

    def _where(self) -> tuple[int, bool]:
        return (id(self.cycle), bool(self.cycle and self.cycle.response_complete))

    def _look(self) -> None:
        place = self._where()
        awaited = self.cycle and not self.cycle.more_body and not self.cycle.response_started
        if place == self._place and not awaited:
            self.transport.abort()
            return
        self._place = place
        self._watch = self.loop.call_later(self.seconds, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        self._watch.cancel()
        super().connection_lost(exc)


async def crowded(scope: Scope, receive: Receive, send: Send) -> None:
    """The answer to a connection too many."""
    refusal = problem(503, "overloaded", "Too many connections are open", close=True)
    await Guard(refusal, None)(scope, receive, send)


def configuration(app: ASGIApp, limits: Limits) -> uvicorn.Config:
    """How uvicorn runs the explorer: bounded connections, no access log, nothing about itself in the answers."""
    return uvicorn.Config(
        app,
        http=type("Protocol", (ImpatientProtocol,), {"seconds": limits.connection_seconds, "most": limits.connections}),
        ws="none",
        loop="asyncio",
        log_level="error",
        access_log=False,
        backlog=256,  # as many are taken at once, each with a descriptor, before any can be cut
        server_header=False,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=16 * 1024,
    )


def run_server(
    release: Release,
    *,
    name: str,
    host: str,
    port: int,
    limits: Limits | None = None,
    announce: Callable[[str], None] | None = None,
) -> None:
    """Serve until interrupted. On a loopback address only loopback host names are answered to."""
    limits = limits or Limits()
    listener = _listen(host, port)
    hosts = LOOPBACK if host in LOOPBACK else None
    server = uvicorn.Server(
        configuration(build_app(release, name=name, limits=limits, hosts=hosts, prepare=True), limits)
    )
    if announce is not None:
        shown = f"[{host}]" if ":" in host else host
        announce(f"http://{shown}:{listener.getsockname()[1]}/")
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    with suppress(KeyboardInterrupt):  # Ctrl-C is how it is stopped
        server.run(sockets=[listener])


def _is_news(record: logging.LogRecord) -> bool:
    """That answers were still being computed when Ctrl-C was pressed is no error."""
    return "graceful shutdown exceeded" not in record.getMessage()


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port < 2**16:
        raise InputError(f"port must be in 0..65535, got {port}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, UnicodeError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or type(error).__name__
        hint = "; port 0 takes a free one" if getattr(error, "errno", None) == errno.EADDRINUSE else ""
        raise InputError(f"host and port must be free to listen on, got {host}:{port} ({reason}){hint}") from None
    listener.listen(128)
    return listener
