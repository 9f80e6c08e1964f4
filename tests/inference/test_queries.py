"""Every query kind against brute-force enumeration, every strategy."""

import itertools
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpbn
from dpbn.errors import ImpossibleEvidenceError, QueryError, TooLargeError
from dpbn.inference import calibrated, elimination, predict, queries, shadows
from dpbn.inference.queries import WORTH_A_PLAN
from tests.inference.oracles import joint_table, networks, random_evidence, random_network, stacked, with_evidence

STRATEGIES = ["auto", "elimination", "junction-tree"]
SETTINGS = settings(deadline=None, max_examples=40)


@SETTINGS
@given(networks(), st.integers(0, 1000), st.sampled_from(STRATEGIES), st.integers(0, 3), st.integers(0, 2))
def test_every_query_agrees_with_enumeration(network, seed, strategy, hard, soft):
    generator = np.random.default_rng(seed)
    evidence = random_evidence(network, seed, hard, soft)
    joint = with_evidence(network, joint_table(network), evidence)
    total = joint.sum()
    ask = dpbn.Inference(network, strategy=strategy)
    assert ask.probability(evidence) == pytest.approx(total, rel=1e-9, abs=1e-300)
    if total == 0:
        with pytest.raises(ImpossibleEvidenceError):
            ask.posteriors(evidence)
        with pytest.raises(ImpossibleEvidenceError):
            ask.mpe(evidence)
        free = [n for n in network.nodes if n not in evidence]
        if free:
            with pytest.raises(ImpossibleEvidenceError):
                ask.query(free[:1], evidence)
            with pytest.raises(ImpossibleEvidenceError):
                ask.map(free[:1], evidence)
        return
    posteriors = ask.posteriors(evidence)
    assert list(posteriors) == list(network.nodes)
    for axis, node in enumerate(network.nodes):
        others = tuple(i for i in range(joint.ndim) if i != axis)
        np.testing.assert_allclose(posteriors[node], joint.sum(axis=others) / total, rtol=1e-9, atol=1e-14)
    free = [n for n in network.nodes if not isinstance(evidence.get(n), str)]
    if free:
        count = int(generator.integers(1, min(3, len(free)) + 1))
        targets = [free[i] for i in generator.permutation(len(free))[:count]]
        axes = [network.nodes.index(t) for t in targets]
        others = tuple(i for i in range(joint.ndim) if i not in axes)
        table = joint.sum(axis=others).transpose(np.argsort(np.argsort(axes))) / total
        answer = ask.query(targets, evidence)
        assert answer.variables == tuple(targets)
        np.testing.assert_allclose(answer.values, table, rtol=1e-9, atol=1e-14)
        assignment, probability = ask.map(targets, evidence)
        assert list(assignment) == targets
        assert probability == pytest.approx(table.max(), rel=1e-9)
        cell = tuple(network.states(t).index(assignment[t]) for t in targets)
        assert table[cell] == pytest.approx(table.max(), rel=1e-9)
    assignment, probability = ask.mpe(evidence)
    assert set(assignment) == {n for n in network.nodes if not isinstance(evidence.get(n), str)}
    full = {**assignment, **{n: v for n, v in evidence.items() if isinstance(v, str)}}
    cell = tuple(network.states(n).index(full[n]) for n in network.nodes)
    assert probability == pytest.approx(joint.max() / total, rel=1e-9)
    assert joint[cell] == pytest.approx(joint.max(), rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_a_map_that_sums_several_variables_of_one_factor(seed):
    names = ("h1", "h2", "h3", "t1", "t2", "t3", "t4")
    parents = {"t1": ("h1", "h2", "h3"), "t2": ("h1",), "t3": ("h2",), "t4": ("h3",)}
    schema = dpbn.Schema(tuple(dpbn.Variable(name, ("a", "b", "c")) for name in names))
    generator = np.random.default_rng(seed)
    cpts = {name: generator.dirichlet(np.ones(3), [3] * len(parents.get(name, ()))) for name in names}
    network = dpbn.BayesianNetwork(dpbn.Structure(schema, dpbn.Dag(names, parents)), cpts)
    assignment, probability = dpbn.Inference(network).map(["t1", "t2", "t3", "t4"])
    table = joint_table(network).sum(axis=(0, 1, 2))
    assert probability == pytest.approx(table.max(), rel=1e-9)
    assert (
        table["abc".index(assignment["t1"]), *("abc".index(assignment[t]) for t in ("t2", "t3", "t4"))] == table.max()
    )


@settings(deadline=None, max_examples=25)
@given(networks(), st.integers(0, 1000), st.integers(1, 4))
def test_shortcuts_of_large_trees_agree_with_enumeration(network, seed, hard):
    """What only large trees do (plan repeated questions), forced on small ones."""
    before = queries.LARGE_TREE
    queries.LARGE_TREE = 0
    try:
        ask = dpbn.Inference(network)
        evidence = random_evidence(network, seed, hard, 1)
        joint = with_evidence(network, joint_table(network), evidence)
        for axis, node in enumerate(network.nodes):
            if isinstance(evidence.get(node), str):
                continue
            others = tuple(i for i in range(joint.ndim) if i != axis)
            for _ in range(queries.WORTH_A_PLAN + 1):
                if joint.sum() == 0:
                    with pytest.raises(ImpossibleEvidenceError):
                        ask.query([node], evidence)
                    continue
                values = ask.query([node], evidence).values
                np.testing.assert_allclose(values, joint.sum(axis=others) / joint.sum(), rtol=1e-9, atol=1e-14)
    finally:
        queries.LARGE_TREE = before


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.3]), st.integers(0, 6), st.sampled_from([-1, 0, 10**9]))
def test_conditionals_agree_with_collecting_through_the_tree(seed, zeros, hard, effort):
    """Ways that meet, with the prepared matrices and without any, in trees deeper than enumeration reaches."""
    before = calibrated.FEW, shadows.EFFORT_CELLS
    network = random_network(seed, 25, zeros, density=0.08)
    evidence = random_evidence(network, seed, hard, 1)
    try:
        shadows.EFFORT_CELLS = effort
        ask = dpbn.Inference(network)
        calibrated.FEW = 16
        found = _told_or_refused(ask, network, evidence)
        calibrated.FEW = -1
        assert _same(found, _told_or_refused(ask, network, evidence))
    finally:
        calibrated.FEW, shadows.EFFORT_CELLS = before


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("order", list(itertools.permutations(["f1", "f2", "f3"])))
def test_a_finding_may_be_tied_to_the_target_by_other_findings_only(strategy, order):
    """Roots r0 to r3 with a common child of each two neighbours, all observed: what f3 says of r3 reaches r0."""
    names = ("f3", "r2", "f1", "r0", "r3", "f2", "r1")
    parents = {f"f{i}": (f"r{i - 1}", f"r{i}") for i in (1, 2, 3)}
    schema = dpbn.Schema(tuple(dpbn.Variable(name, ("a", "b")) for name in names))
    structure = dpbn.Structure(schema, dpbn.Dag(names, parents))
    generator = np.random.default_rng(2)
    cpts = {name: generator.dirichlet((0.7, 0.7), structure.shape(name)[:-1]) for name in names}
    network = dpbn.BayesianNetwork(structure, cpts)
    evidence = {name: "b" if name == "f2" else "a" for name in order}
    joint = with_evidence(network, joint_table(network), evidence)
    found = dpbn.Inference(network, strategy=strategy).query(["r0"], evidence).values
    np.testing.assert_allclose(found, joint.sum(axis=(0, 1, 2, 4, 5, 6)) / joint.sum(), rtol=1e-9)


