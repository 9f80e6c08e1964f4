"""Files as bytes and text: bounded decompression, strict UTF-8, and writes that are whole or not at all."""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from pathlib import Path

from dpbn.errors import FormatError, InputError, TooLargeError
from dpbn.files import write_atomically

# A gzip file may claim a thousand times its size. The most compressible network of the bnlearn repository
# shrinks 27-fold; beyond both bounds the file is refused before its text is in memory.
MAX_EXPANSION = 60
FREE_EXPANSION_BYTES = 2**24
_CHUNK = 2**20
_XML_ENCODING = re.compile(rb"""<\?xml[^>]{,200}?encoding\s{,20}=\s{,20}["']([A-Za-z0-9._-]{,40})["']""")


def read_text(path: Path, *, xml: bool = False) -> str:
    """The text of a UTF-8 file (XML: of the encoding it declares), decompressed if it is named .gz."""
    try:
        data = _decompressed(path) if path.suffix.lower() == ".gz" else path.read_bytes()
    except TooLargeError:
        raise
    except FileNotFoundError:
        raise InputError(f"{str(path)!r} must be an existing file, got none of that name") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(f"a .gz file must be whole gzip data, got: {error}", source=str(path)) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{str(path)!r} must be a readable file, got: {error}") from None
    return decoded(data, str(path), _declared(data) if xml else "utf-8")


def _declared(data: bytes) -> str:
    """The encoding of an XML document by its first bytes: UTF-16, ISO-8859-1, or else UTF-8."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    named = _XML_ENCODING.match(data)
    return "latin-1" if named and named[1].lower() in (b"iso-8859-1", b"latin1", b"latin-1") else "utf-8"


def decoded(data: bytes, source: str = "", encoding: str = "utf-8") -> str:
    """`data` as text, or a FormatError with the place of the first byte that is not."""
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        wrong = data[error.start]
        raise FormatError(
            f"text must be {encoding.upper()}, got byte 0x{wrong:02x}", source=source, line=line, column=column
        ) from None


def _decompressed(path: Path) -> bytes:
    limit = max(FREE_EXPANSION_BYTES, MAX_EXPANSION * path.stat().st_size)
    chunks, size = [], 0
    with gzip.open(path, "rb") as stream:
        while chunk := stream.read(_CHUNK):
            chunks.append(chunk)
            size += len(chunk)
            if size > limit:
                raise TooLargeError(f"{str(path)!r} must decompress to at most {limit} bytes, got more")
    return b"".join(chunks)


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8, compressed if the path ends in .gz; whole or not at all."""
    write_atomically(path, gzip.compress(text.encode(), mtime=0) if path.suffix.lower() == ".gz" else text)
