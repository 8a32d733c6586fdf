# Two commands do everything on a fresh machine with Python 3.11 and pip: make demo, make test.
# Each makes the virtual environment if needed; a second run installs nothing.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
TORCH := torch==$(shell sed -n 's/^torch==//p' constraints.txt)

.PHONY: demo test lint speed clean

demo: $(VENV)/.installed
	$(BIN)/cida demo

test: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

speed: $(VENV)/.installed-test
	$(BIN)/cida speed

$(VENV)/bin/python:
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'cida needs Python 3.11 or newer: make PYTHON=python3.11')"
	$(PYTHON) -m venv $(VENV)

# torch alone, first and pinned: a range might bring the much larger build for graphics cards.
$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -q -c constraints.txt $(TORCH)
	$(PIP) install -q -c constraints.txt -e .
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(PIP) install -q -c constraints.txt -e ".[test]"
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
