"""What one server takes on: bounded work, bounded bodies, bounded patience. The rest is refused at once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

Result = TypeVar("Result")
KEY_BYTES = 200  # about, with its place


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Requests waiting for an answer, bytes of a body, seconds, connections, bytes of answers remembered."""

    waiting: int = 128
    waiting_slow: int = 16
    body_bytes: int = 256 * 1024
    body_seconds: float = 10.0
    connection_seconds: float = 30.0
    connections: int = 256
    remembered_bytes: int = 2**26
    at_once_seconds: float = 0.003  # a network that answers faster is asked on the spot: a thread would cost more


class OverloadedError(Exception):
    """More requests wait than will be answered soon; the client is told to come back."""


class Lane:
    """One worker thread with a bounded queue: computations that share an engine never run at once."""

    def __init__(self, name: str, waiting: int):
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"dpbn-{name}")
        self._waiting = waiting
        self._held = 0

    async def run(self, function: Callable[[], Result]) -> Result:
        if self._held >= self._waiting:
            raise OverloadedError
        self._held += 1
        future = asyncio.get_running_loop().run_in_executor(self._worker, function)
        future.add_done_callback(self._release)  # also when the client has gone meanwhile
        return await asyncio.shield(future)

    def _release(self, future: asyncio.Future[Result]) -> None:
        self._held -= 1
        if not future.cancelled():
            future.exception()  # seen, even if nobody waits any more

    def close(self) -> None:
        self._worker.shutdown(wait=False, cancel_futures=True)


class Memory:
    """The last answers, up to so many bytes in all, by a short key of the question (which may be as long as a body).

    Equal questions that arrive together are computed once.
    """

    def __init__(self, size: int):
        self._size, self._held = size, 0
        self._answers: OrderedDict[Hashable, bytes] = OrderedDict()
        self._coming: dict[Hashable, asyncio.Task[bytes]] = {}

    def recall(self, key: Hashable) -> bytes | None:
        answer = self._answers.get(key)
        if answer is not None:
            self._answers.move_to_end(key)
        return answer

    def store(self, key: Hashable, answer: bytes) -> bytes:
        self._held += KEY_BYTES + len(answer) if key not in self._answers else 0
        self._answers[key] = answer
        while self._held > self._size:
            self._held -= KEY_BYTES + len(self._answers.popitem(last=False)[1])
        return answer

    async def get(self, key: Hashable, compute: Callable[[], Coroutine[Any, Any, bytes]]) -> bytes:
        answer = self.recall(key)
        if answer is not None:
            return answer
        task = self._coming.get(key)
        if task is None:
            task = asyncio.create_task(compute())
            self._coming[key] = task
            task.add_done_callback(lambda done: self._done(key, done))
        return await asyncio.shield(task)

    def _done(self, key: Hashable, task: asyncio.Task[bytes]) -> None:
        self._coming.pop(key, None)
        if not task.cancelled() and task.exception() is None:
            self.store(key, task.result())
