"""Predictions for tables, against one query per row."""

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpbn
from dpbn.errors import ImpossibleEvidenceError, InputError, QueryError
from dpbn.inference import predict
from tests.inference.oracles import networks


def expected(ask: dpbn.Inference, frame: pandas.DataFrame, target: str) -> np.ndarray:
    rows = []
    for _, row in frame.drop(columns=[target], errors="ignore").iterrows():
        rows.append(ask.query([target], {n: v for n, v in row.items() if isinstance(v, str)}).values)
    return np.array(rows)


@settings(deadline=None, max_examples=80)
@given(networks(), st.integers(0, 1000), st.sampled_from([0.0, 0.2, 0.6]), st.sampled_from([0, 1, 3, 48]))
def test_predictions_agree_with_queries(network, seed, missing, patterns):
    generator = np.random.default_rng(seed)
    frame = network.sample(30, seed=seed).astype(object)
    frame = frame.mask(generator.random(frame.shape) < missing)
    frame = frame[[c for c in frame.columns if generator.random() < 0.8]]
    target = network.nodes[int(generator.integers(len(network.nodes)))]
    ask = dpbn.Inference(network)
    before, predict.PATTERNS = predict.PATTERNS, patterns
    try:
        found = ask.predict_proba(frame, target)
    finally:
        predict.PATTERNS = before
    np.testing.assert_allclose(found, expected(ask, frame, target).reshape(found.shape), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("radix", [(2,), (3, 1, 4), (2,) * 80, (256,) * 20, (7,) * 40, (10**6, 1, 2**20) * 6], ids=str)
def test_distinct_rows_however_many_combinations_there_are(radix):
    """Also where no whole number of 64 bits could number them; all that tells two rows apart is one column."""
    generator = np.random.default_rng(1)
    kinds = np.zeros((len(radix) + 1, len(radix)), dtype=np.int64)
    kinds[1:] += np.diag(radix) - np.eye(len(radix), dtype=np.int64)
    rows = np.concatenate([kinds, kinds[generator.integers(0, len(kinds), 200)]])
    rows = rows[generator.permutation(len(rows))]
    first, inverse = predict.distinct_rows(list(rows.T), radix, len(rows))
    np.testing.assert_array_equal(rows[first][inverse], rows)
    assert len(first) == len(np.unique(rows, axis=0))


def test_every_kind_of_table_gives_the_same():
    network = dpbn.load_network("alarm")
    ask = dpbn.Inference(network)
    frame = network.sample(300, seed=1)[["HR", "CO", "BP", "VENTLUNG", "HISTORY"]].astype(object)
    frame.loc[3:40, "CO"] = None
    reference = ask.predict_proba(frame, "HR")
    assert reference.shape == (300, 3)
    np.testing.assert_allclose(reference[:60], expected(ask, frame[:60], "HR"), rtol=1e-9)
    categorical = frame.astype(dict.fromkeys(frame.columns, "category"))
    for table in (
        categorical,
        pyarrow.Table.from_pandas(frame),
        pyarrow.Table.from_pandas(categorical),
        polars.from_pandas(frame),
        {c: list(frame[c]) for c in frame.columns},
        {c: frame[c].to_numpy() for c in frame.columns},
    ):
        np.testing.assert_array_equal(ask.predict_proba(table, "HR"), reference)
    assert ask.predict_proba({}, "HR").shape == (0, 3)


def test_numbers_and_cut_points():
    schema = dpbn.Schema((dpbn.Variable("age", ("young", "old"), cut_points=(50.0,)), dpbn.Variable("ill", ("0", "1"))))
    structure = dpbn.Structure(schema, dpbn.Dag(("age", "ill"), {"ill": ("age",)}))
    ask = dpbn.Inference(dpbn.BayesianNetwork(structure, {"age": [0.5, 0.5], "ill": [[0.9, 0.1], [0.2, 0.8]]}))
    np.testing.assert_allclose(ask.predict_proba({"age": [20.0, 50.0, None]}, "ill")[:, 1], [0.1, 0.8, 0.45])
    written = ["20", "5e1", None, "old"]  # as in a CSV file
    np.testing.assert_allclose(ask.predict_proba({"age": written}, "ill")[:, 1], [0.1, 0.8, 0.45, 0.8])
    with pytest.raises(QueryError, match="got 'nan'"):
        ask.predict_proba({"age": ["nan"]}, "ill")
    found = ask.predict_proba(pandas.DataFrame({"ill": [1.0, np.nan, 0.0]}), "age")[:, 1]
    np.testing.assert_allclose(found, [8 / 9, 0.5, 2 / 11])


@pytest.mark.parametrize(
    "column",
    [
        [1, "0", None],
        [1, 0, float("nan")],
        pyarrow.array([1.0, 0.0, float("nan")]),
        pandas.Series(pandas.Categorical(["1", "0", None], categories=["unheard of", "0", "1"])),
        pyarrow.chunked_array([pyarrow.array(part).dictionary_encode() for part in (["1"], ["0", None])]),
    ],
    ids=["mixed", "numbers", "not a number", "a category that no row holds", "a dictionary per chunk"],
)
def test_a_column_is_read_value_by_value_and_nothing_is_a_missing_value(column):
    schema = dpbn.Schema((dpbn.Variable("age", ("young", "old")), dpbn.Variable("ill", ("0", "1"))))
    structure = dpbn.Structure(schema, dpbn.Dag(("age", "ill"), {"ill": ("age",)}))
    ask = dpbn.Inference(dpbn.BayesianNetwork(structure, {"age": [0.5, 0.5], "ill": [[0.9, 0.1], [0.2, 0.8]]}))
    np.testing.assert_allclose(ask.predict_proba({"ill": column}, "age")[:, 1], [8 / 9, 2 / 11, 0.5])


def test_wrong_tables_are_named():
    ask = dpbn.Inference(dpbn.load_network("asia"))
    with pytest.raises(QueryError, match=r"'smoke'.*'perhaps'"):
        ask.predict_proba({"smoke": ["yes", "perhaps"]}, "lung")
    with pytest.raises(QueryError, match="got 'no ' in row 1, counted from 0; did you mean 'no'"):
        ask.predict_proba({"smoke": ["yes", "no ", "yes"]}, "lung")
    with pytest.raises(QueryError, match=r"must be a node of the network, got dict$"):  # arguments swapped
        ask.predict_proba("lung", {"smoke": ["a row"]})
    with pytest.raises(QueryError, match="'lungs'"):
        ask.predict_proba({"smoke": ["yes"]}, "lungs")
    with pytest.raises(QueryError, match="got int"):
        ask.predict_proba(3, "lung")
    with pytest.raises(QueryError, match="one length"):
        ask.predict_proba({"smoke": ["yes"], "asia": []}, "lung")
    table = {"either": ["yes", "no"], "tub": ["no", "yes"]}
    with pytest.raises(ImpossibleEvidenceError, match="row 1"):
        ask.predict_proba(table, "lung")
    values = ask.predict_proba(table, "lung", on_impossible="prior")
    np.testing.assert_allclose(values[1], ask.query(["lung"]).values)


def test_a_table_without_any_node_of_the_network_is_refused():
    asia = dpbn.load_network("asia")
    rows, ask = asia.sample(3, seed=0), dpbn.Inference(asia)
    with pytest.raises(QueryError, match="a column named like a node"):
        ask.predict_proba(rows.rename(columns=str.upper), "lung")
    assert ask.predict_proba(rows[["lung"]], "lung").shape == (3, 2)  # nothing known: the prior


@pytest.mark.parametrize("values", [[["yes"]], [{"smoke": "yes"}], pyarrow.array([["yes"]])])
def test_values_that_are_lists_are_refused(values):
    with pytest.raises(QueryError, match=r"values of 'smoke' must be .* in row 0"):
        dpbn.Inference(dpbn.load_network("asia")).predict_proba({"smoke": values}, "lung")


@pytest.mark.parametrize("values", [5, None, "yes"])
def test_a_column_that_is_no_list_is_refused(values):
    with pytest.raises(QueryError, match="column 'smoke' must be a list of values"):
        dpbn.Inference(dpbn.load_network("asia")).predict_proba({"smoke": values}, "lung")


@pytest.mark.parametrize(
    "kind",
    [dict, pandas.DataFrame, polars.DataFrame, pyarrow.table, lambda rows: pandas.DataFrame(rows, dtype="category")],
    ids=["mapping", "pandas", "polars", "pyarrow", "categories"],
)
def test_unknown_values_can_go_where_learning_put_them(kind):
    age = dpbn.Variable("age", ("young", "old", "?"), cut_points=(50,), catch_all="?")
    schema = dpbn.Schema((age, dpbn.Variable("ill", ("no", "yes"))))
    structure = dpbn.Structure(schema, dpbn.Dag(("age", "ill"), {"ill": ("age",)}))
    ask = dpbn.Inference(
        dpbn.BayesianNetwork(structure, {"age": [0.5, 0.3, 0.2], "ill": [[0.9, 0.1], [0.2, 0.8], [1, 0]]})
    )
    table = kind({"age": ["20", "71", "NA", None]})
    for policy in ("catch_all", "?"):
        found = ask.predict_proba(table, "ill", on_unknown=policy)
        np.testing.assert_allclose(found, [[0.9, 0.1], [0.2, 0.8], [1, 0], [1, 0]])
    with pytest.raises(QueryError, match="got 'NA' in row 2, counted from 0; on_unknown='catch_all' takes it and what"):
        ask.predict_proba(table, "ill")
    with pytest.raises(QueryError, match="catch-all state, got 'drop': no row is left out"):
        ask.predict_proba(table, "ill", on_unknown="drop")
    with pytest.raises(InputError, match=r"declared catch-all state .*got 'other'"):
        ask.predict_proba(table, "ill", on_unknown="other")
