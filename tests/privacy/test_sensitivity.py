"""For random neighbouring tables the counts move by at most the sensitivity, and it is attained."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbn.data import open_source
from dpbn.domain import Schema, Variable
from dpbn.errors import PrivacyError
from dpbn.graph import Dag
from dpbn.network import Structure
from dpbn.privacy.guarantee import Neighbors, Sensitivity

VARIABLES = (Variable("a", ("0", "1")), Variable("b", ("0", "1", "2")), Variable("c", ("0", "1")))
STRUCTURE = Structure(Schema(VARIABLES), Dag(("a", "b", "c"), {"b": ("a",), "c": ("a", "b")}))
SETS = [("a",), ("a", "b"), ("a", "b", "c"), ("c",)]
row = st.tuples(st.sampled_from("01"), st.sampled_from("012"), st.sampled_from("01x"))  # x is not in the domain
person = st.lists(row, min_size=1, max_size=5)


def counts(people, contributions):
    rows = [(f"p{number}", *values) for number, own in people for values in own]
    frame = pd.DataFrame(rows, columns=["who", "a", "b", "c"], dtype=str)
    source = open_source(frame, STRUCTURE, unit="who", max_contributions=contributions, on_unknown="drop")
    return source.counts(SETS)


def distances(first, second):
    return [np.abs(first[names] - second[names]) for names in SETS]


@settings(deadline=None, max_examples=50)
@given(st.lists(person, max_size=5), person, person, st.integers(1, 4), st.integers(0, 5))
def test_neighbours_differ_by_at_most_the_sensitivity(others, one, other, contributions, position):
    people = list(enumerate(others))
    place = min(position, len(people))
    without = counts(people, contributions)
    with_one = counts([*people[:place], (99, one), *people[place:]], contributions)
    with_other = counts([*people[:place], (99, other), *people[place:]], contributions)
    added, replaced = Sensitivity(max_contributions=contributions), Sensitivity(Neighbors.REPLACE, contributions)
    for moved, sensitivity in ((distances(without, with_one), added), (distances(with_one, with_other), replaced)):
        for table in moved:
            assert table.sum() <= sensitivity.l1
            assert (table**2).sum() <= sensitivity.l2_squared


@pytest.mark.parametrize("contributions", [1, 2, 3])
def test_the_sensitivity_is_attained(contributions):
    zeros, ones = [("0", "0", "0")] * 5, [("1", "1", "1")] * 5
    without, one, other = (counts(people, contributions) for people in ([], [(1, zeros)], [(1, ones)]))
    added, replaced = Sensitivity(max_contributions=contributions), Sensitivity(Neighbors.REPLACE, contributions)
    for table in distances(without, one):
        assert table.sum() == added.l1 and (table**2).sum() == added.l2_squared
    for table in distances(one, other):
        assert table.sum() == replaced.l1 and (table**2).sum() == replaced.l2_squared


@pytest.mark.parametrize("rows", [0, -1, 2**31 + 1, True, 1.0, None])
def test_no_other_number_of_rows_is_a_sensitivity(rows):
    """Of 0 rows every table would be free."""
    with pytest.raises(PrivacyError, match="max_contributions"):
        Sensitivity(max_contributions=rows)
