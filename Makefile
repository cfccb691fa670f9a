# `make` alone lists the targets.
# The environment is made by the first command that needs it and again when a lock file changes.

PYTHON ?= python3
BIN := .venv/bin
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo test check lint types layers static unit format bench conformance targets lock clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 18

demo: .venv/run.stamp ## set up, then show what the product does
	@$(BIN)/equipoise demo

test: .venv/test.stamp ## set up, then lint, types, import layers and all tests
	@tools/system-parts.sh
	@tools/with-targets.sh $(MAKE) --no-print-directory check

# Types and layers keep one processor busy, so they run beside the tests.
check: lint
	@$(MAKE) --no-print-directory -j2 static unit

static: types layers

lint: .venv/test.stamp ## style
	@$(BIN)/ruff format --check --quiet . || { echo "run 'make format'"; exit 1; }
	@$(BIN)/ruff check --quiet .

types: .venv/test.stamp ## static types
	@$(BIN)/mypy

layers: .venv/test.stamp ## which package may import which
	@$(BIN)/lint-imports --no-cache

unit: .venv/test.stamp
	@$(BIN)/pytest -n auto --dist worksteal

format: .venv/test.stamp ## put the code into its form
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: .venv/run.stamp ## the benchmarks, as ratios measured in one run
	@$(BIN)/equipoise bench

RECORDED ?= ../shared/data/batsim/real
conformance: .venv/run.stamp ## replay recorded runs of real Batsim: RECORDED=FOLDER
	@$(BIN)/python tools/batsim_conformance.py "$(RECORDED)"

targets: .venv/run.stamp ## the schedulers to compare with, which takes minutes
	@$(BIN)/python -m equipoise.adapters.targets

lock: .venv/test.stamp ## choose new dependency versions
	@tools/lock.sh

clean: ## remove everything that was made
	rm -rf .venv .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist out

.venv/run.stamp: requirements/run.lock pyproject.toml tools/install.sh
	@PYTHON="$(PYTHON)" tools/install.sh requirements/run.lock
	@touch $@

.venv/test.stamp: requirements/test.lock pyproject.toml tools/install.sh
	@PYTHON="$(PYTHON)" tools/install.sh requirements/test.lock
	@touch .venv/run.stamp $@
