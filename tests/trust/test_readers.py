"""Files from outside: whatever the bytes, a typed error or a whole value; nothing is executed, expanded or escaped."""

import copy
import json
import math
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpbn
from dpbn.errors import BudgetError, DpbnError, FormatError, LedgerCorruptError, TooLargeError
from dpbn.measurement import Measurement
from dpbn.privacy.guarantee import Guarantee, Neighbors
from dpbn.release import from_dict, to_dict
from tests.structures import structure_of
from tests.trust.readers import READERS, SMALL, attempt, seeds

SEEDS = seeds()
SOURCE = str(Path(dpbn.__file__).parents[1])
ODD = [
    None, True, -1, 0, 1e308, -0.0, 10**40, 10**400, "", "1/0", "1e999999999", "0/1", "2/1", "\ud800", "x" * 10_000,
    [], {}, [[]], [None], {"": None}, "NaN", float("nan"), [1, [2]], "../../etc/passwd", "\x00", [10**30], {"rate": 1},
    "9" * 5000 + "/1", [["a"] * 3] * 3,
]  # fmt: skip


def places(document, path=()):
    """Every place in a JSON document."""
    yield path
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in items:
        yield from places(value, (*path, key))


RELEASE = json.loads(SEEDS["release"][0])
PLACES = list(places(RELEASE))


def damaged(document, place, value):
    if not place:
        return value
    document = copy.deepcopy(document)
    inside = document
    for key in place[:-1]:
        inside = inside[key]
    if isinstance(value, KeyError):
        del inside[place[-1]]
    else:
        inside[place[-1]] = value
    return document


def test_every_reader_accepts_its_seed():
    for name, reader in READERS.items():
        assert attempt(reader, SEEDS[name][0]) == "accepted", name


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from([*ODD, KeyError()])), min_size=1, max_size=3))
def test_a_release_with_odd_values_is_whole_or_refused(changes):
    document = RELEASE
    for place, value in changes:
        try:
            document = damaged(document, place, value)
        except (KeyError, TypeError, IndexError):
            continue
    try:
        release = from_dict(document)
    except DpbnError:
        return
    assert release.statement and repr(release) and len(release.id) == 64


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_damaged_bytes_give_typed_errors(name, data):
    content = bytearray(SEEDS[name][0])
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(content)))
        end = min(len(content), start + data.draw(st.integers(0, 30)))
        content[start:end] = data.draw(st.binary(max_size=8) | st.sampled_from([b"\xff", b"\x00", b'"', b"[" * 3000]))
    attempt(READERS[name], bytes(content))


@pytest.mark.parametrize(
    "text", ["9" * 5000, "[" * 100_000, '{"format":' * 50_000, "NaN", '"\\ud800"', "1e999999999", "", "\x00", "{}"]
)
def test_json_that_costs_more_than_it_says(text):
    for name in ("release", "json", "json-structure", "workload"):
        if (name, text) != ("workload", "{}"):  # no queries at all: an empty workload
            assert attempt(READERS[name], text.encode()) != "accepted", name


def test_a_sampling_rate_cannot_take_forever():
    document = json.loads(SEEDS["release"][0])
    entry = next(m for m in document["measurements"] if m["sampling"])
    for rate in ("1e999999999", "1/0", "0", "3/2", "-1/2", 0.5, None, "1" * 5000, "٣/٤"):
        entry["sampling"]["rate"] = rate
        with pytest.raises(FormatError):
            from_dict(document)


def test_one_long_text_among_many_does_not_make_all_of_them_long():
    """As numpy makes an array of them: 400 gigabytes here."""
    texts = [""] * 100_000 + ["x" * 1_000_000]
    for place in (("measurements", 0, "values"), ("prior", "Cancer")):
        with pytest.raises(FormatError, match=r"must be (integers|an array) of shape"):
            from_dict(damaged(RELEASE, place, texts))


def test_a_release_of_many_small_tables_takes_time_in_proportion():
    """Every node compared with every table takes 15 s here, and four times as much at twice the nodes."""
    names = [str(number) for number in range(6000)]
    structure = dpbn.Structure(dpbn.Schema([dpbn.Variable(name, ("a",)) for name in names]), dpbn.Dag(names, {}))
    network = dpbn.BayesianNetwork(structure, dict.fromkeys(names, np.ones(1)))
    tables = tuple(Measurement((name,), [5], "laplace", 1.0, 1.0) for name in names)
    guarantee = Guarantee(6000.0, 0.0, Neighbors.ADD_REMOVE, None, 1)
    document = to_dict(dpbn.Release(network, guarantee, {}, True, "uniform", tables))
    start = time.process_time()
    assert not from_dict(document).weak_rows
    assert time.process_time() - start < 5.0


@pytest.mark.parametrize("amount", ["1e999999999", "1e-999999999", "9" * 5000, "1_0e9_9_9_9_9", "1/0", "0x10", "inf"])
def test_an_amount_cannot_take_forever(amount, tmp_path):
    with pytest.raises(BudgetError):
        dpbn.Ledger(tmp_path / "budget.db").open_dataset("ward", amount)


