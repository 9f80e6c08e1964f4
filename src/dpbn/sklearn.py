"""A scikit-learn classifier: `fit` learns a private network, `predict_proba` asks it about one node.

Domains are public: they come from `structure` (or `bounds`, `bins` and `classes`), never from the rows given to
`fit`. Columns of a DataFrame are matched by name; columns of an array stand for the structure's nodes other than
the target, in their declared order. A value is a state's label; a number in a column whose labels are not numbers
is the position of a state, and so is a truth value unless the states are true and false, or yes and no. Every call of
`fit` spends epsilon again: cross-validation with k folds spends k times. Steps of a pipeline that learn from the rows
before it (scalers, imputers, encoders) and scores of private rows are not private: docs/ecosystem.md.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbn.data.sealed import sealed
from dpbn.domain import Schema, Variable
from dpbn.errors import InputError, MissingExtraError, PrivacyError, did_you_mean, received
from dpbn.formats import load_structure
from dpbn.graph import Dag
from dpbn.inference import Inference
from dpbn.learning import learn
from dpbn.matching import PLAIN, Matching, is_number
from dpbn.network import Structure
from dpbn.privacy.noise import InsecureNoise

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ModuleNotFoundError:
    raise MissingExtraError("scikit-learn", "sklearn") from None

TARGET = "target"  # its name where no structure is given
TRUTHS = (("false", "true"), ("no", "yes"))


class DPBayesianNetworkClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predicts `target` with a Bayesian network learned under differential privacy.

    Parameters: `structure`, a Structure, a network file or a bundled name; without one, naive Bayes over numeric
    columns, each clipped to the public `bounds` and cut into `bins` equal intervals, with the public `classes`.
    `target`, the node to predict. `epsilon`, `delta`, `method`, `neighbors`, `on_unknown`, `prior` as in
    `dpbn.learn`; `ledger` (a path) and `dataset` charge a ledger at every fit. `random_state`, for experiments
    only: repeatable noise, and classes may then be read from y; what is learned is NOT private and says so.

    After `fit`: `release_` (save it, report it), `classes_`, sorted. Publish the release, not the fitted
    classifier: whether its classes are labels, numbers or truths follows the values of y.
    """

    def __init__(
        self,
        structure: Any = None,
        target: str | None = None,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        method: str | None = None,
        neighbors: str = "add-remove",
        on_unknown: str = "error",
        prior: float | None = None,
        bounds: tuple[float, float] = (-3.0, 3.0),
        bins: int = 8,
        classes: Any = None,
        ledger: str | None = None,
        dataset: str | None = None,
        random_state: int | None = None,
    ):
        self.structure = structure
        self.target = target
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.neighbors = neighbors
        self.on_unknown = on_unknown
        self.prior = prior
        self.bounds = bounds
        self.bins = bins
        self.classes = classes
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None  # private noise cannot be seeded
        tags.input_tags.allow_nan = self.structure is not None
        tags.input_tags.string = tags.input_tags.categorical = self.structure is not None
        return tags

    def fit(self, X: Any, y: Any) -> DPBayesianNetworkClassifier:
        """Learn the network from rows X with the target's values y; spends epsilon."""
        given, values = X, [_plain(value) for value in _values(y)]
        X, y = self._both_checked(X, y)
        if len(y) != len(X):
            raise ValueError(f"X and y must have as many rows as each other, got {len(X)} and {len(y)}")
        if self.structure is None:
            self.structure_, self.target_, states = self._naive(X.shape[1], y)
        else:
            self.structure_, self.target_ = self._declared()
            states = _classes(self.structure_.schema[self.target_], y)
        self._order = np.argsort(states, kind="stable")  # scores of probabilities count on sorted classes
        self.classes_ = states[self._order]
        table = self._table(given, X, y=values)
        options: dict[str, Any] = {} if self.method is None else {"method": self.method}
        if self.ledger is not None:
            from dpbn.privacy.ledger import Ledger

            if isinstance(self.ledger, (str, Path)) and not Path(self.ledger).exists():
                raise InputError(f"ledger {received(self.ledger)} must exist, got none: open a dataset in it first")
            options |= {"ledger": Ledger(self.ledger), "dataset": self.dataset}
        if self.random_state is not None:
            options["noise"] = InsecureNoise(_seed(self.random_state))
        import pandas

        self.release_ = learn(
            pandas.DataFrame(table, dtype=object),  # no type that all values of a column suggest
            self.structure_,
            self.epsilon,
            self.delta,
            neighbors=self.neighbors,
            on_unknown=self.on_unknown,
            prior=self.prior,
            **options,
        )
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """P(target | row) for every row, columns in the order of `classes_`.

        Missing values are summed out, except where `on_unknown` put them into a catch-all state in `fit` as well.
        """
        check_is_fitted(self)
        given, X = X, self._checked(X, reset=False)
        ask = Inference(self.release_.network)
        import pandas

        table = pandas.DataFrame(self._table(given, X))
        unknown = "error" if self.on_unknown == "drop" else self.on_unknown
        found = ask.predict_proba(table, self.target_, on_impossible="prior", on_unknown=unknown)
        return found[:, self._order]

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of every row."""
        best = np.argmax(self.predict_proba(X), axis=1)
        classes: NDArray[Any] = self.classes_[best]
        return classes

    def _checked(self, X: Any, *, reset: bool, y: Any = "no_validation") -> Any:
        """X as a two-dimensional array; numbers only where there is no structure to give labels meaning."""
        if self.structure is None:
            kept = validate_data(self, X, reset=reset, dtype=np.float64, y=y)
        else:
            kept = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan", y=y)
        return kept[0] if isinstance(kept, tuple) else kept

    def _both_checked(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        """As scikit-learn wants them. Its complaints end before they quote a value, with nothing attached."""
        try:
            X = self._checked(X, reset=True, y=y)
            y = column_or_1d(y, warn=True)
            check_classification_targets(y)
            return X, y
        except Exception as error:
            kind, reason = type(error), re.split(r"\n|: [\w.]*['\"\[(]", str(error), maxsplit=1)[0]
        if kind not in (TypeError, ValueError):  # of an engine, which may quote a value anywhere
            kind, reason = ValueError, f"X and y must be readable, got {kind.__name__}"
        raise kind(reason)

    def _naive(self, features: int, y: NDArray[Any]) -> tuple[Structure, str, NDArray[Any]]:
        """Target on top, every column below it, all domains public."""
        if self.classes is None and self.random_state is None:
            raise PrivacyError("classes must be declared, since reading them from y would not be private, got None")
        classes = np.unique(y if self.classes is None else np.asarray(self.classes))
        if not 2 <= self.bins <= 1000:
            raise InputError(f"bins must be 2 to 1000, got {self.bins}")
        low, high = _ends(self.bounds)
        states = tuple(str(i) for i in range(self.bins))
        cuts = tuple(float(cut) for cut in np.linspace(low, high, self.bins + 1)[1:-1])
        names = [f"x{i}" for i in range(features)]
        labels = [str(value) for value in classes.tolist()]
        distinct = all(labels) and len(set(labels)) == len(labels)
        goal = Variable(TARGET, tuple(labels) if distinct else tuple(map(str, range(len(classes)))))
        schema = Schema((goal, *(Variable(name, states, cut_points=cuts) for name in names)))
        return Structure(schema, Dag(schema.names, dict.fromkeys(names, (TARGET,)))), TARGET, classes

    def _declared(self) -> tuple[Structure, str]:
        structure = load_structure(self.structure)
        if self.target is None:
            raise InputError("target must name the node to predict, got None")
        structure.schema.position(self.target)
        return structure, self.target

    def _labels_of(self, y: Sequence[Any]) -> list[str | None]:
        """y as labels of the target, value by value; None where a value is no class, for the policy to judge."""
        if self.structure is None:
            label = dict(zip(self.classes_.tolist(), self.structure_.states(self.target_), strict=True))
            return [label.get(value) if _form(value) else None for value in y]
        forms = _forms(self.structure_.schema[self.target_])
        return [forms.get((form, value)) if (form := _form(value)) else None for value in y]

    def _table(self, given: Any, X: Any, y: list[Any] | None = None) -> dict[str, list[Any]]:
        """Columns by the name that learn() (with y) or Inference looks for: labels, or raw numbers to be cut."""
        schema = self.structure_.schema
        others = [variable for variable in schema if variable.name != self.target_]
        if self.structure is not None and hasattr(self, "feature_names_in_"):
            at = {name: i for i, name in enumerate(self.feature_names_in_)}
            missing = [v.source_column for v in others if v.source_column not in at]
            if missing:
                hint = next(filter(None, (did_you_mean(name, at) for name in missing[:10])), "")
                raise InputError(
                    f"X must have a column for every node but the target, got none for {missing[:10]}{hint}"
                )
            places = [at[variable.source_column] for variable in others]
        else:
            if X.shape[1] != len(others):
                raise InputError(
                    f"X must have {len(others)} columns, one for every node but the target, got {X.shape[1]}"
                )
            places = list(range(len(others)))
        cells = {
            variable: X[:, place].tolist() if self.structure is None else _cells(given, X, place)
            for variable, place in zip(others, places, strict=True)
        }
        if y is None:
            return {its.name: _column(its, values) for its, values in cells.items()}
        target = schema[self.target_]
        _tell_of_places({target: y, **cells})
        columns = {variable.source_column: _column(variable, values) for variable, values in cells.items()}
        return {**columns, target.source_column: self._labels_of(y)}


def _ends(bounds: Any) -> tuple[float, float]:
    try:
        low, high = map(float, bounds)
        if -math.inf < low < high < math.inf:
            return low, high
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(f"bounds must be two ascending numbers, the same for every column, got {bounds!r}")


def _tell_of_places(columns: Mapping[Variable, Sequence[Any]]) -> None:
    """Warn of 0 and 1 where the states are yes and no, in this order: 1 is then no."""
    told = [
        variable
        for variable, values in columns.items()
        if variable.cut_points is None
        and tuple(_truths(variable)) != variable.states[:2]
        and any(_form(value) == "number" and value in (0, 1) for value in map(_plain, values))
    ]
    if told:
        first, second = told[0].states[:2]
        warnings.warn(
            f"numbers in {[variable.name for variable in told]} are places of states: 0 is {first!r} and 1 is "
            f"{second!r}; give the labels if that is not what you mean",
            stacklevel=4,
        )


@sealed
def _cells(given: Any, checked: NDArray[Any], place: int) -> list[Any]:
    """One column of X, each value as it was given: in one array, one record could change the type of all values."""
    if hasattr(given, "iloc"):
        return _series(given.iloc[:, place])
    if hasattr(given, "column_names"):
        return list(given.column(place).to_pylist())
    if hasattr(given, "get_columns"):
        return list(given.get_columns()[place].to_list())
    if hasattr(given, "__array__"):
        return list(checked[:, place].tolist())
    return [row[place] for row in given]


@sealed
def _values(y: Any) -> list[Any]:
    """The values of y, each as it was given."""
    if hasattr(y, "iloc"):
        return _series(y if y.ndim == 1 else y.iloc[:, 0])
    if hasattr(y, "to_pylist"):
        return list(y.to_pylist())
    if hasattr(y, "to_list"):
        return list(y.to_list())
    if hasattr(y, "__array__"):
        return list(np.asarray(y).ravel().tolist())
    return list(y) if np.iterable(y) else []


def _series(series: Any) -> list[Any]:
    categories = getattr(series.dtype, "categories", None)
    if categories is None:
        return list(series.astype(object).tolist())
    labels = categories.tolist()
    return [labels[code] if code >= 0 else None for code in series.cat.codes.tolist()]


def _plain(value: Any) -> Any:
    """A value without numpy around it; a row of one value is that value."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    return value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value


