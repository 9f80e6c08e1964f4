"""What leaves the building: a network, its privacy statement, and the noisy measurements behind it.

Nothing here depends on the private table except through the noise: no row count but a noisy one, no hash
of the data, no time. One JSON file, versioned; `load_release` refuses anything else.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbn.claim import check_claim
from dpbn.errors import DpbnError, FormatError, InputError, PrivacyError, received
from dpbn.files import located, parse_json, read_text, write_atomically
from dpbn.formats import load_network, project_json
from dpbn.measurement import MECHANISMS, Look, Looked, Measurement, Sampling, Together
from dpbn.network import BayesianNetwork, Structure
from dpbn.privacy.blocks import common_names
from dpbn.privacy.guarantee import Guarantee, Neighbors
from dpbn.public import LARGEST_PRIOR
from dpbn.support import supports

FORMAT, VERSION = "dpbn-release", 1
_KEYS = {"format", "version", "library", "private", "method", "guarantee", "on_unknown", "allocation", "options"}
_KEYS |= {"prior", "public_nodes", "structure_sha256", "weak_rows", "details", "network", "measurements"}
_OF_MEASUREMENTS = {"names", "mechanism", "scale", "loss", "stage", "sampling", "values"}


class Allocation(dict[str, float]):
    """Node -> the part of all tables that hold its family, in epsilon; bars in a notebook."""

    def _repr_html_(self) -> str:
        from dpbn.display import allocation_html

        return allocation_html(self)


@dataclass(frozen=True, eq=False)
class Release:
    """A learned network with everything a reader needs to trust it and to compute error bars."""

    network: BayesianNetwork
    guarantee: Guarantee
    allocation: Mapping[str, float]
    private: bool
    method: str
    measurements: tuple[Measurement, ...] = ()
    on_unknown: str = "error"
    prior: Mapping[str, Any] = field(default_factory=dict)
    public_nodes: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    library: str = ""
    looks: tuple[Looked, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "allocation", Allocation(self.allocation))

    @property
    def structure(self) -> Structure:
        return self.network.structure

    @property
    def id(self) -> str:
        """SHA-256 of the saved file without its final newline: names this release in the ledger."""
        return hashlib.sha256(_dump(to_dict(self)).encode()).hexdigest()

    @property
    def weak_rows(self) -> dict[str, NDArray[np.bool_]]:
        """Per node, which CPT rows (axes: parents in order) rest on too few records to be learned at this budget."""
        return {
            node: support.below_floor
            for node, support in supports(self.structure, self.measurements, self.public_nodes).items()
            if support.below_floor.any()
        }

    @property
    def statement(self) -> str:
        """The guarantee in plain words, as Markdown."""
        from dpbn.statement import privacy_statement

        return privacy_statement(self)

    def save(self, path: str | Path, *, overwrite: bool = True) -> Path:
        """Write one JSON file, whole or not at all, or not over another; its name ends in .json."""
        check_name(path)
        return write_atomically(path, _dump(to_dict(self)) + "\n", overwrite=overwrite)

    def to_pgmpy(self) -> Any:
        """The network as a pgmpy DiscreteBayesianNetwork (pgmpy must be installed)."""
        from dpbn.formats.pgmpy_model import to_pgmpy

        return to_pgmpy(self.network)

    def to_pyagrum(self) -> Any:
        """The network as a pyAgrum BayesNet (pyagrum must be installed)."""
        from dpbn.formats.pyagrum_model import to_pyagrum

        return to_pyagrum(self.network)

    def _repr_html_(self) -> str:
        from dpbn.display import release_html

        return release_html(self)

    def __repr__(self) -> str:
        from dpbn.statement import bound

        kind = f"epsilon={bound(self.guarantee.epsilon, 6)}" if self.private else "NOT PRIVATE"
        return f"Release({self.method}, {kind}, {self.network!r})"


def check_name(path: str | Path) -> None:
    """Refuse a name that a release could not be opened by."""
    if not str(path).endswith(".json"):
        raise InputError(f"the name of a release must end in .json, got {received(path)}")


def structure_hash(structure: Structure) -> str:
    """SHA-256 of the public schema and graph."""
    return hashlib.sha256(_dump(project_json.structure_to_dict(structure)).encode()).hexdigest()


def to_dict(release: Release) -> dict[str, Any]:
    """The release as plain JSON values."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "library": release.library,
        "private": release.private,
        "method": release.method,
        "guarantee": release.guarantee.to_dict(),
        "on_unknown": release.on_unknown,
        "allocation": dict(release.allocation),
        "options": dict(release.options),
        "prior": dict(release.prior),
        "public_nodes": list(release.public_nodes),
        "structure_sha256": structure_hash(release.structure),
        "weak_rows": {node: np.argwhere(weak).tolist() for node, weak in release.weak_rows.items()},
        "details": dict(release.details),
        "network": project_json.network_to_dict(release.network),
        "measurements": [_measurement_to_dict(m) for m in release.measurements],
    }
    if release.looks:  # only where there are any: the ids of other releases are made without
        document["looks"] = [_looked_to_dict(looked) for looked in release.looks]
    return document


