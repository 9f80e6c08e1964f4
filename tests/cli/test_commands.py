"""Every command does its job, in text and in JSON, and leaves the files it promises."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pytest

import dpbn
from dpbn.formats.schema_file import read_schema
from tests.hostile import hostile_network


def test_learn_writes_a_private_release(run, release):
    loaded = dpbn.load_release(release)
    assert loaded.private
    assert 0.999 < loaded.guarantee.epsilon <= 1


def test_learn_json_and_method_options(run, patients):
    line = ["learn", patients, "asia", "-e", 1, "--method", "icml2020", "--option", "stage_one=0.2", "-y", "--json"]
    document = json.loads(run(*line, "-o", "r.json").out)
    assert document["private"] is True
    assert dpbn.load_release("r.json").options == {"stage_one": 0.2}
    assert document["id"] == dpbn.load_release("r.json").id


def test_learn_asks_and_no_means_no(run, patients, monkeypatch):
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    answer = run("learn", patients, "asia", "-e", 1, "--method", "uniform", "--unit", "lung", "-o", "r.json")
    assert answer.code == 1
    assert "about to spend epsilon 1, protecting one lung (at most 1 row each), on 8 nodes" in answer.err
    assert not (patients.parent / "r.json").exists()


def test_learn_shows_the_ledger_and_stops_at_its_cap(run, patients):
    assert run("ledger", "open", "b.db", "ward", "--epsilon", "1.5").code == 0
    line = ["learn", patients, "asia", "-e", 1, "--method", "uniform", "--ledger", "b.db", "--dataset", "ward", "-y"]
    assert "left in the ledger for ward: epsilon 0.5" in run(*line, "-o", "one.json").out
    run(*line, "-o", "two.json").refused("at most what is left", "0.5")
    assert not (patients.parent / "two.json").exists()
    shown = json.loads(run("ledger", "show", "b.db", "ward", "--json").out)
    assert shown["datasets"][0]["epsilon_left"] == 0.5
    assert [e["kind"] for e in shown["entries"]] == ["open", "charge", "release"]
    assert shown["entries"][-1]["release"] == dpbn.load_release("one.json").id
    assert run("ledger", "raise", "b.db", "ward", "--epsilon", "2").code == 0
    assert run(*line, "-o", "two.json").code == 0
    assert json.loads(run("ledger", "verify", "b.db", "--json").out)["intact"] is True


def test_learn_tells_what_is_left_of_delta(run, patients, monkeypatch):
    import io

    assert run("ledger", "open", "b.db", "ward", "--epsilon", "0.3", "--delta", "3e-6").code == 0
    line = ["learn", patients, "asia", "-e", 0.1, "--delta", "1e-6", "--ledger", "b.db", "--dataset", "ward"]
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    asked = run(*line, "-o", "one.json").err
    assert "ward: epsilon 0.3, delta 3e-06 now, epsilon 0.2, delta 2e-06 after" in asked
    assert "left in the ledger for ward: epsilon 0.2, delta 2e-06" in run(*line, "-y", "-o", "one.json").out
    run(*line, "-y", "-o", "two.json")
    assert "ward: epsilon 0, delta 0\n" in run(*line, "-y", "-o", "three.json").out


def test_insecure_seed_is_stamped_everywhere(run, patients):
    line = ["learn", patients, "asia", "-e", 1, "--method", "uniform", "--insecure-seed", 5]
    first, second = run(*line, "-o", "a.json"), run(*line, "-o", "b.json")
    assert "NOT be private" in first.err and "NOT PRIVATE" in first.out
    assert (patients.parent / "a.json").read_text() == (patients.parent / "b.json").read_text()
    assert second.code == 0
    for command in (
        ["query", "a.json", "lung"],
        ["inspect", "a.json"],
        ["report", "a.json"],
        ["convert", "a.json", "a.bif"],
    ):
        assert "NOT private" in run(*command).err, command
    run("ledger", "open", "b.db", "w", "--epsilon", 5)
    run(*line, "--ledger", "b.db", "--dataset", "w", "-o", "c.json").refused("private releases only")


def test_schema_file_round_trip(run, asia, tmp_path):
    assert run("inspect", "--schema-from", "asia", "-o", "s.toml").code == 0
    text = (tmp_path / "s.toml").read_text()
    edited = text.replace("[variables.smoke]\n", '[variables.smoke]\ncolumn = "Smoker?"\n', 1)
    edited = 'unit = "patient"\nmax_contributions = 2\n' + edited
    (tmp_path / "s.toml").write_text(edited)
    frame = asia.sample(200, seed=0).rename(columns={"smoke": "Smoker?"})
    frame["patient"] = np.arange(len(frame)) // 3
    frame.to_parquet(tmp_path / "visits.parquet")
    line = ["learn", "visits.parquet", "asia", "-e", 1, "--method", "uniform", "--schema", "s.toml", "-y"]
    answer = run(*line, "-o", "r.json")
    assert answer.code == 0, answer.err
    guarantee = dpbn.load_release("r.json").guarantee
    assert (guarantee.unit, guarantee.max_contributions) == ("patient", 2)


def test_query_agrees_with_the_library(run, asia):
    expected = dpbn.Inference(asia).query(["lung", "bronc"], {"smoke": "yes"}).values
    document = json.loads(run("query", "asia", "lung", "bronc", "-g", "smoke=yes", "--json").out)
    np.testing.assert_allclose(document["values"], expected)
    assert document["states"] == [["yes", "no"], ["yes", "no"]]
    assert "0.1000" in run("query", "asia", "lung", "-g", "smoke=yes").out


def test_query_soft_evidence_and_plan(run, asia):
    soft = {"smoke": {"yes": 0.8, "no": 0.1}}
    document = json.loads(run("query", "asia", "lung", "--soft", f"smoke={json.dumps(soft['smoke'])}", "--json").out)
    np.testing.assert_allclose(document["values"], dpbn.Inference(asia).query(["lung"], soft).values)
    assert json.loads(run("query", "asia", "lung", "--plan", "--json").out)["cells"] > 0


def test_query_on_a_release(run, release):
    assert "probability" in run("query", release, "lung").out
    document = json.loads(run("query", release, "lung", "--json").out)
    assert sum(document["values"]) == pytest.approx(1)
    for ends in (document, document["privacy"], document["sampling"]):
        assert all(
            0 <= low <= value <= high <= 1
            for low, value, high in zip(ends["low"], document["values"], ends["high"], strict=True)
        )
    assert "90% interval" in run("query", release, "lung").out


def test_an_exact_release_has_no_error_bars(run, patients):
    run("learn", patients, "asia", "-e", 1, "--method", "exact", "-o", "exact.json")
    assert "interval" not in run("query", "exact.json", "lung").out
    assert "stability" not in run("map", "exact.json", "lung").out
    assert run("report", "exact.json").code == 0


def test_predictions_with_intervals(run, patients, tmp_path, asia):
    line = ["learn", patients, "asia", "-e", 1, "--method", "uniform", "--insecure-seed", 1]
    assert run(*line, "-o", "r.json").code == 0  # with other noise a row may be impossible, which is refused
    asia.sample(20, seed=0).drop(columns="lung").to_csv(tmp_path / "new.csv", index=False)
    assert run("predict", "r.json", "new.csv", "lung", "--interval", 0.9, "-o", "p.csv").code == 0
    found = pandas.read_csv(tmp_path / "p.csv")
    assert (found["yes low"] <= found["yes"]).all() and (found["yes"] <= found["yes high"]).all()


def test_map_and_mpe(run, asia):
    ask = dpbn.Inference(asia)
    document = json.loads(run("map", "asia", "-g", "xray=yes", "--json").out)
    assert document["assignment"] == ask.mpe({"xray": "yes"})[0]
    assert "stability" not in document
    document = json.loads(run("map", "asia", "lung", "tub", "-g", "xray=yes", "--json").out)
    assert document["probability"] == pytest.approx(ask.map(["lung", "tub"], {"xray": "yes"})[1])


def test_predict_and_sample(run, asia, tmp_path):
    assert run("sample", "asia", "-n", 50, "--seed", 3, "-g", "smoke=yes", "-o", "rows.csv").code == 0
    rows = pandas.read_csv(tmp_path / "rows.csv")
    assert set(rows["smoke"]) == {"yes"}
    rows.drop(columns="lung").to_csv(tmp_path / "new.csv", index=False)
    assert run("predict", "asia", "new.csv", "lung", "-o", "p.parquet").code == 0
    found = pandas.read_parquet(tmp_path / "p.parquet")
    np.testing.assert_allclose(found, dpbn.Inference(asia).predict_proba(rows.drop(columns="lung"), "lung"))


def test_predictions_keep_columns_to_join_them_by(run, tmp_path, asia):
    (tmp_path / "new.csv").write_text("ID,smoke,lung\n007,yes,no\n=x,no,\n,no,yes\n")
    assert run("predict", "asia", "new.csv", "lung", "-o", "p.csv", "--keep", "ID", "--keep", "lung").err == ""
    yes, no = (dpbn.Inference(asia).query(["lung"], {"smoke": state}).values for state in ("yes", "no"))
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert [line.rsplit(",", 2)[0] for line in lines] == ["ID,lung", "007,no", "'=x,", ",yes"]
    np.testing.assert_allclose(pandas.read_csv("p.csv")[["yes", "no"]], [yes, no, no])
    run("predict", "asia", "new.csv", "lung", "-o", "q.csv", "--keep", "id").refused("--keep", "did you mean 'ID'?")
    (tmp_path / "new.csv").write_text("yes,smoke\n1,yes\n")
    run("predict", "asia", "new.csv", "lung", "-o", "q.csv", "--keep", "yes").refused("a column of the predictions")


def test_predictions_put_unknown_values_where_learning_did(run, tmp_path):
    (tmp_path / "x.schema.toml").write_text('[variables.smoke]\nstates = ["no", "?"]\ncatch_all = "?"\n')
    structure, *_ = read_schema((tmp_path / "x.schema.toml").read_text(), dpbn.load_structure("asia"))
    dpbn.write_network(structure, tmp_path / "x.json")
    (tmp_path / "rows.csv").write_text("asia,tub,smoke,lung,bronc,either,xray,dysp\n" + "no,no,,no,no,no,no,no\n" * 9)
    line = ["learn", "rows.csv", "x.json", "-e", 1, "--insecure-seed", 1, "--on-unknown", "?", "-o", "r.json"]
    assert run(*line).code == 0
    (tmp_path / "new.csv").write_text("smoke\nNA\n\n?\n")
    run("predict", "r.json", "new.csv", "lung", "-o", "p.csv").refused("got 'NA' in row 0", "on_unknown='catch_all'")
    line = ["predict", "r.json", "new.csv", "lung", "--interval", 0.9, "--on-unknown", "catch_all", "-o", "p.csv"]
    assert run(*line).code == 0
    assert len(set((tmp_path / "p.csv").read_text().splitlines()[1:])) == 1


@pytest.mark.parametrize("extension", ["bif", "xmlbif", "net", "json"])
def test_convert_there_and_back(run, release, extension):
    assert run("convert", release, f"model.{extension}").code == 0
    original, again = dpbn.load_release(release).network, dpbn.load_network(f"model.{extension}")
    for node in original.nodes:
        np.testing.assert_allclose(again.cpt(node), original.cpt(node), atol=1e-12)


def test_inspect(run, release):
    text = run("inspect", release).out
    assert "Who is protected?" in text and "weak rows" in text and "need not add up" in text
    document = json.loads(run("inspect", release, "--json").out)
    assert document["private"] is True and len(document["nodes"]) == 8
    assert json.loads(run("inspect", "asia", "--node", "dysp", "--json").out)["cpt"][0][0] == [0.9, 0.1]
    assert "dysp=yes" in run("inspect", "asia", "--node", "dysp").out
    assert "weak" not in run("inspect", "asia", "--node", "dysp").out


def test_report_writes_three_files(run, release, tmp_path):
    document = json.loads(run("report", release, "--json").out)
    assert set(document) == {"page", "privacy", "card"}
    assert (tmp_path / "asia.release.html").exists()
    assert (tmp_path / "privacy.json").exists()
    assert (tmp_path / "MODEL_CARD.md").exists()


def test_a_report_without_error_bars_draws_no_plausible_networks(run, release, tmp_path, monkeypatch):
    page = tmp_path / "asia.release.html"
    assert run("report", release).code == 0
    assert "90% interval" in page.read_text("utf-8")
    monkeypatch.setattr("dpbn.report.facts.ErrorBars", None)
    assert run("report", release, "--no-interval").code == 0
    text = page.read_text("utf-8")
    assert "interval" not in text and "Probability tables" in text


def test_weak_rows_of_a_node_are_marked(run, patients):
    run("learn", patients, "asia", "-e", 0.05, "-o", "weak.json", "-y")
    node, weak = next(iter(dpbn.load_release("weak.json").weak_rows.items()))
    shown = run("inspect", "weak.json", "--node", node).out
    assert shown.count("weak ") == weak.sum() + 1 and "weak rows: so few records" in shown
    assert json.loads(run("inspect", "weak.json", "--node", node, "--json").out)["weak"] == weak.tolist()


def test_an_answer_that_leans_on_weak_rows_says_how_much(run, patients):
    """Many rows that are rare each may together be nearly all of the answer."""
    run("learn", patients, "asia", "-e", 0.05, "-o", "weak.json", "-y")
    ask = dpbn.Inference(dpbn.load_release("weak.json"))
    weak = ask.query(["dysp"], {"asia": "yes"}).weak_rows
    heaviest = max(sum(row.weight for row in weak if row.node == node) for node in {row.node for row in weak})
    told = run("query", "weak.json", "dysp", "--given", "asia=yes").err
    assert (
        len(weak) > 1 and f"note: at least {min(heaviest, 1):.1%} of the probability lies on rows with too few" in told
    )
    told = run("query", "weak.json", "dysp", "--given", "asia=yes", "--versus", "asia=no").err
    assert "note: behind this answer are rows with too few" in told  # of two sides, each with its own probability


def test_a_number_given_for_a_range_is_told_as_its_state(run):
    age = dpbn.Variable("age", ["young", "old"], cut_points=[40])
    network = dpbn.BayesianNetwork(dpbn.Structure(dpbn.Schema([age]), dpbn.Dag(["age"], {})), {"age": [0.5, 0.5]})
    dpbn.write_network(network, "age.json")
    assert run("map", "age.json", "--given", "age=70").err == "note: age=70 is taken for 'old'\n"
    assert not run("map", "age.json", "--given", "age=old").err


def test_a_schema_file_is_shown_before_anything_is_learned(run, tmp_path):
    """States in the wrong order would otherwise be seen in the release only, which is paid for."""
    (tmp_path / "s.toml").write_text(
        'unit = "patient"\nmax_contributions = 3\n'
        '[variables.smoke]\ncolumn = "cigarettes"\ncut_points = [10]\ncatch_all = "no"\n'
        '[variables.dysp]\nstates = ["yes", "no", "other"]\ncatch_all = "other"\n'
    )
    shown = " ".join(run("inspect", "asia", "--schema", "s.toml").out.split())
    assert "smoke cigarettes yes (below 10), no (10 or more, catch-all)" in shown
    assert "yes, no, other (catch-all)" in shown and "unit: patient, at most 3 rows of each" in shown
    document = json.loads(run("inspect", "asia", "--schema", "s.toml", "--json").out)
    assert (document["unit"], document["max_contributions"]) == ("patient", 3)
    smoke, dysp = ({node["node"]: node for node in document["nodes"]}[name] for name in ("smoke", "dysp"))
    assert smoke["column"] == "cigarettes" and smoke["catch_all"] == "no"
    assert dysp["column"] == "dysp" and dysp["catch_all"] == "other"
    (tmp_path / "s.toml").write_text("")
    assert "every row is protected by itself" in run("inspect", "asia", "--schema", "s.toml").out
    assert "column" not in run("inspect", "asia", "--schema", "s.toml").out


def test_a_schema_file_is_shown_with_a_structure_only(run, release, tmp_path):
    (tmp_path / "s.toml").write_text("")
    assert run("inspect", release, "--schema", "s.toml").code == 2
    assert run("inspect", "asia", "--schema", "s.toml", "--node", "lung").code == 2
    assert run("inspect", "--schema-from", "asia", "--schema", "s.toml").code == 2


def test_inspect_prints_text_not_markdown(run, release, tmp_path):
    opened = dpbn.load_release(release)
    replace(opened, guarantee=replace(opened.guarantee, unit="patient_id")).save(tmp_path / "people.json")
    text = run("inspect", "people.json").out
    assert "- Who is protected? Every single person, as named by the column “patient_id”" in text
    assert "\\" not in text and "**" not in text


def test_the_report_names_the_file_it_explains(run, release, tmp_path):
    run("report", release)
    assert "dpbn serve asia.release.json" in (tmp_path / "asia.release.html").read_text("utf-8")
    assert "dpbn serve asia.release.json" in (tmp_path / "MODEL_CARD.md").read_text("utf-8")


def test_hostile_text_prints_visibly(run, tmp_path):
    dpbn.write_network(hostile_network(), tmp_path / "h.json")
    out = run("inspect", "h.json").out
    assert "\u202e" not in out and "\x07" not in out and "\\u202e" in out


def test_hostile_text_in_errors_and_warnings_prints_visibly(run, tmp_path):
    parent, child = "n\x1b]0;title\x07", "m\u202e"
    variables = [
        {"name": parent, "states": ["a\x1b[2J", "b"], "parents": []},
        {"name": child, "states": ["c", "d"], "parents": [parent]},
    ]
    cyclic = [variables[0] | {"parents": [child]}, variables[1]]
    for found, row in ((variables, [0.2005, 0.8]), (variables, [0.4, 0.8]), (cyclic, [0.2, 0.8])):
        cpts = {parent: [0.5, 0.5], child: [row, [0.3, 0.7]]}
        document = {"format": "dpbn-network", "version": 1, "variables": found, "cpts": cpts}
        (tmp_path / "h.json").write_text(json.dumps(document))
        told = run("inspect", "h.json").err
        assert "\\u001b" in told and not any(mark in told for mark in "\x1b\x07\u202e"), ascii(told)


def test_plan_names_the_count_of_records_among_its_tables(run):
    assert "(number of records)" in run("plan", "asia", "--rows", "500", "--simulations", "1", "--tables").out


def test_every_node_observed_leaves_nothing_to_explain(run, release, asia):
    for model, source in (("asia", asia), (release, dpbn.load_release(release))):
        states, _ = dpbn.Inference(source).mpe()
        given = [word for node in asia.nodes for word in ("-g", f"{node}={states[node]}")]
        document = json.loads(run("map", model, *given, "--json").out)
        assert document["assignment"] == {} and document["probability"] == pytest.approx(1)
    assert document["stability"] == 1


def test_a_seed_that_is_none_is_refused(run):
    run("sample", "asia", "-n", 5, "-g", "smoke=yes", "--seed", -1, "-o", "rows.csv").refused("seed must be")


@pytest.mark.parametrize(("caught", "code"), [(False, 0), (True, 1)])
def test_an_audit_that_fails_says_so_by_its_exit_code(run, monkeypatch, caught, code):
    from dpbn.audit import Verdict, suite

    verdict = Verdict(lower=2.0 if caught else 0.5, promised=1.0, event="x0 >= 1", runs=1000)
    monkeypatch.setattr(suite, "lines", lambda *_, **__: iter([suite.Line("one family", verdict, "holds")]))
    outcome = run("audit", "--runs", 1000)
    assert outcome.code == code, outcome.out
    assert run("audit", "--runs", 1000, "--json").code == code


def test_without_scipy_an_audit_is_refused_before_it_draws(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    outcome = run("audit", "--runs", 1000)
    outcome.refused("dpbn[audit]")
    assert outcome.out == ""


def test_a_name_with_a_comma_is_told_from_two_names(run):
    Path("s.json").write_text(
        '{"format": "dpbn-network", "version": 1, "variables": ['
        '{"name": "how, when", "states": ["on foot", "car, taxi"], "parents": []},'
        '{"name": "x", "states": ["y", "n"], "parents": ["how, when"]}]}'
    )
    table = run("inspect", "s.json").out
    assert 'on foot, "car, taxi"' in table and '"how, when"' in table


def test_plan_knows_the_states_and_the_bound_of_a_schema_file(run, tmp_path):
    (tmp_path / "s.toml").write_text(
        'unit = "w"\nmax_contributions = 3\n[variables.smoke]\nstates = ["yes", "no", "?"]\ncatch_all = "?"\n'
    )
    line = ["plan", "asia", "--method", "uniform", "--rows", 500, "--simulations", 1, "--json"]

    def cells(*more):
        return {tuple(t["names"]): t["cells"] for t in json.loads(run(*line, *more).out)["tables"]}

    plain, widened = cells(), cells("--schema", "s.toml")
    assert widened["smoke", "lung"] == 6 and plain["smoke", "lung"] == 4
    deviations = [
        json.loads(run(*line, "--schema", "s.toml", *more).out)["tables"][0]["deviation"]
        for more in ([], ["--max-contributions", 1])
    ]
    assert deviations[0] == pytest.approx(3 * deviations[1], rel=0.1)
    (tmp_path / "s.toml").write_text("[variables.nobody]\n")
    run(*line, "--schema", "s.toml").refused("s.toml: ", "'nobody'")


def test_plan_takes_public_cpts_a_prior_and_options_of_the_method(run, tmp_path, asia):
    (tmp_path / "cpts.json").write_text(json.dumps({"smoke": asia.cpt("smoke").tolist()}))
    line = ["plan", "asia", "--rows", 500, "--simulations", 1, "--json"]
    document = json.loads(run(*line, "--public-cpts", "cpts.json", "--prior", 1, "--option", "stage_one=0.3").out)
    assert document["nodes"]["smoke"]["error"] == 0.0
    assert document["error"] != json.loads(run(*line, "--public-cpts", "cpts.json").out)["error"]
    wrong = run(*line, "--option", "rows=5")
    assert wrong.code == 2 and "--option must name an option of the method itself, got 'rows'" in wrong.err


def test_plan_forecasts_the_epsilon_that_a_wanted_error_needs(run):
    line = ["plan", "asia", "--rows", 2000, "--simulations", 1, "--method", "uniform", "--wanted-error", 0.1]
    first, second, *_ = run(*line).out.splitlines()
    assert first.startswith("a mean error of 0.1 needs epsilon ")
    assert second.startswith("uniform at epsilon=") and "epsilon=1," not in second
    document = json.loads(run(*line, "--json").out)
    assert document["epsilon"] == document["epsilon_for_wanted_error"] and document["error"] <= 0.1
    assert json.loads(run(*line, "--epsilon", 1, "--json").out)["epsilon"] == 1


def test_convert_writes_a_structure_alone_if_told(run, release, asia, tmp_path):
    for source in ("asia", release):
        assert run("convert", source, "s.json", "--structure", "--overwrite").code == 0
        assert "cpts" not in (tmp_path / "s.json").read_text() and dpbn.load_structure("s.json") == asia.structure
    (tmp_path / "empty.bif").write_text(
        "network n { } variable a { type discrete [ 2 ] { x, y }; } probability ( a ) { }"
    )
    run("convert", "empty.bif", "e.json").refused("must have probabilities, got none: a structure alone")
    told = run("convert", "empty.bif", "e.json", "--structure")
    assert told.out == "wrote e.json\n" and not told.err
    assert dpbn.load_structure("e.json") == dpbn.load_structure("empty.bif")
    run("convert", "s.json", "s.bif", "--structure").refused("must be written as .json, got 's.bif'")
    run("query", "s.json", "lung").refused("a structure alone")


def test_learn_checks_without_spending(run, patients):
    """The command that would spend, with one word more."""
    run("ledger", "open", "b.db", "ward", "--epsilon", 1)
    command = ["learn", patients, "asia", "-e", 1, "-o", "r.json", "--ledger", "b.db", "--dataset", "ward", "--check"]
    assert run(*command).out == "all is as it must be; nothing was spent, nothing was written\n"
    assert json.loads(run(*command, "--json").out) == {"checked": True}
    assert dpbn.Ledger("b.db").remaining("ward").epsilon == 1 and not Path("r.json").exists()
    run(*command, "--epsilon", 2).refused("a charge to 'ward' must be at most what is left")
    text = patients.read_text()
    patients.write_text(text + text.splitlines()[-1].replace("no", "perhaps") + "\n")
    run(*command).refused("of 801 records")
    Path("r.json").write_text("mine")
    run(*command).refused("--overwrite")
