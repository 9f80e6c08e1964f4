"""One value, one state: by equality of text, of decimal numbers, of truth, or by interval; nothing else."""

import numpy as np
import pyarrow as pa
import pytest

from dpbn.data import open_source
from dpbn.domain import Schema, Variable
from dpbn.graph import Dag
from dpbn.matching import Matching, matchings
from dpbn.network import Structure

HUGE = ("9007199254740993", "9007199254740992")  # the first is no float
LABELS, CUT = ("1.0", "02", "true", "'x"), Variable("v", ("1", "0"), cut_points=(0.5,))


@pytest.mark.parametrize(
    ("variable", "value", "code"),
    [
        (Variable("v", LABELS), 1, 0),
        (Variable("v", LABELS), 2.0, 1),
        (Variable("v", LABELS), np.True_, 2),
        (Variable("v", LABELS), np.False_, None),
        (Variable("v", LABELS), "1", None),
        (Variable("v", LABELS), np.complex64(1), None),
        (Variable("v", HUGE), int(HUGE[0]), 0),
        (Variable("v", HUGE), float(HUGE[0]), 1),
        (CUT, "1", 0),
        (CUT, 1, 1),
        (CUT, 0.5, 1),
    ],
)
def test_a_value(variable, value, code):
    assert Matching(variable, None).code(value) == code


@pytest.mark.parametrize(
    ("variable", "field", "code"),
    [
        (Variable("v", LABELS), "1", 0),
        (Variable("v", LABELS), "TRUE", 2),
        (Variable("v", LABELS), "x", None),
        (Variable("v", LABELS), "'x", 3),
        (Variable("v", ("=x", "x")), "'=x", 0),
        (Variable("v", ("=x", "x")), "'x", None),
        (Variable("v", HUGE), "0" + HUGE[0], 0),
        (Variable("v", ("1", "1.0")), "1.0", 1),
        (Variable("v", ("1", "1.0")), "1.00", None),
        (CUT, "1", 1),
        (CUT, "-inf", 0),
    ],
)
def test_a_field_of_a_text_file(variable, field, code):
    assert Matching(variable, None).written(field) == code


@pytest.mark.parametrize("column", [pa.array([1, 2], pa.int8()), pa.array([1.0, 2.0])])
def test_a_column_of_numbers_meets_labels_however_they_are_written(column):
    structure = Structure(Schema((Variable("v", LABELS),)), Dag(("v",), {}))
    assert open_source(pa.table({"v": column}), structure).counts([("v",)])["v",].tolist() == [1, 1, 0, 0]


def test_a_catch_all_takes_the_variables_that_declare_it_by_this_name():
    variables = (Variable("v", ("x", "other"), catch_all="other"), Variable("w", ("x", "?"), catch_all="?"))
    for policy, codes in (("other", [1, None]), ("?", [None, 1]), ("catch_all", [1, 1]), ("drop", [None, None])):
        assert [matching.catch_all for matching in matchings(Schema(variables), policy)] == codes
