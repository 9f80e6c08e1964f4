"""Every reader of files from outside as one function of bytes, with seeds: for Hypothesis and for fuzzing."""

from __future__ import annotations

import atexit
import gzip
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import dpbn
from dpbn.data import open_source
from dpbn.errors import DpbnError
from dpbn.formats import bif, files, load_structure, model_string, net, project_json, xmlbif
from dpbn.formats.schema_file import read_schema, write_schema
from dpbn.formats.tables import RoundedRowsWarning
from dpbn.workload import read_workload

SMALL = dpbn.load_network("cancer")
FOLDER = Path(tempfile.mkdtemp(prefix="dpbn-readers-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


def _network(module: object) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        found = module.read(files.decoded(data))  # type: ignore[attr-defined]
        again = module.write(found)  # type: ignore[attr-defined]
        assert module.read(again) == found  # type: ignore[attr-defined]

    return read


def _structure(module: object) -> Callable[[bytes], None]:
    return lambda data: module.read_structure(files.decoded(data)) and None  # type: ignore[attr-defined]


def _file(name: str, data: bytes) -> Path:
    path = FOLDER / f"{os.getpid()}-{name}"
    path.write_bytes(data)
    return path


def read_release(data: bytes) -> None:
    release = dpbn.load_release(_file("x.release.json", data))
    assert dpbn.load_release(release.save(FOLDER / f"{os.getpid()}-y.json")).id == release.id
    assert release.statement


def read_csv(data: bytes) -> None:
    open_source(str(_file("x.csv", data)), SMALL.structure, on_unknown="drop").counts([("Cancer", "Smoker")])


def read_parquet(data: bytes) -> None:
    open_source(str(_file("x.parquet", data)), SMALL.structure, on_unknown="drop").counts([("Cancer", "Smoker")])


READERS: dict[str, Callable[[bytes], None]] = {
    "bif": _network(bif),
    "xmlbif": _network(xmlbif),
    "net": _network(net),
    "json": _network(project_json),
    "bif-structure": _structure(bif),
    "xmlbif-structure": _structure(xmlbif),
    "net-structure": _structure(net),
    "json-structure": _structure(project_json),
    "model-string": lambda data: model_string.read(files.decoded(data), SMALL.structure.schema) and None,
    "release": read_release,
    "schema": lambda data: read_schema(files.decoded(data), SMALL.structure) and None,
    "workload": lambda data: read_workload(_file("w.json", data), SMALL.structure) and None,
    "csv": read_csv,
    "parquet": read_parquet,
    "bif-gz": lambda data: load_structure(_file("x.bif.gz", data)) and None,
}


def _seed_release() -> str:
    made = dpbn.learn(SMALL.sample(50, seed=0), SMALL, 1.0, method="icml2020", noise=dpbn.InsecureNoise(0))
    return made.save(FOLDER / f"{os.getpid()}-seed.json").read_text()


def seeds() -> dict[str, list[bytes]]:
    """A valid file per reader, and a short one."""
    frame = SMALL.sample(40, seed=0)
    frame.to_parquet(FOLDER / "seed.parquet")
    texts = {
        "bif": bif.write(SMALL),
        "xmlbif": xmlbif.write(SMALL),
        "net": net.write(SMALL),
        "json": project_json.write(SMALL),
        "model-string": model_string.write(SMALL.structure),
        "release": _seed_release(),
        "schema": write_schema(SMALL.structure, "person", 2),
        "workload": json.dumps([{"variables": ["Cancer"], "evidence": {"Smoker": "True"}}]),
        "csv": frame.to_csv(index=False),
    }
    found = {name: [text.encode(), b""] for name, text in texts.items()}
    for name in ("bif", "xmlbif", "net", "json"):
        found[f"{name}-structure"] = found[name]
    found["parquet"] = [(FOLDER / "seed.parquet").read_bytes()]
    found["bif-gz"] = [gzip.compress(texts["bif"].encode())]
    return found


def attempt(reader: Callable[[bytes], None], data: bytes) -> str:
    """'accepted' or the name of the typed error; anything else is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RoundedRowsWarning)
        try:
            reader(data)
        except DpbnError as error:
            return type(error).__name__
    return "accepted"


def _sparse(count: int) -> str:
    return "".join(f'{{"name":"v{i}","states":["a","b"],"parents":[]}},' for i in range(count)).rstrip(",")


MEGABYTE = 1 << 20
SEEDS_OF_A_MEGABYTE: dict[str, list[bytes]] = {
    "bif": [
        b"network n {} " + b"variable a { type discrete [1] { x }; } " * (MEGABYTE // 41),
        b"network n {} variable a { type discrete [ 400000 ] { " + b"a," * (MEGABYTE // 2),
        b"network n {} probability ( a ) { table " + b"0," * (MEGABYTE // 2),
        b'"' * MEGABYTE, b"/*" * (MEGABYTE // 2), b"\xf0\x9f\x98\x80" * (MEGABYTE // 4),
    ],
    "xmlbif": [b"<BIF><NETWORK>" + b"<V>" * (MEGABYTE // 3), b"<BIF>" + b"<a/>" * (MEGABYTE // 4), b"<" * MEGABYTE],
    "net": [b"net {} " + b"node a { states = (" + b'"x" ' * (MEGABYTE // 4), b"net { " + b"a = b; " * (MEGABYTE // 7)],
    "json": [
        b"[" + b"{}," * (MEGABYTE // 3), b"[" * MEGABYTE,
        f'{{"format":"dpbn-network","version":1,"variables":[{_sparse(21_000)}]}}'.encode(),
    ],
    "release": [b"[" + b"[]," * (MEGABYTE // 3), b'{"a":' * (MEGABYTE // 5), b"1" * MEGABYTE],
    "workload": [b"[" + b'{"variables":["Cancer"]},' * (MEGABYTE // 25), b"[" * MEGABYTE],
    "schema": [b"a = " + b"[" * MEGABYTE, b"[variables.x]\n" * (MEGABYTE // 14), b"x.y = 1\n" * (MEGABYTE // 8)],
    "model-string": [b"[a]" * (MEGABYTE // 3), b"[" * MEGABYTE, b"[a|" + b"b:" * (MEGABYTE // 2)],
    "csv": [
        b"Cancer,Smoker\n" + b"a,b\n" * (MEGABYTE // 4), b"," * MEGABYTE, b"," * MEGABYTE + b"\n", b'"' * MEGABYTE,
        b",".join(b"%x" % column for column in range(MEGABYTE // 6)) + b"\n",
        b"Cancer,Smoker," + b",".join(b"%x" % column for column in range(16_000)) + b"\n" + b"," * 16_001,
    ],
    "bif-gz": [gzip.compress(b"x" * (16 * MEGABYTE))],
}  # fmt: skip