def _looked_to_dict(looked: Looked) -> dict[str, Any]:
    tables = [
        {"names": list(names), "cap": cap} for names, cap in zip(looked.look.tables, looked.look.caps, strict=True)
    ]
    return {"tables": tables, "scale": looked.look.scale, "loss": looked.loss, "value": looked.value}


def _measurement_to_dict(measurement: Measurement) -> dict[str, Any]:
    sampling, together = measurement.sampling, measurement.together
    entry = {
        "names": list(measurement.names),
        "mechanism": measurement.mechanism,
        "scale": measurement.scale,
        "loss": measurement.loss,
        "stage": measurement.stage,
        "sampling": None if sampling is None else {"rate": str(sampling.rate), "group": sampling.group},
        "ladder": measurement.ladder,
        "values": measurement.values.tolist(),
    }
    if together is not None:  # only where there are any: the ids of other releases are made without
        tables = [list(names) for names in together.tables]
        entry["together"] = {"group": together.group, "tables": tables, "sizes": list(together.sizes)}
    if measurement.draws != 1:
        entry["draws"] = measurement.draws
    return entry


def from_dict(document: Any) -> Release:
    """A release from plain JSON values; FormatError if anything is missing, wrong or inconsistent."""
    if not isinstance(document, dict) or document.get("format") != FORMAT or document.get("version") != VERSION:
        is_dict = isinstance(document, dict)
        found = (document.get("format"), document.get("version")) if is_dict else type(document).__name__
        raise FormatError(f"a release file must say format {FORMAT!r}, version {VERSION}, got {found!r:.60}")
    try:
        _check_keys("a release file", document, _KEYS, {"looks"})
        network = project_json.network_from_dict(document["network"])
        structure = network.structure
        release = Release(
            network=network,
            guarantee=_guarantee(document["guarantee"]),
            allocation={_node(structure, node): _number(share) for node, share in document["allocation"].items()},
            private=_boolean(document["private"]),
            method=_text(document["method"]),
            measurements=tuple(_measurement(structure, entry) for entry in document["measurements"]),
            on_unknown=_text(document["on_unknown"]),
            prior={_node(structure, node): _prior(structure, node, value) for node, value in document["prior"].items()},
            public_nodes=tuple(_node(structure, node) for node in document["public_nodes"]),
            options=dict(document["options"]),
            details=dict(document["details"]),
            library=_text(document["library"]),
            looks=tuple(_looked(structure, entry) for entry in document.get("looks", ())),
        )
        found = structure_hash(structure)
        _dump([release.prior, release.options, release.details]).encode()
    except DpbnError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        reason = str(error)[:200]
        raise FormatError(f"a release file must follow the schema, got {type(error).__name__}: {reason}") from None
    if document.get("structure_sha256") != found:
        raise FormatError("structure_sha256 of a release must match its structure, got another: the file was edited")
    check_claim(release)
    return release


def _guarantee(entry: Any) -> Guarantee:
    epsilon = math.inf if entry["epsilon"] is None else _number(entry["epsilon"])
    unit = entry["unit"] if entry["unit"] is None else _text(entry["unit"])
    contributions = entry["max_contributions"]
    if isinstance(contributions, bool) or not isinstance(contributions, int) or contributions < 1:
        raise FormatError(f"max_contributions must be a whole number >= 1, got {contributions!r}")
    return Guarantee(epsilon, _number(entry["delta"]), Neighbors(entry["neighbors"]), unit, contributions)


def _check_keys(subject: str, entry: Any, keys: set[str], optional: set[str]) -> None:
    """Refuse unknown ones too: what is not understood may change what the rest means, as looks change the cost."""
    if wrong := sorted((set(entry) ^ keys) - optional):
        raise FormatError(f"{subject} must have the keys that dpbn writes, got a mismatch at {wrong!r:.200}")


