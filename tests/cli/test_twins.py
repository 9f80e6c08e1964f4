"""Library and command line are twins: every option is an argument in Python, every command prints JSON on request."""

import inspect
from importlib import import_module

import click
import pytest

import dpbn
from dpbn.cli import COMMANDS
from dpbn.cli import dpbn as group
from tests.docs.blocks import ROOT

# What only a command line needs, and why.
OF_THE_TERMINAL = {
    "as_json": "how to print",
    "yes": "the question before spending",
    "output": "the file a value is written to",
    "overwrite": "the file a value is written to",
    "keep": "the file a value is written to",
    "help": "click's own",
}

# command -> the Python that does the same: callables whose parameters take the options, and where other options went
TWINS = {
    "learn": (
        ["dpbn:learn"],
        {
            "schema": "dpbn.formats.schema_file:read_schema",
            "insecure_seed": "dpbn:InsecureNoise",  # noise=InsecureNoise(seed)
            "options": "dpbn:learn",  # **options
            "only_check": "dpbn:check",
        },
    ),
    "plan": (
        ["dpbn:plan"],
        {
            "schema": "dpbn.formats.schema_file:read_schema",
            "options": "dpbn:plan",  # **options
            "wanted_error": "dpbn.uncertainty.forecast:Forecast.epsilon_for",
            "plot": "dpbn.uncertainty.forecast:Forecast.plot",
            "tables": "dpbn.uncertainty.forecast:Forecast.to_dict",
        },
    ),
    "query": (
        ["dpbn:Inference.query"],
        {
            "model": "dpbn:Inference",
            "given": "dpbn:Inference.query",  # evidence=
            "soft": "dpbn:Inference.query",
            "interval": "dpbn.inference:Answer.interval",
            "no_interval": "dpbn:Inference.query",  # an answer computes its interval when asked for it
            "only_plan": "dpbn:Inference.plan",
            "versus": "dpbn:Inference.compare",
        },
    ),
    "map": (
        ["dpbn:Inference.map"],
        {"model": "dpbn:Inference", "given": "dpbn:Inference.mpe", "soft": "dpbn:Inference.mpe"},
    ),
    "predict": (
        ["dpbn:Inference.predict_proba"],
        {"model": "dpbn:Inference", "interval": "dpbn:Inference.predict_intervals"},
    ),
    "sample": (
        ["dpbn:Inference.sample"],
        {"model": "dpbn:Inference", "given": "dpbn:Inference.sample", "soft": "dpbn:Inference.sample"},
    ),
    "convert": (
        ["dpbn:write_network"],
        {"source": "dpbn.release:load_model", "structure": "dpbn:load_structure"},
    ),
    "inspect": (
        ["dpbn:BayesianNetwork.cpt"],
        {
            "source": "dpbn.release:load_model",
            "schema": "dpbn.formats.schema_file:read_schema",
            "schema_from": "dpbn.formats.schema_file:write_schema",
        },
    ),
    "report": (["dpbn.report:write_report"], {"no_interval": "dpbn.report:write_report"}),  # intervals=
    "serve": (["dpbn.web:serve"], {"open_browser": "webbrowser:open"}),
    "ledger open": (["dpbn:Ledger.open_dataset"], {"path": "dpbn:Ledger", "dataset": "dpbn:Ledger.open_dataset"}),
    "ledger raise": (["dpbn:Ledger.raise_cap"], {"path": "dpbn:Ledger", "dataset": "dpbn:Ledger.raise_cap"}),
    "ledger show": (["dpbn:Ledger.history"], {"path": "dpbn:Ledger"}),
    "ledger verify": (["dpbn:Ledger.verify"], {"path": "dpbn:Ledger", "head": "dpbn:Ledger.verify"}),
    "evaluate": (
        ["dpbn.evaluate.experiments:Grid", "dpbn.evaluate.experiments:run"],
        {"standing": "dpbn.evaluate.comparison:compare"},
    ),
    "reproduce": (["dpbn.evaluate.reproduce:reproduce"], {}),
    "audit": (["dpbn.audit.suite:lines"], {}),
}


def resolve(path):
    module, _, names = path.partition(":")
    value = import_module(module)
    for name in names.split("."):
        value = getattr(value, name)
    return value


def every_command():
    context = click.Context(group)
    for name in COMMANDS:
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from ((f"{name} {sub}", each) for sub, each in command.commands.items())
        else:
            yield name, command


ALL = dict(every_command())


def test_every_command_has_a_twin():
    assert set(TWINS) == set(ALL)


@pytest.mark.parametrize("name", list(ALL))
def test_every_option_is_reachable_from_python(name):
    callables, elsewhere = TWINS[name]
    taken = {parameter for path in callables for parameter in inspect.signature(resolve(path)).parameters}
    for option in ALL[name].params:
        if option.name in OF_THE_TERMINAL or option.name in taken:
            continue
        assert option.name in elsewhere, f"dpbn {name} {option.opts[0]} must be reachable from Python"
        assert callable(resolve(elsewhere[option.name]))
    stale = set(elsewhere) - {option.name for option in ALL[name].params}
    assert not stale, f"no longer options of {name}: {stale}"


@pytest.mark.parametrize("name", [name for name in ALL if name != "serve"])  # serve prints an address and stays
def test_every_command_prints_json_on_request(name):
    assert any("--json" in option.opts for option in ALL[name].params)


def test_learn_takes_everything_the_library_does():
    options = {option.name for option in ALL["learn"].params}
    renamed = {"noise": "insecure_seed"}
    drawn_always = {"progress"}  # the bar on a terminal
    for parameter in set(inspect.signature(dpbn.learn).parameters) - drawn_always:
        assert renamed.get(parameter, parameter) in options, parameter


def test_plan_takes_everything_that_learn_does_but_what_chooses_or_guards_records():
    of_the_records = {"data", "unit", "on_unknown"}
    of_spending = {"output", "overwrite", "ledger", "dataset", "insecure_seed", "yes", "only_check"}
    learn, plan = ({option.name: option for option in ALL[name].params} for name in ("learn", "plan"))
    assert set(learn) - set(plan) == of_the_records | of_spending
    for name in (set(learn) & set(plan)) - {"epsilon"}:
        assert learn[name].default == plan[name].default, name


def test_defaults_agree():
    library = inspect.signature(dpbn.learn).parameters
    for option in ALL["learn"].params:
        if option.name in ("method", "delta", "neighbors", "on_unknown"):
            assert option.default == library[option.name].default, option.name


def test_the_table_in_the_docs_names_every_command():
    text = (ROOT / "docs" / "command-line.md").read_text("utf-8")
    for name in COMMANDS:
        assert f"`dpbn {name}`" in text
