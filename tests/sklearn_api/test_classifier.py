"""The scikit-learn classifier: its contract, and that it is the library underneath."""

import collections
import datetime
import math
import warnings

import numpy as np
import pandas
import polars as pl
import pyarrow as pa
import pytest

import dpbn
from dpbn import Dag, Schema, Structure, Variable
from dpbn.errors import DataError, InputError, PrivacyError
from tests.trust.canary import chain

sklearn = pytest.importorskip("sklearn")
from sklearn.base import clone  # noqa: E402
from sklearn.metrics import get_scorer  # noqa: E402
from sklearn.model_selection import cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import FunctionTransformer  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

from dpbn.sklearn import DPBayesianNetworkClassifier  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:numbers in")
EXPERIMENT = DPBayesianNetworkClassifier(epsilon=1000.0, method="uniform", random_state=0)

# check -> why it cannot pass
EXCEPTIONS: dict[str, str] = {}


@parametrize_with_checks([EXPERIMENT], expected_failed_checks=lambda _: EXCEPTIONS)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def child():
    network = dpbn.load_network("child")
    rows = network.sample(4_000, seed=0)
    return network, rows.drop(columns="Disease"), rows["Disease"]


def test_predicts_a_node_of_a_structure(child):
    network, X, y = child
    model = DPBayesianNetworkClassifier(network.structure, "Disease", 5.0, method="uniform").fit(X, y)
    assert model.release_.private
    assert 4.99 < model.release_.guarantee.epsilon <= 5
    assert model.classes_.tolist() == sorted(network.states("Disease"))
    values = model.predict_proba(X[:50])[:, np.searchsorted(model.classes_, network.states("Disease"))]
    ask = dpbn.Inference(model.release_)  # noise may make a row impossible
    expected = ask.predict_proba(X[:50], "Disease", on_impossible="prior")
    np.testing.assert_allclose(values, expected, atol=1e-12)
    assert model.score(X, y) > 2 * y.value_counts(normalize=True).max() * 0.6
    assert clone(model).get_params()["epsilon"] == 5.0


def test_a_bundled_name_and_columns_in_any_order(child):
    _, X, y = child
    one = DPBayesianNetworkClassifier("child", "Disease", 1.0, method="uniform", random_state=3).fit(X, y)
    other = DPBayesianNetworkClassifier("child", "Disease", 1.0, method="uniform", random_state=3).fit(
        X[X.columns[::-1]], y
    )
    np.testing.assert_allclose(one.predict_proba(X[:20]), other.predict_proba(X[X.columns[::-1]][:20]))
    assert not one.release_.private


def test_arrays_hold_positions_in_declared_order(child):
    network, X, y = child
    codes = np.column_stack([X[node].cat.codes for node in network.nodes if node != "Disease"])
    named = DPBayesianNetworkClassifier("child", "Disease", method="uniform", random_state=1).fit(X, y)
    coded = DPBayesianNetworkClassifier("child", "Disease", method="uniform", random_state=1).fit(codes, y.cat.codes)
    order = np.argsort(network.states("Disease"))
    np.testing.assert_allclose(named.predict_proba(X[:20]), coded.predict_proba(codes[:20])[:, order])
    assert coded.classes_.tolist() == list(range(6))


def test_missing_values_are_summed_out_and_unknown_ones_refused(child):
    network, X, y = child
    model = DPBayesianNetworkClassifier("child", "Disease", method="uniform").fit(X, y)
    holes = X[:3].astype(object)
    holes.iloc[:, :] = None
    expected = dpbn.Inference(model.release_).query(["Disease"]).values[np.argsort(network.states("Disease"))]
    np.testing.assert_allclose(model.predict_proba(holes), [expected] * 3)
    odd = X.astype(object).copy()
    odd.iloc[0, 0] = "canary"
    with pytest.raises(DataError) as caught:
        DPBayesianNetworkClassifier("child", "Disease", method="uniform").fit(odd, y)
    assert "canary" not in str(caught.value)


def test_a_class_that_no_row_has_keeps_its_place(child):
    network, X, y = child
    kept = (y != "PFC").to_numpy()
    model = DPBayesianNetworkClassifier("child", "Disease", method="uniform").fit(X[kept], y[kept])
    assert model.classes_.tolist() == sorted(network.states("Disease"))  # classes are public, not read from rows


