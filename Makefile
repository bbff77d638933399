# make demo    the quickstart notebook, headless: no key, no network beyond the package registries
# make lab     the quickstart in JupyterLab, to run by hand; what the demo wrote lies beside it
# make test    lint, types, the tests (real kernels, real JupyterLab in a real Chromium), all but the long ones
# make test-long     variants and repeats that take many seconds each (CI runs them too)
# make test-places   those that a place may break, on older versions of ipykernel and in Notebook 7 (CI runs both)
# make test-binder   the environment of binder/, made anew, and every notebook run in it (CI runs it)
# make check   lint, a quick look at types and the quick tests of single parts, in half a minute (make test has all)
# make clean   what these made
#
# All that is needed is Python 3.11 or newer; everything else comes into .venv/ and build/ (a browser: see .ci/browser).

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.PHONY: demo lab test test-long test-places test-notebook test-binder check lint types types-quick types-js test-quick test-fast test-kernel test-browser browser clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
BUILD := build
JS_TOOLS := typescript@5.9.3
MCP_NODE := @modelcontextprotocol/server-everything@2026.8.31
MCP_PYTHON := mcp-server-time==2026.10.19 tzlocal==5.4.5 tzdata==2026.6
IPYKERNELS := 6.29.5 6.31.0 7.0.1 7.3.0
PYTEST := $(BIN)/python -m pytest --no-skips
export MPLCONFIGDIR := $(CURDIR)/$(BUILD)/matplotlib
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
unexport PYTHONDONTWRITEBYTECODE  # pytest rewrites every test file; without a cache each of its workers does so each time

demo: $(VENV)/.demo $(BUILD)/notebooks/.copied
	@$(BIN)/nbagent run $(BUILD)/notebooks/00_quickstart.ipynb -o $(BUILD)/notebooks/quickstart_finished.ipynb \
		--mode accept-edits --allow run_python --allow add_cell --allow edit_cell --allow run_cell
	@echo
	@echo "The finished notebook is $(BUILD)/notebooks/quickstart_finished.ipynb."
	@echo "See it, and run the quickstart yourself with Approve and Deny: make lab"

lab: $(VENV)/.demo $(BUILD)/notebooks/.copied
	@$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) $(BUILD)/notebooks/00_quickstart.ipynb