def _measurement(structure: Structure, entry: Any) -> Measurement:
    _check_keys("a measurement", entry, _OF_MEASUREMENTS, {"ladder", "together", "draws"})
    names = tuple(entry["names"])
    if len(set(names)) != len(names):
        raise FormatError(f"names of a measurement must be distinct, got {names!r:.200}")
    shape = structure.schema.shape(names)
    held = project_json.leaves(entry["values"], shape)
    if held is None or not set(map(type, held)) <= {int}:
        raise FormatError(f"values of the measurement of {names} must be integers of shape {shape}, got others")
    values = np.array(held, dtype=np.int64).reshape(shape)
    sampling = entry["sampling"]
    if sampling is not None:
        sampling = Sampling(_rate(sampling["rate"]), _text(sampling["group"]))
    if entry["mechanism"] not in (*MECHANISMS, "joint"):
        raise FormatError(f"mechanism must be 'laplace', 'gaussian', 'summed' or 'joint', got {entry['mechanism']!r}")
    scale, loss, draws = _number(entry["scale"]), _number(entry["loss"]), entry.get("draws", 1)
    ladder, stage, together = _text(entry.get("ladder", "")), _text(entry["stage"]), entry.get("together")
    if together is not None:
        together = _together(structure, together)
    return Measurement(names, values, entry["mechanism"], scale, loss, stage, sampling, ladder, together, draws)


def _looked(structure: Structure, entry: Any) -> Looked:
    tables = tuple(tuple(_node(structure, _text(name)) for name in table["names"]) for table in entry["tables"])
    value = entry["value"]
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise FormatError(f"value of a look must be a whole number of 64 bits, got {value!r:.80}")
    try:
        look = Look(tables, tuple(table["cap"] for table in entry["tables"]), _number(entry["scale"]))
    except PrivacyError as error:
        raise FormatError(str(error)) from None
    return Looked(look, _number(entry["loss"]), value)


def _together(structure: Structure, entry: Any) -> Together:
    """The group of a table with joint noise, if its sizes are those of the schema."""
    tables = tuple(tuple(_text(name) for name in names) for names in entry["tables"])
    if len({frozenset(names) for names in tables}) != len(tables) or len(tables) < 2:
        raise FormatError(f"tables with joint noise must be two or more, all different, got {tables!r:.200}")
    blocks = structure.schema.cells(common_names(tables))
    sizes = tuple(structure.schema.cells(names) // blocks for names in tables)
    if list(sizes) != entry["sizes"]:
        raise FormatError(f"sizes of tables with joint noise must be {sizes}, got {entry['sizes']!r:.200}")
    return Together(_text(entry["group"]), tables, sizes)


def _rate(value: Any) -> Fraction:
    """A share as `Fraction` prints it; other spellings (1e999999999) could take forever to read."""
    parts = _text(value).split("/")
    if len(parts) > 2 or not all(part.isascii() and part.isdigit() and len(part) < 40 for part in parts):
        raise FormatError(f"a sampling rate must be a fraction like '1/10', got {value[:80]!r}")
    rate = Fraction(value)
    if not 0 < rate <= 1:
        raise FormatError(f"a sampling rate must be in (0, 1], got {value!r}")
    return rate


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        raise FormatError(f"a budget, scale or loss must be a finite number >= 0, got {value!r}")
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise FormatError(f"a text field of a release must be a string, got {value!r}")
    value.encode()  # half a surrogate pair could not be written again: a ValueError, refused by the caller
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise FormatError(f"'private' must be true or false, got {value!r}")
    return value


def _node(structure: Structure, name: str) -> str:
    structure.schema.position(name)
    return name


def _prior(structure: Structure, node: str, value: Any) -> Any:
    """Pseudo-counts as `learn` writes them: error bars add them to counts."""
    shape = structure.shape(node)
    held = project_json.leaves(value, shape)
    if held is None or not all(type(number) in (int, float) and 0 <= number <= LARGEST_PRIOR for number in held):
        raise FormatError(f"prior of {node!r} must be an array of shape {shape} of numbers in 0..{LARGEST_PRIOR:g}")
    return value


def _dump(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def load_release(path: str | Path) -> Release:
    """Read a release written by `Release.save`; anything else is refused."""
    requirement = "a release must be a JSON file as `dpbn learn` writes it"
    try:
        text = read_text(path)
    except FormatError:
        raise FormatError(requirement, source=str(path)) from None
    with located(path):
        return from_dict(parse_json(text, requirement))


def load_model(source: str | Path) -> Release | BayesianNetwork:
    """A release if the file is one, else a network: by bundled name or by extension."""
    if str(source).endswith(".json") and Path(source).exists() and f'"{FORMAT}"' in read_text(source)[:200]:
        return load_release(source)
    return load_network(source)
