"""Every error dpbn raises on purpose. Messages say subject, requirement, received.

`DataError` and its children speak to the custodian and may mention columns and counts of private
data; they must never be copied into anything published. All other errors concern public facts only, but a
`QueryError` quotes what is asked, also a value of a table to predict from.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from numbers import Number
from pathlib import PurePath


def did_you_mean(received: object, known: Iterable[str]) -> str:
    """'; did you mean …?' if `received` looks like one of the public names `known`, else nothing."""
    from difflib import get_close_matches

    if not isinstance(received, (str, int)):
        return ""
    by_case = {name.strip().casefold(): name for name in known}
    close = get_close_matches(str(received).strip().casefold(), by_case, n=1, cutoff=0.6)
    return f"; did you mean {by_case[close[0]]!r}?" if close else ""


def received(value: object) -> str:
    """How a message repeats an argument: one line of text, a number or None; else its kind, since it may be a table."""
    if isinstance(value, PurePath):
        value = str(value)
    if isinstance(value, str):
        return "text of several lines" if "\n" in value else repr(value) if len(value) < 200 else f"{value!r:.100}…"
    if value is None or isinstance(value, Number):
        try:
            return repr(value)
        except ValueError:  # Python does not show more digits
            return "a whole number of thousands of digits"
    return type(value).__name__


def counted(count: int, noun: str) -> str:
    """As people count: 1 row, 2 rows."""
    return f"{count} {noun}{'s' * (count != 1)}"


class DpbnError(Exception):
    """Base of every error raised on purpose."""


class InputError(DpbnError, ValueError):
    """A public input (argument, schema, structure, network) does not meet its requirement."""


class StructureError(InputError):
    """A variable, schema, graph or CPT is not well formed."""


class FormatError(InputError):
    """A file is not written in the format it claims; carries line and column (both from 1)."""

    def __init__(self, message: str, *, source: str = "", line: int = 0, column: int = 0):
        where = ":".join(str(part) for part in (source, line or "", column or "") if part != "")
        super().__init__(f"{where}: {message}" if where else message)
        self.reason, self.source, self.line, self.column = message, source, line, column


class BareStructureError(FormatError):
    """A network was wanted, and the file holds a structure without any probabilities: to learn or plan with."""


class TooLargeError(InputError):
    """A table or factor would exceed the size limit; refused before it is allocated."""


class QueryError(InputError):
    """A question cannot be asked of this network (unknown name or state, target in evidence)."""


class ImpossibleEvidenceError(QueryError):
    """The evidence has probability zero under this network."""


class MissingExtraError(DpbnError, ImportError):
    """An optional dependency is not installed; the message names the extra."""

    def __init__(self, package: str, extra: str):
        super().__init__(f"this needs {package}: pip install 'dpbn[{extra}]' (in a clone: pip install '.[{extra}]')")
        self.package, self.extra = package, extra

    def __reduce__(self) -> tuple[type, tuple[str, str]]:  # from a worker process, which may meet it first
        return type(self), (self.package, self.extra)


@contextmanager
def extra(package: str, name: str) -> Iterator[None]:
    """For imports of an optional package: where it is missing, the error names the extra that brings it."""
    try:
        yield
    except ImportError:
        raise MissingExtraError(package, name) from None


class PrivacyError(DpbnError):
    """A request that would break or overstate the privacy guarantee."""


class BudgetError(PrivacyError):
    """The ledger refuses: invalid amount, or more than is left."""


class LedgerCorruptError(PrivacyError):
    """The ledger file was edited, rolled back or torn."""


class DataError(DpbnError):
    """For the custodian only: the private table does not fit the public schema."""

    unknown = ""  # which columns hold how many values that are missing or undeclared, if that is what is wrong
