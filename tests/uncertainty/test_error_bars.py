"""Error bars: they cover the truth, tell their parts apart, and refuse where there is nothing to compute."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpbn
from dpbn.errors import FormatError, ImpossibleEvidenceError, QueryError
from dpbn.inference import Answer, Comparison
from dpbn.inference.map import MaximumEngine
from dpbn.release import from_dict, to_dict
from dpbn.uncertainty import error_bars, leaning, replicates
from dpbn.uncertainty.error_bars import Bars
from dpbn.uncertainty.leaning import Leaning, WeakRow, leanings, relevant
from dpbn.uncertainty.reestimate import estimator_of
from dpbn.uncertainty.replicates import plausible_truths, replicate


@pytest.fixture(scope="module")
def asia():
    network = dpbn.load_network("asia")
    return network, network.sample(5_000, seed=3)


def release_of(asia, epsilon=1.0, method="optimized", seed=1, **options):
    network, data = asia
    return dpbn.learn(data, network, epsilon=epsilon, method=method, noise=dpbn.InsecureNoise(seed), **options)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("optimized", {}),
        ("optimized", {"stage_one": 0.3}),
        ("optimized", {"public_cpts": {"smoke": [0.1, 0.9], "tub": [[0.3, 0.7], [0.6, 0.4]]}}),
        ("uniform", {}),
        ("icml2020", {}),
    ],
)
def test_the_estimator_of_a_release_gives_its_network_back(asia, method, options):
    release = release_of(asia, method=method, prior=0.5, **options)
    cpts = estimator_of(release)([m.values[None] for m in release.measurements])
    for node in release.network.nodes:
        np.testing.assert_allclose(cpts[node][0], release.network.cpt(node), atol=1e-9)


@pytest.mark.parametrize("method", ["optimized", "uniform"])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_intervals_cover_the_truth(asia, method, epsilon):
    network, _ = asia
    truth = dpbn.Inference(network)
    questions = [(["lung"], {"smoke": "yes"}), (["dysp", "xray"], {}), (["either"], {"dysp": "yes"}), (["tub"], {})]
    covered = []
    for seed in range(8):
        data = network.sample(5_000, seed=seed + 100)
        ask = dpbn.Inference(release_of((network, data), epsilon, method, seed))
        for targets, evidence in questions:
            low, high = ask.query(targets, evidence).interval(0.9)
            right = truth.query(targets, evidence).values
            covered += list(((low <= right) & (right <= high)).ravel())
    assert np.mean(covered) > 0.78  # 0.9 is meant; few and correlated cases
    assert np.mean(high - low) < 0.2


def test_parts_add_up_and_follow_the_budget(asia):
    loose, tight = (dpbn.Inference(release_of(asia, epsilon)) for epsilon in (0.2, 20.0))
    bars = [ask.intervals({"smoke": "yes"})["dysp"] for ask in (loose, tight)]
    for bar in bars:
        np.testing.assert_allclose(bar.total**2, bar.privacy**2 + bar.sampling**2, rtol=0.6)
    assert bars[0].privacy.mean() > 5 * bars[1].privacy.mean()
    assert bars[1].sampling.mean() > bars[1].privacy.mean()
    low, high = bars[0].interval(0.5)
    wide_low, wide_high = bars[0].interval(0.95)
    assert (wide_low <= low).all()
    assert (high <= wide_high).all()


def test_a_question_asked_meanwhile_does_not_change_a_stability(asia, monkeypatch):
    """As two threads would that share an `Inference`."""
    ask = dpbn.Inference(release_of((asia[0], asia[1][:300]), 0.05))
    question, other = ({"bronc": "yes", "lung": "no", "xray": "no"}, {}), ({"dysp": "yes"}, {"bronc": "no"})
    alone = ask.stability(*question)
    assert 0 < alone < 1
    answered, busy = MaximumEngine.map, []

    def interrupted(engine, *asked):
        if not busy:
            busy.append(True)
            ask.stability(*other)
            busy.clear()
        return answered(engine, *asked)

    monkeypatch.setattr(MaximumEngine, "map", interrupted)
    assert ask.stability(*question) == alone


def test_every_way_to_ask_has_the_same_bars_in_every_part(asia):
    release, evidence = release_of(asia), {"smoke": "yes"}
    ask = dpbn.Inference(release)
    node, asked = ask.intervals(evidence)["lung"], ask.predict_intervals({"smoke": ["yes", "no"]}, "lung")
    own, cell = ask.intervals()["smoke"], ask.error_bars.tables(release.network)["smoke"]
    answer = ask.query(["lung"], evidence)
    for part in ("total", "privacy", "sampling"):
        np.testing.assert_allclose(answer.interval(0.9, part), node.interval(0.9, part), atol=1e-9)
        np.testing.assert_allclose(getattr(asked, part)[0], getattr(node, part), atol=1e-6)
        np.testing.assert_allclose(getattr(cell, part), getattr(own, part), atol=1e-9)
    assert not np.allclose(node.privacy, node.sampling, rtol=0.05)


def test_bars_are_root_mean_squares_over_plausible_networks(asia, monkeypatch):
    monkeypatch.setattr(error_bars, "NETWORKS", 7)
    monkeypatch.setattr(error_bars, "SEED", 3)
    release = release_of(asia)
    found = error_bars.ErrorBars(release).tables(release.network)
    drawn = replicate(release, plausible_truths(release, 7, seed=3), seed=3)
    for node in release.network.nodes:
        truth, total, sampled = drawn.truth[node], drawn.total[node], drawn.sampled[node]
        assert len(total) == 7 and not np.allclose(truth, release.network.cpt(node))
        for part, off in (("total", total - truth), ("privacy", total - sampled), ("sampling", sampled - truth)):
            np.testing.assert_allclose(getattr(found[node], part), np.sqrt(np.mean(off**2, axis=0)), atol=1e-8)


def test_an_interval_is_a_normal_one_and_stays_between_0_and_1():
    bars = Bars(np.array([0.5, 0.99, 0.01]), *(np.full(3, deviation) for deviation in (0.05, 0.04, 0.03)))
    for part, deviation in (("total", 0.05), ("privacy", 0.04), ("sampling", 0.03)):
        low, high = bars.interval(0.9, part)
        assert high[0] - 0.5 == pytest.approx(0.5 - low[0]) == pytest.approx(1.6448536 * deviation)
        assert high[1] == 1.0 and low[2] == 0.0


def test_what_every_posterior_leans_on_is_what_its_own_question_leans_on():
    network = dpbn.load_network("child")
    release = dpbn.learn(network.sample(2_000, seed=5), network, epsilon=0.1, noise=dpbn.InsecureNoise(1))
    ask, evidence = dpbn.Inference(release), {"Disease": "Lung", "Sick": [0.2, 1.0]}
    found = leanings(ask, evidence)
    assert "Disease" not in found and "Sick" in found
    for node in set(network.nodes) - {"Disease"}:
        rows = ask.weak_rows(node, evidence)
        assert list(found[node].rows) == rows if rows else node not in found
        assert [row.weight for row in rows] == sorted((row.weight for row in rows), reverse=True)
        assert all(row.weight >= 0.01 for row in rows)
        for row in rows:
            given = {name: state for name, state in row.parents.items() if name != "Disease"}
            at = tuple(network.structure.states(name).index(state) for name, state in row.parents.items())
            assert release.weak_rows[row.node][at]
            assert (
                ask.query(list(given), evidence)[tuple(given.values())] == pytest.approx(row.weight)
                if given
                else row.weight == 1
            )


def test_rows_that_carry_little_are_left_out(monkeypatch):
    network = dpbn.load_network("child")
    release = dpbn.learn(network.sample(2_000, seed=5), network, epsilon=0.2, noise=dpbn.InsecureNoise(1))
    ask = dpbn.Inference(release)
    monkeypatch.setattr(leaning, "LEAST", 0.0)
    every = ask.weak_rows("LungParench")
    for least in (0.0, 0.05, 0.2):
        monkeypatch.setattr(leaning, "LEAST", least)
        found = ask.weak_rows("LungParench")
        assert found == [row for row in every if row.weight >= least]
    assert 0 < len(found) < len(every)


def test_evidence_that_some_plausible_networks_call_impossible_has_error_bars():
    schema = dpbn.Schema((dpbn.Variable("a", ("rare", "usual")), dpbn.Variable("b", ("x", "y"))))
    structure = dpbn.Structure(schema, dpbn.Dag(("a", "b"), {"b": ("a",)}))
    network = dpbn.BayesianNetwork(structure, {"a": np.array([0.004, 0.996]), "b": np.array([[0.9, 0.1], [0.4, 0.6]])})
    release = dpbn.learn(network.sample(500, seed=1), network, 1.0, method="uniform", noise=dpbn.InsecureNoise(2))
    ask = dpbn.Inference(release)
    assert (replicate(release, plausible_truths(release, 100)).total["a"][:, 0] == 0).any()
    bars = ask.intervals({"a": "rare"})["b"]
    assert all(np.isfinite(part).all() for part in (bars.total, bars.privacy, bars.sampling))


def test_the_share_is_that_of_the_node_whose_weak_rows_weigh_most():
    rows = [WeakRow("a", {"x": "y"}, 0.3), WeakRow("b", {"x": "y"}, 0.4), WeakRow("a", {"x": "n"}, 0.2)]
    assert Leaning(tuple(rows)).share == pytest.approx(0.5)
    assert Leaning((WeakRow("a", {}, 0.7), WeakRow("a", {}, 0.3 + 1e-9))).share == 1.0
    assert Leaning(()).share == 0.0


def test_stability_falls_with_the_budget(asia):
    shares = []
    for epsilon in (0.01, 30.0):
        ask = dpbn.Inference(release_of(asia, epsilon))
        best, _ = ask.mpe({"dysp": "yes"})
        shares.append(ask.stability(best, {"dysp": "yes"}))
    assert shares[0] < 1.0
    assert shares[1] > 0.9
    worst = {"smoke": "yes", "tub": "yes"}
    assert ask.stability(worst, {}) == 0.0
    assert ask.stability({"asia": "no"}, {}) == 1.0  # 99 in 100: so say all plausible networks
    assert ask.stability({}, ask.mpe()[0]) == 1.0  # every node observed
    with pytest.raises(QueryError, match="at least one"):
        ask.stability({}, {"dysp": "yes"})
    with pytest.raises(QueryError, match="mapping of node to state"):
        ask.stability(["dysp"])


@pytest.mark.parametrize("cells", [4_000_000, 0])
def test_stability_rises_with_the_number_of_rows(cells, monkeypatch):
    """Rows are drawn up to a number, and scaled: also where the network is too wide to tell what they should be."""
    monkeypatch.setattr(replicates, "CHEAP_CELLS", cells)
    network = rare(0.503)
    release = dpbn.learn(network.sample(2_000_000, seed=1), network, 10.0, noise=dpbn.InsecureNoise(1))
    assert release.network.cpt("a")[0] > 0.502  # five deviations of as many rows from even, half a one of the drawn
    assert dpbn.Inference(release).stability({"a": "rare"}) == 1.0


def test_only_the_networks_that_a_question_needs_are_drawn(asia, monkeypatch):
    release = release_of(asia)
    drawn = []
    for kind in ("plausible_truths", "as_released"):
        draw = getattr(error_bars, kind)
        monkeypatch.setattr(error_bars, kind, lambda *given, kind=kind, draw=draw: drawn.append(kind) or draw(*given))
    ask = dpbn.Inference(release)
    for _ in range(2):
        ask.stability({"asia": "no"})
    assert drawn == ["as_released"]
    ask = dpbn.Inference(release)
    for _ in range(2):
        ask.intervals()
        ask.predict_intervals({"smoke": ["yes"]}, "lung")
    assert drawn == ["as_released", "plausible_truths"]


def test_only_noisy_releases_have_error_bars(asia):
    network, data = asia
    with pytest.raises(QueryError, match="release"):
        dpbn.Inference(network).query(["lung"]).interval(0.9)
    exact = dpbn.Inference(dpbn.learn(data, network, method="exact"))
    with pytest.raises(QueryError, match="noise"):
        exact.intervals()
    answer = dpbn.Inference(release_of(asia)).query(["lung"])
    for level in (0, 1, 2.0, True, "0.9"):
        with pytest.raises(QueryError, match="between 0 and 1"):
            answer.interval(level)
    with pytest.raises(QueryError, match="part"):
        answer.interval(0.9, "luck")


@pytest.mark.parametrize("method", ["optimized", "uniform", "icml2020"])
def test_public_cpts_have_no_error_of_their_own(asia, method):
    release = release_of(asia, method=method, public_cpts={"asia": asia[0].cpt("asia")})
    bars = dpbn.Inference(release).intervals()["asia"]
    for part in (bars.total, bars.privacy, bars.sampling):
        np.testing.assert_allclose(part, 0.0, atol=1e-8)


def test_many_rows_are_scaled_not_drawn():
    network = dpbn.load_network("cancer")
    widths = []
    for rows in (20_000, 2_000_000):
        release = dpbn.learn(network.sample(rows, seed=1), network, epsilon=50.0, noise=dpbn.InsecureNoise(2))
        widths.append(dpbn.Inference(release).intervals()["Smoker"].sampling[0])
    assert 0.05 < widths[1] / widths[0] < 0.2  # a tenth


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=40)
def test_only_tables_that_can_change_an_answer_are_relevant(seed):
    """Against brute force: every CPT is replaced in turn; those that move the posterior are relevant, no others."""
    generator = np.random.default_rng(seed)
    names = tuple("abcdef")
    parents = {n: tuple(p for p in names[:i] if generator.random() < 0.4) for i, n in enumerate(names)}
    schema = dpbn.Schema(tuple(dpbn.Variable(n, ("y", "n")) for n in names))
    structure = dpbn.Structure(schema, dpbn.Dag(names, parents))

    def drawn(node):
        return generator.dirichlet((1, 1), structure.shape(node)[:-1])

    cpts = {node: drawn(node) for node in names}
    target, *observed = generator.permutation(names)[: 1 + generator.integers(0, 4)]
    evidence = {str(node): "y" if generator.random() < 0.7 else [0.3, 1.0] for node in observed}
    before = dpbn.Inference(dpbn.BayesianNetwork(structure, cpts)).query([str(target)], evidence).values
    moved = set()
    for node in names:
        other = dpbn.BayesianNetwork(structure, cpts | {node: drawn(node)})
        if np.abs(dpbn.Inference(other).query([str(target)], evidence).values - before).max() > 1e-12:
            moved.add(node)
    assert relevant(structure.dag, [str(target)], evidence) == moved


def test_answers_name_the_weak_rows_they_lean_on():
    network = dpbn.load_network("child")
    data = network.sample(2_000, seed=5)
    release = dpbn.learn(data, network, epsilon=0.1, noise=dpbn.InsecureNoise(1))
    assert release.weak_rows["LungParench"].shape == network.structure.shape("LungParench")[:-1]
    ask = dpbn.Inference(release)
    evidence = {"Disease": "Lung"}
    rows = ask.query(["LungParench"], evidence).weak_rows
    assert rows
    assert all(row.parents.get("Disease", "Lung") == "Lung" for row in rows)
    assert all(row.weight >= 0.01 for row in rows)
    relevant = {"LungParench", "Disease", "BirthAsphyxia"} | {"HypoxiaInO2"} | {"Grunting"}
    assert {row.node for row in rows} <= relevant
    assert dpbn.Inference(network).query(["LungParench"]).weak_rows == []
    rich = dpbn.Inference(dpbn.learn(data, network, epsilon=100.0, noise=dpbn.InsecureNoise(1)))
    assert rich.query(["Disease"]).weak_rows == []
    assert ask.weak_rows("LungParench", evidence) == rows
    with pytest.raises(QueryError, match="'zz'"):
        ask.weak_rows(["zz"])


@pytest.mark.parametrize(
    ("method", "edit"),
    [
        ("icml2020", {"details": {}}),
        ("icml2020", {"details": {"stage_one_epsilon": 0.3, "stage_two": {"asia": 0.1}}}),
        ("icml2020", {"details": {"stage_one_epsilon": "0.3"}}),
        ("uniform", {"allocation": {}}),
        ("uniform", {"allocation": {"asia": -1.0}}),
        ("uniform", {"allocation": {"asia": 0}}),
        ("icml2020", {"details": {"stage_one_epsilon": True}}),
        ("icml2020", {"details": {"stage_one_epsilon": 10**400}}),
    ],
)
def test_a_release_file_that_was_edited_is_refused(method, edit):
    network = dpbn.load_network("asia")
    document = to_dict(dpbn.learn(network.sample(200, seed=1), network, method=method))
    for name, value in edit.items():
        document[name] = {**document[name], **value} if value else {}
    with pytest.raises(FormatError, match="budget"):
        dpbn.Inference(from_dict(document)).query(["dysp"]).interval()


@pytest.mark.parametrize("method", ["uniform", "icml2020", "optimized"])
def test_a_release_file_without_the_tables_it_was_made_from_is_refused(asia, method):
    document = to_dict(release_of(asia, method=method))
    tables = document["measurements"]
    for kept in (tables[:1], [m for m in tables if "dysp" not in m["names"]], tables[-1:]):
        release = from_dict({**document, "measurements": kept})
        with pytest.raises(FormatError, match=f"a release by {method} must hold"):
            dpbn.Inference(release).query(["dysp"]).interval()


def rare(share):
    structure = dpbn.Structure(dpbn.Schema((dpbn.Variable("a", ("rare", "usual")),)), dpbn.Dag(("a",), {}))
    return dpbn.BayesianNetwork(structure, {"a": np.array([share, 1 - share])})


@pytest.mark.parametrize(("rows", "epsilon"), [(1_000, 1e6), (1_000, 10.0), (100_000, 3.0)])
def test_a_state_that_no_record_may_have_had_has_an_interval(rows, epsilon):
    """True of one record in as many: a third of all tables hold none, and a plain bootstrap then draws none."""
    network, held = rare(1 / rows), 0
    for seed in range(20):
        release = dpbn.learn(network.sample(rows, seed=seed), network, epsilon, noise=dpbn.InsecureNoise(seed))
        low, high = dpbn.Inference(release).query("a").interval(0.95)
        held += low[0] <= 1 / rows <= high[0]
    assert held >= 17


def test_widths_fall_with_the_number_of_rows():
    network = rare(0.3)
    widths = []
    for rows in (29_000, 31_000):
        release = dpbn.learn(network.sample(rows, seed=1), network, 0.01, noise=dpbn.InsecureNoise(1))
        low, high = dpbn.Inference(release).query("a").interval()
        widths.append(float(high[0] - low[0]) * rows)
    assert widths[0] == pytest.approx(widths[1], rel=0.2)


def test_a_row_below_the_noise_keeps_what_the_custodian_said_of_it():
    """Whatever the sign of its noisy count: plausible truths hardly move it, as far as a hundred records allow."""
    schema = dpbn.Schema((dpbn.Variable("a", ("never", "always")), dpbn.Variable("b", ("x", "y"))))
    structure = dpbn.Structure(schema, dpbn.Dag(("a", "b"), {"b": ("a",)}))
    network = dpbn.BayesianNetwork(structure, {"a": np.array([0.0, 1.0]), "b": np.array([[0.9, 0.1], [0.4, 0.6]])})
    data, prior = network.sample(2_000, seed=1), {"b": [[95.0, 5.0], [0.5, 0.5]]}
    for seed in range(6):
        release = dpbn.learn(
            data, network, 0.5, method="uniform", prior=prior, noise=dpbn.InsecureNoise(seed), neighbors="replace"
        )
        rows = plausible_truths(release, 400)["b"][:, 0]
        np.testing.assert_allclose(rows.mean(axis=0), release.network.cpt("b")[0], atol=0.03)
        assert rows.std(axis=0).max() < 0.04


def test_an_impossible_row_has_the_prior_and_its_bars(asia):
    ask = dpbn.Inference(release_of(asia, public_cpts={"either": asia[0].cpt("either")}))
    table = {"lung": ["yes", "no"], "either": ["no", "no"]}
    with pytest.raises(ImpossibleEvidenceError):
        ask.predict_intervals(table, "tub")
    found, prior = ask.predict_intervals(table, "tub", on_impossible="prior"), ask.query(["tub"])
    np.testing.assert_allclose(found.values[0], prior.values)
    np.testing.assert_allclose([end[0] for end in found.interval(0.9)], prior.interval(0.9), atol=1e-6)
    np.testing.assert_allclose(found.values[1], ask.predict_proba({"lung": ["no"], "either": ["no"]}, "tub")[0])


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda held: pickle.loads(pickle.dumps(held))])
def test_copies_and_other_processes_get_the_same_answers(asia, copied):
    ask = dpbn.Inference(release_of(asia), strategy="junction-tree", limit=1000)
    answer = ask.query(["lung"], {"smoke": "yes"})
    other = copied(ask)
    assert (other.strategy, other.limit) == ("junction-tree", 1000)
    for again in (other.query(["lung"], {"smoke": "yes"}), copied(answer)):
        np.testing.assert_array_equal(again.values, answer.values)
        np.testing.assert_array_equal(again.interval(), answer.interval())


def test_a_comparison_is_the_difference_of_two_answers(asia):
    ask = dpbn.Inference(release_of(asia))
    found = ask.compare(["dysp", "xray"], {"smoke": "yes"}, {"smoke": "no"})
    first, second = ask.query(["dysp", "xray"], {"smoke": "yes"}), ask.query(["dysp", "xray"], {"smoke": "no"})
    np.testing.assert_array_equal(found.values, first.values - second.values)
    assert found["yes", "no"] == first["yes", "no"] - second["yes", "no"]
    assert (found.variables, found.states) == (first.variables, first.states)
    low, high = found.interval(0.9)
    assert (low < found.values).all()
    assert (found.values < high).all()
    back = ask.compare(["dysp", "xray"], {"smoke": "no"}, {"smoke": "yes"}).interval(0.9)
    np.testing.assert_allclose(back, [-high, -low])
    frame = found.to_frame(0.9)
    assert list(frame.columns) == ["first", "second", "difference", "low", "high"]
    np.testing.assert_array_equal(frame["low"], low.ravel())
    assert found.to_dict()["second"] == {"values": second.values.tolist(), "evidence": {"smoke": "no"}}
    weights = {str(row): row.weight for row in found.weak_rows}
    for row in [*first.weak_rows, *second.weak_rows]:
        assert weights[str(row)] >= row.weight


def test_a_comparison_with_nothing_observed_and_with_itself(asia):
    ask = dpbn.Inference(release_of(asia))
    found = ask.compare("lung", {"smoke": "yes"})
    np.testing.assert_array_equal(found.second.values, ask.query("lung").values)
    same = ask.compare("lung", {"smoke": "yes"}, {"smoke": "yes"})
    assert not np.any([same.values, *same.interval(0.9)])


def test_errors_that_two_answers_share_cancel(asia):
    """Both lean on the same CPT of `dysp`: the difference is known better than errors of their own would allow."""
    ask = dpbn.Inference(release_of(asia))
    one, other = {"either": "yes", "bronc": "yes"}, {"either": "yes", "bronc": "yes", "smoke": "yes"}
    widths = [np.ptp(answer.interval(0.9), axis=0) for answer in (ask.query("lung", one), ask.query("lung", other))]
    width = np.ptp(ask.compare("lung", one, other).interval(0.9), axis=0)
    assert (width < 0.8 * np.sqrt(widths[0] ** 2 + widths[1] ** 2)).all()


def test_a_comparison_of_a_plain_network_has_no_interval(asia):
    found = dpbn.Inference(asia[0]).compare("lung", {"smoke": "yes"}, {"smoke": "no"})
    with pytest.raises(QueryError, match="from a release made with noise"):
        found.interval(0.9)
    assert list(found.to_frame().columns) == ["first", "second", "difference"]
    assert found.weak_rows == []


def test_weak_rows_of_a_comparison_are_told_apart_by_their_states_not_by_how_they_read():
    rows = [WeakRow("x", {"a": "1, b=2", "b": "3"}, 0.3), WeakRow("x", {"a": "1", "b": "2, b=3"}, 0.2)]
    assert str(rows[0]) == str(rows[1])
    first, second = (Answer(("x",), [1.0], (("s",),), leaning=lambda row=row: [row]) for row in rows)
    assert Comparison(first, second).weak_rows == rows
    assert Comparison(first, first).weak_rows == rows[:1]


def test_intervals_of_differences_cover_the_truth(asia):
    network, _ = asia
    truth = dpbn.Inference(network)
    questions = [
        ("lung", {"smoke": "yes"}, {"smoke": "no"}),
        ("dysp", {"xray": "yes"}, {}),
        ("bronc", {"dysp": "yes"}, {}),
    ]
    covered = []
    for seed in range(10):
        ask = dpbn.Inference(release_of((network, network.sample(5_000, seed=seed + 300)), 1.0, seed=seed))
        for question in questions:
            low, high = ask.compare(*question).interval(0.9)
            covered += list((low <= (right := truth.compare(*question).values)) & (right <= high))
    assert np.mean(covered) > 0.75  # 0.9 is meant; few and correlated cases