def test_leaves_of_a_star_are_looked_at_together(monkeypatch):
    """Posteriors by Bayes' rule; the work behind them grows with the leaves, not with their pairs."""
    calls, local = [], shadows.Edge.local
    monkeypatch.setattr(shadows.Edge, "local", lambda edge, where: calls.append(0) or local(edge, where))
    generator, told = np.random.default_rng(0), []
    for leaves in (100, 200):
        names = ("hub", *(f"x{i}" for i in range(leaves)))
        schema = dpbn.Schema(tuple(dpbn.Variable(name, ("a", "b", "c")) for name in names))
        structure = dpbn.Structure(schema, dpbn.Dag(names, dict.fromkeys(names[1:], ("hub",))))
        cpts = {name: generator.dirichlet(np.ones(3), size=structure.shape(name)[:-1]) for name in names}
        ask = dpbn.Inference(dpbn.BayesianNetwork(structure, cpts))
        calls.clear()
        found = ask.posteriors({"x3": "b", "x70": "c"})
        told.append(len(calls))
        hub = cpts["hub"] * cpts["x3"][:, 1] * cpts["x70"][:, 2]
        hub /= hub.sum()
        np.testing.assert_allclose(found["hub"], hub, rtol=1e-9)
        for name in set(names[1:]) - {"x3", "x70"}:
            np.testing.assert_allclose(found[name], hub @ cpts[name], rtol=1e-9)
    assert told[1] < 3 * told[0]


