"""Nothing an engine says about rows leaves the data layer: its own errors quote values, ours never do."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from dpbn.errors import DataError, DpbnError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def sealed(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Raise typed errors only, with no other exception behind them: `from None` hides a cause but keeps it attached."""

    @wraps(function)
    def call(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        found: DpbnError
        try:
            with _quiet():
                return function(*arguments, **named)
        except DpbnError as error:
            found = error
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # a panic of an engine written in Rust is no Exception
            found = DataError(f"the table must be readable by its engine, got {type(error).__name__}")
        found.__cause__ = found.__context__ = None
        raise found  # outside the handlers, so that nothing becomes its context

    return call


# PySpark prints errors to standard error by these, with the value that caused them
_SHOUTS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_working = threading.local()


def _passes(_: logging.LogRecord) -> bool:
    return not getattr(_working, "depth", 0)


@contextmanager
def _quiet() -> Iterator[None]:
    """While an engine works for this thread, loggers that quote values are silent; errors still arrive, as ours."""
    if "pyspark" in sys.modules:
        try:
            from pyspark.logger import PySparkLogger
        except ImportError:  # older: has no such loggers
            pass
        else:
            for name in _SHOUTS:
                PySparkLogger.getLogger(name).addFilter(_passes)  # adding it again changes nothing
    _working.depth = getattr(_working, "depth", 0) + 1
    try:
        yield
    finally:
        _working.depth -= 1
