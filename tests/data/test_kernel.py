"""Both kernels against numpy's own histogram, on every kind of table size."""

import numpy as np
import pytest

from dpbn.data import kernel
from dpbn.data.encode import code_dtype
from dpbn.data.packing import pack, unpacked
from dpbn.domain import Schema, Variable


@pytest.mark.parametrize("name", ["numpy", "numba"])
@pytest.mark.parametrize(
    "sizes", [(2, 3, 4, 2), (1, 255, 2), (256, 200), (300, 300), (300, 300, 2), (65_536,), (70_000, 2)]
)
def test_kernels_count_alike(name, sizes, monkeypatch):
    if name == "numba":
        pytest.importorskip("numba")
    monkeypatch.setattr(kernel, "ROWS_PER_THREAD", 1000)
    monkeypatch.setattr(kernel, "NUMPY_BLOCK_ROWS", 777)
    schema = Schema(tuple(Variable(f"v{i}", tuple(map(str, range(size)))) for i, size in enumerate(sizes)))
    generator = np.random.default_rng(3)
    codes = np.array([generator.integers(0, size, 20_011) for size in sizes], dtype=code_dtype(schema))
    sets = [schema.names, *(schema.names[i : i + 2][::-1] for i in range(len(sizes)))]
    groups = pack(schema, sets)
    tally = kernel.Tally(groups, {n: i for i, n in enumerate(schema.names)}, name)
    for block in np.array_split(codes, 3, axis=1):
        tally.add(block)
    tables = unpacked(groups, tally.supersets, sets)
    for names in sets:
        rows = codes[[schema.position(n) for n in names]].astype(np.int64)
        flat = np.ravel_multi_index(tuple(rows), schema.shape(names))
        wanted = np.bincount(flat, minlength=schema.cells(names)).reshape(schema.shape(names))
        np.testing.assert_array_equal(tables[names], wanted)


@pytest.mark.parametrize("name", ["numpy", "numba"])
def test_kernels_count_records_over_no_attribute(name):
    if name == "numba":
        pytest.importorskip("numba")
    schema = Schema((Variable("x", ("a", "b")),))
    tally = kernel.Tally(pack(schema, [()]), {"x": 0}, name)
    tally.add(np.ones((1, 7), dtype=np.uint8))
    assert tally.supersets[0].tolist() == 7


def test_numba_takes_over_when_rows_are_many(monkeypatch):
    pytest.importorskip("numba")
    from dpbn.data import kernel_numba

    used = []
    count = kernel_numba.count_numba
    monkeypatch.setattr(kernel_numba, "count_numba", lambda *given: used.append(1) or count(*given))
    monkeypatch.setattr(kernel, "ROWS_WORTH_COMPILING", 5)
    schema = Schema((Variable("x", ("a", "b")),))
    tally = kernel.Tally(pack(schema, [("x",)]), {"x": 0})
    for _ in range(3):
        tally.add(np.zeros((1, 3), dtype=np.uint8))
    assert len(used) == 2 and tally.supersets[0].tolist() == [9, 0]


@pytest.mark.parametrize("rows", [2**14 - 1, 2**14, 2**14 + 1, 50_001])
def test_records_beyond_the_first_block_of_the_compiled_kernel_are_counted_once(rows):
    pytest.importorskip("numba")
    from dpbn.data.kernel_numba import _BLOCK_ROWS, count_numba

    assert _BLOCK_ROWS == 2**14
    schema = Schema((Variable("x", tuple("abc")), Variable("y", tuple("abcde"))))
    codes = np.random.default_rng(4).integers(0, [[3], [5]], (2, rows)).astype(np.uint8)
    groups = pack(schema, [("x", "y")])
    columns = [[schema.position(name) for name in group.names] for group in groups]
    (found,) = count_numba(codes, groups, columns)
    first, second = columns[0]
    wanted = np.bincount(codes[first].astype(int) * schema.shape(groups[0].names)[1] + codes[second], minlength=15)
    assert found.tolist() == wanted.tolist()


def test_compiled_translation_agrees_with_numpy():
    pytest.importorskip("numba")
    from dpbn.data.kernel_numba import translate

    lookup = np.array([4, 2, 255], dtype=np.uint8)
    out = np.empty(5, dtype=np.uint8)
    translate(np.array([0, 1, 2, -1, 9], dtype=np.int32), lookup, out)
    assert out.tolist() == [4, 2, 255, 255, 255]