def _told_or_refused(ask, network, evidence):
    answers = []
    for node in network.nodes:
        if isinstance(evidence.get(node), str):
            continue
        for targets in ([node], [node, *network.parents(node)]):
            if not any(isinstance(evidence.get(n), str) for n in targets):
                try:
                    answers.append(ask.query(targets, evidence).values)
                except ImpossibleEvidenceError:
                    answers.append(None)
    return answers


def _same(found, expected) -> bool:
    return len(found) == len(expected) and all(
        (a is None) == (b is None) and (a is None or np.allclose(a, b, rtol=1e-9, atol=1e-14))
        for a, b in zip(found, expected, strict=True)
    )


def test_answers_are_labelled():
    ask = dpbn.Inference(dpbn.load_network("asia"))
    answer = ask.query(["lung"], {"smoke": "yes"})
    assert answer["yes"] == pytest.approx(0.1)
    assert answer.to_dict()["states"] == [["yes", "no"]]
    assert not answer.values.flags.writeable


@pytest.mark.parametrize("labels", ["zz", ("yes", "no"), 0, None, (), ["yes", "no"]])
def test_labels_that_an_answer_does_not_have(labels):
    answer = dpbn.Inference(dpbn.load_network("asia")).query(["lung"])
    with pytest.raises(QueryError, match="lung"):
        answer[labels]


@pytest.mark.parametrize("targets", [5, None, 1.5])
def test_targets_that_are_no_names(targets):
    network = dpbn.load_network("asia")
    ask = dpbn.Inference(network)
    batch = stacked([network])
    for question in (ask.query, ask.map, ask.plan, ask.weak_rows, batch.query):
        with pytest.raises(QueryError, match="targets must be a name or a list of names"):
            question(targets)


def test_inference_shows_what_it_was_made_from():
    ask = dpbn.Inference(dpbn.load_network("asia"))
    assert repr(ask) == "Inference(BayesianNetwork(8 nodes, 8 arcs, 18 free parameters), strategy='auto')"


_NUMBERS = dpbn.load_structure("[a][b|a]", dpbn.Schema([dpbn.Variable(name, ("0", "1")) for name in "ab"]))
NUMBERED = dpbn.BayesianNetwork(_NUMBERS, {"a": [0.5, 0.5], "b": [[0.9, 0.1], [0.2, 0.8]]})


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_wrong_questions_are_named(strategy):
    ask = dpbn.Inference(dpbn.load_network("asia"), strategy=strategy)
    with pytest.raises(QueryError, match="'lungs'"):
        ask.query(["lungs"])
    with pytest.raises(QueryError, match="'smok'"):
        ask.posteriors({"smok": "yes"})
    with pytest.raises(QueryError, match="'maybe'"):
        ask.probability({"smoke": "maybe"})
    with pytest.raises(QueryError, match=r"evidence as well.*'smoke'"):
        ask.query(["smoke"], {"smoke": "yes"})
    with pytest.raises(QueryError, match="at least one"):
        ask.query([])
    with pytest.raises(QueryError, match="distinct"):
        ask.map(["lung", "lung"])
    with pytest.raises(QueryError, match="2 likelihoods"):
        ask.query("lung", {"smoke": [0.1, 0.2, 0.7]})
    with pytest.raises(QueryError, match="finite"):
        ask.query("lung", {"smoke": [0.1, float("nan")]})
    with pytest.raises(QueryError, match="got None"):
        ask.query("lung", {"smoke": None})
    with pytest.raises(QueryError, match="mapping of node to label, got Series"):  # a row of a DataFrame
        ask.query("lung", pandas.Series({"smoke": "yes"}))
    with pytest.raises(QueryError, match="got 0; did you mean '0'"):
        dpbn.Inference(NUMBERED).query("b", {"a": 0})
    with pytest.raises(ImpossibleEvidenceError, match="either"):
        ask.query("xray", {"either": "no", "lung": "yes"})
    with pytest.raises(ImpossibleEvidenceError):
        ask.query("asia", {"smoke": [0.0, 0.0]})
    with pytest.raises(QueryError, match="got int"):
        dpbn.Inference(3)
    with pytest.raises(QueryError, match="strategy"):
        dpbn.Inference(dpbn.load_network("asia"), strategy="guess")
    with pytest.raises(QueryError, match="limit"):
        dpbn.Inference(dpbn.load_network("asia"), limit=0)