@pytest.mark.parametrize(("name", "target"), [("asia", "lung"), ("alarm", "HR")])
def test_scores_of_probabilities_match_columns_with_classes(name, target):
    """scikit-learn takes columns to be in the order of sorted classes: these states are declared in another."""
    rows = dpbn.load_network(name).sample(3000, seed=0)
    X, y = rows.drop(columns=target), rows[target]
    model = DPBayesianNetworkClassifier(name, target, 5.0, random_state=0).fit(X, y)
    assert get_scorer("roc_auc_ovr")(model, X, y) > 0.9
    chosen = model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    assert get_scorer("neg_log_loss")(model, X, y) == pytest.approx(np.log(np.maximum(chosen, 1e-15)).mean(), abs=1e-3)


def test_naive_bayes_needs_public_classes():
    X, y = np.random.default_rng(0).normal(size=(200, 2)), np.repeat([0, 1], 100)
    X[100:] += 1.5
    with pytest.raises(PrivacyError, match="classes must be declared"):
        DPBayesianNetworkClassifier().fit(X, y)
    model = DPBayesianNetworkClassifier(classes=[0, 1], epsilon=5.0, method="uniform").fit(X, y)
    assert model.release_.private
    assert model.score(X, y) > 0.75


def test_naive_bayes_releases_the_names_of_its_classes():
    X, y = np.zeros((4, 1)), np.array(["well", "ill", "ill", "well"])
    model = DPBayesianNetworkClassifier(classes=["well", "ill"]).fit(X, y)
    assert model.release_.network.states("target") == ("ill", "well") == tuple(model.classes_)
    with pytest.raises(DataError, match=r"one of \['dead', 'well'\]"):
        DPBayesianNetworkClassifier(classes=["well", "dead"]).fit(X, y)
    nameless = DPBayesianNetworkClassifier(classes=["", "ill"]).fit(X, np.array(["", "ill", "ill", ""]))
    assert nameless.release_.network.states("target") == ("0", "1")


def test_charges_a_ledger_at_every_fit(child, tmp_path):
    _, X, y = child
    book = dpbn.Ledger(tmp_path / "b.db")
    book.open_dataset("child", 2)
    model = DPBayesianNetworkClassifier(
        "child", "Disease", 1.0, method="uniform", ledger=str(tmp_path / "b.db"), dataset="child"
    )
    cross_val_score(model, X, y, cv=2)
    assert book.remaining("child").epsilon == 0


def test_mistakes(child):
    _, X, y = child
    with pytest.raises(InputError, match="target must name"):
        DPBayesianNetworkClassifier("child").fit(X, y)
    with pytest.raises(InputError, match="did you mean 'Disease'"):
        DPBayesianNetworkClassifier("child", "Diseese").fit(X, y)
    with pytest.raises(InputError, match="got none for"):
        DPBayesianNetworkClassifier("child", "Disease").fit(X.drop(columns="Age"), y)
    with pytest.raises(InputError, match="19 columns"):
        DPBayesianNetworkClassifier("child", "Disease").fit(np.zeros((3, 2)), ["PFC"] * 3)
    with pytest.raises(InputError, match=r"got none for .*'Age'.*; did you mean 'age'"):
        DPBayesianNetworkClassifier("child", "Disease").fit(X.rename(columns={"Age": "age"}), y)


def test_names_are_suggested_for_the_columns_that_are_shown_only(child, monkeypatch):
    """To look for thousands of wrong names takes seconds."""
    _, X, y = child
    asked = []
    monkeypatch.setattr("dpbn.sklearn.did_you_mean", lambda name, known: asked.append(name) or "")
    with pytest.raises(InputError, match="got none for"):
        DPBayesianNetworkClassifier("child", "Disease").fit(X.add_suffix("_of_the_patient"), y)
    assert len(asked) == 10


def test_a_ledger_that_is_not_there_is_not_made(child, tmp_path):
    _, X, y = child
    model = DPBayesianNetworkClassifier("child", "Disease", ledger=str(tmp_path / "b.db"), dataset="child")
    with pytest.raises(InputError, match="must exist, got none"):
        model.fit(X, y)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "bounds", [3, (3, -3), [(-3, 3)] * 2, [(-3, 3)] * 3, ([-3, -3], [3, 3]), "ab", None, (0, np.inf)]
)
def test_bounds_are_two_numbers_for_all_columns(bounds):
    with pytest.raises(InputError, match="bounds must be two ascending numbers, the same for every column, got"):
        DPBayesianNetworkClassifier(classes=[0, 1], bounds=bounds).fit(np.zeros((4, 2)), [0, 1, 0, 1])


