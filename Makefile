# Every target sets up .venv by itself, from pyproject.toml.

PYTHON ?= python3
LENS ?= canon17
BIN := .venv/bin
STAMP := .venv/.installed

# Empty ones are left to the command's own defaults.
DATA ?=
OUT ?=
RECIPE ?=
JOBS ?=
COMMON := $(if $(OUT),--out "$(OUT)") $(if $(JOBS),--jobs $(JOBS))

.DEFAULT_GOAL := help
.PHONY: help calibrate compare test test-system bench lint clean

help: ## this list
	@echo "influx_wrap: make TARGET [LENS=canon17|premista80] [DATA=DIR] [OUT=DIR] [RECIPE=influx|stock|batch] [JOBS=N]"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

calibrate: $(STAMP) ## calibrate all cells of LENS; simulated, or those in DATA
	$(BIN)/influx-calib run "$(LENS)" $(COMMON) $(if $(DATA),--data "$(DATA)") $(if $(RECIPE),--recipe $(RECIPE))

compare: $(STAMP) ## stock, influx and batch side by side; LENS=all for all lenses
	$(BIN)/influx-calib compare "$(LENS)" $(COMMON)

test: $(STAMP) ## the tests that need nothing but Python
	$(BIN)/pytest -n 2 -m "not system"

test-system: $(STAMP) ## the tests that need Debian packages
	@$(BIN)/pytest -m system; code=$$?; \
	if [ $$code -eq 5 ]; then echo "There are no system tests yet: nothing to run, nothing to install."; \
	else exit $$code; fi

bench: $(STAMP) ## how fast and how good, against OpenCV
	$(BIN)/python -m benchmarks

lint: $(STAMP) ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean: ## remove .venv and everything made from the source; runs/ stays
	rm -rf .venv build *.egg-info .pytest_cache .mypy_cache .ruff_cache
	find influx_wrap tests benchmarks -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	echo "influx_wrap needs Python 3.11 or newer; $(PYTHON) is older or missing. Try: make PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@
