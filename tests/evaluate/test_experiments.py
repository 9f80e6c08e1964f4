"""The harness: same data for all, resumable, seeded; the same rows whatever the number of processes."""

import math
import multiprocessing
import sys

import numpy as np
import pytest

from dpbn import BayesianNetwork, Inference, load_network
from dpbn.errors import InputError
from dpbn.evaluate import experiments, methods, metrics
from dpbn.evaluate.experiments import Grid, Task, perform, run
from dpbn.evaluate.metrics import MEASURES, Reference, divergence
from dpbn.evaluate.questions import Questions, derived_seed, draw_questions
from dpbn.evaluate.results import key, read_rows, standard_error, summary, write_rows
from dpbn.sampling import sample_codes
from dpbn.uncertainty.simulate import SimulatedSource
from dpbn.workload import Query
from tests.structures import structure_of

SMALL = Grid(networks=("asia",), methods=("uniform", "exact"), epsilons=(0.5, 1.0), rows=(500,), runs=2, queries=6)


def _comparable(rows):
    return sorted([(key(r), [r[m] for m in MEASURES], r["noise_seed"]) for r in rows])


def test_one_row_per_cell_and_every_measure_is_a_number():
    rows = run(SMALL)
    assert len(rows) == 8 == len({key(row) for row in rows})
    for row in rows:
        assert all(math.isfinite(row[measure]) for measure in MEASURES), row
        assert row["refusal"] == ""
    by = {(r["method"], r["epsilon"], r["run"]): r for r in rows}
    assert by["exact", 0.5, 0]["row"] < by["uniform", 0.5, 0]["row"]
    assert by["exact", 0.5, 0]["row"] == by["exact", 1.0, 0]["row"]  # same data
    assert by["uniform", 0.5, 0]["noise_seed"] != by["uniform", 1.0, 0]["noise_seed"]
    assert by["uniform", 0.5, 0]["data_seed"] == by["exact", 1.0, 0]["data_seed"] != by["exact", 1.0, 1]["data_seed"]


def test_no_worker_outlives_a_run_that_fails():
    """The command line would wait for it for ever."""
    with pytest.raises(InputError, match="got 'nope'"):
        run(Grid(networks=("nope",), methods=("uniform",), epsilons=(1.0,), runs=2), processes=2)
    assert multiprocessing.active_children() == []


def test_runs_are_equal_again_and_in_other_processes():
    assert _comparable(run(SMALL)) == _comparable(run(SMALL, processes=2))


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_restart_does_only_what_is_missing(tmp_path, monkeypatch, ending):
    path = tmp_path / f"results.{ending}"
    first = run(Grid(**{**SMALL.__dict__, "runs": 1}), path)
    performed = []
    monkeypatch.setattr(experiments, "perform", lambda task: performed.append(task) or perform(task))
    rows = run(SMALL, path)
    assert [task.run for task in performed] == [1]
    assert _comparable(rows)[0][0] == _comparable(first)[0][0]
    assert _comparable(read_rows(path)) == _comparable(rows)
    performed.clear()
    assert _comparable(run(SMALL, path)) == _comparable(rows)
    assert performed == []


def test_a_stopped_run_keeps_what_was_finished(tmp_path, monkeypatch):
    path = tmp_path / "results.parquet"

    def fail_later(task):
        if task.run:
            raise KeyboardInterrupt
        return perform(task)

    monkeypatch.setattr(experiments, "perform", fail_later)
    with pytest.raises(KeyboardInterrupt):
        run(SMALL, path)
    assert len(read_rows(path)) == 4
    assert list(tmp_path.iterdir()) == [path]  # no temporary file left


def test_a_refusal_is_a_row_with_its_reason(tmp_path):
    rows = perform(Task("child", 200, 0, 4, "true", 0, (("mwem", 1.0), ("privbayes", 1.0))))
    assert "MWEM" in rows[0]["refusal"]
    assert math.isnan(rows[0]["row"])
    assert rows[1]["refusal"] == ""
    write_rows(tmp_path / "r.parquet", rows)
    assert read_rows(tmp_path / "r.parquet")[0]["refusal"] == rows[0]["refusal"]
    told = summary(rows).set_index("method")
    assert told.loc["mwem", "runs"] == 0
    assert told.loc["privbayes", "runs"] == 1


@pytest.mark.parametrize("name", ["r.parquet", "r.csv"])
def test_what_was_refused_is_tried_again(tmp_path, monkeypatch, name):
    grid = Grid(networks=("asia",), methods=("private-pgm",), epsilons=(1.0,), rows=(100,), runs=1, queries=2)
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "mbi", None)
        assert "dpbn[bench]" in run(grid, tmp_path / name)[0]["refusal"]
    monkeypatch.setattr(experiments, "method", lambda _: methods.method("uniform"))  # as if mbi were there now
    assert run(grid, tmp_path / name)[0]["refusal"] == "" == read_rows(tmp_path / name)[0]["refusal"]