$(BUILD)/notebooks/.copied: $(wildcard notebooks/*.ipynb notebooks/data/*)  # a copy: what you try does not change the repository
	@mkdir -p $(BUILD)/notebooks
	@cp -R notebooks/*.ipynb notebooks/data $(BUILD)/notebooks/
	@touch $@

test: lint types test-fast test-kernel test-browser

FAST := not kernel and not browser
check: export HYPOTHESIS_PROFILE := quick
check: lint types-quick types-js test-quick

lint: $(VENV)/.dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .

types: types-js  # the young generation of node's heap is too small for pyright: a third of its time is saved
	@NODE_OPTIONS=--max-semi-space-size=128 $(BIN)/pyright --pythonpath $(BIN)/python

types-quick: $(VENV)/.dev
	@$(BIN)/pyrefly check --python-interpreter-path $(BIN)/python --min-severity error --summary=none

types-js: $(VENV)/.dev $(BUILD)/node/.installed
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BUILD)/node/node_modules/.bin/tsc --project tests/js

UNITS := tests/core tests/prompt tests/tools tests/esm tests/meta tests/test_architecture.py tests/test_size.py
test-quick: $(VENV)/.dev  # by file: those of the source's shape share its syntax trees. An analyst's libraries take seconds to import
	@$(PYTEST) -q -n 2 --dist loadfile $(UNITS) --ignore=tests/tools/data -m "$(FAST) and not slow"

test-fast: $(VENV)/.dev $(BUILD)/mcp/.installed
	@$(PYTEST) -q -n 2 --dist worksteal --ignore=tests/browser -m "$(FAST) and not long"

test-kernel: $(VENV)/.dev $(BUILD)/mcp/.installed  # to import all the others' files would take ten seconds in each process
	@$(PYTEST) -q -n 2 --dist loadgroup $$(grep -rl --include='test_*.py' 'mark\.kernel' tests | sort) -m "kernel and not browser and not long"

test-browser: $(VENV)/.dev browser  # two at a time: what a page does is mostly waiting
	@$(PYTEST) -q -n 2 --dist worksteal -m browser tests/browser

test-long: $(VENV)/.dev $(BUILD)/mcp/.installed
	@$(PYTEST) -q -n 2 --dist loadgroup -m "long and not browser"

test-places: $(IPYKERNELS:%=test-ipykernel-%) test-notebook

PLACES = $$($(BIN)/python -c 'from tests.conftest import EVERY_PLACE as them; print(*("tests/" + each for each in them if "browser" not in each))')
test-ipykernel-%: $(VENV)/.dev $(BUILD)/ipykernel/%/.installed
	@echo "On ipykernel $*"
	@$(PYTEST) -q -n 2 --dist loadgroup $(PLACES) -m "places and not browser" --ipykernel $*

test-notebook: $(VENV)/.dev browser
	@echo "In Notebook 7"
	@$(PYTEST) -q -m "places and browser" --front-end notebook tests/browser

test-binder:
	@PYTHON=$(PYTHON) .ci/binder

browser:
	@.ci/browser

# ── what they need ───────────────────────────────────────────────────────────────────────────────────────────────────

$(VENV)/.venv:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(None if v >= (3, 11) else \
		f"nbagent needs Python 3.11 or newer, and $(PYTHON) is {v[0]}.{v[1]}. Try: make PYTHON=python3.12 $(MAKECMDGOALS)")'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || .ci/debian python3-venv "Python's venv module"
	@echo "Making a virtual environment in $(VENV)/"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/.demo: pyproject.toml | $(VENV)/.venv
	@echo "Installing nbagent and what the demo needs into $(VENV)/ (a minute or two, once)"
	@$(PIP) install --editable '.[demo]'
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.demo
	@echo "Installing what the tests need into $(VENV)/"
	@$(PIP) install --editable '.[demo]' --group dev
	@$(PIP) uninstall --yes rfc3987-syntax  # a format that no notebook has: 1.5 s of CPU in each process that imports nbformat
	@$(BIN)/python -c 'import matplotlib.font_manager'  # the first scan of fonts takes seconds: not inside a test
	@touch $@

$(BUILD)/node/.installed: Makefile | $(VENV)/.dev
	@echo "Installing $(JS_TOOLS) into $(BUILD)/node/"
	@rm -rf $(BUILD)/node && mkdir -p $(BUILD)/node
	@PATH="$(CURDIR)/$(BIN):$$PATH" npm install --prefix $(BUILD)/node --no-save --no-package-lock --no-audit --no-fund \
		--loglevel error $(JS_TOOLS)
	@touch $@

$(BUILD)/mcp/.installed: Makefile | $(VENV)/.dev  # MCP servers that others wrote, to be tested against
	@echo "Installing $(MCP_NODE) $(MCP_PYTHON) into $(BUILD)/mcp/"
	@rm -rf $(BUILD)/mcp && mkdir -p $(BUILD)/mcp
	@PATH="$(CURDIR)/$(BIN):$$PATH" npm install --prefix $(BUILD)/mcp --no-save --no-package-lock --no-audit --no-fund \
		--loglevel error $(MCP_NODE)
	@$(PIP) install --no-deps --target $(BUILD)/mcp/python $(MCP_PYTHON)
	@touch $@

$(BUILD)/ipykernel/%/.installed: | $(VENV)/.dev  # the package alone, to put before the environment's own
	@echo "Installing ipykernel $* into $(@D)/"
	@rm -rf $(@D)
	@$(PIP) install --no-deps --target $(@D) ipykernel==$* 'nest-asyncio>=1.4'
	@touch $@

.PRECIOUS: $(BUILD)/ipykernel/%/.installed

clean:
	rm -rf $(VENV) $(BUILD) dist .pytest_cache .ruff_cache .hypothesis
