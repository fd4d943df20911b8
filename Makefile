# Two commands do everything on a fresh machine with python3 (3.11 or newer) and make.
PYTHON ?= python3
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help run test clean

help: ## show this help
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-6s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: .venv/run.stamp ## set up, then answer questions with the embedded model, all three teams
	$(BIN)/python -m infra.local_model.weights
	$(BIN)/python scripts/show_all_teams.py

test: .venv/dev.stamp ## set up, then run all checks and tests
	$(BIN)/python -m infra.local_model.weights
	scripts/check
	scripts/test

clean: ## remove the virtual environment and all caches
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "error: python 3.11 or newer is needed; say make PYTHON=python3.12" >&2; exit 2; }
	$(PYTHON) -m venv .venv

.venv/run.stamp: requirements.txt pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

.venv/dev.stamp: requirements-dev.txt requirements.txt pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@
