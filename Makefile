# make demo and make test need nothing but Python 3.11 (or later) and make: each sets up what it needs in .venv
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
BENCH_OUT ?= bench-results
PAPERS_OUT ?= paper-results

# sources are compiled once, and not by each process that a test starts
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test slow kernels elsewhere variant lowest check layout lint format types docs bench papers clean help

help:
	@echo "make demo     explain rejected rows of scikit-learn's breast-cancer data, with proofs"
	@echo "make test     run the test suite, without what takes long"
	@echo "make slow     run the rest of it, with other kernels of linear algebra and for a generic processor"
	@echo "make variant  run the numeric tests of make test in the same way"
	@echo "make lowest   the tests with the oldest libraries that pyproject.toml allows, in a folder of its own"
	@echo "make check    what CI runs: lint, types, docs, tests, slow tests"
	@echo "make format   rewrite the sources in the project's format"
	@echo "make docs     build the manual; it begins at docs/_build/html/index.html"
	@echo "make bench    compare the methods on this machine, with a report (OCF_DATA=folder adds the papers' data sets)"
	@echo "make papers   the five papers' experiments, small (OCF_DATA=folder: with the papers' data sets)"
	@echo "make clean    remove .venv and everything that was built"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# one stamp for each set of extras; a changed pyproject installs anew
$(VENV)/.core: $(BIN)/python pyproject.toml
	$(PIP) install --quiet -e .
	@touch $@

$(VENV)/.tools: $(BIN)/python pyproject.toml
	$(PIP) install --quiet -e '.[docs,lint]'
	@touch $@ $(VENV)/.core

$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(PIP) install --quiet $(addprefix --find-links ,$(wildcard $(VENV)/wheels)) -e '.[dev]'
	@touch $@ $(VENV)/.core $(VENV)/.tools $(VENV)/.wheels

# compiles for a minute, in which make check does what needs no more than the tools
$(VENV)/.wheels: $(BIN)/python
	CXX=$(CURDIR)/.ci/quick-cxx $(PIP) wheel --quiet --no-deps --wheel-dir $(VENV)/wheels isotree
	@touch $@

demo: $(VENV)/.core
	$(BIN)/python examples/demo.py

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"

# the same answers are due from other kernels of linear algebra and other processors
ELSEWHERE := OPENBLAS_CORETYPE=Prescott NUMBA_CPU_NAME=generic NUMBA_CACHE_DIR=$(CURDIR)/$(VENV)/elsewhere

# once, and not by each process of the tests
kernels: $(VENV)/.tools
	$(BIN)/python -m ocf warm-up

# compiles for two minutes, in which the tests would wait
elsewhere: $(VENV)/.tools
	$(ELSEWHERE) $(BIN)/python -m ocf warm-up

# many instances of what `make test` tries on some, and what waits for seconds
slow: $(VENV)/.dev
	$(ELSEWHERE) $(BIN)/python -m pytest -n 2 --dist loadfile -m slow

variant: $(VENV)/.dev
	$(ELSEWHERE) $(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow" tests/solve tests/cells tests/solvers

# old libraries warn of newer ones
lowest:
	$(PYTHON) -m venv $(VENV)/lowest
	$(VENV)/lowest/bin/python -m pip --disable-pip-version-check install --quiet uv
	$(VENV)/lowest/bin/uv pip install --quiet --python $(VENV)/lowest --resolution lowest-direct -e '.[test]'
	$(VENV)/lowest/bin/python -m pytest -n 2 --dist loadfile -m "not slow" -W default

check:
	$(MAKE) $(VENV)/.tools
	$(MAKE) --jobs 2 kernels $(VENV)/.wheels lint types docs elsewhere
	$(MAKE) test slow

# an editable install hides the mapping of formulations/ and solvers/ from tools, so they look at what a user gets
layout: $(VENV)/.tools
	rm -rf build
	$(PIP) install --quiet --no-deps --target build/layout .

lint: layout
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	cd build/layout && PYTHONPATH=. ../../$(BIN)/lint-imports --config ../../pyproject.toml --no-cache

format: $(VENV)/.tools
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: layout
	cd build/layout && ../../$(BIN)/mypy --config-file ../../pyproject.toml --cache-dir ../../.mypy_cache -p ocf

# the examples of the gallery run here; a warning is an error
docs: $(VENV)/.tools
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

bench: $(VENV)/.dev
	$(BIN)/ocf compare bench -o $(BENCH_OUT) $(if $(OCF_DATA),--data $(OCF_DATA))

papers: $(VENV)/.dev
	$(BIN)/python examples/papers/all.py --quick -o $(PAPERS_OUT) $(if $(OCF_DATA),--data $(OCF_DATA))

clean:
	rm -rf $(VENV) build dist docs/_build docs/gallery docs/tutorial docs/reference/api *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
