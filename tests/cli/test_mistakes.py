"""What a newcomer who mistypes gets: one line that says what to do, exit code 1 or 2, never a traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dpbn

LEARN = ["-e", 1, "--method", "uniform", "-o", "r.json", "-y"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(dpbn.__file__).parents[1])}


def test_close_matches_are_suggested(run):
    run("query", "asia", "lungs").refused("'lungs'", "did you mean 'lung'?")
    run("query", "asia", "lung", "-g", "smoke=Yes").refused("one of ['yes', 'no']", "did you mean 'yes'?")
    run("query", "asia", "lung", "-g", "smke=yes").refused("did you mean 'smoke'?")
    run("query", "asai", "lung").refused("did you mean 'asia'?")
    run("map", "asia", "Lung").refused("did you mean 'lung'?")
    for command in ("query", "map"):
        wrong = run(command, "asia", "lung", "smoke=yes")
        assert wrong.code == 2 and "evidence must come with --given, got 'smoke=yes'" in wrong.err
    run("inspect", "asia", "--node", "dyspnoea").refused("did you mean 'dysp'?")
    Path("own.bif").write_text("network x { } variable smoke { type discrete [ 1 ] { a }; } probability ( smok ) { }")
    run("plan", "own.bif").refused("got 'smok'; did you mean 'smoke'?")
    wrong = run("lern")
    assert wrong.code == 2 and "Did you mean 'learn'?" in wrong.err


def test_wrong_files(run, tmp_path):
    run("query", "nothing.json", "lung").refused("nothing.json", "existing file")
    (tmp_path / "notes.txt").write_text("hello")
    run("query", "notes.txt", "lung").refused("extension")
    (tmp_path / "broken.json").write_text('{"format": "dpbn-release", ')
    run("query", "broken.json", "lung").refused("broken.json")
    (tmp_path / "broken.bif").write_text("network x { }\nvariable a {\n")
    run("query", "broken.bif", "a").refused("broken.bif:")
    run("report", "broken.json").refused()
    run("report", "nothing.json").refused("existing file")


def test_wrong_tables(run, patients, tmp_path):
    text = patients.read_text()
    run("learn", "nothing.csv", "asia", *LEARN).refused("nothing.csv")
    (tmp_path / "semi.csv").write_text(text.replace(",", ";"))
    run("learn", "semi.csv", "asia", *LEARN).refused("separated by commas")
    (tmp_path / "column.csv").write_text(text.replace("smoke", "smoker", 1))
    run("learn", "column.csv", "asia", *LEARN).refused("smoke")
    (tmp_path / "state.csv").write_text(text.replace("yes", "canary", 1))
    outcome = run("learn", "state.csv", "asia", *LEARN)
    outcome.refused("undeclared values")
    outcome.refused(
        "is declared to be one of ['yes', 'no'], spelt like this; on_unknown='drop' leaves such records out"
    )
    assert "canary" not in outcome.err
    assert not (tmp_path / "r.json").exists()


def test_files_in_the_wrong_place(run, patients, release, tmp_path):
    (tmp_path / "rows.parquet").write_bytes(b"PAR1\xff\xfe")
    run("report", "rows.parquet").refused("rows.parquet: a release must be a JSON file")
    run("learn", patients, release, *LEARN).refused("got 'dpbn-release'", "dpbn convert")
    (tmp_path / "schema.toml").write_text("[variables.nobody]\n")
    run("learn", patients, "asia", *LEARN, "--schema", "schema.toml").refused("schema.toml: ", "'nobody'")
    (tmp_path / "schema.toml").write_text("network unknown {")
    run("learn", patients, "asia", *LEARN, "--schema", "schema.toml").refused("schema.toml:1:9: a schema file must be")
    run("learn", patients, "asia", *LEARN, "--workload", "schema.toml").refused(
        "schema.toml:1:1: a workload must be JSON"
    )
    run("learn", patients, "asia", *LEARN, "--on-unknown", "other").refused("none is declared")
    run("learn", patients, "asia", *LEARN, "--on-unknown", "Drop").refused("did you mean 'drop'?")
    run("ledger", "open", "b.db", "ward-7", "--epsilon", 3)
    run("ledger", "show", "b.db", "Ward7").refused("did you mean 'ward-7'?")
    run("learn", patients, "asia", *LEARN, "--unit", "person").refused("and for the unit", "['person']")


def test_tables_to_predict_from(run, patients, tmp_path):
    text = patients.read_text()
    (tmp_path / "semi.csv").write_text(text.replace(",", ";"))
    run("predict", "asia", "semi.csv", "lung", "-o", "p.csv").refused("separated by commas")
    (tmp_path / "column.csv").write_text(text.replace("smoke", "smoker", 1))
    warned = run("predict", "asia", "column.csv", "lung", "-o", "p.csv")
    assert warned.code == 0 and "ignored: 'smoker'; did you mean 'smoke'?" in warned.err
    run("predict", "asia", "column.csv", "lnug", "-o", "q.csv").refused("did you mean 'lung'?")


def test_raw_columns_of_the_private_table_can_be_predicted_from(run, tmp_path):
    age = dpbn.Variable("age", ("young", "old"), cut_points=(50,), column="years")
    schema = dpbn.Schema((age, dpbn.Variable("ill", ("no", "yes"))))
    structure = dpbn.Structure(schema, dpbn.Dag(("age", "ill"), {"ill": ("age",)}))
    network = dpbn.BayesianNetwork(structure, {"age": [0.5, 0.5], "ill": [[0.9, 0.1], [0.2, 0.8]]})
    dpbn.write_network(network, tmp_path / "ill.json")
    (tmp_path / "new.csv").write_text("years,name,when,yaers\n20,a,,\n71.5,b,,\n")
    outcome = run("predict", "ill.json", "new.csv", "ill", "-o", "p.csv")
    ignored = "warning: columns are ignored: 'name', 'when', 'yaers'; did you mean 'years'?\n"
    assert outcome.code == 0 and outcome.err == ignored
    assert (tmp_path / "p.csv").read_text() == "no,yes\n0.9,0.1\n0.2,0.8\n"
    (tmp_path / "new.csv").write_text('years\n"71,5"\n')
    run("predict", "ill.json", "new.csv", "ill", "-o", "q.csv").refused("a number or one of ['young', 'old']")
    assert "age years young (below 50), old (50 or more)" in " ".join(run("inspect", "ill.json").out.split())
    assert json.loads(run("inspect", "ill.json", "--json").out)["nodes"][0]["cut_points"] == [50]
    asked = json.loads(run("query", "ill.json", "ill", "--given", "age=71.5", "--json").out)
    assert asked["values"] == [0.2, 0.8] and asked["evidence"] == {"age": "old"}
    run("query", "ill.json", "ill", "-g", "years=71").refused("a node of the network, got 'years', the column of 'age'")
    run("predict", "ill.json", "new.csv", "years", "-o", "q.csv").refused("got 'years', the column of 'age'")
    run("query", "ill.json", "ill", "-g", "age=71,5").refused("or a number (young is below 50, old is 50 or more)")
    (tmp_path / "old.csv").write_text('years,ill\n"71,5",no\n')
    run("learn", "old.csv", "ill.json", *LEARN).refused("'years' is declared to be a number or one of ['young', 'old']")


def test_a_network_is_not_a_release(run):
    run("convert", "asia", "asia.bif")
    run("convert", "asia", "asia.json")
    run("report", "asia.bif").refused("a release must be a JSON file")
    run("report", "asia.json").refused("dpbn-release")


def test_nothing_is_spent_for_a_mistake(run, patients):
    run("ledger", "open", "b.db", "ward", "--epsilon", 1)
    charged = ["--ledger", "b.db", "--dataset", "ward"]
    run("learn", patients, "asia", "-e", 1, "--method", "unifrom", "-o", "r.json", "-y", *charged).refused(
        "did you mean 'uniform'?"
    )
    run("learn", patients, "asia", "-e", 1, "-o", "no/where.json", "-y", *charged).refused("folder")
    run("learn", patients, "alarm", *LEARN, *charged).refused("column")
    patients.with_name("r.json").write_text("precious")
    run("learn", patients, "asia", *LEARN, *charged).refused("--overwrite")
    run("learn", patients, "asia", *LEARN, "--overwrite", "--ledger", "b.db", "--dataset", "wrd").refused("wrd")
    left = dpbn.Ledger("b.db").remaining("ward")
    assert left.epsilon == 1
    assert patients.with_name("r.json").read_text() == "precious"


@pytest.mark.parametrize(
    "arguments",
    [
        ["learn", "p.csv", "asia", "-o", "r.json"],
        ["learn", "p.csv", "asia", "-e", "much", "-o", "r.json"],
        ["learn", "p.csv", "asia", "-e", "1", "-o", "r.json", "--option", "stage_one"],
        ["learn", "p.csv", "asia", "-e", "1", "-o", "r.json", "--ledger", "b.db"],
        ["query", "asia"],
        ["query", "asia", "lung", "-g", "smoke"],
        ["query", "asia", "lung", "-g", "smoke=yes", "-g", "smoke=no"],
        ["query", "asia", "lung", "--soft", "smoke=0.3"],
        ["query", "asia", "lung", "--soft", f'smoke={{"yes": {"[" * 9999}{"]" * 9999}}}'],
        ["query", "asia", "lung", "--interval", "90"],
        ["sample", "asia", "-n", "-3", "-o", "r.csv"],
        ["inspect"],
        ["query", "asia", "lung", "--jsno"],
    ],
)
def test_wrong_usage_is_exit_code_2(run, arguments):
    outcome = run(*arguments)
    assert outcome.code == 2, outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("epsilon", [0, -1, "nan", "inf"])
def test_senseless_budgets(run, patients, epsilon):
    run("learn", patients, "asia", f"--epsilon={epsilon}", "-o", "r.json", "-y").refused("epsilon must be")


def test_outputs_of_unknown_kind(run, release):
    run("convert", release, "model.docx").refused("extension")
    run("sample", release, "-n", 3, "-o", "rows.xlsx").refused(".csv or .parquet")
    run("report", release, "-o", "report.pdf").refused(".html")


def test_impossible_evidence(run):
    run("query", "asia", "xray", "-g", "either=no", "-g", "lung=yes").refused()


def test_what_is_not_installed_is_named(run, release, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    run("serve", release).refused("pip install 'dpbn[web]'")
    monkeypatch.setitem(sys.modules, "rich.table", None)
    run("query", "asia", "lung").refused("the Python package rich must be installed")


def test_internal_error_shows_no_data(run, monkeypatch):
    import dpbn.inference

    def fail(*_):
        raise RuntimeError("row 7 is canary-7431")

    monkeypatch.setattr(dpbn.inference, "Inference", fail)
    outcome = run("query", "asia", "lung")
    outcome.refused("internal error (RuntimeError)", "DPBN_DEBUG")
    assert "canary" not in outcome.err


def test_as_a_script():
    """The installed entry point, in its own process: streams apart, no colour codes when piped, pipes may close."""

    def dpbn_command(line):
        return subprocess.run(
            f"{sys.executable} -m dpbn {line}", shell=True, capture_output=True, text=True, env=ENVIRONMENT, check=False
        )

    good = dpbn_command("query asia lung --given smoke=yes")
    assert good.returncode == 0 and good.stderr == "" and "\x1b" not in good.stdout
    bad = dpbn_command("query asia lungs")
    assert bad.returncode == 1 and bad.stdout == "" and bad.stderr.count("\n") == 1
    cut = dpbn_command("inspect alarm | head -1")
    assert "Traceback" not in cut.stderr and "Exception" not in cut.stderr


def test_a_refused_table_ends_with_exit_code_1(patients):
    """Not with an abort by a reader's thread that outlives the interpreter."""
    (patients.parent / "state.csv").write_text(patients.read_text().replace("yes", "canary", 1))
    line = [sys.executable, "-m", "dpbn", "learn", "state.csv", "asia", "-e", "1", "-o", "r.json", "-y"]
    for _ in range(4):
        done = subprocess.run(line, cwd=patients.parent, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr


def test_shell_completion():
    source = {**ENVIRONMENT, "_DPBN_COMPLETE": "bash_source"}
    script = subprocess.run([sys.executable, "-m", "dpbn"], capture_output=True, text=True, env=source, check=False)
    assert "_dpbn_completion" in script.stdout
    asked = {**ENVIRONMENT, "_DPBN_COMPLETE": "bash_complete", "COMP_WORDS": "dpbn query as", "COMP_CWORD": "2"}
    found = subprocess.run([sys.executable, "-m", "dpbn"], capture_output=True, text=True, env=asked, check=False)
    assert "asia" in found.stdout
    for words, expected in (
        ("dpbn learn p.csv as", "plain,asia"),
        ("dpbn learn p.csv asia --method un", "plain,uniform"),
    ):
        typed = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        found = subprocess.run(
            [sys.executable, "-m", "dpbn"], capture_output=True, text=True, env={**asked, **typed}, check=False
        )
        assert expected in found.stdout.splitlines()


def test_an_output_must_not_be_an_input(run, patients, release, tmp_path):
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    run("convert", release, release).refused("must not be a file that the command reads")
    run("convert", "asia", release).refused("must not be a release")
    run("sample", "asia", "-n", 5, "-o", release).refused("must not be a release")
    run("predict", "asia", patients, "lung", "-o", patients).refused("must not be a file that the command reads")
    run("predict", "asia", f"{tmp_path}/../{tmp_path.name}/{patients.name}", "lung", "-o", patients).refused("reads")
    run("learn", patients, "asia", *LEARN[:4], "-o", patients, "--overwrite", "-y").refused("must not be a file")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_a_release_does_not_replace_the_ledger_that_pays_for_it(run, patients):
    run("ledger", "open", "b.json", "ward", "--epsilon", 3)
    charged = ["-e", 1, "--overwrite", "--ledger", "b.json", "--dataset", "ward", "-y"]
    for place in ("b.json", "b.json.head"):
        run("learn", patients, "asia", "-o", place, *charged).refused("must not be a file that the command reads")
    run("convert", "asia", "b.json").refused("must not be a ledger")
    assert float(dpbn.Ledger("b.json").remaining("ward").epsilon) == 3


@pytest.mark.parametrize("name", ["r.bif", "r.json.gz", "r", "asia", "r.xlsx"])
def test_a_release_has_a_name_that_it_can_be_opened_by(run, patients, name, tmp_path):
    run("learn", patients, "asia", "-e", 1, "-y", "-o", name).refused("must end in .json", repr(name))
    assert not (tmp_path / name).exists()


def test_a_schema_edited_by_hand_is_not_replaced(run, tmp_path):
    assert run("inspect", "--schema-from", "asia", "-o", "s.toml").code == 0
    (tmp_path / "s.toml").write_text("edited")
    run("inspect", "--schema-from", "asia", "-o", "s.toml").refused("must not exist yet")
    assert (tmp_path / "s.toml").read_text() == "edited"
    assert run("inspect", "--schema-from", "asia", "-o", "s.toml", "--overwrite").code == 0


def test_zero_is_a_number(run, patients):
    run("learn", patients, "asia", *LEARN, "--max-contributions", 0).refused("max_contributions", "got 0")
    assert run("reproduce", "--runs", 0).code == 2
    assert run("evaluate", "--processes", 0).code == 2


def test_options_of_the_command_are_no_options_of_the_method(run, patients):
    wrong = run("learn", patients, "asia", *LEARN, "--option", "epsilon=5")
    assert wrong.code == 2 and "'epsilon'" in wrong.err


@pytest.mark.parametrize(
    "text",
    [
        '[{"variables": ["lung"], "evidense": {"smoke": "yes"}}]',
        '[{"variables": ["lung"], "weight": 3}]',
        "{}",
        '{"variables": ["lung"]}',
    ],
)
def test_a_workload_with_a_slip_is_refused(run, patients, text, tmp_path):
    (tmp_path / "w.json").write_text(text)
    run("learn", patients, "asia", "-e", 1, "-o", "r.json", "-y", "--workload", "w.json").refused("and nothing else")


def test_variables_of_a_workload_are_a_list(run, patients, tmp_path):
    (tmp_path / "w.json").write_text('[{"variables": "lung"}]')
    wrong = run("learn", patients, "asia", "-e", 1, "-o", "r.json", "-y", "--workload", "w.json")
    wrong.refused("sequence of names", "'lung'")


@pytest.mark.parametrize("value", ["[" * 9999 + "]" * 9999, "1" * 5000])
def test_options_that_json_cannot_hold_are_text(run, patients, value):
    wrong = run("learn", patients, "asia", "-e", 1, "-o", "r.json", "-y", "--option", f"stage_one={value}")
    wrong.refused("stage_one must be in 0.05..0.95")


def test_soft_evidence_names_a_state_once(run):
    wrong = run("query", "asia", "lung", "--soft", 'smoke={"yes": 1, "yes": 0, "no": 1}')
    assert wrong.code == 2 and "--soft smoke" in wrong.err


def test_inspect_tells_why_it_shows_a_structure_only(run, tmp_path):
    text = dpbn.load_network("asia")
    dpbn.write_network(text, tmp_path / "asia.bif")
    broken = (tmp_path / "asia.bif").read_text().replace("0.01, 0.99", "0.01, 0.98")
    (tmp_path / "broken.bif").write_text(broken)
    shown = run("inspect", "broken.bif")
    assert shown.code == 0 and "warning: the structure only: broken.bif:" in shown.err


def test_a_structure_written_by_hand_is_shown_without_a_warning(run, tmp_path):
    (tmp_path / "own.bif").write_text("network n { } variable a { type discrete [ 2 ] { x, y }; }")
    dpbn.write_network(dpbn.load_structure(tmp_path / "own.bif"), tmp_path / "own.json")
    for name in ("own.bif", "own.json"):
        shown = run("inspect", name)
        assert "no probabilities" in shown.out and not shown.err
        run("query", name, "a").refused("got no", "a structure alone, to learn or plan with")


def test_a_page_beside_that_of_another_release_is_told(run, patients, release):
    assert "warning" not in run("report", release).err
    assert "warning" not in run("report", release).err
    run("learn", patients, "asia", "-e", 2, "-o", "other.json", "-y")
    told = run("report", "other.json").err
    assert "warning: privacy.json and MODEL_CARD.md of another release replaced" in told
    assert told.count("warning") == 1


def test_what_is_not_private_is_not_called_public(run, patients):
    run("learn", patients, "asia", "-e", 1, "--method", "exact", "-o", "e.json", "-y")
    assert "public" not in run("inspect", "e.json").out.replace("The structure was public", "").partition("node")[2]


def test_planning_what_has_no_noise(run):
    run("plan", "asia", "--method", "exact").refused("a method with noise")


def test_a_report_does_not_replace_a_release_by_its_statement(run, patients, release, tmp_path):
    run("learn", patients, "asia", "-e", 1, "-o", "privacy.json", "-y")
    paid = (tmp_path / "privacy.json").read_bytes()
    run("report", "privacy.json").refused("must not be a file that the command reads")
    run("report", release).refused("must not be a release")
    assert (tmp_path / "privacy.json").read_bytes() == paid


def test_a_guarded_header_is_not_called_ignored(run, tmp_path):
    schema = dpbn.Schema((dpbn.Variable("@home", ("no", "yes")), dpbn.Variable("ill", ("no", "yes"))))
    structure = dpbn.Structure(schema, dpbn.Dag(("@home", "ill"), {"ill": ("@home",)}))
    network = dpbn.BayesianNetwork(structure, {"@home": [0.5, 0.5], "ill": [[0.9, 0.1], [0.2, 0.8]]})
    dpbn.write_network(network, tmp_path / "home.json")
    assert run("sample", "home.json", "-n", 50, "--seed", 1, "-o", "rows.csv").code == 0
    assert (tmp_path / "rows.csv").read_text().startswith("'@home,ill\n")
    predicted = run("predict", "home.json", "rows.csv", "ill", "-o", "p.csv")
    assert predicted.code == 0 and predicted.err == ""
    assert len(set((tmp_path / "p.csv").read_text().splitlines())) == 3
    assert run("learn", "rows.csv", "home.json", *LEARN).code == 0


def test_a_wrong_level_is_wrong_usage_for_every_command(run, release, tmp_path):
    (tmp_path / "new.csv").write_text("smoke\nyes\n")
    assert run("query", release, "lung", "--interval", 2).code == 2
    assert run("predict", release, "new.csv", "lung", "--interval", 2, "-o", "p.csv").code == 2


def test_a_misspelt_node_of_a_workload_comes_back_with_a_suggestion(run, tmp_path):
    (tmp_path / "w.json").write_text('[{"variables": ["lungs"]}]')
    run("plan", "asia", "--workload", "w.json").refused("got 'lungs'; did you mean 'lung'?")


def test_inspect_takes_a_source_or_a_structure_to_declare(run, tmp_path):
    assert run("inspect", "asia", "--schema-from", "asia").code == 2
    assert run("inspect", "--schema-from", "asia", "--node", "lung").code == 2
    assert run("inspect", "asia", "-o", "x.toml").code == 2
    assert not list(tmp_path.iterdir())


def test_a_folder_is_no_network(run, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.bif").mkdir()
    run("inspect", "folder").refused("'folder' must be a file, got a folder")
    run("inspect", ".").refused("'.' must be a file, got a folder")
    run("inspect", "folder.bif").refused("'folder.bif' must be a file, got a folder")


def test_a_file_that_is_no_release_is_named(run):
    run("convert", "asia", "asia.json")
    for command in (["report"], ["serve"]):
        run(*command, "asia.json").refused("asia.json: a release file must say format 'dpbn-release'")
        run(*command, "asia").refused("'asia' must be an existing file, got none of that name")


def test_the_place_of_a_picture_is_tried_before_the_work(run, monkeypatch):
    monkeypatch.setattr(dpbn, "plan", None)
    run("plan", "asia", "--plot", "nowhere/x.png").refused("the folder of 'nowhere/x.png' must exist")


def test_methods_and_keys_are_suggested_wherever_they_are_typed(run, patients, tmp_path):
    line = ["evaluate", "--networks", "asia", "--methods", "optimised", "--epsilons", 1, "--runs", 1]
    run(*line).refused("did you mean 'optimized'?")
    (tmp_path / "s.toml").write_text('[variables.smoke]\nstate = ["yes", "no"]\n')
    run("learn", patients, "asia", *LEARN, "--schema", "s.toml").refused("did you mean 'states'?")


@pytest.mark.parametrize(("level", "name"), [(0.9, "90%"), (0.999, "99.9%"), (0.975, "97.5%")])
def test_the_level_is_not_rounded(run, release, level, name):
    assert f" {name} interval" in run("query", release, "lung", "--interval", level).out


def test_json_may_begin_with_a_byte_order_mark(run, patients, tmp_path):
    (tmp_path / "w.json").write_text('\ufeff[{"variables": ["lung"]}]', "utf-8")
    line = ["learn", patients, "asia", "-e", 1, "-o", "r.json", "-y", "--workload", "w.json"]
    assert run(*line).code == 0


def test_a_cap_whose_delta_would_fall_says_so(run):
    run("ledger", "open", "b.db", "ward", "--epsilon", 1, "--delta", "1e-6")
    run("ledger", "raise", "b.db", "ward", "--epsilon", 2).refused("delta=1e-06", "got epsilon=2 and delta=0")


def test_semicolons_and_decimal_commas_are_told_as_such(run, tmp_path):
    (tmp_path / "semi.csv").write_text("smoke;age\nyes;41,5\n")
    run("predict", "asia", "semi.csv", "lung", "-o", "p.csv").refused("separated by commas")
    run("learn", "semi.csv", "asia", *LEARN).refused("separated by commas")


@pytest.mark.parametrize("data", ["nofile.csv", ".", "notes.txt"])
def test_a_table_that_is_not_there_is_refused_before_the_question(run, data):
    Path("notes.txt").write_text("x")
    found = run("learn", data, "asia", "-e", 1, "-o", "r.json")
    assert found.code == 1 and found.err.startswith("error: ") and "go on?" not in found.err + found.out