def _column(variable: Variable, values: Sequence[Any]) -> list[Any]:
    """Values as labels; numbers that are to be cut stay numbers, for the variable's own rule."""
    rule = Matching(variable, None)
    known: dict[tuple[type, Any], Any] = {}
    result = []
    for value in map(_plain, values):
        if type(value) not in PLAIN:
            result.append(_label(rule, value))
            continue
        key = (type(value), value)  # True is not 1
        if key not in known:
            known[key] = _label(rule, value)
        result.append(known[key])
    return result


def _label(rule: Matching, value: Any) -> Any:
    """What a value stands for: a label, or a number to be cut; None if missing; itself as text if it is neither."""
    variable = rule.variable
    if value is None or not isinstance(value, Hashable) or (isinstance(value, float) and math.isnan(value)):
        return None
    code = rule.code(value)
    if code is None and isinstance(value, str):
        code = rule.written(value)
    elif variable.cut_points is not None:
        return str(value) if isinstance(value, bool) and code is None else value
    elif code is None and isinstance(value, bool) and not _numeric(variable):
        return dict(zip((False, True), _truths(variable), strict=False)).get(value, str(value))
    elif code is None and isinstance(value, (int, float)) and not _numeric(variable):
        code = next((place for place in range(variable.size) if place == value), None)
    if code is not None:
        return variable.states[code]
    try:
        return str(value)
    except ValueError:  # Python writes no whole number of thousands of digits
        return ""  # which is no label either


