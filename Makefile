# Two commands do everything on a fresh machine with Python 3.11 and pip: make demo, make test.
# Each makes the virtual environment if needed; a second run installs nothing.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
TORCH := torch==$(shell sed -n 's/^torch==//p' constraints.txt)

.PHONY: demo test lint browser docs screenshots speed lines kills fuzz audit clean

demo: $(VENV)/.installed
	@echo "cida is installed in $(VENV): . $(BIN)/activate"
	$(BIN)/cida demo

# Bytecode is kept, whatever the shell says: the tests start cida again and again. Files come in their
# order: by their number of tests, long ones of few would come last, with one core idle.
test: lint browser
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Reports are tested in a real browser. Where it cannot be installed so, the tests say what to do.
browser:
	@command -v chromium || command -v chromium-browser || command -v google-chrome \
	|| (apt-get update -q && DEBIAN_FRONTEND=noninteractive \
	    apt-get install -qy --no-install-recommends chromium) \
	|| echo "no browser, and apt-get cannot install one: install Chromium or Chrome by hand"

# The site, warnings as errors; nothing is fetched. tests/test_docs_site.py does the same.
docs: $(VENV)/.installed-test
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -n -q docs docs/_build/html

# The pictures of the report in README and docs; trains for some minutes if the runs are not there.
screenshots: $(VENV)/.installed-test browser
	$(BIN)/python examples/screenshots.py

# Commands killed at random moments, gone on with, and compared; takes some ten minutes.
kills: $(VENV)/.installed-test
	$(BIN)/python tests/faults/kills.py --kills 40

# How fast cida is on this machine, some twenty minutes on an idle one.
speed: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks --out docs/performance.md

# Lines of Python without docstrings, and files that are too long.
lines: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks.count_lines

# Ten thousand wrong files for every loader, two thousand odd arrays for the estimators: half an
# hour. Inputs that fail are left in fuzz-failures. The tests do the same with a hundred.
fuzz: $(VENV)/.installed-test
	$(BIN)/python tests/fuzz --inputs 10000
	CIDA_FUZZ_ESTIMATORS=2000 $(BIN)/python -m pytest tests/estimators/test_odd_input.py

# Known faults of the pinned packages, from PyPI's own list: needs a network, and no test does.
audit: $(VENV)/bin/python
	$(PIP) install -q pip-audit
	$(BIN)/python -m pip_audit -r constraints.txt --no-deps --disable-pip

$(VENV)/bin/python:
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'cida needs Python 3.11 or newer: make PYTHON=python3.11')"
	$(PYTHON) -m venv $(VENV)

# torch alone, first and pinned: a range might bring the much larger build for graphics cards.
$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -q -c constraints.txt $(TORCH)
	$(PIP) install -q -c constraints.txt -e ".[tables,plot]"
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(PIP) install -q -c constraints.txt -e ".[test]"
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache \
		docs/_build docs/gallery docs/api/generated
