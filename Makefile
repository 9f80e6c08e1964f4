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
	$(BIN)/ruff check src tests examples
	$(BIN)/ruff format --check src tests examples
	$(BIN)/mypy

test: lint  ## lint, type-check and run the tests
	$(BIN)/python -m pytest -n 2

bench-formats: $(VENV)/.dev  ## time the readers against pgmpy, and sampling
	$(BIN)/python benchmarks/formats.py

audit: $(VENV)/.dev  ## black-box audit of every private path and of broken ones, as a Markdown table (minutes)
	$(BIN)/python -m dpbn.audit

clean:  ## remove the environment and what was made
	rm -rf $(VENV) out site build

.PHONY: help demo lint test bench-formats audit clean
