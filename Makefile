# Two commands do everything on a fresh clone: `make demo` and `make test`. `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := help

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## */\1\t/' | expand -t 18

$(VENV)/.light: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.light
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(VENV)/.light  ## learn ALARM at epsilon 1, write the release, ask it a question
	@mkdir -p out
	$(BIN)/python examples/demo.py out

lint: $(VENV)/.dev  ## lint and type-check
	$(BIN)/ruff check src tests examples benchmarks
	$(BIN)/ruff format --check src tests examples benchmarks
	$(BIN)/mypy

test: lint system-packages test-ibis  ## lint, type-check and run the tests
	$(BIN)/python -m pytest -n 2

bench-formats: $(VENV)/.dev  ## time the readers against pgmpy, and sampling
	$(BIN)/python benchmarks/formats.py

bench-intervals: $(VENV)/.dev  ## coverage and width of intervals on simulated releases
	$(BIN)/python benchmarks/intervals.py

bench-inference: $(VENV)/.bench  ## time posteriors, queries, batches and MPE against pyAgrum
	$(BIN)/python benchmarks/inference.py

check-explanations: $(VENV)/.bench  ## MPE on all 24 networks of the bnlearn repository (minutes)
	$(BIN)/python benchmarks/inference.py --only explanations

audit: $(VENV)/.dev  ## black-box audit of every private method and of broken ones (an hour on two cores); docs/reliability.md
	$(BIN)/python benchmarks/audit.py

fuzz: $(VENV)/.fuzz  ## coverage-guided fuzzing of every reader (8 minutes); figures go to docs/reliability.md
	$(BIN)/python benchmarks/fuzz.py 30

$(VENV)/.fuzz: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[fuzz]'
	@touch $@

soak: $(VENV)/.dev  ## 50 clients on the explorer for ten minutes; figures go to docs/reliability.md
	$(BIN)/python benchmarks/soak.py 600 50

trust: $(VENV)/.dev  ## long versions of the checks of leaks, ledger and limits (about an hour); docs/reliability.md
	$(BIN)/python benchmarks/leaks.py
	$(BIN)/python benchmarks/ledger.py
	$(BIN)/python benchmarks/limits.py
	$(BIN)/python benchmarks/licences.py

system-packages:
	@scripts/system-packages

.venv-ibis/.ready: pyproject.toml constraints-ibis.txt
	$(PYTHON) -m venv .venv-ibis
	.venv-ibis/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-ibis.txt -e '.[ibis]' pytest
	@touch $@

test-ibis: .venv-ibis/.ready system-packages  ## the tests of Ibis and PostgreSQL, in an environment of their own
	.venv-ibis/bin/python -m pytest tests/ibis_env

.venv-lowest/.ready: pyproject.toml scripts/lowest.py
	$(PYTHON) -m venv .venv-lowest
	$(PYTHON) scripts/lowest.py > .venv-lowest/constraints.txt
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c .venv-lowest/constraints.txt -e '.[numba,engines,spark,networkx,plots,web,sklearn,audit]' \
		pytest pytest-xdist hypothesis httpx jsonschema playwright axe-playwright-python dp-accounting
	@touch $@

test-lowest: .venv-lowest/.ready system-packages  ## the tests with the oldest versions that pyproject.toml allows
	.venv-lowest/bin/python -m pytest -n 2 --ignore=tests/trust/test_supply_chain.py --ignore=tests/trust/test_ledger_faults.py -k 'not docs/ecosystem.md'
	.venv-lowest/bin/python -m pytest tests/trust/test_ledger_faults.py  # forks, for which a process with all old engines is too large

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	@touch $@

bench-web: $(VENV)/.dev  ## 50 clients on the explorer for a minute: latencies, errors, memory, overload
	$(BIN)/python benchmarks/web.py

bench-learn: $(VENV)/.bench  ## the default learner against equal budgets, Private-PGM, and itself with parts removed
	$(BIN)/python benchmarks/learn.py
	$(BIN)/python benchmarks/learn.py --relations --ablation --workload --seconds
	$(BIN)/python benchmarks/shapes.py
	$(BIN)/python benchmarks/population.py

bench-count: $(VENV)/.bench  ## counting against mbi, polars and DuckDB, ratios in one run
	$(BIN)/python benchmarks/count.py

reference: $(VENV)/.dev  ## write docs/reference from the code
	$(BIN)/python scripts/reference.py

docs: reference  ## build the documentation into site/
	$(BIN)/python -m mkdocs build --strict

clean:  ## remove the environment and what was made
	rm -rf $(VENV) .venv-ibis .venv-lowest out site build

.PHONY: check-explanations fuzz soak trust help bench-web demo lint test bench-formats audit system-packages test-ibis test-lowest bench-count reference docs clean bench-inference bench-intervals bench-learn