def test_against_exact_measures_privacy_only():
    rows = run(Grid(**{**SMALL.__dict__, "against": "exact", "runs": 1, "epsilons": (1.0,)}))
    by = {row["method"]: row for row in rows}
    assert by["exact"]["row"] == 0.0
    assert by["exact"]["map_accuracy"] == 1.0
    assert by["uniform"]["row"] > 0


@pytest.mark.parametrize(
    "bad",
    [{"methods": ("magic",)}, {"epsilons": (0.0,)}, {"rows": (0,)}, {"runs": 0}, {"against": "me"}, {"networks": ()}],
)
def test_bad_grids_are_refused(bad):
    with pytest.raises(InputError):
        Grid(**bad)


def test_results_must_be_parquet_or_csv(tmp_path):
    with pytest.raises(InputError, match="parquet"):
        run(SMALL, tmp_path / "results.xlsx")


def test_questions_grow_from_single_nodes_and_their_evidence_is_possible():
    network = load_network("asia")
    codes = sample_codes(network, 50, 1)
    questions = draw_questions(network.structure, 20, 5, codes)
    assert questions == draw_questions(network.structure, 20, 5, codes)
    assert sum(not query.evidence for query in questions.queries) == 10
    assert {len(query.variables) for query in questions.queries if not query.evidence} == {1, 2, 3}
    ask = Inference(network)
    assert all(ask.probability(dict(q.evidence)) > 0 for q in (*questions.queries, *questions.maps) if q.evidence)


def test_derived_seeds_tell_everything_apart():
    assert derived_seed("data", 1, 11) != derived_seed("data", 11, 1)
    assert 0 <= derived_seed("x") < 2**63


def test_reference_against_itself_and_against_enumeration():
    network = load_network("cancer")
    codes = sample_codes(network, 300, 2)
    reference = Reference(network, draw_questions(network.structure, 8, 1, codes))
    own = reference.measure(network)
    assert own["map_accuracy"] == 1.0
    assert max(own[m] for m in MEASURES if m != "map_accuracy") < 1e-3  # mixing with the uniform costs a little
    other = BayesianNetwork(network.structure, {n: np.full_like(network.cpt(n), 0.5) for n in network.nodes})
    found = reference.measure(other)
    query = reference.answers[0][0]
    exact = np.abs(Inference(network).query(list(query.variables)).values - 0.5 ** len(query.variables)).sum()
    errors = [
        np.abs(Inference(network).query(list(q.variables), dict(q.evidence)).values - 0.5 ** len(q.variables)).sum()
        for q, _ in reference.answers
    ]
    assert errors[0] == pytest.approx(exact)
    assert found["query"] == pytest.approx(np.mean(errors))


def test_divergence_by_hand(monkeypatch):
    monkeypatch.setattr(metrics, "MIXTURE", 0.0)
    assert divergence(np.array([1.0, 0.0]), np.array([0.5, 0.5])) == pytest.approx(math.log(2))


def test_simulated_source_counts_like_hand_counting():
    network = load_network("asia")
    codes = sample_codes(network, 100, 3)
    source = SimulatedSource(network.structure.schema, codes)
    table = source.counts([("smoke", "lung")])["smoke", "lung"]
    for a in range(2):
        for b in range(2):
            assert table[a, b] == np.sum((codes["smoke"] == a) & (codes["lung"] == b))
    assert source.counts([()])[()] == 100
    sampled = source.sampled_counts([("smoke",)], lambda rows: np.arange(rows) < 10)
    assert sampled["smoke",].sum() == 10


def test_standard_error():
    assert standard_error([1.0, 3.0, float("nan")]) == pytest.approx(1.0)
    assert math.isnan(standard_error([1.0]))


def test_questions_too_large_for_exact_inference_are_left_out():
    """The most probable states of 24 leaves of one root, which is summed out: 2^24 cells."""
    leaves = tuple(f"x{i}" for i in range(24))
    structure = structure_of(dict.fromkeys(("root", *leaves), 2), dict.fromkeys(leaves, ("root",)))
    cpts = {name: np.full((2, 2), 0.5) for name in leaves} | {"root": np.array([0.25, 0.75])}
    network = BayesianNetwork(structure, cpts)
    maps = (Query(leaves), Query(("root",)))
    measured = Reference(network, Questions((Query(("root",)),), maps)).measure(network)
    assert measured["map_accuracy"] == 1.0 and measured["query"] == 0.0
    alone = Reference(network, Questions((Query(("root",)),), maps[:1])).measure(network)
    assert math.isnan(alone["map_accuracy"])
