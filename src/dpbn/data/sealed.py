"""Nothing an engine says about rows leaves the data layer: its own errors quote values, ours never do."""

from __future__ import annotations

from collections.abc import Callable
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