def test_threads_may_share_an_inference_whatever_its_caches_forget(monkeypatch):
    for module, name in ((queries, "QUESTIONS_KEPT"), (elimination, "PLANS_KEPT"), (predict, "KERNELS_KEPT")):
        monkeypatch.setattr(module, name, 1)
    monkeypatch.setattr(queries, "LARGE_TREE", 0)
    network = dpbn.load_network("asia")  # its CPT of either has zeros
    row = {"lung": ["yes"]}
    questions = [(target, {"either": "yes", other: "no"}) for target in ("smoke", "lung") for other in ("xray", "dysp")]

    def answers(ask):
        told = [ask.query(target, evidence).values for target, evidence in questions for _ in range(WORTH_A_PLAN + 2)]
        return [*told, *(ask.predict_proba(row, target)[0] for target in ("smoke", "dysp", "xray"))]

    alone = answers(dpbn.Inference(network))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for strategy in STRATEGIES:
            ask = dpbn.Inference(network, strategy=strategy)
            with ThreadPoolExecutor(4) as pool:
                for found in pool.map(lambda _, ask=ask: answers(ask), range(40)):
                    np.testing.assert_allclose(np.concatenate(found), np.concatenate(alone), rtol=1e-9)
    finally:
        sys.setswitchinterval(interval)


def test_impossible_evidence_is_found_even_where_it_is_separated_from_the_target():
    ask = dpbn.Inference(dpbn.load_network("asia"), strategy="elimination")
    with pytest.raises(ImpossibleEvidenceError):
        ask.query("bronc", {"smoke": "yes", "either": "no", "tub": "yes"})


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_too_large_is_refused_before_allocating(strategy):
    network = random_network(3, 40, max_size=3, density=1.0)
    ask = dpbn.Inference(network, strategy=strategy)
    with pytest.raises(TooLargeError, match="cells"):
        ask.query(list(network.nodes[:30]))
    tight = dpbn.Inference(network, strategy=strategy, limit=3)
    with pytest.raises(TooLargeError, match="limit="):
        tight.posteriors()
    with pytest.raises(TooLargeError):
        tight.mpe()


def chain(length: int) -> dpbn.BayesianNetwork:
    names = tuple(f"x{i}" for i in range(length))
    generator = np.random.default_rng(0)
    schema = dpbn.Schema(tuple(dpbn.Variable(n, ("a", "b", "c")) for n in names))
    parents = {b: (a,) for a, b in itertools.pairwise(names)}
    cpts = {n: generator.dirichlet([0.3] * 3, size=3 if i else None) for i, n in enumerate(names)}
    return dpbn.BayesianNetwork(dpbn.Structure(schema, dpbn.Dag(names, parents)), cpts)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_long_chains_do_not_underflow(strategy):
    network = chain(500)
    ask = dpbn.Inference(network, strategy=strategy)
    generator = np.random.default_rng(1)
    path = network.sample(1, seed=3).iloc[0].to_dict()
    hidden = {f"x{i}" for i in generator.permutation(500)[:25]}
    evidence = {n: label for n, label in path.items() if n not in hidden}
    log = ask.log_probability(evidence)
    expected = log_likelihood_of_chain(network, evidence)
    assert log == pytest.approx(expected, rel=1e-10)
    posteriors = ask.posteriors(evidence)
    assert all(np.isfinite(p).all() and p.sum() == pytest.approx(1) for p in posteriors.values())
    for node in sorted(hidden)[:5]:
        np.testing.assert_allclose(ask.query([node], evidence).values, posteriors[node], rtol=1e-9)
    assignment, probability = ask.mpe(evidence)
    assert set(assignment) == hidden
    assert 0 < probability <= 1
    everything, tiny = ask.mpe()
    assert len(everything) == 500 and tiny >= 0


def log_likelihood_of_chain(network, evidence) -> float:
    message, log = np.ones(1), 0.0
    for i, node in enumerate(network.nodes):
        message = message @ np.atleast_2d(network.cpt(node)) if i else network.cpt(node).copy()
        if node in evidence:
            message = message * np.array([s == evidence[node] for s in network.states(node)])
        log += np.log(message.sum())
        message = message / message.sum()
    return float(log)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_plans_print_their_cost_and_are_kept(strategy):
    ask = dpbn.Inference(dpbn.load_network("alarm"), strategy=strategy)
    plan = ask.plan(["HR"], {"BP": "LOW"})
    assert "width" in str(plan) and "cells" in str(plan) and "bytes" in str(plan)
    assert plan.bytes == 8 * plan.cells
    assert ask.plan(["HR"], {"BP": "HIGH"}) is plan  # same variables observed: the plan is reused


