# Two commands do everything on a fresh machine with python3 (3.11 or newer) and make.
PYTHON ?= python3
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help run demo reproduce test test-all docs docs-build clean

help: ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## set up, then answer questions with the embedded model, all three teams
	@$(PYTHON) scripts/set_up.py
	@$(BIN)/python scripts/first_run.py

demo: ## set up, then let specialists and EXAID discuss a case with the embedded model, or MODEL=name
	@$(PYTHON) scripts/set_up.py --demos
	@$(BIN)/python -m demos.cdss_example.demo_cdss --case chest-pain --short --model "$(or $(MODEL),local)"

reproduce: ## set up, then score published predictions of ten methods, or the copy in FROM=folder
	@$(PYTHON) scripts/set_up.py
	@$(BIN)/python scripts/reproduce.py $(if $(FROM),--from "$(FROM)")

test: ## set up, then run all checks and the fast tests, or TESTS="arguments of pytest"
	@$(PYTHON) scripts/set_up.py --dev
	scripts/check
	scripts/test $(TESTS)

test-all: ## set up, then run all checks and all tests, and count branches
	@$(PYTHON) scripts/set_up.py --dev
	scripts/check
	scripts/test --all

docs: ## set up, then show the documentation in a browser and follow changes of its pages
	@$(PYTHON) scripts/set_up.py --docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve --open

docs-build: ## set up, then build the documentation into site/, with warnings as errors
	@$(PYTHON) scripts/set_up.py --docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "site/index.html is the documentation; it works from the disk and in any web server's folder"

clean: ## remove the virtual environment and all caches
	rm -rf site .venv .set-up.lock .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*
