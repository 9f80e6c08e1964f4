"""The explorer: a local web page and a JSON API over one release. Loads releases only, never data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpbn.errors import extra

if TYPE_CHECKING:
    from dpbn.release import Release
    from dpbn.web.limits import Limits

__all__ = ["create_app", "serve"]


def create_app(release: Release, *, name: str = "release", limits: Limits | None = None, hosts: Any = None) -> Any:
    """The explorer of `release` as an ASGI application; `hosts` are the Host names it answers to (None: any)."""
    _require_extra()
    from dpbn.web.app import build_app

    return build_app(release, name=name, limits=limits, hosts=hosts)


def serve(
    release: Release,
    *,
    name: str = "release",
    host: str = "127.0.0.1",
    port: int = 8321,
    limits: Limits | None = None,
    announce: Any = None,
) -> None:
    """Serve the explorer until interrupted, on the loopback address unless told otherwise.

    `port` 0 takes a free port; `announce` is called with the address once requests are answered.
    """
    _require_extra()
    from dpbn.web.server import run_server

    run_server(release, name=name, host=host, port=port, limits=limits, announce=announce)


def _require_extra() -> None:
    with extra("starlette and uvicorn", "web"):
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
