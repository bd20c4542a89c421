# One command a job. `make help` lists them; ARGS="…" is passed on where a target says so.

PYTHON ?= python3
BIN := .venv/bin
SYNCED := .venv/.synced
BUF := .tools/node_modules/.bin/buf
PROTOS := $(wildcard proto/outrider/v1/*.proto)

.DEFAULT_GOAL := help
.PHONY: help sync model demo serve test check lint type imports proto proto-check fmt bench exactness clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  \033[1m%-12s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

sync: $(SYNCED) ## Create or update .venv

$(SYNCED): pyproject.toml scripts/sync
	@PYTHON=$(PYTHON) scripts/sync
	@touch $@

model: sync ## Build the default model's bundle if it is absent
	@$(BIN)/outrider build

demo: model ## Stream a prompt plain and speculative, and compare (ARGS)
	@$(BIN)/python scripts/demo.py $(ARGS)

serve: model ## Serve the default model until interrupted (ARGS)
	@$(BIN)/outrider serve $(ARGS)

test: model ## Run the tests (ARGS)
	@$(BIN)/python -m pytest $(ARGS)

check: lint type imports proto-check ## Run every static check

lint: sync ## Check style and formatting
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

type: sync ## Check types
	@$(BIN)/mypy

imports: sync ## Check which package may import which
	@$(BIN)/python -m pytest --quiet tests/test_imports.py

proto: ## Format the protos and regenerate the Python stubs
proto: $(BUF)
	@$(BUF) format --write proto
	@PYTHON=$(PYTHON) scripts/generate-stubs clients/python/outrider/v1

proto-check: $(BUF) ## Lint the protos, refuse breaking changes and stale stubs
	@scripts/check-protos $(BUF)
	@PYTHON=$(PYTHON) scripts/check-stubs

fmt: sync ## Format the code
	@$(BIN)/ruff check --fix --exit-zero --quiet
	@$(BIN)/ruff format

bench: model ## Measure, and write the results as JSON and as a table (ARGS)
	@$(BIN)/python -m benchmarks $(ARGS)

exactness: model ## Show that speculation changes no output, and print the table (ARGS)
	@$(BIN)/python -m exactness $(ARGS)

clean: ## Remove what was generated, except built models
	rm -rf .venv .tools .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist

$(BUF): scripts/tool-versions
	@scripts/install-buf
	@touch $@