def test_a_plan_says_what_will_be_done():
    network = dpbn.load_network("alarm")
    assert dpbn.Inference(network).plan(["HR"]).strategy == "junction-tree"
    assert dpbn.Inference(network).plan(["HR", "PVSAT"]).strategy == "elimination"  # no clique holds both
    assert dpbn.Inference(network, strategy="elimination").plan(["HR"]).strategy == "elimination"
    tight = dpbn.Inference(network, limit=100)  # the tree would need 144 cells in one clique
    assert tight.plan(["LVFAILURE"]).strategy == "elimination"


def test_a_release_is_accepted():
    class Release:
        network = dpbn.load_network("asia")

    assert dpbn.Inference(Release()).probability({"smoke": "yes"}) == pytest.approx(0.5)


AGE = dpbn.Variable("age", ["young", "70", "old", "?"], cut_points=[40, 65], catch_all="?")


def aged():
    schema = dpbn.Schema([AGE, dpbn.Variable("ill", ["no", "yes"])])
    structure = dpbn.Structure(schema, dpbn.Dag(schema.names, {"ill": ["age"]}))
    ill = [[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.5, 0.5]]
    return dpbn.BayesianNetwork(structure, {"age": [0.4, 0.3, 0.2, 0.1], "ill": ill})


@pytest.mark.parametrize(
    ("value", "state"),
    [
        (70, "old"),
        ("70", "70"),  # a label that is the same text wins
        ("71", "old"),
        (65, "old"),
        (np.nextafter(65, 0), "70"),
        ("-1e3", "young"),
        (np.int64(3), "young"),
        (np.float32(50), "70"),
        (float("inf"), "old"),
    ],
)
def test_a_number_as_evidence_is_the_state_it_falls_into_as_in_a_table(value, state):
    ask = dpbn.Inference(aged())
    answer = ask.query(["ill"], {"age": value})
    assert answer.values.tolist() == ask.query(["ill"], {"age": state}).values.tolist()
    assert answer.evidence == {"age": state}
    assert ask.predict_proba({"age": [value]}, "ill")[0] == pytest.approx(answer.values)
    assert ask.mpe({"age": value}) == ask.mpe({"age": state})
    assert ask.sample(5, {"age": value}, seed=1).equals(ask.sample(5, {"age": state}, seed=1))


@pytest.mark.parametrize("value", ["elderly", float("nan"), None, True, "nan", np.array(70), 1j])
def test_what_is_no_number_is_refused_with_the_ranges(value):
    ranges = "young is below 40, 70 is 40 to below 65, old is 65 or more"
    with pytest.raises(QueryError, match=rf"'age' must be one of \['young', .*\] or a number \({ranges}\), got"):
        dpbn.Inference(aged()).query(["ill"], {"age": value})


def test_soft_evidence_is_of_labels_only():
    with pytest.raises(QueryError, match=r"'old', '\?'\], got '71'"):
        dpbn.Inference(aged()).query(["ill"], {"age": {"71": 0.5, "young": 0.5}})


def test_an_answer_as_a_frame():
    asia = dpbn.load_network("asia")
    frame = dpbn.Inference(asia).query(["lung", "smoke"]).to_frame()
    assert frame.index.names == ["lung", "smoke"] and list(frame.columns) == ["probability"]
    assert frame.loc[("yes", "no"), "probability"] == dpbn.Inference(asia).query(["lung", "smoke"])["yes", "no"]
    release = dpbn.learn(asia.sample(500, seed=0), asia, 1.0, noise=dpbn.InsecureNoise(0))
    answer = dpbn.Inference(release).query("lung", {"smoke": "yes"})
    frame = answer.to_frame(0.5)
    assert frame.index.tolist() == ["yes", "no"] and frame.index.name == "lung"
    assert frame["low"].tolist() == answer.interval(0.5)[0].tolist()
    assert frame["high"].tolist() == answer.interval(0.5)[1].tolist()
    assert list(answer.to_frame(None).columns) == ["probability"]
    with pytest.raises(QueryError, match="level"):
        answer.to_frame(2)