ENTITIES = [
    '<!DOCTYPE BIF [<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(9)
    ) + "]><BIF><NETWORK><NAME>&j;</NAME></NETWORK></BIF>",
    '<!DOCTYPE BIF [<!ENTITY x SYSTEM "file:///etc/passwd">]><BIF><NETWORK><NAME>&x;</NAME></NETWORK></BIF>',
    '<!DOCTYPE BIF [<!ENTITY % p SYSTEM "http://127.0.0.1:9/x.dtd"> %p;]><BIF VERSION="0.3"><NETWORK/></BIF>',
    '<!DOCTYPE BIF SYSTEM "file:///etc/passwd"><BIF VERSION="0.3"><NETWORK><NAME>&x;</NAME></NETWORK></BIF>',
]  # fmt: skip


@pytest.mark.parametrize("text", ENTITIES)
def test_xml_entities_are_refused_unexpanded(text):
    for name in ("xmlbif", "xmlbif-structure"):
        assert attempt(READERS[name], text.encode()) == "FormatError"


class Payload:
    """A pickle of this creates a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_are_never_loaded(protocol, tmp_path):
    trap = tmp_path / "executed"
    data = pickle.dumps(Payload(trap), protocol)
    for name, reader in READERS.items():
        assert attempt(reader, data) != "accepted", name
    for name in ("x.pkl", "x.npy", "x.npz", "x.pickle", "x"):
        (tmp_path / name).write_bytes(data)
        for load in (dpbn.load_network, dpbn.load_release, lambda path: dpbn.learn(path, SMALL, 1.0)):
            with pytest.raises(DpbnError):
                load(str(tmp_path / name))
    (tmp_path / "budget.db").write_bytes(data)
    with pytest.raises((LedgerCorruptError, BudgetError)):
        dpbn.Ledger(tmp_path / "budget.db")
    assert not trap.exists()


def grid_network(side):
    """Every node has the one to its left and the one above as parents: treewidth about `side`."""
    name = "v{}_{}".format
    nodes = tuple(name(i, j) for i in range(side) for j in range(side))
    parents = {
        name(i, j): tuple(name(*p) for p in ((i, j - 1), (i - 1, j)) if min(p) >= 0)
        for i in range(side)
        for j in range(side)
    }
    structure = structure_of(dict.fromkeys(nodes, 2), parents)
    return dpbn.BayesianNetwork(structure, {node: np.full(structure.shape(node), 0.5) for node in nodes})


def huge_structure(parents=100, states=2):
    names = tuple(f"v{i}" for i in range(parents + 1))
    return structure_of(dict.fromkeys(names, states), {names[-1]: names[:-1]})


@pytest.mark.parametrize(("parents", "states"), [(100, 2), (30, 10), (200, 1000)])
def test_structures_of_astronomic_size_are_refused_before_anything_is_allocated(parents, states):
    structure = huge_structure(parents, states)
    frame = pandas.DataFrame({name: ["0"] for name in structure.nodes})
    for method in ("uniform", "icml2020", "optimized", "exact"):
        with pytest.raises(TooLargeError):
            dpbn.learn(frame, structure, 1.0, method=method)
        if method != "exact":
            with pytest.raises(TooLargeError):
                dpbn.plan(structure, 1.0, 1000, method=method)
    with pytest.raises(TooLargeError):
        dpbn.learn(frame, structure, 1.0, 1e-6)
    text = "network n {}\n" + "".join(
        f"variable {v.name} {{ type discrete [ {v.size} ] {{ {', '.join(v.states)} }}; }}\n" for v in structure.schema
    )
    text += f"probability ( {structure.nodes[-1]} | {', '.join(structure.nodes[:-1])} ) {{ default 1.0; }}\n"
    assert attempt(READERS["bif"], text.encode()) == "TooLargeError"


def test_a_hostile_megabyte_stays_within_its_memory():
    """In a process whose address space may grow by 256 MB per MB of input and no more."""
    code = """
import os, resource
from tests.trust.readers import READERS, SEEDS_OF_A_MEGABYTE, attempt
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 256 * 2**20,) * 2)
for name, texts in SEEDS_OF_A_MEGABYTE.items():
    child = os.fork()  # each reader starts with the whole allowance
    if not child:
        for text in texts:
            attempt(READERS[name], text)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, name
print("all read")
"""
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join([root, SOURCE])
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"},
        check=False,
        timeout=300,
    )
    assert done.stdout.endswith("all read\n"), done.stderr[-2000:]


def test_the_search_for_an_order_ends_when_it_is_hopeless(monkeypatch):
    from dpbn import elimination

    network = grid_network(32)
    scopes = [[network.structure.schema.position(n) for n in network.structure.family(v).names] for v in network.nodes]
    sizes = [2] * len(scopes)
    steps, real = [0], elimination._Greedy.remove

    def counted(self, vertex):
        steps[0] += 1
        return real(self, vertex)

    monkeypatch.setattr(elimination._Greedy, "remove", counted)
    best = elimination.cheapest_elimination(scopes, sizes, limit=math.inf)
    whole, steps[0] = steps[0], 0
    found = elimination.cheapest_elimination(scopes, sizes, limit=10**7)
    assert found.largest > 10**7 and steps[0] < 0.7 * whole
    assert elimination.cheapest_elimination(scopes, sizes, limit=best.largest) == best
    with pytest.raises(TooLargeError):
        dpbn.Inference(network).posteriors()
