# make demo and make test need nothing but Python 3.11 (or later) and make: each sets up what it needs in .venv
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
BENCH_OUT ?= bench-results

.PHONY: demo test check lint format types bench clean help

help:
	@echo "make demo     explain rejected rows of scikit-learn's breast-cancer data, with proofs"
	@echo "make test     run the test suite"
	@echo "make check    what CI runs: lint, types, tests"
	@echo "make format   rewrite the sources in the project's format"
	@echo "make bench    compare the methods on this machine, with a report (OCF_DATA=folder adds the papers' data sets)"
	@echo "make clean    remove .venv and everything that was built"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# one stamp for each set of extras; a changed pyproject installs anew
$(VENV)/.core: $(BIN)/python pyproject.toml
	$(PIP) install --quiet -e .
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(PIP) install --quiet -e '.[dev]'
	@touch $@ $(VENV)/.core

demo: $(VENV)/.core
	$(BIN)/python examples/demo.py

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: lint types test

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# an editable install hides the mapping of formulations/ and solvers/ from mypy, so it checks what a user gets
types: $(VENV)/.dev
	rm -rf build
	$(PIP) install --quiet --no-deps --target build/types .
	cd build/types && ../../$(BIN)/mypy --config-file ../../pyproject.toml --cache-dir ../../.mypy_cache -p ocf

bench: $(VENV)/.dev
	$(BIN)/ocf compare bench -o $(BENCH_OUT) $(if $(OCF_DATA),--data $(OCF_DATA))

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
