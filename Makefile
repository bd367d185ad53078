# Everything starts here: each target makes what it needs and skips what is done.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
export MLFLOW_DISABLE_TELEMETRY := true

.PHONY: help demo study test test-fast lint format ui bench docs torture image-test clean
help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 11

$(VENV)/.lock: requirements.txt
	@test -n "$(PYTHON)" || { echo "make: Python 3.11 is needed: install it, or name it with make PYTHON=/path/to/python3.11" >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --requirement requirements.txt
	$(BIN)/pip install --quiet --no-deps --editable .
	@touch $@

$(VENV)/.lock-dev: $(VENV)/.lock requirements-dev.txt
	$(BIN)/pip install --quiet --requirement requirements-dev.txt
	@touch $@

$(VENV)/.lock-docs: $(VENV)/.lock requirements-docs.txt
	$(BIN)/pip install --quiet --requirement requirements-docs.txt
	@touch $@

demo: $(VENV)/.lock  ## a student distilled from an ensemble on synthetic fires, tracked by MLflow
	PATH="$(CURDIR)/$(BIN):$$PATH" mlflow run . -e distill --env-manager local --experiment-name fcer
	@echo "Next: make study (the whole study with its report), or make ui and open the address that it prints"

study: $(VENV)/.lock  ## the whole study on synthetic fires: four years, evaluated, with a report
	PATH="$(CURDIR)/$(BIN):$$PATH" mlflow run . --env-manager local --experiment-name fcer
	@echo "Report: work/study/report/report.html. Next: make ui, then open the address that it prints"

# Tests start many processes, each of which would compile the package anew where nothing may be kept
test test-fast: export PYTHONDONTWRITEBYTECODE :=
test: $(VENV)/.lock-dev  ## the whole test suite
	$(BIN)/python -m pytest

test-fast: $(VENV)/.lock-dev  ## the tests that take no whole command, training or server, in a minute
	$(BIN)/python -m pytest -m "not slow"

lint: $(VENV)/.lock-dev  ## ruff (lint, format) and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.lock-dev  ## have ruff correct what it can: style and layout
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

ui: $(VENV)/.lock  ## the MLflow UI on what commands logged here; prints where to begin
	@echo "Open $$($(BIN)/python -c 'from fcer.tracking import first_page; print(first_page())')"
	MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false $(BIN)/mlflow ui --port 5000 --workers 1

bench: $(VENV)/.lock-dev  ## speed against the plain way, as ratios measured in one run
	$(BIN)/python -m tests.benchmarks

docs: $(VENV)/.lock-docs  ## the documentation, as pages in site/ that need no network
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

torture: $(VENV)/.lock-dev  ## malformed inputs, kills and other faults from a seed: tried and held by class
	$(BIN)/python -m tests.torture

image-test: $(VENV)/.lock-dev  ## the image built without a Docker engine, and used; as root, with TORCH_INDEX=... (docker/README.md)
	TORCH_INDEX="$(TORCH_INDEX)" $(BIN)/python tests/docker/real_image.py

clean:  ## remove the environment (data and runs stay)
	rm -rf $(VENV)