def _truths(variable: Variable) -> Sequence[str]:
    """The states that False and True stand for: by what they say, else the first two."""
    words = {state.lower(): state for state in variable.states}
    return next(([words[no], words[yes]] for no, yes in TRUTHS if words.keys() == {no, yes}), variable.states[:2])


def _numeric(variable: Variable) -> bool:
    return all(is_number(state) for state in variable.states)


def _forms(variable: Variable) -> dict[tuple[str, Any], str]:
    """What stands for a state of the target, by kind: its label, a number that it is or its place, its truth."""
    states = variable.states
    numbers = [float(state) for state in states] if _numeric(variable) else range(len(states))
    return {
        **{("text", state): state for state in states},
        **{("number", number): state for number, state in zip(numbers, states, strict=True)},
        **{("truth", truth): state for truth, state in zip((False, True), _truths(variable), strict=False)},
    }


def _form(value: Any) -> str:
    if isinstance(value, (bool, int, float)):
        return "truth" if isinstance(value, bool) else "number"
    return "text" if isinstance(value, str) else ""


def _classes(variable: Variable, y: NDArray[Any]) -> NDArray[Any]:
    """The target's states as y writes them (`_forms`), in their order."""
    kind = {"b": "truth", "i": "number", "u": "number", "f": "number"}.get(y.dtype.kind, "text")
    written = {state: value for (form, value), state in _forms(variable).items() if form == kind}
    if len(written) < variable.size:  # more states than truths
        return np.arange(variable.size).astype(y.dtype)
    classes = [written[state] for state in variable.states]
    return np.array(classes, dtype=object if y.dtype.kind == "O" else None if kind == "text" else y.dtype)


def _seed(random_state: Any) -> int:
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        return int(random_state)
    raise InputError(f"random_state must be a whole number or None, got {received(random_state)}")