def test_numbers_that_say_the_opposite_are_told():
    """1 is the second state, also where that is no: whoever means yes by it must hear so."""
    schema = Schema((Variable("t", ("yes", "no")), Variable("f", ("no", "yes")), Variable("g", ("yes", "no"))))
    structure = Structure(schema, Dag(schema.names, {}))
    model = DPBayesianNetworkClassifier(structure, "t", method="uniform")
    with pytest.warns(UserWarning, match=r"numbers in \['t', 'g'\] are places of states: 0 is 'yes' and 1 is 'no'"):
        model.fit(np.array([[0, 1]] * 4), np.array([0, 1, 0, 1]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit([["no", "yes"]] * 4, [True, False] * 2)


def test_missing_values_and_numbers_that_are_cut_are_no_places():
    cut = Variable("g", ("yes", "no"), cut_points=(38,))
    schema = Schema((Variable("t", ("no", "yes")), Variable("f", ("yes", "no")), cut))
    rows = pandas.DataFrame({"f": ["yes", math.nan, "no", None], "g": [36.5, 39, 38, 37]})
    model = DPBayesianNetworkClassifier(
        Structure(schema, Dag(schema.names, {})), "t", method="uniform", on_unknown="drop"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(rows, ["no", "yes"] * 2)


def test_in_a_pipeline(child):
    _, X, y = child
    rename = FunctionTransformer(lambda frame: pandas.DataFrame(frame))
    model = make_pipeline(rename, DPBayesianNetworkClassifier("child", "Disease", 5.0, method="uniform")).fit(X, y)
    assert model.predict(X[:5]).shape == (5,)


AGES = Structure(
    Schema((Variable("sick", ("no", "yes")), Variable("age", ("young", "old"), cut_points=(50.0,)))),
    Dag(("sick", "age"), {"age": ("sick",)}),
)


def tables(X, y, structure=AGES, target="sick", **options):
    """What was counted of every node: next to no noise."""
    model = DPBayesianNetworkClassifier(structure, target, 1e9, method="uniform", on_unknown="drop", **options)
    return {m.names[-1]: m.values.tolist() for m in model.fit(X, y).release_.measurements if len(m.names) == 1}


def counted(X, y, structure=AGES, target="sick", **options):
    return tables(X, y, structure, target, **options)[target]


def test_a_value_that_is_no_number_is_dropped_and_never_quoted():
    rows = pandas.DataFrame({"age": pandas.Series([1, 99, "secret", 10**400, "70", 7], dtype=object)})
    sick = np.array(["no", "yes", "no", "yes", "yes", "no"], dtype=object)
    assert counted(rows, sick) == [2, 3]
    with pytest.raises(DataError, match="'age': 1, of 6") as refused:
        DPBayesianNetworkClassifier(AGES, "sick").fit(rows, sick)
    assert "secret" not in str(refused.value)


def test_a_value_that_is_no_class_is_not_taken_for_the_place_of_one():
    rows, y = np.zeros((400, 1)), np.array([10, 20, *[0] * 398])
    assert counted(rows, y, None, "target", classes=[10, 20], bins=2) == [1, 1]
    with pytest.raises(DataError, match="'target': 398"):
        DPBayesianNetworkClassifier(classes=[10, 20], bins=2).fit(rows, y)


FLAGS = Schema((Variable("t", ("no", "yes")), Variable("f", ("True", "False")), Variable("g", ("a", "b"))))
APART = Structure(FLAGS, Dag(FLAGS.names, {}))
BIG = 2**53 + 1
WAYS_OF_X = {
    "list": lambda rows: rows,
    "deque": collections.deque,
    "object array": lambda rows: np.array([*rows, [None, None]], dtype=object)[:-1],
    "pandas": lambda rows: pandas.DataFrame(rows, columns=["f", "g"]),
    "pandas objects": lambda rows: pandas.DataFrame(rows, columns=["f", "g"], dtype=object),
    "pandas nullable": lambda rows: pandas.DataFrame(rows, columns=["f", "g"]).convert_dtypes(),
    "categories": lambda rows: pandas.DataFrame(rows, columns=["f", "g"], dtype=object).apply(pandas.Categorical),
    "pyarrow": lambda rows: pa.table({"f": [f for f, _ in rows], "g": [g for _, g in rows]}),
    "polars": lambda rows: pl.DataFrame({"f": [f for f, _ in rows], "g": [g for _, g in rows]}),
}
WAYS_OF_Y = {
    "list": list,
    "deque": collections.deque,
    "column": lambda values: [[value] for value in values],
    "arrays": lambda values: [np.array(value) for value in values],
}


@pytest.mark.parametrize("way", WAYS_OF_X)
@pytest.mark.parametrize(
    "strange", [None, 1, 0.5, "?", 10**400, 10**5000], ids=["None", "1", "0.5", "text", "huge", "no text"]
)
def test_one_record_does_not_change_what_the_features_of_others_mean(way, strange):
    if way in ("pyarrow", "polars") and strange is not None:
        pytest.skip("columns of one type")
    if way == "categories" and strange == 1:
        pytest.skip("pandas itself takes 1 and True for one category")
    made, rows, y = WAYS_OF_X[way], [[True, 1]] * 5, ["yes"] * 5
    before = tables(made(rows), y, APART, "t")
    assert before == {"t": [0, 5], "f": [5, 0], "g": [0, 5]}
    try:
        more = made([[strange, 1], *rows])
    except OverflowError:
        pytest.skip("pandas 2 has no table for it")
    after = tables(more, [*y, "yes"], APART, "t")
    assert sum(abs(a - b) for node in before for a, b in zip(before[node], after[node], strict=True)) <= 3, after
    assert max(abs(np.array(before["f"]) - after["f"])) <= 1


@pytest.mark.parametrize("way", ["categories", "pyarrow", "polars", "pandas objects"])
def test_a_missing_value_does_not_round_the_others(way):
    schema = Schema((Variable("t", ("no", "yes")), Variable("f", ("0", str(BIG))), Variable("g", ("a", "b"))))
    structure = Structure(schema, Dag(schema.names, {}))
    rows = WAYS_OF_X[way]([*[[BIG, 1]] * 5, [None, 1]])
    assert tables(rows, ["no"] * 6, structure, "t")["f"] == [0, 5]


@pytest.mark.filterwarnings("ignore:A column-vector")
@pytest.mark.parametrize("way", WAYS_OF_Y)
def test_one_record_does_not_change_what_the_classes_of_others_mean(way):
    made, rows = WAYS_OF_Y[way], [["True", "a"]] * 6
    before = counted(rows[:5], made([1] * 5), APART, "t")
    assert before == [0, 5]
    assert counted(rows, made([*[1] * 5, "no"]), APART, "t") == [1, 5]


@pytest.mark.parametrize("states", [("yes", "no"), ("No", "Yes"), ("true", "false"), ("low", "high")], ids=str)
def test_truths_are_the_states_that_say_so(states):
    """Not the second one, where that says no: the release would tell of the opposite."""
    schema = Schema((Variable("t", states), Variable("f", states)))
    structure = Structure(schema, Dag(schema.names, {"f": ("t",)}))
    rows, y = np.array([[True], [False], [True], [True]] * 30), np.array([True, False, False, True] * 30)
    model = DPBayesianNetworkClassifier(structure, "t", 1e6, method="uniform").fit(rows, y)
    meant = next((state for state in states if state.lower() in ("yes", "true")), states[1])
    ask, place = dpbn.Inference(model.release_), states.index(meant)
    assert ask.query(["t"]).values[place] == pytest.approx(0.5, abs=0.01)
    assert ask.query(["f"]).values[place] == pytest.approx(0.75, abs=0.01)
    assert ask.query(["t"], {"f": meant}).values[place] == pytest.approx(2 / 3, abs=0.01)
    assert model.predict([[True], [False]]).tolist() == [True, False]


@pytest.mark.parametrize("y", [[True, False] * 30, [1, 0] * 30, ["yes", "no"] * 30, ["TRUE", "FALSE"] * 30])
@pytest.mark.parametrize("states", [("TRUE", "FALSE"), ("FALSE", "TRUE"), ("no", "yes"), ("x", "0")], ids=str)
def test_classes_are_told_as_y_writes_them(y, states):
    if isinstance(y[0], str) and not set(y) <= set(states):
        pytest.skip("other labels")
    schema = Schema((Variable("t", states), Variable("f", ("a", "b"))))
    structure = Structure(schema, Dag(schema.names, {"f": ("t",)}))
    rows = [["a"], ["b"]] * 30
    model = DPBayesianNetworkClassifier(structure, "t", 1e6, method="uniform").fit(rows, np.array(y))
    assert np.mean(model.predict(rows) == np.array(y)) == 1.0


def test_a_truth_is_no_number_to_be_cut():
    rows = pandas.DataFrame({"age": pandas.Series([True, 70], dtype=object)})
    assert tables(rows, ["no", "yes"]) == {"sick": [0, 1]}


@pytest.mark.parametrize(
    ("X", "y", "reason"),
    [
        ([[31.25], [47.5], [1j]], ["no"] * 3, "Complex data"),
        ([[1.0]] * 3, [47.5, 31.25, 1j], "Complex data"),
        (pandas.DataFrame({"age": pandas.Series([1.0, "SECRET-4711"], dtype=object)}), [0, 1], "could not convert"),
        (np.array([["1"], ["SECRET-4711"]]), [0, 1], "could not convert"),
        (np.array([[b"1"], [b"SECRET-4711"]], dtype=object), [0, 1], "could not convert"),
    ],
)
def test_complaints_about_rows_do_not_quote_them(X, y, reason):
    model = DPBayesianNetworkClassifier(classes=[0, 1]) if y == [0, 1] else DPBayesianNetworkClassifier(AGES, "sick")
    with pytest.raises(ValueError, match=reason) as refused:
        model.fit(X, y)
    assert not any(secret in str(refused.value) for secret in ("31.25", "47.5", "SECRET"))
    assert refused.value.__cause__ is None and refused.value.__context__ is None


BYTES = pa.Array.from_buffers(
    pa.string(), 2, [None, pa.py_buffer(np.array([0, 7, 10], "int32").tobytes()), pa.py_buffer(b"SEC\xffRETyes")]
)
FAR = pa.array([400_000_000_000, 0], pa.timestamp("s"))  # the year 14645: no time of Python's


@pytest.mark.parametrize("policy", ["error", "drop"])
@pytest.mark.parametrize(
    ("X", "y"),
    [
        (pa.table({"x": FAR}), ["no", "yes"]),
        (pl.DataFrame({"x": pl.from_arrow(FAR)}), ["no", "yes"]),
        (pa.table({"x": BYTES}), ["no", "yes"]),
        (pa.table({"x": ["a", "b"]}), FAR),
        (pa.table({"x": ["a", "b"]}), pl.from_arrow(FAR)),
        (pa.table({"x": ["a", "b"]}), BYTES),
    ],
    ids=["time", "time of polars", "text", "class", "class of polars", "text of a class"],
)
def test_what_an_engine_cannot_read_is_not_quoted(X, y, policy):
    schema = Schema((Variable("y", ("no", "yes")), Variable("x", ("a", "b"))))
    model = DPBayesianNetworkClassifier(Structure(schema, Dag(schema.names, {})), "y", on_unknown=policy)
    with pytest.raises((DataError, ValueError), match=r"must be readable") as refused:
        model.fit(X, y)
    assert not any(secret in text for text in chain(refused.value) for secret in ("14645", "SEC", "0xff", "out of"))
    assert refused.value.__cause__ is None and refused.value.__context__ is None


def test_rows_to_predict_follow_the_policy_of_rows_learned_from():
    schema = Schema(
        (Variable("t", ("no", "yes")), Variable("x", ("a", "b", "?"), catch_all="?"), Variable("z", ("a", "b")))
    )
    structure = Structure(schema, Dag(schema.names, {"x": ("t",)}))
    X = pandas.DataFrame({"x": ["a", None, "odd", "?"] * 50, "z": ["a", "b"] * 100})
    y = ["no", "yes", "yes", "yes"] * 50
    model = DPBayesianNetworkClassifier(structure, "t", 1e6, method="uniform", on_unknown="catch_all", random_state=0)
    assert model.fit(X, y).predict(X).tolist() == y
    with pytest.raises(InputError, match="values of 'z' must be one of"):
        model.predict(X.assign(z="odd"))
    model.set_params(on_unknown="error").fit(X.assign(x="a"), y)
    with pytest.raises(InputError, match="values of 'x' must be one of"):
        model.predict(X)


def test_a_time_that_equals_another_is_not_taken_for_it():
    there = datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.UTC)
    here = there.astimezone(datetime.timezone(datetime.timedelta(hours=1)))
    assert here == there
    schema = Schema((Variable("t", ("no", "yes")), Variable("x", (str(there), "other"), catch_all="other")))
    structure = Structure(schema, Dag(("t", "x"), {"x": ("t",)}))
    options = {"method": "uniform", "on_unknown": "other", "random_state": 0}
    model = DPBayesianNetworkClassifier(structure, "t", 1e6, **options)
    fitted = model.fit([[here], *[[there]] * 5], ["no"] * 6)
    (counted,) = [m.values for m in fitted.release_.measurements if m.names == ("t", "x")]
    assert counted.tolist() == [[5, 1], [0, 0]]
