"""Errors as JSON problem documents (RFC 9457). Only messages about public facts are passed on."""

from __future__ import annotations

import json

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from dpbn.errors import DpbnError, FormatError, ImpossibleEvidenceError, InputError, TooLargeError
from dpbn.web.limits import OverloadedError

# what the client can do about it: error -> (status, short name, title)
KINDS: tuple[tuple[type[Exception], int, str, str], ...] = (
    (OverloadedError, 503, "overloaded", "Too many requests are waiting"),
    (ImpossibleEvidenceError, 422, "impossible-evidence", "The evidence cannot happen under this network"),
    (TooLargeError, 422, "too-large", "The question needs a table that is too large"),
    (FormatError, 400, "not-json", "The body is not JSON"),
    (InputError, 422, "wrong-question", "The question does not fit this network"),
    (DpbnError, 422, "refused", "The question was refused"),
)
_TITLES = {
    400: "Bad request",
    404: "Nothing is at this address",
    405: "This method is not offered here",
    408: "The request took too long to arrive",
    413: "The body is too large",
    415: "The body must be sent as application/json",
    421: "This server does not answer to that host name",
}


def problem(status: int, kind: str, title: str, detail: str = "", *, close: bool = False) -> Response:
    """One problem document; an overloaded server also says when to come back."""
    document = {"type": f"urn:dpbn:problem:{kind}", "title": title, "status": status, "detail": detail}
    headers = {"Retry-After": "1"} if status == 503 else {}
    if close:
        headers["Connection"] = "close"
    return Response(json.dumps(document), status, headers, "application/problem+json")


async def from_error(request: Request, error: Exception) -> Response:
    """The answer to a request that raised `error`."""
    del request
    for kind, status, name, title in KINDS:
        if isinstance(error, kind):
            return problem(status, name, title, str(error))
    return problem(500, "internal", "The server failed to answer")


async def from_http(request: Request, error: Exception) -> Response:
    """The answer to a request that was refused before it reached the network."""
    del request
    assert isinstance(error, HTTPException)
    close = error.status_code in (408, 413)  # part of the body is still on its way: do not wait for it
    title = _TITLES.get(error.status_code, "Refused")
    answer = problem(error.status_code, f"http-{error.status_code}", title, error.detail, close=close)
    answer.headers.update(error.headers or {})
    return answer
